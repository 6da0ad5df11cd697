use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;
use crate::retry::Strategy;

fn limits(strategy: Strategy) -> Limits {
    Limits {
        prefetch: 2,
        max_messages: None,
        max_attempts: 3,
        strategy,
        prove_retries: false,
    }
}

fn delivered(tag: u64, attempt: u32) -> Event {
    Event::Delivered {
        tag,
        attempt,
        nack_is_unsafe: false,
    }
}

fn finished(tag: u64, outcome: Outcome) -> Event {
    Event::Finished { tag, outcome }
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
        [Effect::RetryByCopy { tag: 1, attempt: 2 }]
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
        prove_retries: true,
        ..limits(Strategy::Dlx)
    });
    machine.handle(delivered(1, 2));
    assert_eq!(
        machine.handle(finished(1, failed())),
        [Effect::RetryByCopy { tag: 1, attempt: 2 }]
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
    };
    let mut machine = Machine::new(limits(Strategy::Dlx));
    machine.handle(fatal(1, 1));
    assert_eq!(
        machine.handle(finished(1, failed())),
        [Effect::RetryByCopy { tag: 1, attempt: 1 }]
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

#[derive(Clone, Debug)]
enum Step {
    Deliver(u32, bool),
    Finish(usize, Outcome),
    Publish(usize, bool),
    Stop,
    Lose,
}

fn step() -> impl Strategy_<Value = Step> {
    let outcome = prop_oneof![
        Just(Outcome::Done),
        Just(failed()),
        Just(Outcome::Poison { why: "w".into() }),
        Just(Outcome::Interrupted),
        Just(Outcome::DownstreamDown { why: "w".into() }),
        Just(Outcome::CannotStart { why: "w".into() }),
    ];
    prop_oneof![
        4 => (1_u32..5, any::<bool>()).prop_map(|(attempt, fatal)| Step::Deliver(attempt, fatal)),
        4 => (0_usize..4, outcome).prop_map(|(at, outcome)| Step::Finish(at, outcome)),
        2 => (0_usize..4, any::<bool>()).prop_map(|(at, ok)| Step::Publish(at, ok)),
        1 => Just(Step::Stop),
        1 => Just(Step::Lose),
    ]
}

use proptest::strategy::Strategy as Strategy_;

proptest! {
    #[test]
    fn every_delivery_is_settled_exactly_once_under_any_order(
        steps in proptest::collection::vec(step(), 0..60),
        prove_retries in any::<bool>(),
        which in 0_usize..3,
        max_messages in proptest::option::of(1_u64..6),
    ) {
        let strategy = [Strategy::Dlx, Strategy::Backoff, Strategy::Immediate][which];
        let mut machine = Machine::new(Limits { max_messages, prove_retries, ..limits(strategy) });
        let mut open: BTreeSet<u64> = BTreeSet::new();
        let mut running: BTreeSet<u64> = BTreeSet::new();
        let mut publishing: BTreeSet<u64> = BTreeSet::new();
        let mut next_tag = 0;
        for step in steps {
            let stopped_before = !matches!(
                machine.stop_reason(),
                None | Some(StopReason::MaxMessages)
            );
            let event = match step {
                Step::Deliver(attempt, nack_is_unsafe) => {
                    next_tag += 1;
                    open.insert(next_tag);
                    Event::Delivered { tag: next_tag, attempt, nack_is_unsafe }
                }
                Step::Finish(at, outcome) => match running.iter().nth(at) {
                    Some(tag) => finished(*tag, outcome),
                    None => continue,
                },
                Step::Publish(at, ok) => match publishing.iter().nth(at) {
                    Some(tag) => Event::Published {
                        tag: *tag,
                        result: if ok { Ok(()) } else { Err(Error::new(ErrorKind::Refused, "r")) },
                    },
                    None => continue,
                },
                Step::Stop => Event::Stop(StopReason::Signal),
                Step::Lose => {
                    open.clear();
                    running.clear();
                    publishing.clear();
                    Event::ConnectionLost
                }
            };
            if let Event::Finished { tag, .. } = &event {
                running.remove(tag);
            }
            if let Event::Published { tag, .. } = &event {
                publishing.remove(tag);
            }
            let mut settled_yet = false;
            for effect in machine.handle(event) {
                match effect {
                    Effect::Run { tag, .. } => {
                        prop_assert!(!stopped_before, "started while draining");
                        prop_assert!(open.contains(&tag) && running.insert(tag));
                    }
                    Effect::Park { tag, .. } | Effect::RetryByCopy { tag, .. } => {
                        prop_assert!(open.contains(&tag) && publishing.insert(tag));
                    }
                    Effect::Ack { tag } | Effect::DeadLetter { tag } | Effect::Release { tag } => {
                        let nacked = effect == Effect::DeadLetter { tag };
                        prop_assert!(!nacked || strategy == Strategy::Dlx, "a nack gives up");
                        prop_assert!(open.remove(&tag), "{tag} settled twice");
                        prop_assert!(!running.contains(&tag) && !publishing.contains(&tag));
                        settled_yet = true;
                    }
                    Effect::CancelConsumer => prop_assert!(!settled_yet, "cancel comes first"),
                }
            }
            prop_assert!(running.len() + publishing.len() <= 2, "over the prefetch");
            prop_assert_eq!(machine.in_flight(), open.len());
        }
        let counts = machine.counts();
        let retried_through_broker = match strategy {
            Strategy::Dlx | Strategy::Backoff => counts.retried,
            // Retries in place are no settles.
            Strategy::Immediate | Strategy::Native => 0,
        };
        prop_assert_eq!(
            counts.received,
            counts.settled() + counts.released + counts.unsettled
                + retried_through_broker + open.len() as u64
        );
    }
}
