use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::dedupe::Claim;
use crate::error::ErrorKind;
use crate::retry::{OnExhausted, Strategy};
use crate::worker::Pausing;

fn limits(strategy: Strategy) -> Limits {
    Limits {
        prefetch: 2,
        jobs: 2,
        max_messages: None,
        max_attempts: 3,
        on_exhausted: OnExhausted::DeadLetter,
        max_returns: Some(20),
        strategy,
        nack_path: NackPath::Confirmed,
        dead_letter: DeadLetterBy::Republish,
        publish_results: false,
        retry_with_result: false,
        dedupe: false,
        pausing: None,
    }
}

fn delivered(tag: u64, attempt: u32) -> Event {
    Event::Delivered {
        tag,
        attempt,
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

fn exhausted() -> BuryReason {
    BuryReason::Exhausted { why: "w".into() }
}

#[test]
fn dlx_nacks_until_the_attempts_run_out_and_then_parks() {
    let mut machine = Machine::new(limits(Strategy::Dlx));
    assert_eq!(
        machine.handle(delivered(1, 2)),
        [Effect::Run { tag: 1, attempt: 2 }]
    );
    assert_eq!(
        machine.handle(finished(1, failed())),
        [Effect::DeadLetter { tag: 1 }]
    );
    machine.handle(delivered(2, 3));
    assert_eq!(
        machine.handle(finished(2, failed())),
        [Effect::Park {
            tag: 2,
            attempt: 3,
            reason: exhausted()
        }]
    );
    assert_eq!(
        machine.in_flight(),
        1,
        "not settled before its copy is safe"
    );
    assert_eq!(
        machine.handle(Event::Published {
            tag: 2,
            result: Ok(())
        }),
        [Effect::Ack { tag: 2 }]
    );
    assert_eq!(
        machine.counts(),
        Counts {
            received: 2,
            retried: 1,
            exhausted: 1,
            ..Counts::default()
        }
    );
}

#[test]
fn a_copy_that_was_not_taken_puts_the_message_back_and_stops() {
    let mut machine = Machine::new(limits(Strategy::Dlx));
    machine.handle(delivered(1, 3));
    machine.handle(finished(1, Outcome::Poison { why: "w".into() }));
    let error = Error::new(ErrorKind::Unroutable, "no queue");
    assert_eq!(
        machine.handle(Event::Published {
            tag: 1,
            result: Err(error.clone())
        }),
        [Effect::CancelConsumer, Effect::Release { tag: 1 }]
    );
    assert_eq!(machine.stop_reason(), Some(&StopReason::NotParked(error)));
    assert!(machine.is_done());
}

#[test]
fn backoff_acks_a_failed_message_only_after_its_copy_is_confirmed() {
    let mut machine = Machine::new(limits(Strategy::Backoff));
    machine.handle(delivered(1, 2));
    assert_eq!(
        machine.handle(finished(
            1,
            Outcome::Failed {
                why: "w".into(),
                wait: None
            }
        )),
        [Effect::RetryByCopy {
            tag: 1,
            attempt: 2,
            wait: None
        }]
    );
    let confirmed = Event::Published {
        tag: 1,
        result: Ok(()),
    };
    assert_eq!(machine.handle(confirmed), [Effect::Ack { tag: 1 }]);
    assert_eq!(machine.counts().retried, 1);
}

#[test]
fn immediate_tries_again_while_it_holds_the_message() {
    let mut machine = Machine::new(limits(Strategy::Immediate));
    machine.handle(delivered(1, 1));
    for attempt in 2..=3 {
        assert_eq!(
            machine.handle(finished(1, failed())),
            [Effect::Run { tag: 1, attempt }]
        );
    }
    assert_eq!(
        machine.handle(finished(1, failed())),
        [Effect::Park {
            tag: 1,
            attempt: 3,
            reason: exhausted()
        }]
    );
    machine.handle(Event::Published {
        tag: 1,
        result: Ok(()),
    });
    assert_eq!(machine.counts().exhausted, 1);
}

#[test]
fn a_drain_lets_the_running_end_and_starts_nothing() {
    let mut machine = Machine::new(limits(Strategy::Immediate));
    machine.handle(delivered(1, 1));
    machine.handle(delivered(2, 1));
    assert_eq!(
        machine.handle(Event::Stop(StopReason::Signal)),
        [Effect::CancelConsumer]
    );
    assert_eq!(
        machine.handle(delivered(3, 1)),
        [Effect::Release { tag: 3 }]
    );
    assert_eq!(
        machine.handle(finished(1, failed())),
        [Effect::Release { tag: 1 }]
    );
    assert!(!machine.is_done());
    assert_eq!(
        machine.handle(finished(2, Outcome::Done)),
        [Effect::Ack { tag: 2 }]
    );
    assert!(machine.is_done());
}

#[test]
fn the_last_message_cancels_the_consumer_before_its_ack_frees_a_place() {
    let mut machine = Machine::new(Limits {
        max_messages: Some(1),
        ..limits(Strategy::Immediate)
    });
    assert_eq!(
        machine.handle(delivered(1, 1)),
        [Effect::CancelConsumer, Effect::Run { tag: 1, attempt: 1 }]
    );
    assert_eq!(
        machine.handle(delivered(2, 1)),
        [Effect::Release { tag: 2 }]
    );
    // Taken is taken: it is worked to its end.
    assert_eq!(
        machine.handle(finished(1, failed())),
        [Effect::Run { tag: 1, attempt: 2 }]
    );
    // But not after a signal.
    assert_eq!(machine.handle(Event::Stop(StopReason::Signal)), []);
    assert_eq!(
        machine.handle(finished(1, failed())),
        [Effect::Release { tag: 1 }]
    );
    assert_eq!(machine.stop_reason(), Some(&StopReason::Signal));
}

#[test]
fn where_a_nack_cannot_be_trusted_a_retry_is_a_copy() {
    let mut machine = Machine::new(Limits {
        nack_path: NackPath::Seen,
        ..limits(Strategy::Dlx)
    });
    machine.handle(delivered(1, 2));
    assert_eq!(
        machine.handle(finished(1, failed())),
        [Effect::RetryByCopy {
            tag: 1,
            attempt: 2,
            wait: None
        }]
    );
    assert_eq!(machine.being_published(), [1]);
}

#[test]
fn a_bad_deploy_gives_the_message_back_and_stops() {
    let mut machine = Machine::new(limits(Strategy::Dlx));
    machine.handle(delivered(1, 3));
    assert_eq!(
        machine.handle(finished(1, Outcome::CannotStart { why: "w".into() })),
        [Effect::CancelConsumer, Effect::Release { tag: 1 }]
    );
    assert_eq!(machine.counts().settled(), 0);
}

#[test]
fn a_nack_that_would_lose_the_message_becomes_a_copy() {
    let fatal = |tag, attempt| Event::Delivered {
        tag,
        attempt,
        nack_is_unsafe: true,
        returns: 0,
    };
    let mut machine = Machine::new(limits(Strategy::Dlx));
    machine.handle(fatal(1, 1));
    assert_eq!(
        machine.handle(finished(1, failed())),
        [Effect::RetryByCopy {
            tag: 1,
            attempt: 1,
            wait: None
        }]
    );
    assert_eq!(
        machine.handle(Event::Published {
            tag: 1,
            result: Ok(())
        }),
        [Effect::Ack { tag: 1 }]
    );
    assert_eq!(machine.counts().retried, 1);
}

#[test]
fn the_one_that_waits_for_a_handler_is_started_when_one_is_free() {
    let mut machine = Machine::new(Limits {
        jobs: 1,
        ..limits(Strategy::Dlx)
    });
    machine.handle(delivered(1, 1));
    assert_eq!(machine.handle(delivered(2, 2)), []);
    assert_eq!(
        machine.handle(finished(1, Outcome::Done)),
        [Effect::Ack { tag: 1 }, Effect::Run { tag: 2, attempt: 2 }]
    );
    machine.handle(delivered(3, 1));
    // Nobody has begun it: back with it.
    assert_eq!(
        machine.handle(Event::Stop(StopReason::Signal)),
        [Effect::CancelConsumer, Effect::Release { tag: 3 }]
    );
}

#[test]
fn one_delivery_too_many_waits_and_is_not_given_back() {
    let mut machine = Machine::new(limits(Strategy::Dlx));
    for tag in 1..=3 {
        machine.handle(delivered(tag, 1));
    }
    assert_eq!(machine.in_flight(), 3);
    assert_eq!(machine.counts().released, 0);
    assert_eq!(
        machine.handle(finished(1, Outcome::Done)),
        [Effect::Ack { tag: 1 }, Effect::Run { tag: 3, attempt: 1 }]
    );
}

#[test]
fn a_delay_that_was_asked_for_is_kept_by_whoever_can() {
    let wait = Some(Duration::from_secs(7));
    let asking = || Outcome::Failed {
        why: "w".into(),
        wait,
    };
    for (strategy, effect) in [
        (
            Strategy::Dlx,
            Effect::RetryByCopy {
                tag: 1,
                attempt: 1,
                wait,
            },
        ),
        (
            Strategy::Backoff,
            Effect::RetryByCopy {
                tag: 1,
                attempt: 1,
                wait,
            },
        ),
        (
            Strategy::Immediate,
            Effect::Hold {
                tag: 1,
                wait: Duration::from_secs(7),
            },
        ),
        (Strategy::Native, Effect::Requeue { tag: 1 }),
    ] {
        let mut machine = Machine::new(limits(strategy));
        machine.handle(delivered(1, 1));
        assert_eq!(machine.handle(finished(1, asking())), [effect]);
    }
}

#[test]
fn a_held_message_goes_on_after_its_pause_and_back_when_the_worker_stops() {
    let mut machine = Machine::new(limits(Strategy::Immediate));
    machine.handle(delivered(1, 1));
    machine.handle(delivered(2, 1));
    let long = Outcome::Failed {
        why: "w".into(),
        wait: Some(LONGEST_HOLD * 2),
    };
    for tag in [1, 2] {
        assert_eq!(
            machine.handle(finished(tag, long.clone())),
            [Effect::Hold {
                tag,
                wait: LONGEST_HOLD
            }]
        );
    }
    assert_eq!(
        machine.handle(Event::Waited { tag: 1 }),
        [Effect::Run { tag: 1, attempt: 2 }]
    );
    assert_eq!(
        machine.handle(Event::Stop(StopReason::Signal)),
        [Effect::CancelConsumer, Effect::Release { tag: 2 }]
    );
    assert_eq!(machine.handle(Event::Waited { tag: 2 }), []);
}

#[test]
fn native_requeues_and_lets_the_broker_count() {
    let mut machine = Machine::new(limits(Strategy::Native));
    machine.handle(delivered(1, 2));
    assert_eq!(
        machine.handle(finished(1, failed())),
        [Effect::Requeue { tag: 1 }]
    );
    // One that brought the count of another queue along starts anew as a copy.
    machine.handle(Event::Delivered {
        tag: 2,
        attempt: 1,
        nack_is_unsafe: true,
        returns: 0,
    });
    assert_eq!(
        machine.handle(finished(2, failed())),
        [Effect::RetryByCopy {
            tag: 2,
            attempt: 1,
            wait: None
        }]
    );
}

#[test]
fn a_result_is_published_before_its_message_is_acked() {
    let mut machine = Machine::new(Limits {
        publish_results: true,
        ..limits(Strategy::Dlx)
    });
    let done = |tag| Event::Finished {
        tag,
        outcome: Outcome::Done,
        result: true,
    };
    machine.handle(delivered(1, 1));
    assert_eq!(machine.handle(done(1)), [Effect::PublishResult { tag: 1 }]);
    assert_eq!(machine.being_published(), [1]);
    let confirmed = Event::Published {
        tag: 1,
        result: Ok(()),
    };
    assert_eq!(machine.handle(confirmed), [Effect::Ack { tag: 1 }]);
    // Nobody waits for the answer any more: not acked as if it had been given.
    machine.handle(delivered(2, 1));
    machine.handle(done(2));
    let gone = Event::NobodyToAnswer {
        tag: 2,
        why: "gone".into(),
    };
    assert_eq!(
        machine.handle(gone),
        [Effect::Park {
            tag: 2,
            attempt: 1,
            reason: BuryReason::Poison { why: "gone".into() }
        }]
    );
}

#[test]
fn a_changed_body_travels_as_a_copy() {
    let mut machine = Machine::new(Limits {
        retry_with_result: true,
        ..limits(Strategy::Dlx)
    });
    machine.handle(delivered(1, 1));
    let changed = Event::Finished {
        tag: 1,
        outcome: failed(),
        result: true,
    };
    assert_eq!(
        machine.handle(changed),
        [Effect::RetryByCopy {
            tag: 1,
            attempt: 1,
            wait: None
        }]
    );
}

#[test]
fn a_message_that_ends_its_workers_is_not_tried_again() {
    let mut machine = Machine::new(limits(Strategy::Dlx));
    let returned = |tag, returns| Event::Delivered {
        tag,
        attempt: 2,
        nack_is_unsafe: false,
        returns,
    };
    assert_eq!(
        machine.handle(returned(1, 20)),
        [Effect::Run { tag: 1, attempt: 2 }]
    );
    let effects = machine.handle(returned(2, 21));
    let [
        Effect::Park {
            tag: 2,
            attempt: 1,
            reason: BuryReason::Returned { why },
        },
    ] = effects.as_slice()
    else {
        panic!("{effects:?}");
    };
    assert!(why.contains("21 times"), "{why}");
}

#[test]
fn without_a_dead_letter_queue_the_worker_stops_at_what_cannot_be_done() {
    for (attempt, outcome, word) in [
        (1, Outcome::Poison { why: "w".into() }, "poison"),
        (3, failed(), "exhausted"),
    ] {
        let mut machine = Machine::new(Limits {
            dead_letter: DeadLetterBy::Nowhere,
            ..limits(Strategy::Immediate)
        });
        machine.handle(delivered(7, attempt));
        assert_eq!(
            machine.handle(finished(7, outcome)),
            [Effect::CancelConsumer, Effect::Release { tag: 7 }]
        );
        assert!(matches!(
            machine.stop_reason(),
            Some(StopReason::NoDeadLetterQueue { tag: 7, reason }) if reason.word() == word
        ));
    }
}

#[test]
fn a_nack_ends_a_message_only_where_it_is_known_to_lead_there() {
    let nack = |strategy, nack_path, nack_is_unsafe| {
        let mut machine = Machine::new(Limits {
            dead_letter: DeadLetterBy::Nack,
            nack_path,
            ..limits(strategy)
        });
        machine.handle(Event::Delivered {
            tag: 1,
            attempt: 1,
            nack_is_unsafe,
            returns: 0,
        });
        machine.handle(finished(1, Outcome::Poison { why: "w".into() }))
            == [Effect::Bury { tag: 1 }]
    };
    for strategy in [Strategy::Backoff, Strategy::Immediate, Strategy::Native] {
        assert!(nack(strategy, NackPath::Seen, false));
        assert!(!nack(strategy, NackPath::Believed, false));
        assert!(!nack(strategy, NackPath::Seen, true));
    }
    assert!(!nack(Strategy::Dlx, NackPath::Confirmed, false));
}

#[test]
fn a_message_is_claimed_before_its_work_and_remembered_before_its_ack() {
    let mut machine = Machine::new(Limits {
        dedupe: true,
        publish_results: true,
        ..limits(Strategy::Dlx)
    });
    let claimed = |tag, claim| Event::Claimed {
        tag,
        result: Ok(claim),
    };
    assert_eq!(machine.handle(delivered(1, 1)), [Effect::Claim { tag: 1 }]);
    assert_eq!(
        machine.handle(claimed(1, Claim::Mine)),
        [Effect::Run { tag: 1, attempt: 1 }]
    );
    let done = Event::Finished {
        tag: 1,
        outcome: Outcome::Done,
        result: true,
    };
    assert_eq!(machine.handle(done), [Effect::PublishResult { tag: 1 }]);
    let published = Event::Published {
        tag: 1,
        result: Ok(()),
    };
    assert_eq!(
        machine.handle(published),
        [Effect::Record { tag: 1 }],
        "its result is part of the work"
    );
    let recorded = Event::Recorded {
        tag: 1,
        result: Ok(()),
    };
    assert_eq!(machine.handle(recorded), [Effect::Ack { tag: 1 }]);
    machine.handle(delivered(2, 1));
    assert_eq!(
        machine.handle(claimed(2, Claim::Done)),
        [Effect::Ack { tag: 2 }]
    );
    assert_eq!(
        machine.counts(),
        Counts {
            received: 2,
            acked: 1,
            deduplicated: 1,
            ..Counts::default()
        }
    );
}

#[test]
fn without_the_store_nothing_is_worked_and_what_is_done_is_acked() {
    let error = Error::new(ErrorKind::Unavailable, "s");
    let dedupe = Limits {
        dedupe: true,
        ..limits(Strategy::Dlx)
    };
    let mut machine = Machine::new(dedupe);
    machine.handle(delivered(1, 1));
    machine.handle(delivered(2, 1));
    let unclaimed = Event::Claimed {
        tag: 1,
        result: Err(error.clone()),
    };
    assert_eq!(
        machine.handle(unclaimed),
        [
            Effect::CancelConsumer,
            Effect::Release { tag: 1 },
            Effect::Release { tag: 2 }
        ]
    );
    assert_eq!(
        machine.stop_reason(),
        Some(&StopReason::NotDeduplicated(error.clone()))
    );
    let mut machine = Machine::new(dedupe);
    machine.handle(delivered(1, 1));
    machine.handle(Event::Claimed {
        tag: 1,
        result: Ok(Claim::Mine),
    });
    machine.handle(finished(1, Outcome::Done));
    let unrecorded = Event::Recorded {
        tag: 1,
        result: Err(error),
    };
    assert_eq!(
        machine.handle(unrecorded),
        [Effect::CancelConsumer, Effect::Ack { tag: 1 }]
    );
}

#[derive(Clone, Debug)]
enum Step {
    Deliver(u32, bool, u64),
    Finish(usize, Outcome, bool),
    Wait(usize),
    Rest,
    Publish(usize, bool),
    NobodyToAnswer(usize),
    Claim(usize, Option<bool>),
    Record(usize, bool),
    Stop,
    Lose,
}

fn step() -> impl Strategy_<Value = Step> {
    let outcome = prop_oneof![
        Just(Outcome::Done),
        Just(failed()),
        Just(Outcome::Failed {
            why: "w".into(),
            wait: Some(Duration::from_secs(1))
        }),
        Just(Outcome::Poison { why: "w".into() }),
        Just(Outcome::Interrupted),
        Just(Outcome::DownstreamDown { why: "w".into() }),
        Just(Outcome::CannotStart { why: "w".into() }),
    ];
    prop_oneof![
        4 => (1_u32..5, any::<bool>(), 18_u64..22).prop_map(|(attempt, fatal, returns)| Step::Deliver(attempt, fatal, returns)),
        4 => (0_usize..4, outcome, any::<bool>()).prop_map(|(at, outcome, result)| Step::Finish(at, outcome, result)),
        2 => (0_usize..4).prop_map(Step::Wait),
        3 => Just(Step::Rest),
        2 => (0_usize..4, any::<bool>()).prop_map(|(at, ok)| Step::Publish(at, ok)),
        1 => (0_usize..4).prop_map(Step::NobodyToAnswer),
        4 => (0_usize..4, proptest::option::weighted(0.9, any::<bool>())).prop_map(|(at, done)| Step::Claim(at, done)),
        3 => (0_usize..4, proptest::bool::weighted(0.9)).prop_map(|(at, ok)| Step::Record(at, ok)),
        1 => Just(Step::Stop),
        1 => Just(Step::Lose),
    ]
}

fn any_limits() -> impl Strategy_<Value = Limits> {
    (
        0_usize..4,
        (1_u16..4, 1_u16..4),
        proptest::option::of(1_u64..6),
        any::<[bool; 5]>(),
        0_usize..3,
        proptest::option::of((1_u32..4, 1_u64..900)),
    )
        .prop_map(
            |(which, (prefetch, jobs), max_messages, flags, path, pausing)| {
                let [stop, nack, publish_results, retry_with_result, dedupe] = flags;
                Limits {
                    prefetch,
                    jobs: jobs.min(prefetch),
                    max_messages,
                    nack_path: [NackPath::Confirmed, NackPath::Seen, NackPath::Believed][path],
                    on_exhausted: if stop {
                        OnExhausted::Stop
                    } else {
                        OnExhausted::DeadLetter
                    },
                    dead_letter: if nack {
                        DeadLetterBy::Nack
                    } else {
                        DeadLetterBy::Republish
                    },
                    publish_results,
                    retry_with_result,
                    dedupe,
                    pausing: pausing.map(|(after, seconds)| Pausing {
                        after,
                        probe_wait: Duration::from_secs(seconds),
                    }),
                    ..limits(Strategy::ALL[which].1)
                }
            },
        )
}

use proptest::strategy::Strategy as Strategy_;

/// What an outside observer knows of the deliveries in the worker's hands.
#[derive(Default)]
struct Observed {
    open: BTreeSet<u64>,
    running: BTreeSet<u64>,
    held: BTreeSet<u64>,
    publishing: BTreeSet<u64>,
    claiming: BTreeSet<u64>,
    recording: BTreeSet<u64>,
    claimed: BTreeSet<u64>,
    rests: bool,
    /// The probe that runs.
    probe: Option<u64>,
}

impl Observed {
    /// The event of a step, if it can happen now.
    fn event(&mut self, step: Step, next_tag: &mut u64) -> Option<Event> {
        Some(match step {
            Step::Deliver(attempt, nack_is_unsafe, returns) => {
                *next_tag += 1;
                self.open.insert(*next_tag);
                Event::Delivered {
                    tag: *next_tag,
                    attempt,
                    nack_is_unsafe,
                    returns,
                }
            }
            Step::Finish(at, outcome, result) => {
                let tag = *self.running.iter().nth(at)?;
                self.running.remove(&tag);
                Event::Finished {
                    tag,
                    outcome,
                    result,
                }
            }
            Step::Wait(at) => {
                let tag = *self.held.iter().nth(at)?;
                self.held.remove(&tag);
                Event::Waited { tag }
            }
            Step::Rest => {
                if !std::mem::take(&mut self.rests) {
                    return None;
                }
                Event::Rested
            }
            Step::Publish(at, ok) => {
                let tag = *self.publishing.iter().nth(at)?;
                self.publishing.remove(&tag);
                Event::Published {
                    tag,
                    result: if ok {
                        Ok(())
                    } else {
                        Err(Error::new(ErrorKind::Refused, "r"))
                    },
                }
            }
            Step::NobodyToAnswer(at) => {
                let tag = *self.publishing.iter().nth(at)?;
                self.publishing.remove(&tag);
                Event::NobodyToAnswer {
                    tag,
                    why: "w".into(),
                }
            }
            Step::Claim(at, done) => {
                let tag = *self.claiming.iter().nth(at)?;
                self.claiming.remove(&tag);
                self.claimed.insert(tag);
                let result = match done {
                    Some(true) => Ok(Claim::Done),
                    Some(false) => Ok(Claim::Mine),
                    None => Err(Error::new(ErrorKind::Unavailable, "s")),
                };
                Event::Claimed { tag, result }
            }
            Step::Record(at, ok) => {
                let tag = *self.recording.iter().nth(at)?;
                self.recording.remove(&tag);
                Event::Recorded {
                    tag,
                    result: if ok {
                        Ok(())
                    } else {
                        Err(Error::new(ErrorKind::Unavailable, "s"))
                    },
                }
            }
            Step::Stop => Event::Stop(StopReason::Signal),
            Step::Lose => {
                *self = Self::default();
                Event::ConnectionLost
            }
        })
    }
}

proptest! {
    #[test]
    fn every_delivery_is_settled_exactly_once_under_any_order(
        steps in proptest::collection::vec(step(), 0..60),
        limits in any_limits(),
    ) {
        let strategy = limits.strategy;
        let mut machine = Machine::new(limits);
        let mut seen = Observed::default();
        let mut next_tag = 0;
        let mut ever_paused = false;
        for step in steps {
            let stopped_before = !matches!(
                machine.stop_reason(),
                None | Some(StopReason::MaxMessages)
            );
            let publishing_before = seen.publishing.clone();
            let Some(event) = seen.event(step, &mut next_tag) else { continue };
            // An answer that cannot be given is told of answers only.
            if let Event::NobodyToAnswer { tag, .. } = &event {
                let effects = machine.handle(event.clone());
                let parks = effects.iter().any(|effect| matches!(effect, Effect::Park { .. } | Effect::Bury { .. }));
                if !parks {
                    prop_assert_eq!(effects, []);
                    seen.publishing.insert(*tag);
                    prop_assert_eq!(&seen.publishing, &publishing_before);
                    continue;
                }
                for effect in effects {
                    match effect {
                        Effect::Park { tag, .. } => { seen.publishing.insert(tag); }
                        Effect::Bury { tag } => { prop_assert!(seen.open.remove(&tag)); }
                        Effect::Run { tag, .. } => { prop_assert!(seen.running.insert(tag)); }
                        other => prop_assert!(false, "{other:?}"),
                    }
                }
                continue;
            }
            let mut settled_yet = false;
            let was_paused = machine.is_paused();
            let ended = match &event {
                Event::Finished { tag, .. } => Some(*tag),
                _ => None,
            };
            if seen.probe == ended {
                seen.probe = None;
            }
            let effects = machine.handle(event);
            let stays_paused = was_paused && machine.is_paused();
            for effect in effects {
                match effect {
                    Effect::Run { tag, .. } => {
                        prop_assert!(!stopped_before, "started while draining");
                        prop_assert!(!seen.held.contains(&tag), "started in its pause");
                        prop_assert!(!limits.dedupe || seen.claimed.contains(&tag), "not asked");
                        prop_assert!(seen.open.contains(&tag) && seen.running.insert(tag));
                        if stays_paused {
                            prop_assert!(seen.probe.is_none(), "two probes at once");
                            seen.probe = Some(tag);
                        }
                    }
                    Effect::Claim { tag } => {
                        prop_assert!(limits.dedupe && !seen.claimed.contains(&tag));
                        prop_assert!(seen.open.contains(&tag) && seen.claiming.insert(tag));
                    }
                    Effect::Record { tag } => {
                        prop_assert!(limits.dedupe && !seen.running.contains(&tag));
                        prop_assert!(seen.open.contains(&tag) && seen.recording.insert(tag));
                    }
                    Effect::Hold { tag, wait } => {
                        prop_assert!(wait <= LONGEST_HOLD && strategy == Strategy::Immediate);
                        prop_assert!(seen.open.contains(&tag) && seen.held.insert(tag));
                        prop_assert!(!stays_paused);
                    }
                    Effect::Park { reason: BuryReason::Exhausted { .. }, .. }
                    | Effect::RetryByCopy { .. }
                    | Effect::DeadLetter { .. }
                    | Effect::Requeue { .. }
                        if stays_paused =>
                    {
                        prop_assert!(false, "an outage cost an attempt");
                    }
                    Effect::Park { tag, .. }
                    | Effect::RetryByCopy { tag, .. }
                    | Effect::PublishResult { tag } => {
                        prop_assert!(seen.open.contains(&tag) && seen.publishing.insert(tag));
                    }
                    Effect::Ack { tag }
                    | Effect::DeadLetter { tag }
                    | Effect::Bury { tag }
                    | Effect::Requeue { tag }
                    | Effect::Release { tag } => {
                        let nacked = effect == Effect::DeadLetter { tag };
                        prop_assert!(!nacked || strategy == Strategy::Dlx, "a nack gives up");
                        let requeued = effect == Effect::Requeue { tag };
                        prop_assert!(!requeued || strategy == Strategy::Native, "no pause");
                        prop_assert!(seen.open.remove(&tag), "{tag} settled twice");
                        seen.held.remove(&tag);
                        seen.claiming.remove(&tag);
                        prop_assert!(!seen.running.contains(&tag) && !seen.publishing.contains(&tag));
                        prop_assert!(!seen.recording.contains(&tag), "acked before it is remembered");
                        settled_yet = true;
                    }
                    Effect::CancelConsumer | Effect::Pause { .. } | Effect::Unsubscribe => {
                        prop_assert!(!settled_yet || stays_paused, "cancel comes first");
                    }
                    Effect::Rest { wait } => {
                        prop_assert!(wait <= LONGEST_HOLD && machine.is_paused());
                        seen.rests = true;
                    }
                    Effect::TakeOne => prop_assert!(machine.is_paused()),
                    Effect::Resume => prop_assert!(was_paused && !machine.is_paused()),
                }
            }
            if !machine.is_paused() {
                seen.probe = None;
            }
            ever_paused |= machine.is_paused();
            prop_assert!(seen.running.len() <= usize::from(limits.jobs), "more handlers than jobs");
            let most = usize::from(limits.prefetch) * if ever_paused { 2 } else { 1 };
            let most = if ever_paused { most + 2 } else { most };
            prop_assert!(seen.open.len() <= most + 1, "over the prefetch");
            prop_assert_eq!(machine.in_flight(), seen.open.len());
        }
        let counts = machine.counts();
        let retried_through_broker = match strategy {
            Strategy::Dlx | Strategy::Backoff | Strategy::Native => counts.retried,
            // Retries in place are no settles.
            Strategy::Immediate => 0,
        };
        prop_assert_eq!(
            counts.received,
            counts.settled() + counts.released + counts.unsettled
                + retried_through_broker + seen.open.len() as u64
        );
    }
}
