//! What the machine does in an outage downstream: it takes no messages, and
//! tries one at a time until one is done.

use std::time::Duration;

use super::Machine;
use crate::retry::Outcome;
use crate::worker::event::{Effect, StopReason};
use crate::worker::flights::Stage;
use crate::worker::outage::{Next, Outage, Sign};

impl Machine {
    /// Whether it waits for something downstream and takes no messages.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        self.outage.is_now()
    }

    /// How long the present pause has lasted, without the time that probes took.
    #[must_use]
    pub fn paused_for(&self) -> Duration {
        self.outage.waited()
    }

    /// What a failure means in an outage, or as its beginning; `None`: it is
    /// settled as always.
    pub(super) fn failed_in_outage(&mut self, tag: u64, outcome: &Outcome) -> Option<Vec<Effect>> {
        let may_begin = !self.must_hurry();
        match self.outage.judge(tag, outcome, may_begin) {
            Sign::Nothing => None,
            Sign::StillDown => Some(self.give_back(tag)),
            Sign::ProbeFailed if self.must_hurry() => {
                self.outage.drop_candidate(tag);
                Some(self.give_back(tag))
            }
            Sign::ProbeFailed => {
                self.flights.set(tag, Stage::Candidate);
                Some(Vec::new())
            }
            // No further messages are to come, so there is nobody to wait for.
            Sign::Outage { sign, why } if self.stop.is_some() => {
                self.outage.begin(tag);
                self.outage.drop_candidate(tag);
                let why = format!("{sign}, the last one: {why}");
                let mut effects = self.stop(StopReason::Handler { why });
                effects.extend(self.release(tag));
                Some(effects)
            }
            Sign::Outage { sign, why } => {
                let wait = self.outage.first_wait();
                let mut effects = vec![Effect::Pause { sign, why, wait }];
                let before = self.counts.released;
                effects.extend(self.release_idle());
                self.taken = (self.taken).saturating_sub(self.counts.released - before);
                self.flights.set(tag, Stage::Candidate);
                self.outage.begin(tag);
                Some(effects)
            }
        }
    }

    /// It was not worked, so it was not taken either.
    fn give_back(&mut self, tag: u64) -> Vec<Effect> {
        self.taken = self.taken.saturating_sub(1);
        self.release(tag)
    }

    /// Goes on with the outage, if there is one.
    pub(super) fn probe(&mut self, effects: &mut Vec<Effect>) {
        if self.stop.is_some() {
            return;
        }
        if self.all_are_taken() && self.outage.has_no_candidate() {
            self.outage.end();
            effects.extend(self.stop(StopReason::MaxMessages));
            return;
        }
        let is_free = self.flights.running() < usize::from(self.limits.jobs);
        match self.outage.next(is_free) {
            Some(Next::Rest { released, wait }) => {
                for tag in released {
                    effects.extend(self.give_back(tag));
                }
                effects.push(Effect::Rest { wait });
            }
            Some(Next::Probe(tag)) => {
                self.flights.set(tag, Stage::Running);
                if let Some(flight) = self.flights.get(tag) {
                    let attempt = flight.attempt;
                    effects.push(Effect::Run { tag, attempt });
                }
            }
            None => {}
        }
        if !self.all_are_taken() && self.outage.takes_one_more() {
            effects.push(Effect::TakeOne);
        }
    }

    /// The outage is over. What was held to probe with goes its normal way.
    pub(super) fn resume(&mut self) -> Vec<Effect> {
        for tag in self.outage.end() {
            if matches!(self.flights.get(tag), Some(flight) if matches!(flight.stage, Stage::Candidate))
            {
                self.flights.set(tag, Stage::Waiting);
            }
        }
        if self.stop.is_some() {
            Vec::new()
        } else if self.all_are_taken() {
            self.stop(StopReason::MaxMessages)
        } else {
            vec![Effect::Resume]
        }
    }

    /// Whether `--max-messages` were taken.
    pub(super) fn all_are_taken(&self) -> bool {
        self.limits
            .max_messages
            .is_some_and(|max| self.taken >= max)
    }

    /// Deliveries in work beyond which one is given back; one more may wait. A
    /// new consumer has its whole prefetch besides what was in work before a
    /// pause.
    pub(super) fn most_in_work(&self) -> usize {
        let prefetch = usize::from(self.limits.prefetch);
        if self.outage.was() {
            2 * prefetch + Outage::most_candidates()
        } else {
            prefetch
        }
    }
}

#[cfg(test)]
mod tests;
