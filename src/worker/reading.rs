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
    /// Where the next subscription starts as long as nothing came.
    next: StartAt,
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
            next: start,
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
        let argument = self.next.argument();
        // What comes before a second subscription must not be missed by it.
        if matches!(self.next, StartAt::Last | StartAt::Next) {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            self.next = StartAt::Time(since.map_or(0, |since| since.as_secs()));
        }
        argument
    }

    /// Whether a message is to be worked; else it is passed over.
    pub(super) fn takes(&mut self, delivery: &Delivery) -> Result<bool> {
        let offset = delivery.stream_offset().ok_or_else(|| {
            Error::new(
                ErrorKind::Protocol,
                "a message of a stream came without its offset",
            )
            .hint("only streams have offsets: for other queues leave out --from and --offset-file")
        })?;
        Ok(self.progress.came(offset))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldTable;
    use crate::message::Properties;

    fn delivery(offset: i64) -> Delivery {
        let headers = FieldTable::from([("x-stream-offset".to_owned(), FieldValue::I64(offset))]);
        Delivery {
            exchange: String::new(),
            routing_key: "events".to_owned(),
            redelivered: false,
            properties: Properties {
                headers,
                ..Properties::default()
            },
            body: Vec::new(),
        }
    }

    #[test]
    fn a_later_subscription_misses_nothing_of_what_was_asked_for() {
        for start in [StartAt::Next, StartAt::Last] {
            let mut reading = Reading::new(start, None);
            assert_eq!(reading.subscribes(), start.argument());
            // What came since the first one began.
            assert!(matches!(reading.subscribes(), FieldValue::Timestamp(_)));
        }
        for start in [StartAt::First, StartAt::Offset(7), StartAt::Time(9)] {
            let mut reading = Reading::new(start, None);
            assert_eq!(reading.subscribes(), start.argument());
            assert_eq!(reading.subscribes(), start.argument());
        }
        let mut reading = Reading::new(StartAt::Next, None);
        assert_eq!(reading.takes(&delivery(5)), Ok(true));
        reading.done(5);
        assert_eq!(reading.subscribes(), FieldValue::I64(6));
    }

    #[test]
    fn the_end_is_reached_when_the_last_message_is_done() {
        let mut reading = Reading::new(StartAt::First, None);
        assert!(reading.is_at_the_end(None), "nothing is there");
        assert!(!reading.is_at_the_end(Some(1)));
        for offset in 0..2 {
            assert_eq!(reading.takes(&delivery(offset)), Ok(true));
        }
        reading.done(1);
        assert!(!reading.is_at_the_end(Some(1)), "0 is in work");
        reading.given_back(0);
        assert!(!reading.is_at_the_end(Some(1)), "0 is to come again");
        assert!(reading.must_start_anew());
        reading.subscribes();
        assert_eq!(reading.takes(&delivery(0)), Ok(true));
        reading.done(0);
        assert!(reading.is_at_the_end(Some(1)));
        assert!(!reading.is_at_the_end(Some(2)), "more has come");
    }

    #[test]
    fn who_asks_for_what_is_not_there_yet_is_at_the_end_at_once() {
        assert!(Reading::new(StartAt::Next, None).is_at_the_end(Some(9)));
        assert!(Reading::new(StartAt::Offset(10), None).is_at_the_end(Some(9)));
        assert!(!Reading::new(StartAt::Offset(9), None).is_at_the_end(Some(9)));
    }

    #[test]
    fn a_queue_without_offsets_is_no_stream() {
        let mut bare = delivery(0);
        bare.properties.headers.clear();
        let error = Reading::new(StartAt::Next, None).takes(&bare);
        assert_eq!(
            error.map_err(|error| error.kind()),
            Err(ErrorKind::Protocol)
        );
    }
}
