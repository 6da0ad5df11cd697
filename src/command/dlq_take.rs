//! Taking messages out of a queue into a file, or only reading them: what
//! `mq dlq export` and `mq dlq purge` have in common.
//!
//! A message is acked only once its line is on disk. What is not acked goes back
//! to where it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc::UnboundedReceiver;

use super::dlq_chosen::Chosen;
use super::dlq_guard::{Permit, ready_now};
use super::dlq_replace::Replacer;
use super::session::Session;
use crate::amqp::{Connection, Frames, Taken, Walk};
use crate::deadletter::{Letter, Stay, letter_json};
use crate::error::Result;
use crate::message::{Delivery, Source, message_line};
use crate::output::{self, LineFile, Progress, Took};
use crate::topology::{QueueName, QueueType, VhostName};

/// Lines and bytes that are secured on disk together, at most.
const TOGETHER: usize = 1000;
const BYTES_TOGETHER: usize = 4 * 1024 * 1024;

/// Which messages, and what becomes of them.
pub(super) struct Wanted<'a> {
    /// `mq dlq export`, as the connection is called.
    pub(super) command: &'static str,
    pub(super) vhost: &'a VhostName,
    pub(super) queue: &'a QueueName,
    pub(super) chosen: Chosen,
    pub(super) limit: Option<u64>,
    pub(super) remove: bool,
    /// Counts the messages that were looked at, while it runs.
    pub(super) looked: Arc<AtomicU64>,
}

/// Where the lines go to.
pub(super) enum Target {
    /// Nobody wants them.
    Nowhere,
    StandardOutput,
    File(LineFile),
}

/// Takes what is wanted, until a signal ends it in order. What was done is told
/// even when it ends in an error.
pub(super) async fn take(
    mut wanted: Wanted<'_>,
    permit: &Permit,
    target: &mut Target,
    session: &Session,
    signals: &mut UnboundedReceiver<u8>,
) -> (Took, Result<()>) {
    let mut took = Took::default();
    let result = connect_and_take(&mut wanted, permit, target, session, &mut took, signals).await;
    (took, result)
}

async fn connect_and_take(
    wanted: &mut Wanted<'_>,
    permit: &Permit,
    target: &mut Target,
    session: &Session,
    took: &mut Took,
    signals: &mut UnboundedReceiver<u8>,
) -> Result<()> {
    let connection = session.connect(wanted.command, Frames::Large).await?;
    let taken = walk(wanted, permit, target, session, took, &connection, signals).await;
    connection.close().await;
    taken
}

async fn walk(
    wanted: &mut Wanted<'_>,
    permit: &Permit,
    target: &mut Target,
    session: &Session,
    took: &mut Took,
    connection: &Connection,
    signals: &mut UnboundedReceiver<u8>,
) -> Result<()> {
    let queue = wanted.queue;
    // What comes while this runs is not meant: a message that fails again and
    // comes back would be met without end.
    let ready = ready_now(connection, wanted.vhost, queue).await?;
    let count = match (wanted.limit, &wanted.chosen) {
        (Some(limit), Chosen::All) => ready.min(limit),
        _ => ready,
    };
    let removes_all =
        wanted.remove && wanted.limit.is_none() && !matches!(wanted.chosen, Chosen::Marked(_));
    let progress = progress(wanted, target, session, count);
    let replacer = Replacer::open(connection, session, wanted.vhost, queue, permit).await?;
    let kind = &permit.observed.kind;
    let mut walk = Walk::open(connection, queue, kind, count, permit.typical_body()).await?;
    if permit.one_by_one() {
        walk.one_by_one();
    }
    let mut taking = Taking {
        walk,
        replacer,
        counts_deliveries: permit.observed.kind == QueueType::Quorum,
        wanted,
        target,
        took,
        pending: Vec::new(),
        pending_bytes: 0,
    };
    let result = taking.run(signals).await;
    let Taking { walk, .. } = taking;
    // Returns what was not acked, whatever happened before.
    let released = walk.release().await;
    drop(progress);
    if removes_all && took.stopped_by.is_none() && result.is_ok() {
        let left = connection.queue_status(queue).await?;
        let left = left.map_or(0, |status| u64::from(status.ready));
        let more = left.saturating_sub(took.left_by_filter + took.unwritable);
        session.warn(|| match more {
            0 => String::new(),
            more => format!("mq: {more} more came meanwhile and are in the queue"),
        });
    }
    result?;
    released.map(|_| ()).map_err(|error| {
        if took.removed > 0 {
            error.hint("the last messages that were written may still be in the queue too")
        } else {
            error
        }
    })
}

fn progress(
    wanted: &Wanted<'_>,
    target: &Target,
    session: &Session,
    total: u64,
) -> Option<Progress> {
    let prints_there = matches!(target, Target::StandardOutput) && output::data_is_on_terminal();
    if !session.shows_progress || prints_there || !Progress::is_possible() {
        return None;
    }
    Some(Progress::bar(
        wanted.queue.to_string(),
        &wanted.looked,
        total,
    ))
}

