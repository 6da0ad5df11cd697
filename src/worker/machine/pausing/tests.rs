use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::error::ErrorKind;
use crate::retry::{BuryReason, OnExhausted, Strategy};
use crate::worker::event::{Event, LONGEST_HOLD};
use crate::worker::{DeadLetterBy, Limits, NackPath, Pausing};

const SECOND: Duration = Duration::from_secs(1);

fn limits(strategy: Strategy, after: u32) -> Limits {
    Limits {
        prefetch: 3,
        jobs: 2,
        max_messages: None,
        max_attempts: 3,
        on_exhausted: OnExhausted::DeadLetter,
        max_returns: None,
        strategy,
        nack_path: NackPath::Confirmed,
        dead_letter: DeadLetterBy::Republish,
        publish_results: false,
        retry_with_result: false,
        dedupe: false,
        pausing: Some(Pausing {
            after,
            probe_wait: Duration::from_mins(1),
        }),
    }
}

fn delivered(tag: u64) -> Event {
    Event::Delivered {
        tag,
        attempt: 1,
        nack_is_unsafe: false,
        returns: 0,
    }
}

fn finished(tag: u64, outcome: Outcome) -> Event {
    Event::Finished {
        tag,
        outcome,
        result: false,
    }
}

fn failed() -> Outcome {
    Outcome::Failed {
        why: "w".into(),
        wait: None,
    }
}

const fn run(tag: u64) -> Effect {
    Effect::Run { tag, attempt: 1 }
}

const fn rest(wait: Duration) -> Effect {
    Effect::Rest { wait }
}

fn pause(sign: &str) -> Effect {
    Effect::Pause {
        sign: sign.into(),
        why: "w".into(),
        wait: SECOND,
    }
}

/// One that paused at the failure of 1, while 2 runs and 3 waited.
fn paused() -> Machine {
    let mut machine = Machine::new(limits(Strategy::Dlx, 1));
    for tag in 1..=3 {
        machine.handle(delivered(tag));
    }
    assert_eq!(
        machine.handle(finished(1, failed())),
        [
            pause("an attempt failed"),
            Effect::Release { tag: 3 },
            rest(SECOND)
        ]
    );
    assert!(machine.is_paused());
    machine
}

#[test]
fn a_pause_holds_its_first_probe_and_gives_back_the_rest() {
    let mut machine = paused();
    // What was begun before costs no attempt, and what came too late none either.
    assert_eq!(
        machine.handle(finished(2, failed())),
        [Effect::Release { tag: 2 }]
    );
    assert_eq!(machine.handle(delivered(4)), [Effect::Release { tag: 4 }]);
    assert_eq!(machine.handle(Event::Rested), [run(1)]);
    assert_eq!(
        machine.handle(finished(1, Outcome::Done)),
        [Effect::Ack { tag: 1 }, Effect::Resume]
    );
    assert!(!machine.is_paused());
    assert_eq!(machine.handle(delivered(5)), [run(5)]);
}

#[test]
fn whoever_is_done_ends_the_pause() {
    let mut machine = paused();
    assert_eq!(
        machine.handle(finished(2, Outcome::Done)),
        [Effect::Ack { tag: 2 }, Effect::Resume, run(1)]
    );
    assert!(!machine.is_paused());
}

#[test]
fn a_bad_message_does_not_make_an_outage_of_its_own() {
    let mut machine = paused();
    machine.handle(finished(2, failed()));
    assert_eq!(machine.handle(Event::Rested), [run(1)]);
    assert_eq!(
        machine.handle(finished(1, failed())),
        [rest(2 * SECOND), Effect::TakeOne]
    );
    assert_eq!(machine.handle(delivered(4)), [Effect::Unsubscribe]);
    assert_eq!(machine.handle(delivered(5)), [Effect::Release { tag: 5 }]);
    assert_eq!(machine.handle(Event::Rested), [run(4)]);
    // The good one: now the failures of the other are its own, and count.
    assert_eq!(
        machine.handle(finished(4, Outcome::Done)),
        [Effect::Ack { tag: 4 }, Effect::Resume, run(1)]
    );
    assert_eq!(
        machine.handle(finished(1, failed())),
        [Effect::DeadLetter { tag: 1 }]
    );
}

