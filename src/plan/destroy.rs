//! Destroying what a file declares: what stands against it, and what was done.

use std::collections::{BTreeMap, BTreeSet};

use crate::field::FieldTable;
use crate::plan::Object;
use crate::topology::{Binding, Destination, ExchangeName, QueueName, Topology, VhostName};

/// What one queue of the file holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueUse {
    /// Messages, those out for delivery included where they are known.
    pub messages: u64,
    /// Consumers.
    pub consumers: u64,
    /// What could not be seen, so that zero means nothing.
    pub unseen: Option<Unseen>,
}

/// Why it cannot be said that a queue is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// Brokers tell of streams neither messages nor consumers over AMQP, and
    /// over the management API seconds late (measured on all versions).
    Stream,
    /// Nobody tells what is out for delivery.
    OutForDelivery,
}

impl Unseen {
    const fn why(self) -> &'static str {
        match self {
            Self::Stream => "it is a stream, and whether it is empty and unread cannot be proved",
            Self::OutForDelivery => {
                "whether messages of it are out for delivery cannot be seen without the management API's statistics"
            }
        }
    }
}

/// Why something should not be deleted without being told twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Objection {
    /// What.
    pub object: Object,
    /// Why.
    pub why: String,
}

/// What stands against destroying: queues in use, and exchanges that others bind
/// to or send dead letters and unroutable messages to.
///
/// `uses` has an entry for each queue that exists; `present` is all of the vhost,
/// as far as it can be seen.
#[must_use]
pub fn objections(
    topology: &Topology,
    uses: &[(QueueName, QueueUse)],
    present: &Topology,
) -> Vec<Objection> {
    let mut found: Vec<Objection> = uses
        .iter()
        .filter_map(|(name, used)| {
            let why = match (used.messages, used.consumers) {
                (0, 0) => used.unseen?.why().to_owned(),
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
    for binding in &present.bindings {
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
    for (exchange, who) in named_by_others(topology, present) {
        found.push(Objection {
            object: Object::Exchange(exchange),
            why: format!("{who}, which would lose messages"),
        });
    }
    found
}

/// Exchanges of the topology that something else names as dead-letter or
/// alternate exchange.
fn named_by_others(topology: &Topology, present: &Topology) -> Vec<(ExchangeName, String)> {
    let ours = |arguments: &FieldTable, name: &str| {
        let exchange = ExchangeName::new(arguments.get(name)?.as_text()?).ok()?;
        topology
            .exchanges
            .contains_key(&exchange)
            .then_some(exchange)
    };
    let mut named = Vec::new();
    for (name, queue) in &present.queues {
        if !topology.queues.contains_key(name)
            && let Some(exchange) = ours(&queue.arguments, "x-dead-letter-exchange")
        {
            named.push((exchange, format!("queue '{name}' dead-letters to it")));
        }
    }
    for (name, exchange) in &present.exchanges {
        if !topology.exchanges.contains_key(name)
            && let Some(alternate) = ours(&exchange.arguments, "alternate-exchange")
        {
            named.push((alternate, format!("exchange '{name}' has it as alternate")));
        }
    }
    for (key, policy) in &present.policies {
        for setting in ["dead-letter-exchange", "alternate-exchange"] {
            if !topology.policies.contains_key(key)
                && let Some(exchange) = ours(&policy.definition, setting)
            {
                let (kind, name) = key;
                named.push((
                    exchange,
                    format!("{} '{name}' sets it as {setting}", kind.word()),
                ));
            }
        }
    }
    named
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
            unseen: None,
        };
        let stream = QueueUse {
            unseen: Some(Unseen::Stream),
            ..QueueUse::default()
        };
        let mut present = topology.clone();
        let mut theirs = crate::topology::Queue::default();
        theirs.arguments.insert(
            "x-dead-letter-exchange".to_owned(),
            crate::field::FieldValue::text("f"),
        );
        present.queues.insert(queue("theirs"), theirs);
        present.bindings.push(Binding {
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
                (queue("s"), stream),
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
                "queue 's': it is a stream, and whether it is empty and unread cannot be proved",
                "exchange 'e': it feeds what the file does not declare: queue 'theirs'",
                "exchange 'f': queue 'theirs' dead-letters to it, which would lose messages",
            ]
        );
    }
}
