//! The log of what became of each message: one line when it leaves the worker's
//! hands, or is tried again in them.

use std::time::Duration;

use crate::retry::Outcome;
use crate::worker::drive::{InWork, Session};

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Done and acked.
    Done,
    /// It will be tried again.
    Retried,
    /// In the dead-letter queue.
    DeadLettered,
    /// Given back untouched.
    Released,
    /// Acked without being handled, because the same had been done before.
    Deduplicated,
}

impl Fate {
    /// The word of the log.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Retried => "retried",
            Self::DeadLettered => "dead_lettered",
            Self::Released => "released",
            Self::Deduplicated => "deduplicated",
        }
    }
}

/// How the last attempt at a message went, as far as there was one.
#[derive(Clone, Debug)]
pub(super) struct LastAttempt {
    /// 1 for the first.
    pub(super) number: Option<u32>,
    /// Why it failed.
    pub(super) why: Option<String>,
    /// How long the handler took.
    pub(super) took: Option<Duration>,
}

impl LastAttempt {
    /// None was made yet.
    pub(super) const fn to_come(number: u32) -> Self {
        Self {
            number: Some(number),
            why: None,
            took: None,
        }
    }

    pub(super) fn ended(number: Option<u32>, outcome: &Outcome, took: Duration) -> Self {
        Self {
            number,
            why: why(outcome).map(str::to_owned),
            took: Some(took),
        }
    }
}

impl Session<'_> {
    /// Tells what became of a message; costs nothing when nobody asked for it.
    pub(super) fn tell_fate(&self, in_work: &InWork, fate: Fate) {
        let LastAttempt { number, why, took } = &in_work.last;
        tracing::info!(
            queue = %self.wanted.queue,
            message_id = in_work.delivery.properties.message_id.as_deref(),
            attempt = number,
            of = self.wanted.max_attempts,
            outcome = fate.word(),
            why = why.as_deref(),
            seconds = took.map(|took| took.as_secs_f64()),
            "message handled"
        );
    }

    /// A message that is tried again in our hands has had an attempt before.
    pub(super) fn tell_retry_in_place(&mut self, tag: u64) {
        if let Some(in_work) = self.deliveries.get(&tag)
            && in_work.last.took.is_some()
        {
            self.tell_fate(in_work, Fate::Retried);
        }
        if let Some(in_work) = self.deliveries.get_mut(&tag) {
            in_work.last.took = None;
        }
    }

    /// Each failed attempt is told when it happens, not only summed up.
    pub(super) fn tell(&self, tag: u64, outcome: &Outcome, took: Duration) {
        let Some(why) = why(outcome) else {
            return;
        };
        let message_id = self
            .deliveries
            .get(&tag)
            .and_then(|in_work| in_work.delivery.properties.message_id.as_deref());
        tracing::warn!(
            queue = %self.wanted.queue,
            message_id,
            attempt = self.machine.attempt(tag),
            of = self.wanted.max_attempts,
            outcome = outcome.word(),
            why,
            seconds = took.as_secs_f64(),
            "attempt failed"
        );
    }
}

/// Why an attempt failed, if it did.
fn why(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Done | Outcome::Interrupted => None,
        Outcome::Poison { why }
        | Outcome::Failed { why, .. }
        | Outcome::DownstreamDown { why }
        | Outcome::CannotStart { why } => Some(why),
    }
}