#[test]
fn with_a_row_of_one_a_bad_message_still_comes_to_its_end() {
    let mut machine = Machine::new(limits(Strategy::Immediate, 1));
    machine.handle(delivered(1));
    let mut next = 1;
    let mut effects = machine.handle(finished(1, failed()));
    while !effects
        .iter()
        .any(|effect| matches!(effect, Effect::Park { .. }))
    {
        assert!(next < 20, "never");
        machine.handle(Event::Rested);
        machine.handle(finished(1, failed()));
        next += 1;
        machine.handle(delivered(next));
        machine.handle(Event::Rested);
        machine.handle(finished(next, Outcome::Done));
        assert!(!machine.is_paused());
        effects = machine.handle(finished(1, failed()));
        if !machine.is_paused() && machine.in_flight() > 0 && machine.being_published().is_empty() {
            effects = machine.handle(finished(1, failed()));
        }
    }
    assert_eq!(machine.attempt(1), Some(3));
}

#[test]
fn poison_is_buried_even_as_a_probe_and_another_is_taken() {
    let mut machine = paused();
    machine.handle(finished(2, failed()));
    machine.handle(Event::Rested);
    assert_eq!(
        machine.handle(finished(1, Outcome::Poison { why: "w".into() })),
        [
            Effect::Park {
                tag: 1,
                attempt: 1,
                reason: BuryReason::Poison { why: "w".into() }
            },
            rest(2 * SECOND),
            Effect::TakeOne
        ]
    );
    machine.handle(Event::Rested);
    assert_eq!(
        machine.handle(delivered(4)),
        [Effect::Unsubscribe, run(4)],
        "it was due"
    );
}

#[test]
fn a_handler_that_says_so_pauses_at_once_and_one_that_cannot_start_stops() {
    let mut machine = Machine::new(limits(Strategy::Native, 5));
    machine.handle(delivered(1));
    assert_eq!(
        machine.handle(finished(1, Outcome::DownstreamDown { why: "w".into() })),
        [
            pause("the handler said that something it needs is down"),
            rest(SECOND)
        ]
    );
    machine.handle(Event::Rested);
    let cannot = Outcome::CannotStart { why: "w".into() };
    assert_eq!(
        machine.handle(finished(1, cannot)),
        [Effect::CancelConsumer, Effect::Release { tag: 1 }]
    );
    assert!(machine.is_done());
}

#[test]
fn a_probe_waits_for_a_free_handler() {
    let mut machine = Machine::new(Limits {
        jobs: 1,
        ..limits(Strategy::Dlx, 1)
    });
    machine.handle(delivered(1));
    machine.handle(finished(1, failed()));
    machine.handle(Event::ConnectionLost);
    assert_eq!(machine.handle(delivered(1)), [Effect::Unsubscribe, run(1)]);
    assert!(machine.is_paused(), "still, and probes at once");
}

#[test]
fn a_stop_gives_the_probes_back_and_costs_the_running_one_nothing() {
    let mut machine = paused();
    machine.handle(Event::Rested);
    assert_eq!(
        machine.handle(Event::Stop(StopReason::Signal)),
        [Effect::CancelConsumer]
    );
    for tag in [1, 2] {
        assert_eq!(
            machine.handle(finished(tag, failed())),
            [Effect::Release { tag }]
        );
    }
    assert!(machine.is_done());
    assert_eq!(machine.handle(Event::Rested), []);

    let mut machine = paused();
    assert_eq!(
        machine.handle(Event::Stop(StopReason::Signal)),
        [Effect::CancelConsumer, Effect::Release { tag: 1 }]
    );
}

#[test]
fn when_no_further_message_is_to_come_nobody_waits() {
    let mut machine = Machine::new(Limits {
        max_messages: Some(3),
        jobs: 3,
        ..limits(Strategy::Immediate, 2)
    });
    for tag in 1..=3 {
        machine.handle(delivered(tag));
    }
    assert_eq!(
        machine.handle(finished(1, failed())),
        [Effect::Run { tag: 1, attempt: 2 }]
    );
    assert_eq!(
        machine.handle(finished(2, failed())),
        [Effect::Release { tag: 2 }]
    );
    assert!(matches!(
        machine.stop_reason(),
        Some(StopReason::Handler { why }) if why.contains("2 attempts in a row")
    ));
    for tag in [1, 3] {
        assert_eq!(
            machine.handle(finished(tag, failed())),
            [Effect::Release { tag }]
        );
    }
    assert!(machine.is_done());
}

