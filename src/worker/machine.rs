//! The worker's decisions as a machine without sockets: an event in, effects out.
//!
//! Invariants (property-tested): every delivery is settled exactly once, no
//! settle happens before the outcome it reports is confirmed, no more than
//! `prefetch` deliveries are in work, and nothing new starts once draining.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::retry::{BuryReason, Outcome, Strategy, Verdict, decide};
use crate::worker::Counts;

/// What bounds the worker; fixed for its life.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most messages in work at once; at least 1.
    pub prefetch: u16,
    /// Stop after this many deliveries were taken; each is still worked to its end.
    pub max_messages: Option<u64>,
    /// Attempts for each message, the first included; at least 1.
    pub max_attempts: u32,
    /// How failed messages come back.
    pub strategy: Strategy,
    /// Whether retries through the broker must be proved by a confirmed, routed
    /// copy, because it could not be seen where a nack leads, or because the
    /// broker does not confirm it to itself.
    pub prove_retries: bool,
}

/// Why the worker stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// SIGTERM, SIGINT or SIGHUP.
    Signal,
    /// `--max-messages` were taken.
    MaxMessages,
    /// The queue and its retries are drained.
    Empty,
    /// Nothing came for `--idle-timeout`.
    Idle,
    /// Whoever read our standard output went away.
    ReaderGone,
    /// Our own output could not be written.
    Output(String),
    /// The handler said that something it needs is down, or could not be started.
    Handler {
        /// Its words.
        why: String,
    },
    /// A copy for the dead-letter queue was not taken; its message was put back.
    NotParked(Error),
    /// The broker ended the subscription and the queue is gone.
    QueueGone,
}

/// What happens to the worker.
#[derive(Clone, Debug)]
pub enum Event {
    /// A message arrived for its `attempt`-th attempt.
    Delivered {
        /// Its delivery tag.
        tag: u64,
        /// 1 for the first.
        attempt: u32,
        /// Whether a nack could lose it: see [`crate::broker::BrokerFacts`].
        nack_is_unsafe: bool,
    },
    /// An attempt ended.
    Finished {
        /// Its delivery tag.
        tag: u64,
        /// How.
        outcome: Outcome,
    },
    /// A message could not be printed: give it back and stop.
    Unprinted {
        /// Its delivery tag.
        tag: u64,
        /// Why.
        reason: StopReason,
    },
    /// A copy was published, or was not.
    Published {
        /// The delivery tag of its original.
        tag: u64,
        /// Confirmed and routed, or why not.
        result: Result<(), Error>,
    },
    /// Stop taking messages.
    Stop(StopReason),
    /// The connection broke: what was in work comes back by itself.
    ConnectionLost,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start an attempt.
    Run {
        /// Its delivery tag.
        tag: u64,
        /// 1 for the first.
        attempt: u32,
    },
    /// Settle as done.
    Ack {
        /// Its delivery tag.
        tag: u64,
    },
    /// Nack without requeue.
    DeadLetter {
        /// Its delivery tag.
        tag: u64,
    },
    /// Nack with requeue.
    Release {
        /// Its delivery tag.
        tag: u64,
    },
    /// Publish a copy to the dead-letter queue, confirmed and routed.
    Park {
        /// Its delivery tag.
        tag: u64,
        /// The attempt that was the last.
        attempt: u32,
        /// Why.
        reason: BuryReason,
    },
    /// Publish a copy without the broker's records into the wait queue of its
    /// step, or to where a nack would lead, confirmed and routed.
    RetryByCopy {
        /// Its delivery tag.
        tag: u64,
        /// The attempt that failed.
        attempt: u32,
    },
    /// Cancel the consumer; comes before any settle of the same event.
    CancelConsumer,
}

#[derive(Clone, Debug)]
struct Flight {
    attempt: u32,
    nack_is_unsafe: bool,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    Running,
    Parking(BuryReason),
    Copying,
}

/// The state of the worker.
#[derive(Clone, Debug)]
pub struct Machine {
    limits: Limits,
    flights: BTreeMap<u64, Flight>,
    taken: u64,
    counts: Counts,
    stop: Option<StopReason>,
}

