//! What the machine says, done: settle, run, publish, cancel.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where effects meet the clock"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::handler::Job;
use crate::message::{Delivery, Parking, park, result_of, retry_copy};
use crate::retry::{BuryReason, RetryPath};
use crate::topology::{QueueName, RoutingKey};
use crate::worker::checking;
use crate::worker::drive::{Session, later};
use crate::worker::event::{Effect, Event, StopReason};
use crate::worker::parker::Purpose;
use crate::worker::telling::Fate;
use crate::worker::wanted::Handling;

impl Session<'_> {
    /// Hands an event to the machine and does what it says, until it says nothing more.
    pub(super) async fn apply(&mut self, event: Event, handling: &mut Handling<'_>) -> Result<()> {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for effect in self.machine.handle(event) {
                if let Some(next) = self.carry_out(effect, handling).await? {
                    events.push(next);
                }
            }
        }
        Ok(())
    }

    async fn carry_out(
        &mut self,
        effect: Effect,
        handling: &mut Handling<'_>,
    ) -> Result<Option<Event>> {
        match effect {
            Effect::Claim { tag } => self.claim(tag),
            Effect::Record { tag } => self.record(tag),
            Effect::Run { tag, attempt } => {
                if attempt > 1 {
                    self.tell_retry_in_place(tag);
                }
                return Ok(self.start(tag, attempt, handling));
            }
            Effect::Hold { tag, wait } => {
                self.tell_retry_in_place(tag);
                self.held.spawn(async move {
                    tokio::time::sleep(wait).await;
                    tag
                });
            }
            Effect::Ack { tag } => {
                let offset = self.forget(tag, Fate::Done);
                if let (Some(offset), Some(reading)) = (offset, &mut self.reading) {
                    reading.done(offset);
                }
                self.subscription.ack(tag);
            }
            Effect::DeadLetter { tag } => {
                if let Some(error) = self.missing(|path| &path.wait_queues).await? {
                    self.forget(tag, Fate::Released);
                    self.subscription.release(tag).await?;
                    return Ok(Some(Event::Stop(StopReason::NotParked(error))));
                }
                self.forget(tag, Fate::Retried);
                self.subscription.dead_letter(tag).await?;
                self.retry_left();
            }
            Effect::Bury { tag } => {
                if let Some(error) = self.missing(|path| &path.dead_letter_queues).await? {
                    self.forget(tag, Fate::Released);
                    self.subscription.release(tag).await?;
                    return Ok(Some(Event::Stop(StopReason::NotParked(error))));
                }
                self.forget(tag, Fate::DeadLettered);
                self.subscription.dead_letter(tag).await?;
            }
            Effect::Requeue { tag } => {
                self.forget(tag, Fate::Retried);
                self.subscription.requeue(tag).await?;
                self.retry_left();
            }
            Effect::Release { tag } => match self.forget(tag, Fate::Released) {
                Some(offset) => self.leave_unread(tag, offset),
                None => self.subscription.release(tag).await?,
            },
            Effect::Park {
                tag,
                attempt,
                reason,
            } => self.publish_dead_letter(tag, attempt, &reason)?,
            Effect::RetryByCopy { tag, attempt, wait } => {
                if let (Some(in_work), Some(path)) =
                    (self.deliveries.get_mut(&tag), &self.wanted.path)
                {
                    let delivery = &in_work.delivery;
                    let key = RoutingKey::new(delivery.routing_key.clone())?;
                    let waiting =
                        path.waiting(&key, attempt, wait, self.wanted.jitter, fastrand::f64());
                    in_work.acked_as = Some(Fate::Retried);
                    let changed = in_work.result.take().map(|result| result.body);
                    let copy = retry_copy(delivery, &waiting, attempt, changed);
                    self.parker.publish(tag, Purpose::Retry, copy);
                    self.retry_left();
                }
            }
            Effect::PublishResult { tag } => {
                if let (Some(in_work), Some(to)) = (self.deliveries.get(&tag), &self.wanted.results)
                    && let Some(result) = &in_work.result
                    && let Some(publication) =
                        result_of(&in_work.delivery, &self.wanted.queue, result, to)?
                {
                    self.answering.insert(tag);
                    self.parker.publish(tag, Purpose::Result, publication);
                }
            }
            Effect::CancelConsumer => {
                tracing::info!(in_flight = self.machine.in_flight(), "draining");
                self.deadline = later(self.wanted.grace);
                self.pausing.rest = None;
                self.unsubscribe().await?;
            }
            Effect::Pause { sign, why, wait } => self.pause(&sign, &why, wait).await?,
            Effect::Rest { wait } => self.rest(wait),
            Effect::TakeOne => self.subscribe(1).await?,
            Effect::Unsubscribe => self.unsubscribe().await?,
            Effect::Resume => self.resume().await?,
        }
        Ok(None)
    }

    fn publish_dead_letter(&mut self, tag: u64, attempt: u32, reason: &BuryReason) -> Result<()> {
        let (Some(in_work), Some(path)) = (self.deliveries.get_mut(&tag), &self.wanted.path) else {
            return Ok(());
        };
        in_work.acked_as = Some(Fate::DeadLettered);
        in_work.last.why = Some(reason.why().to_owned());
        let delivery = &in_work.delivery;
        if let BuryReason::Returned { why } = reason {
            let message_id = delivery.properties.message_id.as_deref();
            tracing::warn!(
                queue = %self.wanted.queue,
                message_id,
                why,
                "dead-lettered without another attempt"
            );
        }
        let key = RoutingKey::new(delivery.routing_key.clone())?;
        let parking = Parking {
            queue: &self.wanted.queue,
            reason,
            trace: &in_work.trace,
            attempt,
            worker: &self.wanted.worker,
            now: now(),
        };
        let copy = park(delivery, &path.end_address(&key), &parking);
        self.parker.publish(tag, Purpose::DeadLetter, copy);
        Ok(())
    }

    fn start(&mut self, tag: u64, attempt: u32, handling: &mut Handling<'_>) -> Option<Event> {
        let in_work = self.deliveries.get_mut(&tag)?;
        // Of an attempt that failed in our hands, unless it is made once more.
        let is_next = in_work.attempt != attempt;
        in_work.attempt = attempt;
        if let Some(changed) = in_work.result.take().filter(|_| is_next) {
            in_work.delivery = Arc::new(Delivery {
                body: changed.body,
                ..(*in_work.delivery).clone()
            });
        }
        let delivery = Arc::clone(&in_work.delivery);
        match handling {
            Handling::Run(handler) => {
                let handler = handler.clone();
                let kill = self.kill.subscribe();
                let job = Job {
                    queue: self.wanted.queue.clone(),
                    tag,
                    delivery,
                    attempt,
                    max_attempts: self.wanted.max_attempts,
                    wants_result: self.wanted.results.is_some() || self.wanted.retry_with_result,
                };
                let contracts = self.wanted.contracts.clone();
                self.running.spawn(async move {
                    let began = Instant::now();
                    let ended = checking::attempt(contracts, handler, job, kill).await;
                    (tag, ended, began.elapsed())
                });
                None
            }
            Handling::Print(printer) => {
                (printer.form)(&delivery, &mut self.page);
                self.printed.push(tag);
                None
            }
        }
    }

    /// Lets go of what is settled, and tells what became of it. Gives where it
    /// stood in its stream.
    fn forget(&mut self, tag: u64, fate: Fate) -> Option<u64> {
        self.answering.remove(&tag);
        if let Some(desk) = &mut self.desk {
            desk.forget(tag);
        }
        let in_work = self.deliveries.remove(&tag)?;
        // An original whose copy is confirmed is acked too.
        let fate = match fate {
            Fate::Done => in_work.acked_as.unwrap_or(fate),
            fate => fate,
        };
        self.tell_fate(&in_work, fate);
        in_work.offset
    }

    fn retry_left(&mut self) {
        self.retries_out += 1;
        self.last_retry = Instant::now();
    }

    /// A nack into a queue that is gone deletes the message, and nobody says so.
    async fn missing(
        &self,
        needed: impl Fn(&RetryPath) -> &BTreeSet<QueueName>,
    ) -> Result<Option<Error>> {
        for queue in self.wanted.path.iter().flat_map(needed) {
            if self.connection.queue_status(queue).await?.is_none() {
                return Ok(Some(
                    Error::new(
                        ErrorKind::Unroutable,
                        format!(
                            "queue '{queue}' is gone, so what is nacked into it would be deleted"
                        ),
                    )
                    .hint(
                        "declare it again (`mq topology apply FILE`), then start the worker again",
                    ),
                ));
            }
        }
        Ok(None)
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
