//! Whether the broker reads what we send: while a memory or disk alarm is on it
//! blocks the connections that publish (`connection.blocked`), and lapin writes
//! nothing then, not even heartbeats; the broker does not miss them.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the clock says how long the broker blocks"
)]

use std::pin::pin;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use lapin::Event;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::error::{Error, ErrorKind};
use crate::printable::one_line;

/// What has been heard of the broker's alarms.
#[derive(Clone, Debug, Default)]
struct Heard {
    now: Option<Block>,
    /// How long all blocks before lasted together.
    before: Duration,
}

#[derive(Clone, Debug)]
struct Block {
    reason: String,
    since: Instant,
}

/// A point in time from which a confirm is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    at: Instant,
    /// How long the broker had blocked by then, in all.
    blocked: Duration,
}

/// What ran out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// The time for the confirm.
    Confirm,
    /// The time for the block, and the broker's reason for it.
    Blocked(String),
}

/// A change that people should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// The broker reads nothing more; its reason, such as `low on memory`.
    On(String),
    /// It reads again, after so long.
    Off(Duration),
}

/// Listens to the alarms of one connection.
pub(super) struct Alarms {
    heard: watch::Receiver<Heard>,
    task: JoinHandle<()>,
}

impl Drop for Alarms {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Alarms {
    /// Listens from now on. The broker blocks a connection when it first
    /// publishes, so nothing was missed before that.
    pub(super) fn of(connection: &lapin::Connection) -> Self {
        let (tell, heard) = watch::channel(Heard::default());
        let mut events = pin_events(connection);
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let now = Instant::now();
                match event {
                    Event::ConnectionBlocked(reason) => {
                        tell.send_modify(|heard| heard.block(reason, now));
                    }
                    Event::ConnectionUnblocked => tell.send_modify(|heard| heard.unblock(now)),
                    _ => {}
                }
            }
        });
        Self { heard, task }
    }

    /// Whether the broker blocks now.
    pub(super) fn are_on(&self) -> bool {
        self.heard.borrow().now.is_some()
    }

    /// This point in time.
    pub(super) fn now(&self) -> Since {
        let at = Instant::now();
        Since {
            at,
            blocked: self.heard.borrow().in_all(at),
        }
    }

    /// Waits for an answer for as long as `confirm_limit` from `since`. With a
    /// `blocked_limit` no time counts in which the broker blocks, which may be so
    /// long at a time; without one that counts like any other.
    pub(super) async fn wait<T>(
        &self,
        since: Since,
        confirm_limit: Duration,
        blocked_limit: Option<Duration>,
        answer: impl Future<Output = T>,
    ) -> Result<T, Late> {
        let mut answer = pin!(answer);
        if let Some(done) = answer.as_mut().now_or_never() {
            return Ok(done);
        }
        let mut heard = self.heard.clone();
        loop {
            let (until, late) =
                (heard.borrow_and_update()).patience(since, confirm_limit, blocked_limit);
            tokio::select! {
                biased;
                done = &mut answer => return Ok(done),
                () = changed(&mut heard) => {}
                () = sleep_until(until) => return Err(late),
            }
        }
    }

    /// Waits while the broker blocks, at most `limit` from the beginning of the block;
    /// else gives its reason.
    pub(super) async fn wait_out(&self, limit: Duration) -> Result<(), String> {
        let mut heard = self.heard.clone();
        loop {
            let Some(block) = heard.borrow_and_update().now.clone() else {
                return Ok(());
            };
            tokio::select! {
                biased;
                () = changed(&mut heard) => {}
                () = sleep_until(block.since + limit) => return Err(block.reason),
            }
        }
    }

    /// Those who tell people.
    pub(super) fn watch(&self) -> AlarmWatch {
        AlarmWatch {
            heard: self.heard.clone(),
            told: None,
        }
    }
}

/// Hears of each change.
pub struct AlarmWatch {
    heard: watch::Receiver<Heard>,
    /// The block that was told last and is not over.
    told: Option<Instant>,
}

