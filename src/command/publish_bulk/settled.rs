//! How far the messages are settled without a gap, kept while they are sent.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the clock says when to write it down again"
)]

use std::time::{Duration, Instant};

use crate::error::Result;
use crate::offsets::{Sent, SentFile};
use crate::output::Lines;

/// How often it is written down: what was settled since is sent again by a run
/// that follows a killed one.
const EVERY: Duration = Duration::from_millis(200);

/// How far the messages are settled without a gap.
pub(super) struct Settled {
    file: SentFile,
    sent: Sent,
    /// Behind a message that is not settled, nothing counts.
    is_at_gap: bool,
    written: Instant,
    is_new: bool,
    is_given_up: bool,
}

impl Settled {
    pub(super) fn new(file: SentFile, sent: Sent) -> Self {
        Self {
            file,
            sent,
            is_at_gap: false,
            written: Instant::now(),
            is_new: false,
            is_given_up: false,
        }
    }

    /// Whether a message could not be settled.
    pub(super) const fn is_at_gap(&self) -> bool {
        self.is_at_gap
    }

    /// The next message needs no other try.
    pub(super) fn done(&mut self, number: u64, mark: Option<String>, reached_no_queue: bool) {
        if self.is_at_gap {
            return;
        }
        self.sent.settled = number;
        self.sent.mark = mark.unwrap_or_default();
        if reached_no_queue {
            self.sent.unroutable.add(number);
        }
        self.is_new = true;
    }

    /// The next message is to be sent again some time, and all behind it.
    pub(super) const fn not_done(&mut self) {
        self.is_at_gap = true;
    }

    /// Receipts cannot be written: what was not written down yet never is.
    pub(super) const fn give_up(&mut self) {
        self.is_at_gap = true;
        self.is_new = false;
        self.is_given_up = true;
    }

    /// Whether it is time to write it down.
    pub(super) fn is_due(&self) -> bool {
        self.is_new && self.written.elapsed() >= EVERY
    }

    /// Writes it down, if it is not yet.
    ///
    /// # Errors
    /// When that fails.
    pub(super) fn keep(&mut self) -> Result<()> {
        if self.is_new {
            self.is_new = false;
            self.file.keep(&self.sent)?;
            self.written = Instant::now();
        }
        Ok(())
    }

    /// Those that reached no queue were told: no later run tells them again.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(super) fn told(&mut self) -> Result<()> {
        if self.sent.unroutable.count > 0 && !self.is_given_up {
            self.sent.unroutable = Lines::default();
            self.file.keep(&self.sent)?;
        }
        Ok(())
    }
}
