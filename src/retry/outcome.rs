//! What came of one attempt.

use std::time::Duration;

/// The end of one attempt, in the terms of the three layers of failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The work is done.
    Done,
    /// The data is bad: no further attempt can help.
    Poison {
        /// Why, for people and for `mq dlq inspect`.
        why: String,
    },
    /// The attempt failed; another one may not.
    Failed {
        /// Why.
        why: String,
        /// How long the handler asks to wait before the next attempt, at least.
        wait: Option<Duration>,
    },
    /// Something downstream is down: stop working rather than burn attempts.
    DownstreamDown {
        /// Why.
        why: String,
    },
    /// The handler could not even be started: a bad deploy, not a bad message.
    CannotStart {
        /// Why.
        why: String,
    },
    /// Stopped by us before it ended; says nothing about the message.
    Interrupted,
}

impl Outcome {
    /// One word for it, as logs and metrics have it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Poison { .. } => "poison",
            Self::Failed { .. } => "failed",
            Self::DownstreamDown { .. } => "downstream_down",
            Self::CannotStart { .. } => "cannot_start",
            Self::Interrupted => "interrupted",
        }
    }
}
