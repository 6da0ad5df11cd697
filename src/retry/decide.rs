//! Outcome × attempt → verdict. Total: every combination has one answer.

use std::fmt;
use std::time::Duration;

use crate::retry::{Outcome, Strategy};

/// Why a message goes to the dead-letter queue for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuryReason {
    /// The handler said that no attempt can help.
    Poison {
        /// Its reason.
        why: String,
    },
    /// Every attempt failed.
    Exhausted {
        /// The reason of the last one.
        why: String,
    },
    /// It came back too often without an outcome: it ends its workers.
    Returned {
        /// How often, in words.
        why: String,
    },
}

impl BuryReason {
    /// Which of the three layers of failure it belongs to: the data, something
    /// downstream, or the worker itself.
    #[must_use]
    pub const fn layer(&self) -> &'static str {
        match self {
            Self::Poison { .. } => "data",
            Self::Exhausted { .. } => "downstream",
            Self::Returned { .. } => "worker",
        }
    }

    /// One word, as headers and summaries use it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Poison { .. } => "poison",
            Self::Exhausted { .. } => "exhausted",
            Self::Returned { .. } => "returned",
        }
    }

    /// The handler's reason.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Poison { why } | Self::Exhausted { why } | Self::Returned { why } => why,
        }
    }
}

impl fmt::Display for BuryReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.word(), self.why())
    }
}

/// What to do with the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Settle it as done.
    Ack,
    /// Into a wait queue, by a nack or as a copy; the broker brings it back.
    RetryThroughBroker {
        /// Why this attempt failed.
        why: String,
        /// The delay that the handler asks for.
        wait: Option<Duration>,
    },
    /// Try again while holding it.
    RetryInPlace {
        /// Why this attempt failed.
        why: String,
        /// The delay that the handler asks for.
        wait: Option<Duration>,
    },
    /// Back into its queue, which holds it back and counts.
    Requeue {
        /// Why this attempt failed.
        why: String,
    },
    /// To the dead-letter queue for good.
    Bury(BuryReason),
    /// Give it back untouched and stop the worker.
    ReleaseAndStop {
        /// Why the worker stops.
        why: String,
    },
    /// Give it back untouched.
    Release,
}

/// What happens to a message whose attempts are used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExhausted {
    /// It goes to the dead-letter queue.
    #[default]
    DeadLetter,
    /// It stays first in its queue, and the worker stops.
    Stop,
}

/// Decides what an outcome means for a message on its `attempt`-th attempt
/// (the first is 1) of at most `max_attempts`.
#[must_use]
pub fn decide(
    outcome: Outcome,
    attempt: u32,
    max_attempts: u32,
    strategy: Strategy,
    on_exhausted: OnExhausted,
) -> Verdict {
    match outcome {
        Outcome::Done => Verdict::Ack,
        Outcome::Poison { why } => Verdict::Bury(BuryReason::Poison { why }),
        Outcome::Failed { why, .. } if attempt >= max_attempts => match on_exhausted {
            OnExhausted::DeadLetter => Verdict::Bury(BuryReason::Exhausted { why }),
            OnExhausted::Stop => Verdict::ReleaseAndStop {
                why: format!("attempt {attempt} of {max_attempts} failed: {why}"),
            },
        },
        Outcome::Failed { why, wait } => match strategy {
            Strategy::Dlx | Strategy::Backoff => Verdict::RetryThroughBroker { why, wait },
            Strategy::Immediate => Verdict::RetryInPlace { why, wait },
            Strategy::Native => Verdict::Requeue { why },
        },
        Outcome::DownstreamDown { why } | Outcome::CannotStart { why } => {
            Verdict::ReleaseAndStop { why }
        }
        Outcome::Interrupted => Verdict::Release,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> Outcome {
        Outcome::Failed {
            why: "w".into(),
            wait: None,
        }
    }

    #[test]
    fn every_outcome_has_one_answer() {
        let why = || "w".to_owned();
        for (_, strategy) in Strategy::ALL {
            let retry = match strategy {
                Strategy::Dlx | Strategy::Backoff => Verdict::RetryThroughBroker {
                    why: why(),
                    wait: None,
                },
                Strategy::Immediate => Verdict::RetryInPlace {
                    why: why(),
                    wait: None,
                },
                Strategy::Native => Verdict::Requeue { why: why() },
            };
            let exhausted = Verdict::Bury(BuryReason::Exhausted { why: why() });
            let poison = Verdict::Bury(BuryReason::Poison { why: why() });
            let stop = Verdict::ReleaseAndStop { why: why() };
            for (outcome, attempt, expected) in [
                (Outcome::Done, 1, Verdict::Ack),
                (Outcome::Done, 9, Verdict::Ack),
                (failed(), 1, retry.clone()),
                (failed(), 2, retry),
                (failed(), 3, exhausted.clone()),
                (failed(), 4, exhausted),
                (Outcome::Poison { why: why() }, 1, poison.clone()),
                (Outcome::Poison { why: why() }, 3, poison),
                (Outcome::DownstreamDown { why: why() }, 3, stop.clone()),
                (Outcome::CannotStart { why: why() }, 3, stop),
                (Outcome::Interrupted, 3, Verdict::Release),
            ] {
                assert_eq!(
                    decide(
                        outcome.clone(),
                        attempt,
                        3,
                        strategy,
                        OnExhausted::DeadLetter
                    ),
                    expected,
                    "{outcome:?} {attempt} {strategy}"
                );
            }
        }
    }

    #[test]
    fn with_stop_the_last_failure_keeps_the_message_and_poison_goes_all_the_same() {
        for (_, strategy) in Strategy::ALL {
            let stop = |outcome, attempt| decide(outcome, attempt, 3, strategy, OnExhausted::Stop);
            assert!(!matches!(stop(failed(), 2), Verdict::ReleaseAndStop { .. }));
            assert_eq!(
                stop(failed(), 3),
                Verdict::ReleaseAndStop {
                    why: "attempt 3 of 3 failed: w".into()
                }
            );
            assert!(matches!(
                stop(Outcome::Poison { why: "w".into() }, 3),
                Verdict::Bury(_)
            ));
        }
    }

    #[test]
    fn retries_always_end() {
        for max in 1..20 {
            let last = (1..=max).find(|attempt| {
                matches!(
                    decide(
                        failed(),
                        *attempt,
                        max,
                        Strategy::Dlx,
                        OnExhausted::DeadLetter
                    ),
                    Verdict::Bury(_)
                )
            });
            assert_eq!(last, Some(max));
        }
    }
}
