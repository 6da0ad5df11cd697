//! Messages on their way: taken, decided about, sent, and acked only once they
//! are in another queue.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where messages are sent at a rate"
)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until};

use super::ask::{Answer, Person};
use super::rules::{Repair, Rules};
use crate::amqp::{Pipeline, Receipt, Taken, Walk};
use crate::command::dlq_replace::Replacer;
use crate::command::session::Session;
use crate::deadletter::{Aim, Letter, ReplayReport, ReplayTo, Stay, letter_json};
use crate::error::Result;
use crate::message::{Publication, Replaying, replay_copy, replays, was_replayed_by};
use crate::output::Progress;

/// SIGINT.
const INTERRUPT: u8 = 2;

/// What to do next.
#[derive(PartialEq, Eq)]
enum Go {
    On,
    Home,
}

pub(super) struct Moving<'a> {
    rules: Rules<'a>,
    walk: Walk<'a>,
    pipeline: Pipeline<'a>,
    /// Where messages would not survive being put back.
    replacer: Option<Replacer<'a>>,
    person: Option<Person>,
    session: &'a Session,
    report: ReplayReport,
    /// What is sent and whose outcome is open, in the order of sending.
    under_way: VecDeque<(Taken, Aim)>,
    /// How many were sent back, whatever became of them.
    sent: u64,
    next_slot: Option<Instant>,
    warned_of_others: bool,
    /// Whether the terminal belongs to an editor.
    editing: Arc<AtomicBool>,
    shown: Arc<AtomicU64>,
    progress: Option<Progress>,
}

impl<'a> Moving<'a> {
    pub(super) fn new(
        rules: Rules<'a>,
        walk: Walk<'a>,
        pipeline: Pipeline<'a>,
        replacer: Option<Replacer<'a>>,
        person: Option<Person>,
        session: &'a Session,
        (shown, ready): (Arc<AtomicU64>, u64),
    ) -> Self {
        let asks = person.is_some() || matches!(rules.repair, Repair::InEditor(_));
        let progress = (session.shows_progress && !asks && Progress::is_possible())
            .then(|| Progress::bar(format!("replay {}", rules.aiming.queue), &shown, ready));
        Self {
            rules,
            walk,
            pipeline,
            replacer,
            person,
            session,
            report: ReplayReport {
                ready,
                ..ReplayReport::default()
            },
            under_way: VecDeque::new(),
            sent: 0,
            next_slot: None,
            warned_of_others: false,
            editing: Arc::default(),
            shown,
            progress,
        }
    }

    /// Moves messages until all that were there were looked at, the limit is
    /// reached, or a signal asks to stop; then waits for what is under way.
    ///
    /// # Errors
    /// When the broker is lost or refuses what was sent. Nothing is acked then
    /// but what is certain.
    ///
    /// Gives the number of a second signal, which does not wait for that.
    pub(super) async fn until_the_end(
        &mut self,
        signals: &mut UnboundedReceiver<u8>,
    ) -> Result<Option<u8>> {
        let ended = if self.replacer.is_some() {
            // What is in our hands must not be dropped.
            self.work(Some(signals)).await
        } else {
            let busy = Arc::clone(&self.editing);
            let stopped = async {
                loop {
                    match signals.recv().await {
                        // Ctrl-C in an editor is meant for the editor.
                        Some(INTERRUPT) if busy.load(Ordering::Relaxed) => {}
                        _ => break,
                    }
                }
            };
            tokio::select! {
                ended = self.work(None) => ended,
                () = stopped => {
                    self.report.interrupted = true;
                    Ok(())
                }
            }
        };
        ended?;
        tokio::select! {
            settled = self.settle_all() => settled.map(|()| None),
            number = signals.recv() => Ok(number),
        }
    }

    /// Gives back what is not moved.
    pub(super) async fn close(mut self) -> ReplayReport {
        drop(self.progress.take());
        self.report.open = self.under_way.len() as u64;
        // Whatever fails here, the broker gives back what is not acked by itself.
        if let Err(error) = self.walk.release().await {
            tracing::info!(error = error.message(), "the queue was not left in order");
        }
        self.report
    }

