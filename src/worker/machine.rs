//! The worker's decisions as a machine without sockets: an event in, effects out.
//!
//! Invariants (property-tested): every delivery is settled exactly once, no
//! settle happens before the outcome it reports is confirmed, no more than
//! `jobs` handlers run, no more than `prefetch` deliveries are in work (one more
//! may wait), and nothing new starts once draining.

use std::time::Duration;

use crate::error::Error;
use crate::retry::{BuryReason, Outcome, Strategy, Verdict, decide};
use crate::worker::event::{Effect, Event, LONGEST_HOLD, StopReason};
use crate::worker::flights::{Flight, Flights, Stage};
use crate::worker::outage::Outage;
use crate::worker::{Counts, DeadLetterBy, Limits, NackPath};

mod deduping;
mod draining;
mod pausing;

/// The state of the worker.
#[derive(Clone, Debug)]
pub struct Machine {
    limits: Limits,
    flights: Flights,
    taken: u64,
    counts: Counts,
    stop: Option<StopReason>,
    outage: Outage,
}

impl Machine {
    /// A worker that has seen nothing yet.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            flights: Flights::new(),
            taken: 0,
            counts: Counts {
                received: 0,
                acked: 0,
                retried: 0,
                poison: 0,
                exhausted: 0,
                returned: 0,
                deduplicated: 0,
                released: 0,
                unsettled: 0,
            },
            stop: None,
            outage: Outage::new(limits.pausing),
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
        self.flights.get(tag).map(|flight| flight.attempt)
    }

    /// Whether messages that come back too often are dead-lettered.
    #[must_use]
    pub const fn bounds_returns(&self) -> bool {
        self.limits.max_returns.is_some()
    }

    /// Deliveries in work.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Deliveries whose copies are on their way.
    #[must_use]
    pub fn being_published(&self) -> Vec<u64> {
        self.flights.tags(|stage| match stage {
            Stage::Claiming
            | Stage::Waiting
            | Stage::Running
            | Stage::Held
            | Stage::Candidate
            | Stage::Recording => false,
            Stage::Parking(_) | Stage::Copying | Stage::Answering => true,
        })
    }

    /// Deliveries that are done, which is being remembered.
    #[must_use]
    pub fn being_recorded(&self) -> Vec<u64> {
        self.flights.tags(|stage| matches!(stage, Stage::Recording))
    }

    /// Why it stops, once it does.
    #[must_use]
    pub const fn stop_reason(&self) -> Option<&StopReason> {
        self.stop.as_ref()
    }

    /// Whether it stops and nothing is in work any more.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.stop.is_some() && self.flights.len() == 0
    }

    /// What an event means.
    pub fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = match event {
            Event::Delivered {
                tag,
                attempt,
                nack_is_unsafe,
                returns,
            } => self.delivered(tag, attempt, nack_is_unsafe, returns),
            Event::Finished {
                tag,
                outcome,
                result,
            } => self.finished(tag, outcome, result),
            Event::Claimed { tag, result } => self.claimed(tag, result),
            Event::Recorded { tag, result } => self.recorded(tag, result),
            Event::Waited { tag } => {
                if matches!(self.flights.get(tag), Some(flight) if matches!(flight.stage, Stage::Held))
                {
                    self.flights.set(tag, Stage::Waiting);
                }
                Vec::new()
            }
            Event::Published { tag, result } => self.published(tag, result),
            Event::NobodyToAnswer { tag, why } => match self.flights.get(tag) {
                Some(Flight {
                    stage: Stage::Answering,
                    ..
                }) => self.bury(tag, BuryReason::Poison { why }),
                Some(_) | None => Vec::new(),
            },
            Event::Unprinted { tag, reason } => {
                let mut effects = self.stop(reason);
                effects.extend(self.release(tag));
                effects
            }
            Event::Rested => {
                self.outage.rested();
                Vec::new()
            }
            Event::Stop(reason) => self.stop(reason),
            Event::ConnectionLost => {
                self.counts.unsettled += self.flights.len() as u64;
                self.flights.clear();
                self.outage.connection_lost();
                Vec::new()
            }
        };
        self.probe(&mut effects);
        self.start_waiting(&mut effects);
        effects
    }

    fn delivered(
        &mut self,
        tag: u64,
        attempt: u32,
        nack_is_unsafe: bool,
        returns: u64,
    ) -> Vec<Effect> {
        self.counts.received += 1;
        // One more than the prefetch may come, and waits: the broker counts for
        // each consumer, and who widens its prefetch has two for a while. Given
        // back it would come again at once, over and over (measured).
        if self.stop.is_some()
            || self.flights.len() > self.most_in_work()
            || !self.outage.takes_messages()
        {
            self.counts.released += 1;
            return vec![Effect::Release { tag }];
        }
        self.flights.insert(tag, attempt, nack_is_unsafe);
        self.taken += 1;
        // Cancelled before any settle frees a place, or more would be handed out.
        let mut effects = if !self.is_paused() && self.all_are_taken() {
            self.stop(StopReason::MaxMessages)
        } else {
            Vec::new()
        };
        // A message that comes with more attempts than it may have still gets
        // one: the number may have been lowered, and an attempt is how the
        // reason for its end is found. But one that ends its workers must not.
        if self.limits.max_returns.is_some_and(|most| returns > most) {
            let why = format!(
                "it came back to its queue {returns} times without an end: its worker crashed, lost its connection or gave it back"
            );
            effects.extend(self.bury(tag, BuryReason::Returned { why }));
        } else if self.limits.dedupe {
            self.flights.set(tag, Stage::Claiming);
            effects.push(Effect::Claim { tag });
        } else {
            effects.extend(self.may_be_worked(tag));
        }
        effects
    }

    /// Handlers that are free take what waits, the oldest first.
    fn start_waiting(&mut self, effects: &mut Vec<Effect>) {
        if self.must_hurry() {
            return;
        }
        while self.flights.running() < usize::from(self.limits.jobs)
            && let Some(tag) = self.flights.next_waiting()
        {
            self.flights.set(tag, Stage::Running);
            if let Some(flight) = self.flights.get(tag) {
                effects.push(Effect::Run {
                    tag,
                    attempt: flight.attempt,
                });
            }
        }
    }

    fn finished(&mut self, tag: u64, outcome: Outcome, result: bool) -> Vec<Effect> {
        let Some(flight) = self.flights.get(tag).cloned() else {
            return Vec::new();
        };
        if !matches!(flight.stage, Stage::Running) {
            return Vec::new();
        }
        if let Some(effects) = self.failed_in_outage(tag, &outcome) {
            return effects;
        }
        let over = self.is_paused() && outcome == Outcome::Done;
        // Cancelled before a settle frees a place.
        let mut effects = if over && self.all_are_taken() {
            self.resume()
        } else {
            Vec::new()
        };
        effects.extend(self.settled_by(tag, &flight, outcome, result));
        if over && self.is_paused() {
            effects.extend(self.resume());
        }
        effects
    }

    /// What an outcome means when nothing is wrong downstream.
    fn settled_by(
        &mut self,
        tag: u64,
        flight: &Flight,
        outcome: Outcome,
        result: bool,
    ) -> Vec<Effect> {
        match decide(
            outcome,
            flight.attempt,
            self.limits.max_attempts,
            self.limits.strategy,
            self.limits.on_exhausted,
        ) {
            Verdict::Ack if result && self.limits.publish_results => {
                self.flights.set(tag, Stage::Answering);
                vec![Effect::PublishResult { tag }]
            }
            Verdict::Ack => self.done(tag),
            Verdict::RetryThroughBroker { wait, .. }
                if wait.is_some()
                    || flight.nack_is_unsafe
                    || self.limits.nack_path != NackPath::Confirmed
                    || (result && self.limits.retry_with_result)
                    || self.limits.strategy == Strategy::Backoff =>
            {
                self.copy(tag, flight.attempt, wait)
            }
            Verdict::RetryThroughBroker { .. } => {
                self.counts.retried += 1;
                self.settle(tag, Effect::DeadLetter { tag })
            }
            // What it died of elsewhere, and its count there, came along: as a
            // copy it starts anew.
            Verdict::Requeue { .. } if flight.nack_is_unsafe => {
                self.copy(tag, flight.attempt, None)
            }
            Verdict::Requeue { .. } => {
                self.counts.retried += 1;
                self.settle(tag, Effect::Requeue { tag })
            }
            Verdict::RetryInPlace { .. } if self.must_hurry() => self.release(tag),
            Verdict::RetryInPlace { wait, .. } => self.again(tag, wait),
            Verdict::Bury(reason) => self.bury(tag, reason),
            Verdict::ReleaseAndStop { why } => {
                let mut effects = self.stop(StopReason::Handler { why });
                effects.extend(self.release(tag));
                effects
            }
            Verdict::Release => self.release(tag),
        }
    }

    fn copy(&mut self, tag: u64, attempt: u32, wait: Option<Duration>) -> Vec<Effect> {
        self.flights.set(tag, Stage::Copying);
        vec![Effect::RetryByCopy { tag, attempt, wait }]
    }

    /// The next attempt while it is held, perhaps after a pause.
    fn again(&mut self, tag: u64, wait: Option<Duration>) -> Vec<Effect> {
        self.counts.retried += 1;
        let Some(attempt) = self.flights.count_attempt(tag) else {
            return Vec::new();
        };
        match wait {
            Some(wait) => {
                self.flights.set(tag, Stage::Held);
                let wait = wait.min(LONGEST_HOLD);
                vec![Effect::Hold { tag, wait }]
            }
            None => vec![Effect::Run { tag, attempt }],
        }
    }

    /// By a nack only if that was asked for and is known to lead there: a nack
    /// cannot tell that the binding is gone (measured: the message vanishes),
    /// and it cannot carry the reason.
    fn bury(&mut self, tag: u64, reason: BuryReason) -> Vec<Effect> {
        let Some(flight) = self.flights.get(tag) else {
            return Vec::new();
        };
        if self.limits.dead_letter == DeadLetterBy::Nowhere {
            let mut effects = self.stop(StopReason::NoDeadLetterQueue { tag, reason });
            effects.extend(self.release(tag));
            return effects;
        }
        let by_nack = self.limits.dead_letter == DeadLetterBy::Nack
            && self.limits.strategy != Strategy::Dlx
            && self.limits.nack_path != NackPath::Believed
            && !flight.nack_is_unsafe;
        if by_nack {
            self.count_buried(&reason);
            return self.settle(tag, Effect::Bury { tag });
        }
        let attempt = match reason {
            // The attempt that it would have had was not made.
            BuryReason::Returned { .. } => flight.attempt.saturating_sub(1),
            BuryReason::Poison { .. } | BuryReason::Exhausted { .. } => flight.attempt,
        };
        self.flights.set(tag, Stage::Parking(reason.clone()));
        vec![Effect::Park {
            tag,
            attempt,
            reason,
        }]
    }

    fn published(&mut self, tag: u64, result: Result<(), Error>) -> Vec<Effect> {
        let Some(flight) = self.flights.get(tag) else {
            return Vec::new();
        };
        match (flight.stage.clone(), result) {
            (
                Stage::Claiming
                | Stage::Waiting
                | Stage::Running
                | Stage::Held
                | Stage::Candidate
                | Stage::Recording,
                _,
            ) => Vec::new(),
            (Stage::Parking(reason), Ok(())) => {
                self.count_buried(&reason);
                self.settle(tag, Effect::Ack { tag })
            }
            (Stage::Copying, Ok(())) => {
                self.counts.retried += 1;
                self.settle(tag, Effect::Ack { tag })
            }
            (Stage::Answering, Ok(())) => self.done(tag),
            (Stage::Parking(_) | Stage::Copying | Stage::Answering, Err(error)) => {
                let mut effects = self.stop(StopReason::NotParked(error));
                effects.extend(self.release(tag));
                effects
            }
        }
    }

    fn count_buried(&mut self, reason: &BuryReason) {
        match reason {
            BuryReason::Poison { .. } => self.counts.poison += 1,
            BuryReason::Returned { .. } => self.counts.returned += 1,
            BuryReason::Exhausted { .. } => self.counts.exhausted += 1,
        }
    }

    fn release(&mut self, tag: u64) -> Vec<Effect> {
        self.counts.released += 1;
        self.flights.remove(tag);
        vec![Effect::Release { tag }]
    }

    fn settle(&mut self, tag: u64, effect: Effect) -> Vec<Effect> {
        self.flights.remove(tag);
        vec![effect]
    }
}

#[cfg(test)]
mod tests;
