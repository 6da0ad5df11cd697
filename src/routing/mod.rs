//! Routing without a broker: which queues a message reaches.
//!
//! Follows RabbitMQ's own walk: breadth first over exchange-to-exchange
//! bindings, each exchange once, and the alternate exchange of one whose
//! bindings took the message nowhere (exchanges.md, ae.md, e2e.md). Plugin
//! exchange types are not simulated: they route nowhere here.

mod headers;
mod topic;

use std::collections::{BTreeSet, VecDeque};

use crate::field::FieldTable;
use crate::topology::{
    Binding, Destination, Exchange, ExchangeName, ExchangeType, QueueName, RoutingKey, Topology,
};

pub use topic::matches as topic_matches;

/// The queues that a message with this key and these headers reaches through `exchange`.
#[must_use]
pub fn route(
    topology: &Topology,
    exchange: &ExchangeName,
    key: &RoutingKey,
    message_headers: &FieldTable,
) -> BTreeSet<QueueName> {
    let mut queues = BTreeSet::new();
    let mut seen = BTreeSet::from([exchange.clone()]);
    let mut waiting = VecDeque::from([exchange.clone()]);
    while let Some(name) = waiting.pop_front() {
        if name.is_empty() {
            let named = QueueName::new(key.as_str()).ok();
            queues.extend(named.filter(|queue| topology.queues.contains_key(queue)));
            continue;
        }
        let Some(here) = topology.exchange(&name) else {
            continue;
        };
        let taken: Vec<&Destination> = topology
            .bindings
            .iter()
            .filter(|binding| binding.source == name && takes(&here, binding, key, message_headers))
            .map(|binding| &binding.destination)
            .collect();
        let alternate = here.alternate.clone().map(Destination::Exchange);
        let next = if taken.is_empty() {
            alternate.iter().collect()
        } else {
            taken
        };
        for destination in next {
            match destination {
                Destination::Queue(queue) => {
                    if topology.queues.contains_key(queue) {
                        queues.insert(queue.clone());
                    }
                }
                Destination::Exchange(exchange) => {
                    if seen.insert(exchange.clone()) {
                        waiting.push_back(exchange.clone());
                    }
                }
            }
        }
    }
    queues
}

fn takes(
    exchange: &Exchange,
    binding: &Binding,
    key: &RoutingKey,
    message_headers: &FieldTable,
) -> bool {
    match exchange.kind {
        ExchangeType::Direct => binding.key == *key,
        ExchangeType::Fanout => true,
        ExchangeType::Topic => topic::matches(binding.key.as_str(), key.as_str()),
        ExchangeType::Headers => headers::matches(&binding.arguments, message_headers),
        ExchangeType::Plugin(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Queue;

    fn exchange(name: &str) -> ExchangeName {
        ExchangeName::new(name).expect("exchange name")
    }

    fn bind(topology: &mut Topology, source: &str, key: &str, destination: Destination) {
        topology.bindings.push(Binding {
            source: exchange(source),
            destination,
            key: RoutingKey::new(key).expect("key"),
            arguments: FieldTable::new(),
        });
    }

    fn queue(topology: &mut Topology, name: &str) -> Destination {
        let name = QueueName::new(name).expect("queue name");
        topology.queues.insert(name.clone(), Queue::default());
        Destination::Queue(name)
    }

    fn sample() -> Topology {
        let mut topology = Topology::default();
        let mut orders = Exchange::durable(ExchangeType::Topic);
        orders.alternate = Some(exchange("unrouted"));
        topology.exchanges.insert(exchange("orders"), orders);
        for (name, kind) in [
            ("unrouted", ExchangeType::Fanout),
            ("audit", ExchangeType::Direct),
        ] {
            topology
                .exchanges
                .insert(exchange(name), Exchange::durable(kind));
        }
        let work = queue(&mut topology, "work");
        let lost = queue(&mut topology, "lost");
        let log = queue(&mut topology, "log");
        bind(&mut topology, "orders", "order.*", work);
        bind(&mut topology, "unrouted", "", lost);
        let audit = Destination::Exchange(exchange("audit"));
        bind(&mut topology, "orders", "order.paid", audit);
        bind(&mut topology, "audit", "order.paid", log);
        // A loop of exchanges must not loop the simulation.
        let orders = Destination::Exchange(exchange("orders"));
        bind(&mut topology, "audit", "order.paid", orders);
        topology
    }

    #[test]
    fn follows_keys_exchanges_and_alternates() {
        let topology = sample();
        for (from, key, expected) in [
            ("orders", "order.new", vec!["work"]),
            ("orders", "order.paid", vec!["log", "work"]),
            ("orders", "invoice", vec!["lost"]),
            ("", "log", vec!["log"]),
            ("", "nobody", vec![]),
            ("missing", "x", vec![]),
        ] {
            let key = RoutingKey::new(key).expect("key");
            let reached = route(&topology, &exchange(from), &key, &FieldTable::new());
            let names: Vec<&str> = reached.iter().map(QueueName::as_str).collect();
            assert_eq!(names, expected, "{from} {key}");
        }
    }
}
