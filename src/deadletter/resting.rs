//! Which queues of a vhost are dead-letter queues: by what they are, not by name.

use std::collections::BTreeMap;

use crate::broker::BrokerFacts;
use crate::lint::{Feed, feeds};
use crate::topology::{QueueName, Topology};

/// The dead-letter queues of a vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestingPlaces {
    /// Each with the queues whose dead letters it takes.
    pub queues: BTreeMap<QueueName, Vec<Feed>>,
    /// Whether there may be more: something on the ways is not known.
    pub incomplete: bool,
}

/// The queues in which dead letters of others come to rest. `consumers` tells how
/// many each queue has, as far as that is known.
///
/// What only ever expires into a queue that somebody consumes comes back to be
/// worked: then it is a delay, and nobody gave the message up.
#[must_use]
pub fn resting_places(
    topology: &Topology,
    facts: &BrokerFacts,
    consumers: &dyn Fn(&QueueName) -> Option<u64>,
) -> RestingPlaces {
    let found = feeds(topology, Some(facts));
    let queues = found.into.into_iter().filter(|(name, feeds)| {
        let is_delayed_work =
            feeds.iter().all(|feed| feed.waits) && !feeds.is_empty() && consumers(name) > Some(0);
        topology.queues.contains_key(name) && !is_delayed_work
    });
    RestingPlaces {
        queues: queues.collect(),
        incomplete: found.unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Source;

    #[test]
    fn a_delay_before_a_consumed_queue_is_no_dead_lettering() {
        let text = "version: 1\nqueues:\n  later: { type: classic, message_ttl: 1m, dead_letter: { exchange: '', key: jobs } }\n  jobs: { type: classic }\n  work: { type: classic, dead_letter: { exchange: '', key: bin } }\n  bin: { type: classic }\n";
        let source = Source {
            name: "t.yaml".to_owned(),
            text: text.to_owned(),
        };
        let topology = crate::topologyfile::parse(std::slice::from_ref(&source), &|_| None)
            .unwrap_or_else(|found| panic!("{}", crate::diagnostic::render(&found, &[source])));
        let facts = BrokerFacts::new("RabbitMQ", "4.3.6");
        for (consumers, expected) in [
            (Some(1), vec!["bin"]),
            (Some(0), vec!["bin", "jobs"]),
            (None, vec!["bin", "jobs"]),
        ] {
            let found = resting_places(&topology, &facts, &|_| consumers);
            assert!(!found.incomplete);
            let names: Vec<&str> = found.queues.keys().map(QueueName::as_str).collect();
            assert_eq!(names, expected, "{consumers:?}");
        }
    }
}