    /// Safe to drop while waiting: a message that is decided about and not sent
    /// is still out, and goes back. With `signals` it looks for them between two
    /// messages instead.
    async fn work(&mut self, mut signals: Option<&mut UnboundedReceiver<u8>>) -> Result<()> {
        loop {
            if let Some(signals) = &mut signals
                && signals.try_recv().is_ok()
            {
                self.report.interrupted = true;
                return Ok(());
            }
            while !self.pipeline.has_room() {
                self.settle_next().await?;
            }
            if self.sent >= self.rules.limit || self.rules.chosen.is_over() {
                return Ok(());
            }
            let taken = match self.walk.next_now()? {
                Some(taken) => taken,
                None if !self.under_way.is_empty() => {
                    self.settle_next().await?;
                    continue;
                }
                None => match self.walk.next().await? {
                    Some(taken) => taken,
                    None => return Ok(()),
                },
            };
            self.report.looked_at += 1;
            self.shown.store(self.report.looked_at, Ordering::Relaxed);
            if self.decide(taken).await? == Go::Home {
                return Ok(());
            }
        }
    }

    async fn settle_all(&mut self) -> Result<()> {
        while !self.under_way.is_empty() {
            self.settle_next().await?;
        }
        Ok(())
    }

    /// Waits for one outcome, and takes what else is certain by then.
    async fn settle_next(&mut self) -> Result<()> {
        let mut next = self.pipeline.next().await?;
        while let Some((_, receipt)) = next {
            self.settle(receipt).await?;
            next = self.pipeline.next_now()?;
        }
        self.walk.send_acks().await
    }

    async fn settle(&mut self, receipt: Receipt) -> Result<()> {
        let Some((taken, aim)) = self.under_way.pop_front() else {
            return Ok(());
        };
        match receipt {
            Receipt::Routed => {
                self.walk.ack(taken.tag);
                self.report.went(aim);
                Ok(())
            }
            Receipt::Unroutable(said) => self.stays(taken, Stay::Unroutable(said)).await,
            Receipt::Refused => self.stays(taken, Stay::Refused).await,
            Receipt::Unknown(error) => {
                self.report.open += 1;
                Err(error)
            }
        }
    }

    async fn decide(&mut self, taken: Taken) -> Result<Go> {
        let headers = &taken.delivery.properties.headers;
        if was_replayed_by(headers, &self.rules.run) {
            self.report.met_its_own = true;
            return self.goes_back(taken).await.map(|()| Go::Home);
        }
        let letter = Letter::read(&taken.delivery.properties);
        let size = taken.delivery.body.len();
        let asks = self.rules.chosen.asks_a_filter()
            || self.person.is_some()
            || matches!(self.rules.repair, Repair::By(_));
        let json = if asks {
            letter_json(&taken.delivery, &letter, size, size)
        } else {
            serde_json::Value::Null
        };
        if let Some(stay) = self.rules.chosen.leaves_out(&taken.delivery, &json)? {
            return self.stays(taken, stay).await.map(|()| Go::On);
        }
        let before = replays(headers);
        if before >= self.rules.max_replays {
            return self
                .stays(taken, Stay::TooOften(before))
                .await
                .map(|()| Go::On);
        }
        let how = Replaying {
            run: &self.rules.run,
            number: self.sent + 1,
            user: self.rules.user,
            restore_expiration: self.rules.restore_expiration,
        };
        let Some(mut copy) = replay_copy(&taken.delivery, &how) else {
            return self
                .stays(taken, Stay::HeadersTooLarge)
                .await
                .map(|()| Go::On);
        };
        let aim = match self.rules.aiming.aim(&letter, &copy.properties.headers) {
            Ok(aim) => aim,
            Err(astray) => {
                let stay = Stay::Astray(astray);
                return self.stays(taken, stay).await.map(|()| Go::On);
            }
        };
        match self.repaired(&copy, &json).await? {
            Ok(Some(body)) => copy.body = body,
            Ok(None) => {}
            Err(stay) => return self.stays(taken, stay).await.map(|()| Go::On),
        }
        if let Some(person) = &mut self.person {
            match person
                .ask(
                    self.report.looked_at,
                    &taken.delivery,
                    &letter,
                    &aim,
                    &mut copy.body,
                )
                .await?
            {
                Answer::Replay => {}
                Answer::Skip => {
                    return self.stays(taken, Stay::Skipped).await.map(|()| Go::On);
                }
                quit @ (Answer::Quit | Answer::Gone) => {
                    self.report.interrupted = quit == Answer::Gone;
                    self.report.looked_at -= 1;
                    return self.goes_back(taken).await.map(|()| Go::Home);
                }
            }
        }
        if self.rules.dry_run {
            self.sent += 1;
            self.report.went(aim);
            return self.goes_back(taken).await.map(|()| Go::On);
        }
        self.warn_of_others(&aim);
        self.wait_for_a_slot().await?;
        copy.exchange = aim.exchange.clone();
        copy.routing_key = aim.key.clone();
        self.send(taken, copy, aim)?;
        self.sent += 1;
        Ok(Go::On)
    }

