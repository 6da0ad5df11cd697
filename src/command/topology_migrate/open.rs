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

use std::time::Duration;

use futures_util::future::join;
use tokio::time::Instant;

use super::fill::{End, LATE};
use super::migration::{Migration, pause};
use crate::amqp::{Copier, Intake, Taken, WINDOW};
use crate::error::{Error, ErrorKind, Result};
use crate::topology::QueueType;

/// How long the queue is watched after it was opened: what was routed to the
/// waiting queue before may still be on its way.
const WATCH: Duration = Duration::from_millis(300);

/// So many at most can have slipped in where all that waited had been taken.
const FEW: usize = 32;

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

impl Migration<'_> {
    /// Moves what waits, and opens the queue once.
    pub(super) async fn attempt(
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
