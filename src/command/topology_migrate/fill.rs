//! The way back into the queue: what it held, then what waited.
//!
//! What came directly before its turn, in an attempt to open the queue, is told
//! by its exchange: everything that waited comes through the exchange for the
//! way back. It is copied behind what has to come first.

use std::collections::VecDeque;
use std::time::Duration;

use super::migration::{Migration, pause};
use crate::amqp::{Copier, Hold, Intake, Taken, WINDOW};
use crate::error::{Error, ErrorKind, Result};
use crate::field::FieldValue;
use crate::message::{Delivery, Fingerprint};
use crate::plan::{Overlap, Seen, overlap};
use crate::topology::QueueName;

/// A source that gives nothing for so long, although it has messages, is not ours.
const GIVES_NOTHING: Duration = Duration::from_secs(10);

/// How long nothing must come before what waited counts as complete.
pub(super) const LATE: Duration = Duration::from_millis(10);

/// The last copies of a queue, oldest first.
type Tail = VecDeque<Option<Fingerprint>>;

/// Where the end of a destination is known from.
pub(super) enum End<'e> {
    /// From a look into the queue, if one is needed.
    Of(&'e QueueName),
    /// From an earlier look.
    Known(Vec<Option<Fingerprint>>),
    /// It must not be looked at.
    Unknown,
}

/// What a look through the filled queue showed.
struct Examined<'c> {
    hold: Hold<'c>,
    tail: Tail,
    direct: Vec<Taken>,
}

impl<'m> Migration<'m> {
    /// Moves everything from `intake` on through `copier`, until its queue is empty.
    pub(super) async fn pour(
        &mut self,
        intake: &mut Intake<'_>,
        copier: &mut Copier<'_>,
        from: &QueueName,
        end: End<'_>,
    ) -> Result<u64> {
        let mut moved = 0;
        let mut end = Some(end);
        let mut idle = Duration::ZERO;
        let patience = Duration::from_millis(100);
        loop {
            self.stop_asked()?;
            let mut batch = intake.take(WINDOW, patience).await?;
            if batch.is_empty() {
                if self.ready(from).await?.unwrap_or(0) == 0 {
                    return Ok(moved);
                }
                idle += patience;
                if idle > GIVES_NOTHING {
                    return Err(Error::new(
                        ErrorKind::Partial,
                        format!("queue '{from}' has messages but hands none out"),
                    )
                    .hint(
                        "somebody else may hold it: a single active consumer, an exclusive one",
                    ));
                }
                continue;
            }
            idle = Duration::ZERO;
            if let Some(end) = end.take() {
                moved += self.skip_copied(intake, &mut batch, end).await?;
            }
            moved += self.copy(intake, copier, &batch).await?;
        }
    }

    pub(super) async fn copy(
        &mut self,
        intake: &Intake<'_>,
        copier: &mut Copier<'_>,
        batch: &[Taken],
    ) -> Result<u64> {
        for taken in batch {
            copier.send(&taken.delivery).await?;
        }
        copier.settle().await?;
        if let Some(last) = batch.last() {
            intake.ack_up_to(last.tag).await?;
        }
        Ok(batch.len() as u64)
    }

    /// What an earlier run copied and did not acknowledge comes first and was
    /// handed out before. It is acknowledged without another copy if it can be
    /// recognised at the end of the destination.
    pub(super) async fn skip_copied(
        &mut self,
        intake: &mut Intake<'_>,
        batch: &mut Vec<Taken>,
        end: End<'_>,
    ) -> Result<u64> {
        let again = |taken: &Taken| taken.delivery.redelivered;
        // Two windows at most were out.
        while batch.last().is_some_and(again) && batch.len() < 2 * WINDOW {
            let more = intake
                .take(2 * WINDOW - batch.len(), Duration::from_millis(100))
                .await?;
            if more.is_empty() {
                break;
            }
            batch.extend(more);
        }
        let head: Vec<Option<Fingerprint>> = batch
            .iter()
            .take_while(|taken| again(taken))
            .map(|taken| Fingerprint::of(&taken.delivery))
            .collect();
        if head.is_empty() {
            return Ok(0);
        }
        let tail = match end {
            End::Of(queue) => self.tail_of(queue).await?,
            End::Known(tail) => Some(tail),
            End::Unknown => None,
        };
        let found = match tail {
            Some(tail) => overlap(&head, &tail),
            None => Overlap::Unclear(head.len()),
        };
        match found {
            Overlap::Unclear(count) => {
                self.report.maybe_twice += count as u64;
                Ok(0)
            }
            Overlap::Copied(count) => {
                if let Some(last) = count.checked_sub(1).and_then(|last| batch.get(last)) {
                    intake.ack_up_to(last.tag).await?;
                }
                batch.drain(..count);
                self.report.skipped += count as u64;
                Ok(count as u64)
            }
        }
    }

