//! What the machine says, done: settle, run, publish, cancel.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where effects meet the clock"
)]

use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::handler::Job;
use crate::message::{Parking, park, retry_copy};
use crate::retry::Outcome;
use crate::topology::RoutingKey;
use crate::worker::drive::{Handling, Session, later};
use crate::worker::machine::{Effect, Event, StopReason};

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
            Effect::Run { tag, attempt } => return Ok(self.start(tag, attempt, handling)),
            Effect::Ack { tag } => {
                self.deliveries.remove(&tag);
                self.subscription.ack(tag).await?;
            }
            Effect::DeadLetter { tag } => {
                self.deliveries.remove(&tag);
                if let Some(error) = self.missing_wait_queue().await? {
                    self.subscription.release(tag).await?;
                    return Ok(Some(Event::Stop(StopReason::NotParked(error))));
                }
                self.subscription.dead_letter(tag).await?;
                self.retry_left();
            }
            Effect::Release { tag } => {
                self.deliveries.remove(&tag);
                self.subscription.release(tag).await?;
            }
            Effect::Park {
                tag,
                attempt,
                reason,
            } => {
                if let (Some(delivery), Some(path)) = (self.deliveries.get(&tag), &self.wanted.path)
                {
                    let key = RoutingKey::new(delivery.routing_key.clone())?;
                    let parking = Parking {
                        queue: &self.wanted.queue,
                        reason: &reason,
                        attempt,
                        now: now(),
                    };
                    let copy = park(delivery, &path.end_address(&key), &parking);
                    self.parker.publish(tag, copy);
                }
            }
            Effect::RetryByCopy { tag, attempt } => {
                if let (Some(delivery), Some(path)) = (self.deliveries.get(&tag), &self.wanted.path)
                {
                    let key = RoutingKey::new(delivery.routing_key.clone())?;
                    let copy = retry_copy(delivery, &path.retry_address(&key, attempt), attempt);
                    self.parker.publish(tag, copy);
                    self.retry_left();
                }
            }
            Effect::CancelConsumer => {
                tracing::info!(in_flight = self.machine.in_flight(), "draining");
                self.deadline = later(self.wanted.grace);
                if self.subscribed {
                    self.subscription.cancel().await?;
                }
            }
        }
        Ok(None)
    }

    fn start(&mut self, tag: u64, attempt: u32, handling: &mut Handling<'_>) -> Option<Event> {
        let delivery = Arc::clone(self.deliveries.get(&tag)?);
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
                    wants_result: false,
                };
                self.running.spawn(async move {
                    let ended = handler.run(job, kill).await;
                    (tag, ended)
                });
                None
            }
            Handling::Print(print) => match print(&delivery) {
                Ok(()) => Some(Event::Finished {
                    tag,
                    outcome: Outcome::Done,
                }),
                Err(error) => {
                    let reason = match error.kind() {
                        io::ErrorKind::BrokenPipe => StopReason::ReaderGone,
                        _ => StopReason::Output(error.to_string()),
                    };
                    Some(Event::Unprinted { tag, reason })
                }
            },
        }
    }

    /// Each failed attempt is told when it happens, not only summed up.
    pub(super) fn tell(&self, tag: u64, outcome: &Outcome) {
        let why = match outcome {
            Outcome::Done | Outcome::Interrupted => return,
            Outcome::Poison { why }
            | Outcome::Failed { why, .. }
            | Outcome::DownstreamDown { why }
            | Outcome::CannotStart { why } => why,
        };
        let message_id = self
            .deliveries
            .get(&tag)
            .and_then(|delivery| delivery.properties.message_id.as_deref());
        tracing::warn!(
            queue = %self.wanted.queue,
            message_id,
            attempt = self.machine.attempt(tag),
            of = self.wanted.max_attempts,
            why,
            "attempt failed"
        );
    }

    fn retry_left(&mut self) {
        self.retries_out += 1;
        self.last_retry = Instant::now();
    }

    /// A nack into a wait queue that is gone deletes the message, and nobody says so.
    async fn missing_wait_queue(&self) -> Result<Option<Error>> {
        for queue in self.wanted.path.iter().flat_map(|path| &path.wait_queues) {
            if self.connection.queue_status(queue).await?.is_none() {
                return Ok(Some(
                    Error::new(
                        ErrorKind::Unroutable,
                        format!("the wait queue '{queue}' is gone, so a retry would be deleted"),
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
