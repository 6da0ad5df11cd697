//! What a queue is there for, read off the ways that lead to it.

use std::collections::{BTreeMap, BTreeSet};

use crate::topology::{
    DeadLetterKey, Destination, ExchangeName, Queue, QueueName, RoutingKey, Topology,
};

/// What a queue is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Worked, with retries that the topology describes.
    Work,
    /// Messages wait in it until they expire and go on.
    Wait,
    /// Dead letters rest in it.
    DeadLetter,
}

impl Role {
    /// What it is called.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Wait => "wait",
            Self::DeadLetter => "dead_letter",
        }
    }
}

/// Whether its dead letters are messages that have waited. A work queue with a
/// TTL is none: what expires there is given up.
pub(super) fn waits(queue: &Queue) -> bool {
    queue.message_ttl.is_some() && queue.dead_lettering.is_some() && queue.retry.is_none()
}

/// What is known of all dead letters together.
pub(super) struct Roles {
    named: BTreeSet<QueueName>,
    exchanges: BTreeSet<ExchangeName>,
    keys: BTreeSet<RoutingKey>,
    sources: BTreeMap<QueueName, BTreeSet<ExchangeName>>,
}

impl Roles {
    /// Reads it off the queues as they are in force.
    pub(super) fn of(topology: &Topology, queues: &BTreeMap<QueueName, Queue>) -> Self {
        let mut roles = Self {
            named: BTreeSet::new(),
            exchanges: BTreeSet::new(),
            keys: BTreeSet::new(),
            sources: BTreeMap::new(),
        };
        for queue in queues.values() {
            let named = queue.retry.as_ref();
            roles
                .named
                .extend(named.and_then(|retry| retry.dead_letter_queue.clone()));
            let Some(dead_lettering) = queue.dead_lettering.as_ref().filter(|_| !waits(queue))
            else {
                continue;
            };
            if !dead_lettering.exchange.is_empty() {
                roles.exchanges.insert(dead_lettering.exchange.clone());
            } else if let DeadLetterKey::Replaced(key) = &dead_lettering.key {
                roles.keys.insert(key.clone());
            }
        }
        for binding in &topology.bindings {
            if let Destination::Queue(queue) = &binding.destination {
                let sources = roles.sources.entry(queue.clone()).or_default();
                sources.insert(binding.source.clone());
            }
        }
        roles
    }

    /// The role of one queue, if it has one of them.
    pub(super) fn role(&self, name: &QueueName, queue: &Queue) -> Option<Role> {
        if queue.retry.is_some() {
            return Some(Role::Work);
        }
        if waits(queue) {
            return Some(Role::Wait);
        }
        // A queue that also gets something else is no resting place.
        let sources = self.sources.get(name);
        let gets_nothing_else = sources.is_none_or(|sources| sources.is_subset(&self.exchanges));
        let gets_dead_letters =
            sources.is_some() || self.keys.contains(&RoutingKey::of_queue(name));
        let ends = queue.dead_lettering.is_none() && gets_dead_letters && gets_nothing_else;
        let rests = self.named.contains(name) || ends;
        rests.then_some(Role::DeadLetter)
    }
}
