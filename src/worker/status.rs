//! What can be seen of a worker from outside while it works.
//!
//! The loop posts it once a turn; whoever watches (metrics, health, the progress
//! line) reads a copy and never holds the worker up.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where turns of the loop are timed"
)]

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::retry::Outcome;
use crate::worker::{Counts, HandlerTimes, Machine};

/// A loop that has not turned for so long is stuck. It turns five times a second
/// when nothing happens.
const STUCK_AFTER: Duration = Duration::from_mins(1);

/// What a worker is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has not subscribed yet.
    Connecting,
    /// It takes messages.
    Working,
    /// It takes none for a while, by its own decision.
    Paused,
    /// Its connection broke, and it is not subscribed again yet.
    Reconnecting,
    /// It stops: what is in work ends, nothing new is taken.
    Draining,
}

impl Phase {
    /// One word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Working => "working",
            Self::Paused => "paused",
            Self::Reconnecting => "reconnecting",
            Self::Draining => "draining",
        }
    }
}

/// How a worker is connected to its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// Not subscribed yet.
    #[default]
    Awaited,
    /// Subscribed, over a connection that is not known to be broken.
    Up,
    /// No more, or not again yet.
    Lost,
}

/// A worker as it was at the end of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// What was done so far.
    pub counts: Counts,
    /// Deliveries in work.
    pub in_flight: usize,
    /// Whether it is subscribed.
    pub link: Link,
    /// Whether it takes no messages for a while, by its own decision.
    pub paused: bool,
    /// Whether it is on its way to its end.
    pub stopping: bool,
    /// Lost connections that were opened again.
    pub reconnects: u64,
    /// How long attempts took.
    pub handler_times: HandlerTimes,
    /// How long ago the loop turned last.
    pub since_turn: Duration,
}

impl Status {
    /// What it is about.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        match self.link {
            _ if self.stopping => Phase::Draining,
            Link::Awaited => Phase::Connecting,
            Link::Lost => Phase::Reconnecting,
            Link::Up if self.paused => Phase::Paused,
            Link::Up => Phase::Working,
        }
    }

    /// Whether the loop has not turned for a minute though it should: it writes
    /// to somebody who does not read, say. Without a connection it need not turn.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.link == Link::Up && self.since_turn >= STUCK_AFTER
    }
}

/// Where a worker posts its status. A lock is held for a copy of plain data only.
#[derive(Debug)]
pub struct StatusBoard {
    posted: Mutex<(Status, Instant)>,
}

impl Default for StatusBoard {
    fn default() -> Self {
        Self {
            posted: Mutex::new((Status::default(), Instant::now())),
        }
    }
}

impl StatusBoard {
    /// Posts what the machine counted, at the end of a turn or when the
    /// connection came or went.
    pub fn post(&self, machine: &Machine, link: Link) {
        let mut posted = self.lock();
        let (status, turned) = &mut *posted;
        status.counts = machine.counts();
        status.in_flight = machine.in_flight();
        status.link = link;
        status.paused = machine.is_paused();
        status.stopping = machine.stop_reason().is_some();
        *turned = Instant::now();
    }

    /// A lost connection is there again.
    pub fn reconnected(&self) {
        self.lock().0.reconnects += 1;
    }

    /// An attempt of a handler ended.
    pub fn attempt_ended(&self, outcome: &Outcome, took: Duration) {
        self.lock().0.handler_times.add(outcome, took);
    }

    /// A copy of what was posted last.
    #[must_use]
    pub fn read(&self) -> Status {
        let posted = self.lock();
        let (status, turned) = &*posted;
        Status {
            since_turn: turned.elapsed(),
            ..status.clone()
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Status, Instant)> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_most_is_the_phase() {
        let mut status = Status::default();
        assert_eq!(status.phase(), Phase::Connecting);
        status.link = Link::Up;
        assert_eq!(status.phase(), Phase::Working);
        status.paused = true;
        assert_eq!(status.phase(), Phase::Paused);
        status.link = Link::Lost;
        assert_eq!(status.phase(), Phase::Reconnecting);
        status.stopping = true;
        assert_eq!(status.phase(), Phase::Draining);
    }

    #[test]
    fn only_a_loop_that_should_turn_can_be_stuck() {
        let mut status = Status {
            link: Link::Up,
            since_turn: Duration::from_secs(59),
            ..Status::default()
        };
        assert!(!status.is_stuck());
        status.since_turn = STUCK_AFTER;
        assert!(status.is_stuck());
        status.link = Link::Lost;
        assert!(!status.is_stuck());
    }
}
