//! How the machine stops: no further messages, or no further attempts either.

use super::Machine;
use crate::worker::event::{Effect, StopReason};
use crate::worker::flights::Stage;

impl Machine {
    /// Whether no new attempt may start: any stop but the one that only means
    /// "no further messages".
    pub(super) fn must_hurry(&self) -> bool {
        !matches!(self.stop, None | Some(StopReason::MaxMessages))
    }

    /// The first reason counts; a consumer is cancelled once. What no handler
    /// has yet goes back.
    pub(super) fn stop(&mut self, reason: StopReason) -> Vec<Effect> {
        let mut effects = match self.stop {
            None => vec![Effect::CancelConsumer],
            // No further messages were to come; now the running ones must end too.
            Some(StopReason::MaxMessages) if reason != StopReason::MaxMessages => Vec::new(),
            Some(_) => return Vec::new(),
        };
        self.stop = Some(reason);
        if self.must_hurry() {
            effects.extend(self.release_idle());
        }
        effects
    }

    /// Gives back what no handler has.
    pub(super) fn release_idle(&mut self) -> Vec<Effect> {
        let idle = self.flights.tags(|stage| {
            matches!(
                stage,
                Stage::Claiming | Stage::Waiting | Stage::Held | Stage::Candidate
            )
        });
        idle.into_iter().flat_map(|tag| self.release(tag)).collect()
    }
}
