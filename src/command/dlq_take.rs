//! Taking messages out of a queue into a file, or only reading them: what
//! `mq dlq export` and `mq dlq purge` have in common.
//!
//! A message is acked only once its line is on disk. What is not acked goes back
//! to where it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc::UnboundedReceiver;

use super::dlq_guard::{Permit, ready_now};
use super::dlq_replace::Replacer;
use super::session::Session;
use super::signals;
use crate::amqp::{Connection, Frames, Taken, Walk};
use crate::deadletter::{Letter, letter_json};
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Delivery, Source, message_line};
use crate::output::{self, LineFile, Progress, Took};
use crate::query::Filter;
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
    pub(super) filter: Option<Filter>,
    pub(super) limit: Option<u64>,
    pub(super) remove: bool,
}

/// Where the lines go to.
pub(super) enum Target {
    /// Nobody wants them.
    Nowhere,
    StandardOutput,
    File(LineFile),
}

/// Takes what is wanted. What was done is told even when it ends in an error.
pub(super) async fn take(
    wanted: &Wanted<'_>,
    permit: &Permit,
    target: &mut Target,
    session: &Session,
) -> (Took, Result<()>) {
    let mut took = Took::default();
    let result = connect_and_take(wanted, permit, target, session, &mut took).await;
    (took, result)
}

async fn connect_and_take(
    wanted: &Wanted<'_>,
    permit: &Permit,
    target: &mut Target,
    session: &Session,
    took: &mut Took,
) -> Result<()> {
    let mut signals = signals::listen().map_err(|error| {
        Error::new(
            ErrorKind::Internal,
            format!("cannot listen for signals: {error}"),
        )
    })?;
    let connection = session.connect(wanted.command, Frames::Large).await?;
    let taken = walk(
        wanted,
        permit,
        target,
        session,
        took,
        &connection,
        &mut signals,
    )
    .await;
    connection.close().await;
    taken
}

async fn walk(
    wanted: &Wanted<'_>,
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
    let count = match (wanted.limit, &wanted.filter) {
        (Some(limit), None) => ready.min(limit),
        _ => ready,
    };
    let looked = Arc::new(AtomicU64::new(0));
    let progress = progress(wanted, target, session, &looked, count);
    let replacer = Replacer::open(connection, session, wanted.vhost, queue, permit).await?;
    let kind = &permit.observed.kind;
    let mut walk = Walk::open(connection, queue, kind, count, permit.typical_body()).await?;
    if replacer.is_some() {
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
        looked,
    };
    let result = taking.run(signals).await;
    let Taking { walk, .. } = taking;
    // Returns what was not acked, whatever happened before.
    let released = walk.release().await;
    drop(progress);
    if wanted.remove && wanted.limit.is_none() && took.stopped_by.is_none() && result.is_ok() {
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
    looked: &Arc<AtomicU64>,
    total: u64,
) -> Option<Progress> {
    let prints_there = matches!(target, Target::StandardOutput) && output::data_is_on_terminal();
    if !session.shows_progress || prints_there || !Progress::is_possible() {
        return None;
    }
    Some(Progress::bar(wanted.queue.to_string(), looked, total))
}

struct Taking<'t, 'c> {
    walk: Walk<'c>,
    /// Where messages would not survive being put back.
    replacer: Option<Replacer<'c>>,
    counts_deliveries: bool,
    wanted: &'t Wanted<'t>,
    target: &'t mut Target,
    took: &'t mut Took,
    /// Tags of messages whose lines are not on disk yet.
    pending: Vec<u64>,
    pending_bytes: usize,
    looked: Arc<AtomicU64>,
}

impl Taking<'_, '_> {
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
        self.wanted.limit.is_some_and(|limit| so_far >= limit)
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
        self.looked.fetch_add(1, Ordering::Relaxed);
        let Taken { tag, delivery } = taken;
        if !self.is_meant(&delivery)? {
            self.took.left_by_filter += 1;
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

    fn is_meant(&self, delivery: &Delivery) -> Result<bool> {
        let Some(filter) = &self.wanted.filter else {
            return Ok(true);
        };
        let letter = Letter::read(&delivery.properties);
        filter.accepts(&letter_json(
            delivery,
            &letter,
            delivery.body.len(),
            usize::MAX,
        ))
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
                    file.sync()?;
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
