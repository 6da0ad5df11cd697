//! Reading a stream: what is wanted of what comes, and where to go on.
//!
//! A stream hands a message out once to each subscription, whatever becomes of
//! it (a nack is an ack on 4.0.5 and 4.3.6, and an error on 3.10.8: measured).
//! So what is given back leaves a gap, and is read again by the next subscription.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a subscription's time is remembered"
)]

use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, ErrorKind, Result};
use crate::field::FieldValue;
use crate::message::Delivery;
use crate::offsets::{Keeper, Progress, StartAt};

/// One reader of a stream.
#[derive(Debug)]
pub struct Reading {
    start: StartAt,
    progress: Progress,
    keeper: Option<Keeper>,
    /// Messages were given back since the last subscription.
    must_start_anew: bool,
    stuck_at: Option<u64>,
}

impl Reading {
    /// From `start` on; its position is kept by `keeper`, if anywhere.
    #[must_use]
    pub fn new(start: StartAt, keeper: Option<Keeper>) -> Self {
        let floor = match start {
            StartAt::Offset(offset) => offset,
            StartAt::First | StartAt::Last | StartAt::Next | StartAt::Time(_) => 0,
        };
        Self {
            start,
            progress: Progress::new(floor),
            keeper,
            must_start_anew: false,
            stuck_at: None,
        }
    }

    /// The first offset that is not done; `None` before the first message came.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        self.progress.position()
    }

    /// The offset of the message that stopped the worker.
    #[must_use]
    pub const fn stuck_at(&self) -> Option<u64> {
        self.stuck_at
    }

    /// Whether its position is kept.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.keeper.is_some()
    }

    /// Keeps the last position.
    ///
    /// # Errors
    /// When one could not be kept.
    pub async fn finish(self) -> Result<()> {
        self.keep();
        match self.keeper {
            Some(keeper) => keeper.finish().await,
            None => Ok(()),
        }
    }

    /// What was in work before has come to nothing: a new session begins.
    pub(super) fn session_begins(&mut self) {
        self.progress.all_given_back();
    }

    /// Where the next subscription starts.
    pub(super) fn subscribes(&mut self) -> FieldValue {
        self.must_start_anew = false;
        self.progress.subscribed();
        if let Some(position) = self.progress.position() {
            return StartAt::Offset(position).argument();
        }
        let argument = self.start.argument();
        // What comes before a second subscription must not be missed by it.
        if matches!(self.start, StartAt::Last | StartAt::Next) {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            self.start = StartAt::Time(since.map_or(0, |since| since.as_secs()));
        }
        argument
    }

    /// The offset of a message that is to be worked; `None`: it is to be passed over.
    pub(super) fn takes(&mut self, delivery: &Delivery) -> Result<Option<u64>> {
        let offset = delivery.stream_offset().ok_or_else(|| {
            Error::new(
                ErrorKind::Protocol,
                "a message of a stream came without its offset",
            )
        })?;
        Ok(self.progress.came(offset).then_some(offset))
    }

    pub(super) fn done(&mut self, offset: u64) {
        self.progress.done(offset);
    }

    pub(super) fn given_back(&mut self, offset: u64) {
        self.progress.given_back(offset);
        self.must_start_anew = true;
    }

    pub(super) fn sticks(&mut self, offset: u64) {
        self.stuck_at = Some(offset);
    }

    pub(super) const fn must_start_anew(&self) -> bool {
        self.must_start_anew
    }

    pub(super) fn keep(&self) {
        if let (Some(keeper), Some(position)) = (&self.keeper, self.progress.position()) {
            keeper.keep(position);
        }
    }

    pub(super) fn cannot_keep(&self) -> bool {
        self.keeper.as_ref().is_some_and(Keeper::has_failed)
    }

    /// Whether everything up to the `last` offset that the stream has is done.
    pub(super) fn is_at_the_end(&self, last: Option<u64>) -> bool {
        let Some(last) = last else {
            return true;
        };
        match (self.progress.position(), self.start) {
            (Some(position), _) => !self.progress.has_gaps() && position > last,
            (None, StartAt::Offset(offset)) => offset > last,
            // What is there already is not what was asked for.
            (None, StartAt::Next | StartAt::Time(_)) => true,
            (None, StartAt::First | StartAt::Last) => false,
        }
    }
}
