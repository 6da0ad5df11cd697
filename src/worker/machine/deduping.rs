//! What the machine does about duplicates: it asks before the work whether the
//! like was done, and has what is done remembered before its ack.

use super::Machine;
use crate::dedupe::Claim;
use crate::error::Error;
use crate::worker::event::{Effect, StopReason};
use crate::worker::flights::Stage;

impl Machine {
    /// In an outage it is what is probed with, else it waits for a handler.
    pub(super) fn may_be_worked(&mut self, tag: u64) -> Vec<Effect> {
        if self.outage.probe_came(tag) {
            self.flights.set(tag, Stage::Candidate);
            vec![Effect::Unsubscribe]
        } else {
            self.flights.set(tag, Stage::Waiting);
            Vec::new()
        }
    }

    pub(super) fn claimed(&mut self, tag: u64, result: Result<Claim, Error>) -> Vec<Effect> {
        if !matches!(self.flights.get(tag), Some(flight) if matches!(flight.stage, Stage::Claiming))
        {
            return Vec::new();
        }
        match result {
            Ok(Claim::Mine) => self.may_be_worked(tag),
            Ok(Claim::Done) => {
                self.counts.deduplicated += 1;
                self.settle(tag, Effect::Ack { tag })
            }
            Err(error) => {
                let mut effects = self.stop(StopReason::NotDeduplicated(error));
                // What waits for the same word went back with the stop.
                if self.flights.get(tag).is_some() {
                    effects.extend(self.release(tag));
                }
                effects
            }
        }
    }

    /// The work is done, and nothing but its ack is left to do.
    pub(super) fn done(&mut self, tag: u64) -> Vec<Effect> {
        if self.limits.dedupe {
            self.flights.set(tag, Stage::Recording);
            return vec![Effect::Record { tag }];
        }
        self.counts.acked += 1;
        self.settle(tag, Effect::Ack { tag })
    }

    /// Acked even if it will not be remembered: given back it would surely be
    /// done twice, and acked only if a copy of it comes.
    pub(super) fn recorded(&mut self, tag: u64, result: Result<(), Error>) -> Vec<Effect> {
        if !matches!(self.flights.get(tag), Some(flight) if matches!(flight.stage, Stage::Recording))
        {
            return Vec::new();
        }
        let mut effects = match result {
            Ok(()) => Vec::new(),
            Err(error) => self.stop(StopReason::NotDeduplicated(error)),
        };
        self.counts.acked += 1;
        effects.extend(self.settle(tag, Effect::Ack { tag }));
        effects
    }
}
