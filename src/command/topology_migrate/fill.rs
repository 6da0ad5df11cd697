//! The way back into the queue, and the moment at which it is opened again.
//!
//! Opening is one binding, but messages can come to the waiting queue until it
//! is made: they would then stand behind those that came directly. So opening is
//! an attempt. What turns out to have waited is put into the old queue while the
//! waiting queue gets nothing, then the binding is taken back, and what came
//! directly is copied behind it. All of that can be seen on the broker at any
//! time: the old queue holds what is to come first, and what came directly has
//! not come through the exchange for the way back.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where it is measured how long attempts go on"
)]

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::future::join;
use tokio::time::Instant;

use super::migration::{Migration, pause};
use crate::amqp::{Copier, Hold, Intake, Taken, WINDOW};
use crate::error::{Error, ErrorKind, Result};
use crate::field::FieldValue;
use crate::message::{Delivery, Fingerprint};
use crate::plan::{Overlap, Seen, overlap};
use crate::topology::{QueueName, QueueType};

/// A source that gives nothing for so long, although it has messages, is not ours.
const GIVES_NOTHING: Duration = Duration::from_secs(10);

/// How long the queue is watched after it was opened: what was routed to the
/// waiting queue before may still be on its way.
const WATCH: Duration = Duration::from_millis(300);

/// So many at most can have slipped in where all that waited had been taken.
const FEW: usize = 32;

/// How long nothing must come before what waited counts as complete.
const LATE: Duration = Duration::from_millis(10);

/// When an attempt is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// When nothing came for so long.
    Quiet(Duration),
    /// Right behind a message: whoever publishes one by one is then waiting for
    /// its confirm.
    BehindOne,
}

impl Moment {
    /// Both in turns; where a failure could not be mended, long quiet only.
    const fn of(attempts: u32, can_mend: bool) -> Self {
        match (can_mend, attempts % 3) {
            (false, _) => Self::Quiet(Duration::from_millis(50)),
            (true, 0) => Self::Quiet(Duration::from_millis(5)),
            (true, _) => Self::BehindOne,
        }
    }

    /// How long to wait for another message.
    const fn quiet(self) -> Duration {
        match self {
            Self::Quiet(time) => time,
            Self::BehindOne => Duration::from_millis(5),
        }
    }

    /// Whether it has come, with so many messages just sent on.
    const fn has_come(self, sent: usize) -> bool {
        match self {
            Self::Quiet(_) => sent == 0,
            Self::BehindOne => sent <= 2,
        }
    }
}