#[test]
fn what_a_pause_gives_back_was_not_taken() {
    let mut machine = Machine::new(Limits {
        max_messages: Some(4),
        ..limits(Strategy::Dlx, 1)
    });
    for tag in 1..=3 {
        machine.handle(delivered(tag));
    }
    machine.handle(finished(1, failed()));
    machine.handle(finished(2, failed()));
    machine.handle(Event::Rested);
    machine.handle(finished(1, Outcome::Done));
    for tag in 4..=5 {
        machine.handle(delivered(tag));
        assert_eq!(machine.stop_reason(), None);
    }
    machine.handle(delivered(6));
    assert_eq!(machine.stop_reason(), Some(&StopReason::MaxMessages));
}

#[test]
fn the_last_message_of_all_may_be_a_probe() {
    let mut machine = Machine::new(Limits {
        max_messages: Some(2),
        ..limits(Strategy::Dlx, 1)
    });
    machine.handle(delivered(1));
    machine.handle(finished(1, failed()));
    machine.handle(Event::Rested);
    machine.handle(finished(1, failed()));
    machine.handle(delivered(2));
    machine.handle(Event::Rested);
    assert_eq!(
        machine.handle(finished(2, Outcome::Done)),
        [Effect::CancelConsumer, Effect::Ack { tag: 2 }, run(1)]
    );
    machine.handle(finished(1, Outcome::Done));
    assert!(machine.is_done());
}

/// Once it was told to rest for a pause that was over.
#[test]
fn when_the_last_message_of_all_is_poison_nothing_is_waited_for() {
    let mut machine = Machine::new(Limits {
        max_messages: Some(2),
        ..limits(Strategy::Dlx, 1)
    });
    machine.handle(delivered(1));
    machine.handle(finished(1, failed()));
    machine.handle(Event::ConnectionLost);
    assert_eq!(machine.handle(delivered(2)), [Effect::Unsubscribe, run(2)]);
    let poison = Outcome::Poison { why: "w".into() };
    let effects = machine.handle(finished(2, poison));
    assert!(
        matches!(
            effects.as_slice(),
            [Effect::Park { tag: 2, .. }, Effect::CancelConsumer]
        ),
        "{effects:?}"
    );
    assert!(!machine.is_paused());
}

/// A queue, a worker and something downstream, in a time that is only counted.
struct World {
    machine: Machine,
    strategy: Strategy,
    now: Duration,
    ready: VecDeque<(usize, u32)>,
    out: BTreeMap<u64, (usize, u32)>,
    /// What each consumer has out, and may have.
    consumers: Vec<(Vec<u64>, usize)>,
    subscribed: bool,
    prefetch: usize,
    due: BTreeMap<(Duration, u64), Due>,
    next: u64,
    down: std::ops::Range<Duration>,
    probes: usize,
    acked: Vec<usize>,
    buried: Vec<usize>,
    parking: Vec<u64>,
}

enum Due {
    Ends(u64),
    Rested,
    Back(usize, u32),
    Parked(u64),
}

impl World {
    fn new(limits: Limits, messages: usize, down: std::ops::Range<Duration>) -> Self {
        let prefetch = usize::from(limits.prefetch);
        Self {
            machine: Machine::new(limits),
            strategy: limits.strategy,
            now: Duration::ZERO,
            ready: (0..messages).map(|id| (id, 1)).collect(),
            out: BTreeMap::new(),
            consumers: vec![(Vec::new(), prefetch)],
            subscribed: true,
            prefetch,
            due: BTreeMap::new(),
            next: 0,
            down,
            probes: 0,
            acked: Vec::new(),
            buried: Vec::new(),
            parking: Vec::new(),
        }
    }

    fn later(&mut self, wait: Duration, what: Due) {
        self.next += 1;
        self.due.insert((self.now + wait, self.next), what);
    }

    fn settled(&mut self, tag: u64) -> (usize, u32) {
        for (out, _) in &mut self.consumers {
            out.retain(|other| *other != tag);
        }
        self.out.remove(&tag).expect("settled once")
    }

    fn subscribe(&mut self, prefetch: usize) {
        self.consumers.push((Vec::new(), prefetch));
        self.subscribed = true;
    }

