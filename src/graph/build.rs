//! From a topology to nodes and edges.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::role::{Roles, waits};
use crate::graph::{Depths, Edge, EdgeKind, Graph, Node, NodeKind, State, facts, label};
use crate::retry;
use crate::routing::Router;
use crate::topology::{
    DEFAULT_MAX_ATTEMPTS, DeadLetterKey, DeadLettering, Destination, ExchangeName, ExchangeType,
    Queue, QueueName, RetryPolicy, Strategy, Topology,
};

/// The graph of a topology, policies in force. `depths` are those of all queues
/// of the broker, if one was asked.
#[must_use]
pub fn draw(topology: &Topology, depths: Option<&Depths>) -> Graph {
    let queues: BTreeMap<QueueName, Queue> = topology
        .queues
        .keys()
        .filter_map(|name| Some((name.clone(), topology.effective_queue(name)?)))
        .collect();
    let mut drawing = Drawing {
        topology,
        router: Router::new(topology),
        depths,
        nodes: BTreeMap::new(),
        edges: BTreeMap::new(),
    };
    // The broker's own exchanges, such as amq.rabbitmq.trace, only if something
    // uses them.
    for name in topology.exchanges.keys().filter(|name| !name.is_reserved()) {
        drawing.exchange(name);
        drawing.alternate(name);
    }
    let roles = Roles::of(topology, &queues);
    for (name, queue) in &queues {
        drawing.queue(name, queue, &roles);
    }
    drawing.bindings();
    for (name, queue) in &queues {
        drawing.dead_letters(name, queue);
        if let Some(policy) = &queue.retry {
            drawing.retries(name, policy, &queues);
        }
    }
    drawing.finish()
}

type Key = (NodeKind, String);

struct Drawing<'t> {
    topology: &'t Topology,
    router: Router<'t>,
    depths: Option<&'t Depths>,
    nodes: BTreeMap<Key, Node>,
    edges: BTreeMap<(Key, Key, EdgeKind), Vec<String>>,
}