struct Taking<'t, 'w, 'c> {
    walk: Walk<'c>,
    /// Where messages would not survive being put back.
    replacer: Option<Replacer<'c>>,
    counts_deliveries: bool,
    wanted: &'t mut Wanted<'w>,
    target: &'t mut Target,
    took: &'t mut Took,
    /// Tags of messages whose lines are not on disk yet.
    pending: Vec<u64>,
    pending_bytes: usize,
}

impl Taking<'_, '_, '_> {
    async fn run(&mut self, signals: &mut UnboundedReceiver<u8>) -> Result<()> {
        loop {
            if self.is_enough() {
                return self.secure();
            }
            if let Ok(signal) = signals.try_recv() {
                self.took.stopped_by = Some(signal);
                return self.secure();
            }
            let next = match self.walk.next_now()? {
                Some(taken) => Some(taken),
                None => {
                    self.secure()?;
                    if self.replacer.is_some() {
                        // What comes into our hands must not be dropped.
                        self.walk.next().await?
                    } else {
                        tokio::select! {
                            biased;
                            signal = signals.recv() => {
                                self.took.stopped_by = signal.or(Some(0));
                                return Ok(());
                            }
                            next = self.walk.next() => next?,
                        }
                    }
                }
            };
            let Some(taken) = next else {
                return self.secure();
            };
            let decided = if self.replacer.is_some() {
                self.decide_carefully(taken).await
            } else {
                self.decide(taken)
            };
            if let Err(error) = decided {
                // What is fine is not lost for it.
                self.secure()?;
                return Err(error);
            }
            if self.pending.len() >= TOGETHER || self.pending_bytes >= BYTES_TOGETHER {
                self.secure()?;
                self.walk.send_acks().await?;
            }
        }
    }

    fn is_enough(&self) -> bool {
        let so_far = self.took.written + self.pending.len() as u64;
        self.wanted.limit.is_some_and(|limit| so_far >= limit) || self.wanted.chosen.is_over()
    }

    /// One message from its line on disk to its end: where it would go back, a copy
    /// takes its place if it would not survive that.
    async fn decide_carefully(&mut self, taken: Taken) -> Result<()> {
        let tag = taken.tag;
        let delivery = taken.delivery.clone();
        let decided = self.decide(taken).and_then(|()| self.secure());
        if let Some(replacer) = &mut self.replacer
            && !self.walk.is_acked(tag)
            && replacer.in_place_of(&delivery).await?
        {
            self.took.replaced += 1;
            self.walk.ack(tag);
        }
        decided
    }

    fn decide(&mut self, taken: Taken) -> Result<()> {
        self.took.looked_at += 1;
        self.wanted.looked.fetch_add(1, Ordering::Relaxed);
        let Taken { tag, delivery } = taken;
        if let Some(stay) = self.leaves_out(&delivery)? {
            match stay {
                Stay::Unmarked => self.took.unmarked += 1,
                _ => self.took.left_by_filter += 1,
            }
            self.walk.keep(tag);
            return Ok(());
        }
        let line = match self.target {
            Target::Nowhere => None,
            Target::StandardOutput | Target::File(_) => match self.line(&delivery) {
                Ok(line) => Some(line),
                Err(error) => {
                    self.took.unwritable += 1;
                    self.walk.keep(tag);
                    output::talk(&format!(
                        "mq: message {} of the queue stays where it is: {}",
                        self.took.looked_at,
                        output::printable(error.message())
                    ));
                    return Ok(());
                }
            },
        };
        if let Some(line) = line {
            self.pending_bytes += line.len();
            match self.target {
                Target::Nowhere => {}
                Target::StandardOutput => output::data(&line)?,
                Target::File(file) => file.push(&line),
            }
        }
        self.pending.push(tag);
        Ok(())
    }

    fn leaves_out(&mut self, delivery: &Delivery) -> Result<Option<Stay>> {
        let json = if self.wanted.chosen.asks_a_filter() {
            let letter = Letter::read(&delivery.properties);
            letter_json(delivery, &letter, delivery.body.len(), usize::MAX)
        } else {
            serde_json::Value::Null
        };
        self.wanted.chosen.leaves_out(delivery, &json)
    }

    fn line(&self, delivery: &Delivery) -> Result<String> {
        let source = Source {
            vhost: self.wanted.vhost,
            queue: self.wanted.queue,
            counts_deliveries: self.counts_deliveries,
        };
        Ok(output::json_line(&message_line(delivery, Some(source))?))
    }

    /// Has what is pending on disk, and only then acks it.
    fn secure(&mut self) -> Result<()> {
        if let Target::File(file) = self.target {
            if self.wanted.remove {
                if !self.pending.is_empty() {
                    file.sync().map_err(|error| {
                        if file.is_deleted() {
                            error.hint("what was in it is gone with it; the messages of its last lines are still in their queue")
                        } else {
                            error
                        }
                    })?;
                }
            } else {
                file.write()?;
            }
        }
        self.took.written += self.pending.len() as u64;
        for tag in self.pending.drain(..) {
            if self.wanted.remove {
                self.walk.ack(tag);
                self.took.removed += 1;
            } else {
                self.walk.keep(tag);
            }
        }
        self.pending_bytes = 0;
        Ok(())
    }
}
