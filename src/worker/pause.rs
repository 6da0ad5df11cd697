//! Carries out a pause: the consumer is cancelled and opened again, with one
//! message or with all.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a pause meets the clock"
)]

use std::time::Duration;

use tokio::time::Instant;

use crate::error::Result;
use crate::worker::drive::{Session, later};
use crate::worker::reading::Reading;

/// Where a session is between two subscriptions.
#[derive(Debug)]
pub(super) struct Pausing {
    /// When the next probe is due.
    pub(super) rest: Option<Instant>,
    /// Whether we cancelled the consumer, and what it had been sent may still come.
    pub(super) unsubscribes: bool,
    /// Subscribe after that, with this prefetch.
    then: Option<u16>,
    since: Option<Instant>,
    /// How long it lasted before this session.
    before: Duration,
}

impl Pausing {
    /// Of a session that begins in a pause which has lasted so long, or in none.
    pub(super) fn since(lasted: Option<Duration>) -> Self {
        Self {
            rest: None,
            unsubscribes: false,
            then: None,
            since: lasted.map(|_| Instant::now()),
            before: lasted.unwrap_or_default(),
        }
    }
}

impl Session<'_> {
    pub(super) async fn pause(&mut self, sign: &str, why: &str, wait: Duration) -> Result<()> {
        self.pausing.since = Some(Instant::now());
        self.pausing.before = Duration::ZERO;
        tracing::warn!(
            queue = %self.wanted.queue,
            why,
            "paused: {sign}; probing with one message, next in {}",
            humantime::format_duration(wait)
        );
        self.unsubscribe().await
    }

    pub(super) fn rest(&mut self, wait: Duration) {
        self.pausing.rest = later(wait);
        tracing::info!(
            queue = %self.wanted.queue,
            "the next probe is in {}",
            humantime::format_duration(wait)
        );
    }

    pub(super) async fn resume(&mut self) -> Result<()> {
        self.pausing.rest = None;
        let lasted = self.pausing.since.take().map(|since| since.elapsed());
        let lasted = lasted.unwrap_or_default() + self.pausing.before;
        let lasted = Duration::from_millis(u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX));
        tracing::warn!(
            queue = %self.wanted.queue,
            "resumed: a message was done after a pause of {}",
            humantime::format_duration(lasted)
        );
        // Probation goes on where the pause came before its end.
        let prefetch = if self.on_probation {
            1
        } else {
            self.wanted.prefetch
        };
        self.subscribe(prefetch).await
    }

    /// Cancels the consumer, if there is one. What it had been sent still comes.
    pub(super) async fn unsubscribe(&mut self) -> Result<()> {
        self.pausing.then = None;
        if self.subscribed && !self.pausing.unsubscribes {
            self.subscription.cancel().await?;
            self.pausing.unsubscribes = true;
        }
        Ok(())
    }

    /// Subscribes with this prefetch, in place of what is subscribed now.
    pub(super) async fn subscribe(&mut self, prefetch: u16) -> Result<()> {
        if self.subscribed {
            self.unsubscribe().await?;
            self.pausing.then = Some(prefetch);
            return Ok(());
        }
        let start = self.reading.as_deref_mut().map(Reading::subscribes);
        self.subscription.resume(prefetch, start).await?;
        self.subscribed = true;
        Ok(())
    }

    /// The consumer that we cancelled has handed out everything it had.
    pub(super) async fn unsubscribed(&mut self) -> Result<()> {
        self.pausing.unsubscribes = false;
        self.subscribed = false;
        match self.pausing.then.take() {
            Some(prefetch) => self.subscribe(prefetch).await,
            None => Ok(()),
        }
    }
}