    /// The last copies in a queue that nothing is published to; `None` where
    /// looking would do harm.
    async fn tail_of(&mut self, queue: &QueueName) -> Result<Option<Vec<Option<Fingerprint>>>> {
        if *queue == self.names.queue {
            let Some(examined) = self.examine().await? else {
                return Ok(None);
            };
            self.give_back(examined.hold, queue).await?;
            return Ok(Some(examined.tail.into()));
        }
        let ready = self.ready(queue).await?.unwrap_or(0);
        let mut tail = Tail::new();
        let hold = Hold::open(self.connection, queue, ready, |taken| {
            remember(&mut tail, &taken.delivery);
        })
        .await?;
        self.give_back(hold, queue).await?;
        Ok(Some(tail.into()))
    }

    /// Ends a hold, and waits until the queue counts what came back.
    async fn give_back(&self, hold: Hold<'_>, queue: &QueueName) -> Result<()> {
        let returned = hold.release().await?;
        for _ in 0..200 {
            if self.ready(queue).await?.unwrap_or(0) >= returned {
                break;
            }
            pause(LATE).await;
        }
        Ok(())
    }

    /// Looks through the queue while nothing is published to it, holding all of
    /// it; `None` where that would do harm.
    async fn examine(&mut self) -> Result<Option<Examined<'m>>> {
        if !self.may_hold().await? {
            return Ok(None);
        }
        let queue = self.names.queue.clone();
        let back = self.names.back.as_str().to_owned();
        let ready = self.ready(&queue).await?.unwrap_or(0);
        let mut tail = Tail::new();
        let mut direct = Vec::new();
        let mut deliveries = self.deliveries;
        let hold = Hold::open(self.connection, &queue, ready, |taken| {
            let count = taken.delivery.properties.headers.get("x-delivery-count");
            deliveries = deliveries.max(count.and_then(FieldValue::as_integer).unwrap_or(0));
            if taken.delivery.exchange == back {
                remember(&mut tail, &taken.delivery);
            } else if !taken.delivery.exchange.is_empty() {
                direct.push(taken);
            }
        })
        .await?;
        // This look counts too, once it is over.
        self.deliveries = deliveries + 1;
        Ok(Some(Examined { hold, tail, direct }))
    }

    /// Moves the old queue back, and puts what came directly behind it.
    pub(super) async fn refill(&mut self) -> Result<u64> {
        let (queue, old) = (self.names.queue.clone(), self.names.old.clone());
        let holds_any = self.ready(&queue).await?.unwrap_or(0) > 0;
        let ahead = std::mem::take(&mut self.ahead);
        let look = (std::mem::take(&mut self.unexamined) && holds_any) || ahead > 0;
        let examined = if look { self.examine().await? } else { None };
        let waits = self.ready(&old).await?.unwrap_or(0);
        if look && examined.is_none() && ahead > 0 {
            self.report.out_of_order += waits;
        }
        if self.is_marked_late() {
            // Killed between closing the queue and keeping what had slipped in.
            let direct = examined.as_ref().map_or(ahead, |e| e.direct.len() as u64);
            self.report.out_of_order += direct;
            self.connection.unbind(&self.names.late_binding()).await?;
        }
        let mut copier = Copier::open(self.connection, &self.names.back, &self.user).await?;
        let (end, direct) = match examined {
            None if look => (End::Unknown, None),
            None => (End::Of(&queue), None),
            Some(examined) => {
                let end = End::Known(examined.tail.iter().copied().collect());
                if examined.direct.is_empty() {
                    self.give_back(examined.hold, &queue).await?;
                    (end, None)
                } else {
                    (end, Some(examined))
                }
            }
        };
        let mut intake = Intake::open(self.connection, &old).await?;
        let poured = self.pour(&mut intake, &mut copier, &old, end).await?;
        intake.close().await?;
        if let Some(examined) = direct {
            self.put_behind(examined, &mut copier, waits > 0).await?;
        }
        self.report.user_ids_dropped += copier.user_ids_dropped();
        self.report.moved += poured;
        Ok(poured)
    }

    /// Copies what came directly behind everything else, and lets the rest go
    /// back to where it was.
    async fn put_behind(
        &mut self,
        examined: Examined<'_>,
        copier: &mut Copier<'_>,
        others_came_first: bool,
    ) -> Result<()> {
        let Examined {
            mut hold,
            tail,
            direct,
        } = examined;
        let head: Vec<Option<Fingerprint>> = direct
            .iter()
            .map(|taken| Fingerprint::of(&taken.delivery))
            .collect();
        // With something of the old queue still to come, none was copied yet.
        let copied = if others_came_first {
            0
        } else {
            match overlap(&head, &Vec::from(tail)) {
                Overlap::Copied(count) => count,
                Overlap::Unclear(count) => {
                    self.report.maybe_twice += count as u64;
                    0
                }
            }
        };
        self.report.skipped += copied as u64;
        for taken in direct.iter().skip(copied) {
            copier.send(&taken.delivery).await?;
            if copier.unsettled() >= WINDOW {
                copier.settle().await?;
            }
        }
        copier.settle().await?;
        for taken in &direct {
            hold.ack(taken.tag).await?;
        }
        let queue = self.names.queue.clone();
        self.give_back(hold, &queue).await
    }

    /// Moves what waited, and tries to open the queue. Comes back without having
    /// opened it when something slipped in: the next look says what to do.
    pub(super) async fn catch_up(&mut self, seen: &Seen) -> Result<u64> {
        let (queue, new) = (self.names.queue.clone(), self.names.new.clone());
        if self.unexamined {
            self.refill().await?;
        }
        let mut copier = Copier::open(self.connection, &self.names.back, &self.user).await?;
        let first = self.waiting.is_none();
        let mut intake = match self.waiting.take() {
            Some(intake) => intake,
            None => Intake::open(self.connection, &new).await?,
        };
        if seen.moved.is_empty() {
            let moved = self
                .pour(&mut intake, &mut copier, &new, End::Of(&queue))
                .await;
            intake.close().await?;
            return moved;
        }
        let moved = self.attempt(&mut intake, &mut copier, first).await;
        self.waiting = Some(intake);
        self.report.user_ids_dropped += copier.user_ids_dropped();
        let moved = moved?;
        self.report.moved += moved;
        Ok(moved)
    }

    /// An earlier run was killed between opening the queue and seeing what had
    /// slipped in: what waits goes to the old queue, then the queue is closed.
    pub(super) async fn turn_back(&mut self) -> Result<u64> {
        let (new, old) = (self.names.new.clone(), self.names.old.clone());
        let mut intake = match self.waiting.take() {
            Some(intake) => intake,
            None => Intake::open(self.connection, &new).await?,
        };
        let mut copier = Copier::open(self.connection, &self.names.out, &self.user).await?;
        self.pour(&mut intake, &mut copier, &new, End::Of(&old))
            .await?;
        self.connection.unbind(&self.names.entry_binding()).await?;
        self.waiting = Some(intake);
        self.unexamined = true;
        Ok(0)
    }

    fn is_marked_late(&self) -> bool {
        let mark = self.names.late_binding();
        self.bindings.iter().any(|named| named.binding == mark)
    }
}

fn remember(tail: &mut Tail, delivery: &Delivery) {
    if tail.len() == 4 * WINDOW {
        tail.pop_front();
    }
    tail.push_back(Fingerprint::of(delivery));
}