    /// The body it is sent with, where that is another one.
    async fn repaired(
        &mut self,
        copy: &Publication,
        json: &serde_json::Value,
    ) -> Result<std::result::Result<Option<Vec<u8>>, Stay>> {
        Ok(match &self.rules.repair {
            Repair::None => Ok(None),
            Repair::By(transform) => transform
                .apply(&copy.body, json)
                .map(Some)
                .map_err(|error| Stay::NotRepaired(error.message().to_owned())),
            Repair::InEditor(editor) => {
                self.editing.store(true, Ordering::Relaxed);
                let changed = editor.open(&copy.body).await;
                self.editing.store(false, Ordering::Relaxed);
                changed?.map(Some).ok_or(Stay::Unchanged)
            }
        })
    }

    async fn stays(&mut self, taken: Taken, stay: Stay) -> Result<()> {
        self.report.stayed(stay);
        self.goes_back(taken).await
    }

    async fn goes_back(&mut self, taken: Taken) -> Result<()> {
        if let Some(replacer) = &mut self.replacer
            && replacer.in_place_of(&taken.delivery).await?
        {
            self.report.replaced += 1;
            self.walk.ack(taken.tag);
        } else {
            self.walk.keep(taken.tag);
        }
        Ok(())
    }

    fn send(&mut self, mut taken: Taken, copy: Publication, aim: Aim) -> Result<()> {
        self.pipeline.send(copy)?;
        if self.replacer.is_none() {
            // The copy has it.
            taken.delivery.body = Vec::new();
        }
        self.under_way.push_back((taken, aim));
        Ok(())
    }

    /// Who sends a message to an exchange sends it to everybody there.
    fn warn_of_others(&mut self, aim: &Aim) {
        if self.warned_of_others || aim.origin.is_none() {
            return;
        }
        let others: Vec<String> = aim.elsewhere().map(|queue| format!("'{queue}'")).collect();
        if others.is_empty() || !matches!(self.rules.aiming.to, ReplayTo::Original) {
            return;
        }
        self.warned_of_others = true;
        self.session.warn(|| {
            crate::output::printable(&format!(
                "mq: exchange '{}' takes messages with key '{}' also to {}, where they did not fail; --to queue sends each only to the queue it failed in",
                aim.exchange,
                aim.key,
                others.join(", ")
            ))
        });
    }

    /// With a rate, each message has a time before which it is not sent.
    async fn wait_for_a_slot(&mut self) -> Result<()> {
        let Some(rate) = self.rules.rate else {
            return Ok(());
        };
        let now = Instant::now();
        let slot = self.next_slot.unwrap_or(now).max(now);
        if slot > now {
            // Who is slow has time to settle everything.
            self.settle_all().await?;
            sleep_until(slot).await;
        }
        self.next_slot = Some(slot + Duration::from_secs(1) / rate);
        Ok(())
    }
}
