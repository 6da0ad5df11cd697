//! What a session does about a stream: leave a message unread, keep the
//! position, find the end.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a stream meets the clock"
)]

use std::time::Duration;

use tokio::time::Instant;

use crate::error::Result;
use crate::message::Delivery;
use crate::worker::drive::Session;
use crate::worker::event::{Event, StopReason};
use crate::worker::wanted::Handling;

/// A stream that sends nothing for so long may be at its end.
const QUIET: Duration = Duration::from_secs(1);

/// One that has sent nothing at all may still be looking for its start.
const QUIET_AT_FIRST: Duration = Duration::from_secs(3);

impl Session<'_> {
    /// Whether a message of a stream is not wanted; then it is acked.
    pub(super) fn passes_over(&mut self, tag: u64, delivery: &Delivery) -> Result<bool> {
        let is_wanted = match &mut self.reading {
            Some(reading) => reading.takes(delivery)?,
            None => true,
        };
        if !is_wanted {
            self.subscription.ack(tag);
        }
        Ok(!is_wanted)
    }

    /// Gives a message of a stream back: the position stays before it. The ack
    /// lets the broker send more, it changes nothing else.
    pub(super) fn leave_unread(&mut self, tag: u64, offset: u64) {
        self.subscription.ack(tag);
        let sticks = matches!(
            self.machine.stop_reason(),
            Some(StopReason::NoDeadLetterQueue { tag: stuck, .. }) if *stuck == tag
        );
        if let Some(reading) = &mut self.reading {
            reading.given_back(offset);
            if sticks {
                reading.sticks(offset);
            }
        }
    }

    /// Whether something had to be done about it.
    pub(super) async fn look_at_the_position(
        &mut self,
        handling: &mut Handling<'_>,
    ) -> Result<bool> {
        let Some(reading) = &self.reading else {
            return Ok(false);
        };
        if self.machine.stop_reason().is_some() {
            return Ok(false);
        }
        if reading.cannot_keep() {
            self.apply(Event::Stop(StopReason::NotKept), handling)
                .await?;
            return Ok(true);
        }
        // In a pause without a consumer the next one starts there anyway.
        if reading.must_start_anew() && self.subscribed && !self.pausing.unsubscribes {
            let takes_one = self.machine.is_paused();
            let prefetch = if takes_one { 1 } else { self.wanted.prefetch };
            self.subscribe(prefetch).await?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Stops when everything that is there was read.
    pub(super) async fn look_for_the_end(&mut self, handling: &mut Handling<'_>) -> Result<()> {
        let has_begun = (self.reading.as_ref()).is_some_and(|r| r.position().is_some());
        let quiet = if has_begun { QUIET } else { QUIET_AT_FIRST };
        if self.last_activity.elapsed() < quiet || self.pausing.unsubscribes {
            return Ok(());
        }
        let last = self.connection.last_offset(&self.wanted.queue).await?;
        let is_at_the_end = (self.reading.as_ref()).is_some_and(|r| r.is_at_the_end(last));
        if is_at_the_end {
            return self.apply(Event::Stop(StopReason::Empty), handling).await;
        }
        // Not asked again at once: it takes a while.
        self.last_activity = Instant::now();
        Ok(())
    }
}
