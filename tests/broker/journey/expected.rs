//! What the simulation says becomes of a case.

use std::collections::BTreeMap;

use mq::routing::{Death, Held, Router};
use mq::topology::QueueName;

use super::case::Case;

/// How many copies each queue holds.
pub(crate) type Counts = BTreeMap<QueueName, usize>;

/// What the simulation says there is after one of the deaths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    pub(crate) resting: Counts,
    /// Copies in queue 0, where the next death takes them.
    pub(crate) origin: usize,
}

impl Case {
    /// What there is after each death; `None` when copies multiply beyond what a
    /// test can wait for. `router` knows all cases.
    pub(crate) fn expected(&self, router: &Router<'_>) -> Option<Vec<Expected>> {
        let mut copies: Vec<Held> = router.publish(&self.message);
        assert!(copies.len() == 1 && copies.iter().all(|held| held.queue == self.origin()));
        let mut all = Vec::new();
        let mut resting = Counts::new();
        for death in &self.deaths {
            if !death.happens_in(self.settings(), None) && self.expiration.is_none() {
                let origin = copies.len();
                all.push(Expected { resting, origin });
                break;
            }
            let mut back = Vec::new();
            for held in copies {
                let journey = router.journey(held, *death);
                if journey.broken_off || journey.steps.len() > 60 {
                    return None;
                }
                for held in journey.copies {
                    if held.queue == self.origin() {
                        back.push(held);
                    } else {
                        *resting.entry(held.queue).or_default() += 1;
                    }
                }
            }
            // What comes back by itself to a queue that does not keep it goes on
            // for ever. No broker since 3.13 lets it come back.
            let is_kept = matches!(death, Death::Rejected | Death::DeliveryLimit);
            if back.len() > 8 || (!is_kept && !back.is_empty()) {
                return None;
            }
            copies = back;
            all.push(Expected {
                resting: resting.clone(),
                origin: copies.len(),
            });
            if copies.is_empty() {
                break;
            }
        }
        Some(all)
    }
}
