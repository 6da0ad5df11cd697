//! Destroying what a file declares: what stands against it, and what was done.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::Object;
use crate::topology::{Binding, Destination, ExchangeName, QueueName, Topology, VhostName};

/// What one queue of the file holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueUse {
    /// Messages, those out for delivery included where they are known.
    pub messages: u64,
    /// Consumers.
    pub consumers: u64,
}

/// Why something should not be deleted without being told twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Objection {
    /// What.
    pub object: Object,
    /// Why.
    pub why: String,
}

/// What stands against destroying: queues in use, and exchanges that others bind to.
///
/// `uses` has an entry for each queue that exists; `present` are the bindings of
/// the vhost, as far as they can be seen.
#[must_use]
pub fn objections(
    topology: &Topology,
    uses: &[(QueueName, QueueUse)],
    present: &[Binding],
) -> Vec<Objection> {
    let mut found: Vec<Objection> = uses
        .iter()
        .filter_map(|(name, used)| {
            let why = match (used.messages, used.consumers) {
                (0, 0) => return None,
                (messages, 0) => format!("it holds {messages} messages"),
                (0, consumers) => format!("it has {consumers} consumers"),
                (messages, consumers) => {
                    format!("it holds {messages} messages and has {consumers} consumers")
                }
            };
            Some(Objection {
                object: Object::Queue(name.clone()),
                why,
            })
        })
        .collect();
    let listed = topology.binding_identities();
    let mut others: BTreeMap<&ExchangeName, BTreeSet<String>> = BTreeMap::new();
    for binding in present {
        if topology.exchanges.contains_key(&binding.source)
            && !leads_to_ours(topology, binding)
            && !listed.contains(&binding.identity())
        {
            let fed = others.entry(&binding.source).or_default();
            fed.insert(binding.destination.to_string());
        }
    }
    for (exchange, fed) in others {
        let fed: Vec<String> = fed.into_iter().collect();
        found.push(Objection {
            object: Object::Exchange(exchange.clone()),
            why: format!(
                "it feeds what the file does not declare: {}",
                fed.join(", ")
            ),
        });
    }
    found
}

fn leads_to_ours(topology: &Topology, binding: &Binding) -> bool {
    match &binding.destination {
        Destination::Queue(name) => topology.queues.contains_key(name),
        Destination::Exchange(name) => topology.exchanges.contains_key(name),
    }
}

/// Exchanges in the order in which they can go: what feeds others first.
#[must_use]
pub fn exchanges_last_first(topology: &Topology) -> Vec<ExchangeName> {
    super::steps(topology)
        .into_iter()
        .filter_map(|step| match step.object() {
            Object::Exchange(name) => Some(name),
            Object::Queue(_)
            | Object::Binding(_)
            | Object::Policy(..)
            | Object::Vhost
            | Object::User(_)
            | Object::Permissions(_)
            | Object::TopicPermission(_) => None,
        })
        .rev()
        .collect()
}

/// What happened to one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It would be deleted.
    Planned,
    /// It was deleted.
    Deleted,
    /// It was not there.
    NotThere,
    /// It was kept; why.
    Kept(String),
}

/// The report of one destroy.
#[derive(Clone, Debug, PartialEq)]
pub struct DestroyReport {
    /// The vhost.
    pub vhost: VhostName,
    /// The broker, product and version.
    pub broker: String,
    /// Every object of the file but its bindings, which go with their ends.
    pub lines: Vec<(Object, Gone)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Source;
    use crate::field::FieldTable;
    use crate::topology::RoutingKey;

    #[test]
    fn queues_in_use_and_foreign_bindings_stand_against_it() {
        let source = Source {
            name: "t.yaml".to_owned(),
            text: "version: 1\nexchanges: { e: { type: fanout }, f: { type: fanout } }\nqueues: { a: { bind: [ { exchange: e } ] }, b: , c: }\n".to_owned(),
        };
        let topology = crate::topologyfile::parse(&[source], &|_| None).expect("topology");
        let queue = |name: &str| QueueName::new(name).expect("name");
        let used = |messages, consumers| QueueUse {
            messages,
            consumers,
        };
        let mut present = topology.bindings.clone();
        present.push(Binding {
            source: ExchangeName::new("e").expect("name"),
            destination: Destination::Queue(queue("theirs")),
            key: RoutingKey::new("").expect("key"),
            arguments: FieldTable::new(),
        });
        let found = objections(
            &topology,
            &[
                (queue("a"), used(3, 1)),
                (queue("b"), used(0, 0)),
                (queue("c"), used(0, 2)),
            ],
            &present,
        );
        let told: Vec<String> = found
            .iter()
            .map(|objection| format!("{}: {}", objection.object, objection.why))
            .collect();
        assert_eq!(
            told,
            [
                "queue 'a': it holds 3 messages and has 1 consumers",
                "queue 'c': it has 2 consumers",
                "exchange 'e': it feeds what the file does not declare: queue 'theirs'",
            ]
        );
    }
}