    fn tell(&mut self, event: Event) {
        let was_paused = self.machine.is_paused();
        for effect in self.machine.handle(event) {
            match effect {
                Effect::Run { tag, .. } => {
                    if was_paused && self.machine.is_paused() {
                        self.probes += 1;
                    }
                    self.later(Duration::from_millis(20), Due::Ends(tag));
                }
                Effect::Ack { tag } => {
                    let (id, _) = self.settled(tag);
                    if self.parking.contains(&tag) {
                        self.buried.push(id);
                    } else {
                        self.acked.push(id);
                    }
                }
                Effect::DeadLetter { tag } => {
                    let (id, attempt) = self.settled(tag);
                    self.later(5 * SECOND, Due::Back(id, attempt + 1));
                }
                Effect::Release { tag } => {
                    let back = self.settled(tag);
                    self.ready.push_front(back);
                }
                Effect::Park { tag, .. } => {
                    self.parking.push(tag);
                    self.later(SECOND, Due::Parked(tag));
                }
                Effect::Pause { .. } | Effect::Unsubscribe => self.subscribed = false,
                Effect::Rest { wait } => {
                    assert!(wait <= LONGEST_HOLD);
                    self.later(wait, Due::Rested);
                }
                Effect::TakeOne => self.subscribe(1),
                Effect::Resume => self.subscribe(self.prefetch),
                other => panic!("{other:?} under {}", self.strategy),
            }
        }
    }

    fn deliver(&mut self) {
        while self.subscribed
            && let Some((out, most)) = self.consumers.last_mut()
            && out.len() < *most
            && let Some((id, attempt)) = self.ready.pop_front()
        {
            self.next += 1;
            let tag = self.next;
            out.push(tag);
            self.out.insert(tag, (id, attempt));
            self.tell(Event::Delivered {
                tag,
                attempt,
                nack_is_unsafe: false,
                returns: 0,
            });
        }
    }

    fn run(&mut self, is_bad: impl Fn(usize) -> bool) {
        self.deliver();
        while let Some(((now, _), what)) = self.due.pop_first() {
            self.now = now;
            assert!(now < Duration::from_hours(9), "it never ends");
            match what {
                Due::Ends(tag) => {
                    let is_down = self.down.contains(&now) || is_bad(self.out[&tag].0);
                    let outcome = if is_down { failed() } else { Outcome::Done };
                    self.tell(finished(tag, outcome));
                }
                Due::Rested => self.tell(Event::Rested),
                Due::Parked(tag) => self.tell(Event::Published {
                    tag,
                    result: Ok(()),
                }),
                Due::Back(id, attempt) => self.ready.push_back((id, attempt)),
            }
            self.deliver();
        }
    }
}

#[test]
fn an_hour_of_outage_buries_nothing() {
    for strategy in [Strategy::Dlx, Strategy::Immediate] {
        for prefetch in [1, 50] {
            let down = 2 * SECOND..Duration::from_secs(3602);
            let limits = Limits {
                prefetch,
                jobs: prefetch,
                ..limits(strategy, 2)
            };
            let mut world = World::new(
                limits,
                1000,
                if prefetch == 1 {
                    down
                } else {
                    SECOND / 10..Duration::from_hours(1)
                },
            );
            world.run(|_| false);
            let about = format!("{strategy} {prefetch}");
            assert!(world.buried.is_empty(), "{about} {:?}", world.buried);
            world.acked.sort_unstable();
            assert!(world.acked.iter().copied().eq(0..1000), "{about}");
            assert!(
                (50..100).contains(&world.probes),
                "{about} {}",
                world.probes
            );
            assert!(world.now > Duration::from_hours(1), "{about}");
        }
    }
}

#[test]
fn a_bad_message_is_buried_and_all_others_are_done() {
    for strategy in [Strategy::Dlx, Strategy::Immediate] {
        for (prefetch, after) in [(1, 1), (1, 2), (50, 1), (50, 3)] {
            let limits = Limits {
                prefetch,
                jobs: prefetch,
                ..limits(strategy, after)
            };
            let mut world = World::new(limits, 200, Duration::ZERO..Duration::ZERO);
            // Alone in its queue a bad message looks like an outage.
            for id in 200..400_u32 {
                world.later(20 * SECOND * (id - 199), Due::Back(id as usize, 1));
            }
            world.run(|id| id == 7);
            let about = format!("{strategy} {prefetch} {after}");
            assert_eq!(world.buried, [7], "{about}");
            assert_eq!(world.acked.len(), 399, "{about}");
        }
    }
}

#[test]
fn a_copy_that_is_not_taken_stops_a_paused_worker_too() {
    let mut machine = paused();
    machine.handle(Event::Rested);
    machine.handle(finished(1, Outcome::Poison { why: "w".into() }));
    let error = crate::error::Error::new(ErrorKind::Unroutable, "no queue");
    let effects = machine.handle(Event::Published {
        tag: 1,
        result: Err(error),
    });
    assert_eq!(
        effects,
        [Effect::CancelConsumer, Effect::Release { tag: 1 }]
    );
}