impl Drawing<'_> {
    /// The node of an exchange, drawn when it is named first.
    fn exchange(&mut self, name: &ExchangeName) -> Key {
        let found = self.topology.exchange(name);
        let declared =
            found.map(|exchange| (exchange.kind.to_string(), facts::of_exchange(&exchange)));
        self.node(NodeKind::Exchange, name.as_str(), declared)
    }

    /// The node of a queue that is named; the declared ones are there already.
    fn named_queue(&mut self, name: &str) -> Key {
        self.node(NodeKind::Queue, name, None)
    }

    fn node(&mut self, kind: NodeKind, name: &str, declared: Option<(String, Vec<String>)>) -> Key {
        let key = (kind, name.to_owned());
        if self.nodes.contains_key(&key) {
            return key;
        }
        let state = match &declared {
            Some(_) => State::Declared,
            None if self.topology.elsewhere.contains(name) => State::Elsewhere,
            None => State::Missing,
        };
        let (type_name, facts) = declared.unzip();
        let node = Node {
            kind,
            name: name.to_owned(),
            type_name,
            state,
            role: None,
            facts: facts.unwrap_or_default(),
            depth: None,
        };
        self.nodes.insert(key.clone(), node);
        key
    }

    fn queue(&mut self, name: &QueueName, queue: &Queue, roles: &Roles) {
        let node = Node {
            kind: NodeKind::Queue,
            name: name.to_string(),
            type_name: queue.kind.as_ref().map(ToString::to_string),
            state: State::Declared,
            role: roles.role(name, queue),
            facts: facts::of_queue(queue),
            depth: None,
        };
        self.nodes.insert((NodeKind::Queue, name.to_string()), node);
    }

    fn edge(&mut self, from: Key, to: Key, kind: EdgeKind, label: Option<String>) {
        self.edges
            .entry((from, to, kind))
            .or_default()
            .extend(label);
    }

    fn alternate(&mut self, name: &ExchangeName) {
        // The default exchange as an alternate leads to whatever the key names.
        if let Some(alternate) = self.topology.effective_alternate(name)
            && !alternate.is_empty()
        {
            let from = self.exchange(name);
            let to = self.exchange(&alternate);
            self.edge(from, to, EdgeKind::Alternate, Some("unrouted".to_owned()));
        }
    }

    fn bindings(&mut self) {
        for binding in &self.topology.bindings {
            let source = self.topology.exchange(&binding.source);
            let kind: Option<ExchangeType> = source.map(|exchange| exchange.kind);
            let from = self.exchange(&binding.source);
            let to = match &binding.destination {
                Destination::Queue(queue) => self.named_queue(queue.as_str()),
                Destination::Exchange(exchange) => self.exchange(exchange),
            };
            let label = label::of_binding(binding, kind.as_ref());
            self.edge(from, to, EdgeKind::Binding, label);
        }
    }

    fn dead_letters(&mut self, name: &QueueName, queue: &Queue) {
        let Some(dead_lettering) = &queue.dead_lettering else {
            return;
        };
        let (kind, after) = match queue.message_ttl {
            Some(ttl) if waits(queue) => (
                EdgeKind::Retry,
                Some(format!("after {}", facts::duration(ttl))),
            ),
            _ => (EdgeKind::DeadLetter, None),
        };
        let Some((to, key)) = self.dead_letter_target(dead_lettering) else {
            return;
        };
        let label: Vec<String> = after.into_iter().chain(key).collect();
        let from = self.named_queue(name.as_str());
        self.edge(
            from,
            to,
            kind,
            (!label.is_empty()).then(|| label.join(", ")),
        );
    }

    /// Where dead letters go and with which key. Through the default exchange
    /// they go to the queue that the key names; a key that is kept there may be any.
    fn dead_letter_target(
        &mut self,
        dead_lettering: &DeadLettering,
    ) -> Option<(Key, Option<String>)> {
        let DeadLettering { exchange, key } = dead_lettering;
        if !exchange.is_empty() {
            return Some((self.exchange(exchange), Some(label::of_dead_letters(key))));
        }
        match key {
            DeadLetterKey::Replaced(queue) => Some((self.named_queue(queue.as_str()), None)),
            DeadLetterKey::Kept => None,
        }
    }

    /// What a worker of the queue publishes itself: the copies of each step, and
    /// what is given up past a wait queue.
    fn retries(
        &mut self,
        name: &QueueName,
        policy: &RetryPolicy,
        queues: &BTreeMap<QueueName, Queue>,
    ) {
        let Ok(path) = retry::path(&self.router, name, policy) else {
            return;
        };
        let attempts = policy.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS);
        let from = self.named_queue(name.as_str());
        if let Some(park) = path.park {
            let dead_lettering = DeadLettering {
                exchange: park.exchange,
                key: DeadLetterKey::Replaced(park.key),
            };
            if let Some((to, key)) = self.dead_letter_target(&dead_lettering) {
                let plural = if attempts == 1 { "" } else { "s" };
                let after = format!("after {attempts} attempt{plural}");
                let label = key.into_iter().chain([after]).collect::<Vec<_>>().join(" ");
                self.edge(from.clone(), to, EdgeKind::DeadLetter, Some(label));
            }
        }
        if path.strategy == Strategy::Backoff {
            for wait_queue in path.wait_queues {
                let ttl = queues.get(&wait_queue).and_then(|queue| queue.message_ttl);
                let to = self.named_queue(wait_queue.as_str());
                let steps = ttl.and_then(|ttl| steps(policy, attempts, ttl));
                self.edge(from.clone(), to, EdgeKind::Worker, steps);
            }
        }
    }

    fn finish(mut self) -> Graph {
        for node in self.nodes.values_mut() {
            if node.kind == NodeKind::Queue
                && let Some(depths) = self.depths
            {
                let name = QueueName::new(node.name.clone()).ok();
                node.depth = name.and_then(|name| depths.get(&name).copied());
                match node.depth {
                    None if node.state == State::Declared => {
                        node.facts.push("not on the broker".to_owned());
                    }
                    // It is there, so somebody has declared it.
                    Some(_) if node.state == State::Missing => node.state = State::Elsewhere,
                    None | Some(_) => {}
                }
                if node.depth.is_some_and(|depth| depth.exclusive) {
                    node.facts.push("exclusive".to_owned());
                }
            }
        }
        let places: BTreeMap<&Key, usize> = self.nodes.keys().zip(0..).collect();
        let place = |key: &Key| places.get(key).copied();
        let edges = self.edges.into_iter();
        let edges = edges.filter_map(|((from, to, kind), labels)| {
            Some(Edge {
                from: place(&from)?,
                to: place(&to)?,
                kind,
                labels: each_once(labels),
            })
        });
        let edges = edges.collect();
        Graph {
            nodes: self.nodes.into_values().collect(),
            edges,
        }
    }
}

/// Which retries wait that long: the last delay repeats.
fn steps(policy: &RetryPolicy, attempts: u32, ttl: std::time::Duration) -> Option<String> {
    let delays = &policy.delays;
    let first = delays.iter().position(|delay| *delay == ttl)? + 1;
    let is_last = delays.last() == Some(&ttl);
    let last = if is_last {
        usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX)
    } else {
        delays.iter().rposition(|delay| *delay == ttl)? + 1
    };
    Some(if last > first {
        format!("retries {first} to {last}")
    } else {
        format!("retry {first}")
    })
}

fn each_once(labels: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    labels
        .into_iter()
        .filter(|label| seen.insert(label.clone()))
        .collect()
}

#[cfg(test)]
mod tests;
