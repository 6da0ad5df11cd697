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
}

impl BuryReason {
    /// One word, as headers and summaries use it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Poison { .. } => "poison",
            Self::Exhausted { .. } => "exhausted",
        }
    }

    /// The handler's reason.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Poison { why } | Self::Exhausted { why } => why,
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

/// Decides what an outcome means for a message on its `attempt`-th attempt
/// (the first is 1) of at most `max_attempts`.
#[must_use]
pub fn decide(outcome: Outcome, attempt: u32, max_attempts: u32, strategy: Strategy) -> Verdict {
    match outcome {
        Outcome::Done => Verdict::Ack,
        Outcome::Poison { why } => Verdict::Bury(BuryReason::Poison { why }),
        Outcome::Failed { why, .. } if attempt >= max_attempts => {
            Verdict::Bury(BuryReason::Exhausted { why })
        }
        Outcome::Failed { why, wait } => match strategy {
            Strategy::Dlx | Strategy::Backoff => Verdict::RetryThroughBroker { why, wait },
            Strategy::Immediate => Verdict::RetryInPlace { why, wait },
            // Such a queue is refused before the first message; should one get
            // here, no other strategy takes its place unasked.
            Strategy::Native => Verdict::ReleaseAndStop {
                why: format!("the strategy `{strategy}` is not worked by this version yet"),
            },
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
                Strategy::Native => Verdict::ReleaseAndStop {
                    why: format!("the strategy `{strategy}` is not worked by this version yet"),
                },
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
                    decide(outcome.clone(), attempt, 3, strategy),
                    expected,
                    "{outcome:?} {attempt} {strategy}"
                );
            }
        }
    }

    #[test]
    fn retries_always_end() {
        for max in 1..20 {
            let last = (1..=max).find(|attempt| {
                matches!(
                    decide(failed(), *attempt, max, Strategy::Dlx),
                    Verdict::Bury(_)
                )
            });
            assert_eq!(last, Some(max));
        }
    }
}
