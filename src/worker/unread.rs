//! What a session does about a stream: leave a message unread, keep the
//! position, find the end.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a stream meets the clock"
)]

use std::time::Duration;

use tokio::time::Instant;

use crate::error::Result;
use crate::worker::drive::Session;
use crate::worker::event::{Event, StopReason};
use crate::worker::wanted::Handling;

/// A stream that sends nothing for so long may be at its end.
const QUIET: Duration = Duration::from_secs(1);

impl Session<'_> {
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
        if self.last_activity.elapsed() < QUIET || self.pausing.unsubscribes {
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
