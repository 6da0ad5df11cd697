//! The whole way of a message that died: through every queue it does not stay
//! in, until each copy rests or is lost.

use std::collections::BTreeSet;

use crate::routing::{Death, Held, Loss, Router};
use crate::topology::{ExchangeName, Queue, QueueName, QueueType, RoutingKey};

/// More hops than this are not followed: before 3.13 a ring can have no end.
const MAX_STEPS: usize = 10_000;

/// Nor are copies, once the deaths after the first had so many more outcomes than
/// one each: a chain has none more, and where copies multiply nobody reads them all.
const MAX_BRANCHES: usize = 200;

/// Where the copies of one message went.
#[derive(Debug, Default, PartialEq)]
pub struct Journey {
    /// Each death on the way, in its order.
    pub steps: Vec<Step>,
    /// The queues in which copies stay.
    pub rests: BTreeSet<QueueName>,
    /// Those copies: a queue can have several, by different ways.
    pub copies: Vec<Held>,
    /// What became of copies that stay nowhere, with the queue they left last.
    pub losses: BTreeSet<(QueueName, Loss)>,
    /// Whether the journey was broken off because there were too many hops or
    /// too many branches.
    pub broken_off: bool,
}

/// One death on the way.
#[derive(Debug, PartialEq)]
pub struct Step {
    /// The queue it died in.
    pub queue: QueueName,
    /// Why.
    pub death: Death,
    /// As it was published then: exchange and first key, if there was any.
    pub to: Option<(ExchangeName, RoutingKey)>,
    /// The queues it arrived in.
    pub arrived: Vec<QueueName>,
    /// What became of the rest.
    pub losses: BTreeSet<Loss>,
    /// Exchanges on the way whose routing is not known: of a plugin's type, or
    /// declared elsewhere. What they do is missing here.
    pub unknown: BTreeSet<ExchangeName>,
}

impl Journey {
    /// The queues that copies went through and did not stay in.
    #[must_use]
    pub fn passed(&self) -> BTreeSet<QueueName> {
        self.steps
            .iter()
            .skip(1)
            .map(|step| step.queue.clone())
            .collect()
    }

    /// Exchanges on the way whose routing is not known.
    #[must_use]
    pub fn unknown(&self) -> BTreeSet<&ExchangeName> {
        self.steps.iter().flat_map(|step| &step.unknown).collect()
    }
}

impl Router<'_> {
    /// Follows a copy from its death on.
    ///
    /// A queue with a message TTL and a dead-letter exchange is waited in and
    /// left again by expiry; every other one is stayed in. So is the queue the
    /// journey began in: whoever consumes there has the message again. Who comes
    /// back by expiry alone is dropped by the broker, so this comes to an end;
    /// before 3.13 an old rejection can keep a copy in a ring of wait queues for
    /// ever (it follows from what was measured on 3.10.8), and such a journey is
    /// broken off, as is one whose copies multiply.
    #[must_use]
    pub fn journey(&self, held: Held, death: Death) -> Journey {
        let mut journey = Journey::default();
        let origin = held.queue.clone();
        let mut dying = vec![(held, death)];
        let mut branches = 0_usize;
        while let Some((held, death)) = dying.pop() {
            if journey.steps.len() == MAX_STEPS || branches > MAX_BRANCHES {
                journey.broken_off = true;
                break;
            }
            let queue = held.queue.clone();
            let departure = self.die(held, death);
            if !journey.steps.is_empty() {
                let outcomes = departure.arrived.len() + departure.losses.len();
                branches += outcomes.saturating_sub(1);
            }
            journey.steps.push(Step {
                queue: queue.clone(),
                death,
                to: departure.message.as_ref().and_then(|message| {
                    Some((message.exchange.clone(), message.keys.first()?.clone()))
                }),
                arrived: departure.arrived.iter().map(|a| a.queue.clone()).collect(),
                losses: departure.losses.clone(),
                unknown: departure.routed.unknown,
            });
            let losses = departure.losses.into_iter();
            journey
                .losses
                .extend(losses.map(|loss| (queue.clone(), loss)));
            for held in departure.arrived.into_iter().rev() {
                let moves_on = held.queue != origin
                    && self
                        .topology()
                        .effective_queue(&held.queue)
                        .is_some_and(|queue| waits(&queue));
                if moves_on {
                    dying.push((held, Death::Expired));
                } else {
                    journey.rests.insert(held.queue.clone());
                    journey.copies.push(held);
                }
            }
        }
        journey
    }
}

/// Whether messages leave this queue (with its policies merged) by themselves
/// for another one.
#[must_use]
pub fn waits(queue: &Queue) -> bool {
    queue.message_ttl.is_some()
        && queue.dead_lettering.is_some()
        && queue.kind != Some(QueueType::Stream)
}

#[cfg(test)]
mod tests;