/// How long a message takes at most from its publisher's channel through a
/// classic queue to us, once it was routed.
const ON_ITS_WAY: Duration = Duration::from_millis(4);

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

    async fn copy(
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
    async fn skip_copied(
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

    async fn attempt(
        &mut self,
        intake: &mut Intake<'_>,
        copier: &mut Copier<'_>,
        mut first: bool,
    ) -> Result<u64> {
        let (queue, new) = (self.names.queue.clone(), self.names.new.clone());
        let base = self.ready(&queue).await?.unwrap_or(0);
        let until = match self.switching_until {
            Some(until) => until,
            None => {
                // What piled up takes time that is no attempt: 1000 a second at least.
                let waiting = self.ready(&new).await?.unwrap_or(0);
                let until =
                    Instant::now() + self.options.switch_for + Duration::from_millis(waiting);
                *self.switching_until.insert(until)
            }
        };
        let can_mend = self.may_hold().await?;
        let mut moved = 0;
        let mut last_tag = None;
        let mut slipped_in: Vec<Taken> = Vec::new();
        let mut caught_up = false;
        loop {
            let stop = self.stop_asked().and_then(|()| {
                if Instant::now() < until {
                    Ok(())
                } else {
                    Err(self.no_quiet_moment())
                }
            });
            if let Err(error) = stop {
                settle(intake, copier, &mut last_tag).await?;
                return Err(error);
            }
            let moment = Moment::of(self.attempts, can_mend);
            let mut batch = std::mem::take(&mut slipped_in);
            if batch.is_empty() {
                batch = intake.take(WINDOW, moment.quiet()).await?;
            }
            if !batch.is_empty() && std::mem::take(&mut first) {
                let again = batch.iter().any(|taken| taken.delivery.redelivered);
                if again && self.new_kind == QueueType::Quorum {
                    // One that was under way to the killed run comes before the others.
                    self.report.out_of_order += 1;
                }
                self.skip_copied(intake, &mut batch, End::Of(&queue))
                    .await?;
            }
            for taken in &batch {
                copier.send(&taken.delivery).await?;
                last_tag = Some(taken.tag);
            }
            moved += batch.len() as u64;
            if copier.unsettled() >= WINDOW {
                settle(intake, copier, &mut last_tag).await?;
                continue;
            }
            if !caught_up {
                caught_up = self.ready(&new).await?.unwrap_or(0) == 0;
            } else if moment.has_come(batch.len()) {
                self.attempts += 1;
                let late = self.open_behind(intake, copier, &mut last_tag).await?;
                if late.is_empty() {
                    return Ok(moved);
                }
                settle(intake, copier, &mut last_tag).await?;
                if late.len() > FEW {
                    let count = self.keep_all_late(intake, late).await?;
                    tracing::info!(late = count, "much slipped in");
                    self.ahead = count;
                    return Ok(moved);
                }
                pause(LATE).await;
                let held = self.ready(&queue).await?.unwrap_or(0);
                let ahead = held.saturating_sub(base + moved);
                tracing::info!(late = late.len(), ahead, "something slipped in");
                if !can_mend && (ahead > 0 || self.options.with_consumers) {
                    self.report.out_of_order += late.len() as u64;
                }
                if can_mend && ahead > 0 {
                    self.ahead = ahead;
                    self.keep_late(intake, &late).await?;
                    return Ok(moved);
                }
                self.connection.unbind(&self.names.late_binding()).await?;
                slipped_in = late;
                if !can_mend {
                    // They are there now, and no count may take them for new ones.
                    moved += ahead;
                }
            }
        }
    }

    /// Opens the queue, and closes it again if a message came to the waiting
    /// queue meanwhile: gives those, which belong before what came directly.
    async fn open_behind(
        &self,
        intake: &mut Intake<'_>,
        copier: &mut Copier<'_>,
        last_tag: &mut Option<u64>,
    ) -> Result<Vec<Taken>> {
        let entry = self.names.entry_binding();
        copier.bind_behind_copies(&entry).await?;
        let watching = Instant::now();
        let mut late = intake.take(WINDOW, Duration::from_millis(2)).await?;
        if late.is_empty() {
            settle(intake, copier, last_tag).await?;
        }
        while late.is_empty() && watching.elapsed() < WATCH {
            late = intake.take(WINDOW, LATE).await?;
        }
        // What was on its way comes within this, and nothing else can come.
        let on_its_way = match self.new_kind {
            QueueType::Quorum => LATE,
            QueueType::Classic | QueueType::Stream | QueueType::Other(_) => ON_ITS_WAY,
        };
        while !late.is_empty() && late.len() <= FEW {
            let more = intake.take(WINDOW, on_its_way).await?;
            if more.is_empty() {
                break;
            }
            late.extend(more);
        }
        if !late.is_empty() && late.len() <= FEW {
            // A run that is killed before they are kept must be known by something.
            let mark = self.names.late_binding();
            let marking = self.connection.bind(&mark);
            let (marked, closed) = join(marking, self.connection.unbind(&entry)).await;
            marked?;
            closed?;
        }
        Ok(late)
    }

    /// The same for more than can be taken at once: nothing comes to the waiting
    /// queue while this one is open, so it stays open until all of it is kept.
    async fn keep_all_late(
        &mut self,
        intake: &mut Intake<'_>,
        mut late: Vec<Taken>,
    ) -> Result<u64> {
        let mut copier = Copier::open(self.connection, &self.names.out, &self.user).await?;
        let mut count = 0;
        while !late.is_empty() {
            count += self.copy(intake, &mut copier, &late).await?;
            late = intake.take(WINDOW, LATE).await?;
        }
        self.report.user_ids_dropped += copier.user_ids_dropped();
        self.connection.unbind(&self.names.entry_binding()).await?;
        pause(LATE).await;
        Ok(count)
    }

    /// Puts what slipped in into the old queue, which comes first from now on.
    async fn keep_late(&mut self, intake: &Intake<'_>, late: &[Taken]) -> Result<()> {
        let mut copier = Copier::open(self.connection, &self.names.out, &self.user).await?;
        self.copy(intake, &mut copier, late).await?;
        self.report.user_ids_dropped += copier.user_ids_dropped();
        self.connection.unbind(&self.names.late_binding()).await
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

    fn no_quiet_moment(&self) -> Error {
        Error::new(
            ErrorKind::TimedOut,
            "messages kept coming, and at no moment none was waiting",
        )
        .hint(format!(
            "what is published waits in queue '{}' and is safe; pause the publishers for a moment and run this again, or give it longer with --switch-for",
            self.names.new
        ))
    }
}

async fn settle(
    intake: &Intake<'_>,
    copier: &mut Copier<'_>,
    last_tag: &mut Option<u64>,
) -> Result<()> {
    copier.settle().await?;
    if let Some(tag) = last_tag.take() {
        intake.ack_up_to(tag).await?;
    }
    Ok(())
}

fn remember(tail: &mut Tail, delivery: &Delivery) {
    if tail.len() == 4 * WINDOW {
        tail.pop_front();
    }
    tail.push_back(Fingerprint::of(delivery));
}