impl AlarmWatch {
    /// The next change; never, once the connection is gone. Safe to drop while waiting.
    pub async fn next(&mut self) -> Alarm {
        loop {
            let now = self.heard.borrow_and_update().now.clone();
            match (now, self.told) {
                (Some(block), None) => {
                    self.told = Some(block.since);
                    return Alarm::On(block.reason);
                }
                (None, Some(since)) => {
                    self.told = None;
                    return Alarm::Off(since.elapsed());
                }
                _ => changed(&mut self.heard).await,
            }
        }
    }
}

impl Heard {
    fn block(&mut self, reason: String, now: Instant) {
        let since = self.now.take().map_or(now, |block| block.since);
        self.now = Some(Block { reason, since });
    }

    fn unblock(&mut self, now: Instant) {
        self.before = self.in_all(now);
        self.now = None;
    }

    /// How long the broker blocked until `now`.
    fn in_all(&self, now: Instant) -> Duration {
        let present = (self.now.as_ref()).map_or(Duration::ZERO, |block| now - block.since);
        self.before + present
    }

    /// How long to wait, if nothing more is heard, and what ran out then.
    fn patience(
        &self,
        since: Since,
        confirm_limit: Duration,
        blocked_limit: Option<Duration>,
    ) -> (Instant, Late) {
        match (&self.now, blocked_limit) {
            (_, None) => (since.at + confirm_limit, Late::Confirm),
            (Some(block), Some(limit)) => {
                (block.since + limit, Late::Blocked(block.reason.clone()))
            }
            (None, Some(_)) => {
                let blocked = self.before.saturating_sub(since.blocked);
                (since.at + confirm_limit + blocked, Late::Confirm)
            }
        }
    }
}

/// Returns at the next change, and never if there cannot be one.
async fn changed(heard: &mut watch::Receiver<Heard>) {
    if heard.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The broker does not read from us, and has not for so long.
pub(super) fn still_blocked(reason: &str, limit: Duration) -> Error {
    Error::new(
        ErrorKind::TimedOut,
        format!(
            "the broker has blocked publishers for {}: {}",
            humantime::format_duration(limit),
            one_line(reason, 200)
        ),
    )
    .hint("see `rabbitmqctl list_alarms`; make room, and publish again what is named, or wait longer with --blocked-timeout")
}

fn pin_events(
    connection: &lapin::Connection,
) -> std::pin::Pin<Box<dyn futures_util::Stream<Item = Event> + Send>> {
    Box::pin(connection.events_listener())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIRM: Duration = Duration::from_secs(30);
    const BLOCKED: Option<Duration> = Some(Duration::from_mins(5));

    #[test]
    fn no_time_counts_in_which_the_broker_blocks() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut heard = Heard::default();
        let since = |heard: &Heard, seconds| Since {
            at: after(seconds),
            blocked: heard.in_all(after(seconds)),
        };
        let first = since(&heard, 0);
        assert_eq!(
            heard.patience(first, CONFIRM, BLOCKED),
            (after(30), Late::Confirm)
        );
        heard.block("low on memory".to_owned(), after(10));
        let blocked = Late::Blocked("low on memory".to_owned());
        assert_eq!(
            heard.patience(first, CONFIRM, BLOCKED),
            (after(310), blocked)
        );
        // A second alarm does not begin the time anew.
        heard.block("low on memory & disk".to_owned(), after(20));
        assert_eq!(heard.patience(first, CONFIRM, BLOCKED).0, after(310));
        // Who has no limit for it waits as always.
        assert_eq!(
            heard.patience(first, CONFIRM, None),
            (after(30), Late::Confirm)
        );
        let within = since(&heard, 50);
        heard.unblock(after(110));
        assert_eq!(
            heard.patience(first, CONFIRM, BLOCKED),
            (after(130), Late::Confirm)
        );
        assert_eq!(
            heard.patience(within, CONFIRM, BLOCKED),
            (after(140), Late::Confirm)
        );
        let later = since(&heard, 120);
        assert_eq!(
            heard.patience(later, CONFIRM, BLOCKED),
            (after(150), Late::Confirm)
        );
    }
}
