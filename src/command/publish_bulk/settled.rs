//! How far the messages are settled without a gap, kept while they are sent.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the clock says when to write it down again"
)]

use std::time::{Duration, Instant};

use crate::error::Result;
use crate::offsets::{Sent, SentFile};

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
}

impl Settled {
    pub(super) fn new(file: SentFile, sent: Sent) -> Self {
        Self {
            file,
            sent,
            is_at_gap: false,
            written: Instant::now(),
            is_new: false,
        }
    }

    /// Whether a message could not be settled.
    pub(super) const fn is_at_gap(&self) -> bool {
        self.is_at_gap
    }

    /// The next message needs no other try.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(super) fn done(&mut self, number: u64, mark: Option<String>) -> Result<()> {
        if self.is_at_gap {
            return Ok(());
        }
        self.sent.settled = number;
        self.sent.mark = mark.unwrap_or_default();
        self.is_new = true;
        if self.written.elapsed() < EVERY {
            return Ok(());
        }
        self.keep()
    }

    /// The next message is to be sent again some time, and all behind it.
    pub(super) const fn not_done(&mut self) {
        self.is_at_gap = true;
    }

    /// Writes it down.
    ///
    /// # Errors
    /// When that fails.
    pub(super) fn close(mut self) -> Result<()> {
        if self.is_new { self.keep() } else { Ok(()) }
    }

    fn keep(&mut self) -> Result<()> {
        self.is_new = false;
        self.file.keep(&self.sent)?;
        self.written = Instant::now();
        Ok(())
    }
}