impl Machine {
    /// A worker that has seen nothing yet.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            flights: BTreeMap::new(),
            taken: 0,
            counts: Counts {
                received: 0,
                acked: 0,
                retried: 0,
                poison: 0,
                exhausted: 0,
                released: 0,
                unsettled: 0,
            },
            stop: None,
        }
    }

    /// What was done so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Which attempt a delivery in work is on.
    #[must_use]
    pub fn attempt(&self, tag: u64) -> Option<u32> {
        self.flights.get(&tag).map(|flight| flight.attempt)
    }

    /// Deliveries in work.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Deliveries whose copies are on their way.
    #[must_use]
    pub fn being_published(&self) -> Vec<u64> {
        self.flights
            .iter()
            .filter(|(_, flight)| !matches!(flight.stage, Stage::Running))
            .map(|(tag, _)| *tag)
            .collect()
    }

    /// Why it stops, once it does.
    #[must_use]
    pub const fn stop_reason(&self) -> Option<&StopReason> {
        self.stop.as_ref()
    }

    /// Whether it stops and nothing is in work any more.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.stop.is_some() && self.flights.is_empty()
    }

    /// What an event means.
    pub fn handle(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Delivered {
                tag,
                attempt,
                nack_is_unsafe,
            } => self.delivered(tag, attempt, nack_is_unsafe),
            Event::Finished { tag, outcome } => self.finished(tag, outcome),
            Event::Published { tag, result } => self.published(tag, result),
            Event::Unprinted { tag, reason } => {
                let mut effects = self.stop(reason);
                effects.extend(self.release(tag));
                effects
            }
            Event::Stop(reason) => self.stop(reason),
            Event::ConnectionLost => {
                self.counts.unsettled += self.flights.len() as u64;
                self.flights.clear();
                Vec::new()
            }
        }
    }

    fn delivered(&mut self, tag: u64, attempt: u32, nack_is_unsafe: bool) -> Vec<Effect> {
        self.counts.received += 1;
        if self.stop.is_some() || self.flights.len() >= usize::from(self.limits.prefetch) {
            self.counts.released += 1;
            return vec![Effect::Release { tag }];
        }
        self.flights.insert(
            tag,
            Flight {
                attempt,
                nack_is_unsafe,
                stage: Stage::Running,
            },
        );
        self.taken += 1;
        // Cancelled before any settle frees a place, or more would be handed out.
        let mut effects = match self.limits.max_messages {
            Some(max) if self.taken >= max => self.stop(StopReason::MaxMessages),
            _ => Vec::new(),
        };
        // A message that comes with more attempts than it may have still gets
        // one: the number may have been lowered, and an attempt is how the
        // reason for its end is found.
        effects.push(Effect::Run { tag, attempt });
        effects
    }

    fn finished(&mut self, tag: u64, outcome: Outcome) -> Vec<Effect> {
        let Some(flight) = self.flights.get(&tag).cloned() else {
            return Vec::new();
        };
        if !matches!(flight.stage, Stage::Running) {
            return Vec::new();
        }
        match decide(
            outcome,
            flight.attempt,
            self.limits.max_attempts,
            self.limits.strategy,
        ) {
            Verdict::Ack => {
                self.counts.acked += 1;
                self.settle(tag, Effect::Ack { tag })
            }
            Verdict::RetryThroughBroker { .. }
                if flight.nack_is_unsafe
                    || self.limits.prove_retries
                    || self.limits.strategy == Strategy::Backoff =>
            {
                self.publishing(tag, Stage::Copying);
                vec![Effect::RetryByCopy {
                    tag,
                    attempt: flight.attempt,
                }]
            }
            Verdict::RetryThroughBroker { .. } => {
                self.counts.retried += 1;
                self.settle(tag, Effect::DeadLetter { tag })
            }
            Verdict::RetryInPlace { .. } if self.must_hurry() => self.release(tag),
            Verdict::RetryInPlace { .. } => {
                self.counts.retried += 1;
                let attempt = flight.attempt.saturating_add(1);
                if let Some(flight) = self.flights.get_mut(&tag) {
                    flight.attempt = attempt;
                }
                vec![Effect::Run { tag, attempt }]
            }
            // Never a nack, even where it leads straight to the dead-letter
            // queue: a nack cannot tell that the binding is gone (measured: the
            // message vanishes), and it cannot carry the reason.
            Verdict::Bury(reason) => {
                self.publishing(tag, Stage::Parking(reason.clone()));
                vec![Effect::Park {
                    tag,
                    attempt: flight.attempt,
                    reason,
                }]
            }
            Verdict::ReleaseAndStop { why } => {
                let mut effects = self.stop(StopReason::Handler { why });
                effects.extend(self.release(tag));
                effects
            }
            Verdict::Release => self.release(tag),
        }
    }

    fn published(&mut self, tag: u64, result: Result<(), Error>) -> Vec<Effect> {
        let Some(flight) = self.flights.get(&tag) else {
            return Vec::new();
        };
        match (flight.stage.clone(), result) {
            (Stage::Running, _) => Vec::new(),
            (Stage::Parking(reason), Ok(())) => {
                self.count_buried(&reason);
                self.settle(tag, Effect::Ack { tag })
            }
            (Stage::Copying, Ok(())) => {
                self.counts.retried += 1;
                self.settle(tag, Effect::Ack { tag })
            }
            (Stage::Parking(_) | Stage::Copying, Err(error)) => {
                let mut effects = self.stop(StopReason::NotParked(error));
                effects.extend(self.release(tag));
                effects
            }
        }
    }

    /// Whether no new attempt may start: any stop but the one that only means
    /// "no further messages".
    fn must_hurry(&self) -> bool {
        !matches!(self.stop, None | Some(StopReason::MaxMessages))
    }

    /// The first reason counts; a consumer is cancelled once.
    fn stop(&mut self, reason: StopReason) -> Vec<Effect> {
        match self.stop {
            None => {
                self.stop = Some(reason);
                vec![Effect::CancelConsumer]
            }
            // No further messages were to come; now the running ones must end too.
            Some(StopReason::MaxMessages) if reason != StopReason::MaxMessages => {
                self.stop = Some(reason);
                Vec::new()
            }
            Some(_) => Vec::new(),
        }
    }

    fn publishing(&mut self, tag: u64, stage: Stage) {
        if let Some(flight) = self.flights.get_mut(&tag) {
            flight.stage = stage;
        }
    }

    fn count_buried(&mut self, reason: &BuryReason) {
        match reason {
            BuryReason::Poison { .. } => self.counts.poison += 1,
            BuryReason::Exhausted { .. } => self.counts.exhausted += 1,
        }
    }

    fn release(&mut self, tag: u64) -> Vec<Effect> {
        self.counts.released += 1;
        self.flights.remove(&tag);
        vec![Effect::Release { tag }]
    }

    fn settle(&mut self, tag: u64, effect: Effect) -> Vec<Effect> {
        self.flights.remove(&tag);
        vec![effect]
    }
}

#[cfg(test)]
mod tests;
