//! A topology made ready to route many messages.
//!
//! Follows RabbitMQ's own walk: breadth first over exchange-to-exchange
//! bindings, each exchange once, and the alternate exchange of one whose
//! bindings took the message nowhere (exchanges.md, ae.md, e2e.md). The default
//! exchange leads to queues only when a message is published to it: as an
//! alternate exchange it takes nothing (measured on 3.10.8, 4.0.5 and 4.3.6).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use crate::broker::BrokerFacts;
use crate::field::FieldTable;
use crate::routing::headers::Equality;
use crate::routing::topic_trie::TopicTrie;
use crate::routing::{Message, headers};
use crate::topology::{
    Binding, Destination, ExchangeName, ExchangeType, QueueName, RoutingKey, Topology,
};

/// A topology made ready to route many messages.
#[derive(Debug)]
pub struct Router<'t> {
    topology: &'t Topology,
    has_message_containers: bool,
    exchanges: HashMap<&'t ExchangeName, Compiled<'t>>,
    into: HashMap<&'t Destination, Vec<&'t Binding>>,
}

/// One exchange and its bindings, by how they are asked.
#[derive(Debug, Default)]
struct Compiled<'t> {
    bindings: Vec<&'t Binding>,
    by: By<'t>,
    alternate: Option<ExchangeName>,
}

#[derive(Debug, Default)]
enum By<'t> {
    /// Its type is not known here.
    #[default]
    Unknown,
    Key(HashMap<&'t str, Vec<usize>>),
    Pattern(TopicTrie<'t>),
    Headers,
    Nothing,
}

/// How a message came from one exchange to the next place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hop<'t> {
    /// The default exchange: the key is the queue's name.
    Default,
    /// A binding took it.
    Binding(&'t Binding),
    /// No binding took it, so the alternate exchange did.
    Alternate,
}

/// Where a message went.
#[derive(Debug, Default, PartialEq)]
pub struct Routed<'t> {
    /// Exchanges in the order they were reached, each with the one before.
    exchanges: Vec<(ExchangeName, Option<(usize, Hop<'t>)>)>,
    queues: BTreeMap<QueueName, (usize, Hop<'t>)>,
    /// Exchanges that were reached and whose routing is not known: of a
    /// plugin's type, or declared elsewhere. The answer may lack what they do.
    pub unknown: BTreeSet<ExchangeName>,
}

impl<'t> Routed<'t> {
    /// The queues it reached.
    pub fn queues(&self) -> impl Iterator<Item = &QueueName> {
        self.queues.keys()
    }

    /// Whether it reached no queue.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// How it came to the queue: each exchange on the way with the hop that
    /// leads out of it. Empty for a queue that was not reached.
    #[must_use]
    pub fn path(&self, queue: &QueueName) -> Vec<(&ExchangeName, Hop<'t>)> {
        let mut path = Vec::new();
        let mut next = self.queues.get(queue).copied();
        while let Some((at, hop)) = next {
            let Some((exchange, before)) = self.exchanges.get(at) else {
                break;
            };
            path.push((exchange, hop));
            next = *before;
        }
        path.reverse();
        path
    }
}

impl<'t> Router<'t> {
    /// Prepares the topology as it is on a broker since 3.13.
    #[must_use]
    pub fn new(topology: &'t Topology) -> Self {
        Self::prepared(topology, true)
    }

    /// The same as it is on a broker like `facts`, where one is known.
    #[must_use]
    pub fn on<'f>(topology: &'t Topology, facts: impl Into<Option<&'f BrokerFacts>>) -> Self {
        let facts = facts.into();
        Self::prepared(
            topology,
            facts.is_none_or(BrokerFacts::has_message_containers),
        )
    }

    /// Takes time in the order of the topology's size.
    fn prepared(topology: &'t Topology, has_message_containers: bool) -> Self {
        let mut exchanges: HashMap<&ExchangeName, Compiled<'_>> = HashMap::new();
        for (name, exchange) in &topology.exchanges {
            let compiled = exchanges.entry(name).or_default();
            compiled.by = By::of(&exchange.kind);
            compiled.alternate = topology.effective_alternate(name);
        }
        let mut into: HashMap<&Destination, Vec<&Binding>> = HashMap::new();
        for binding in &topology.bindings {
            into.entry(&binding.destination).or_default().push(binding);
            let compiled = exchanges
                .entry(&binding.source)
                .or_insert_with(|| Compiled {
                    by: topology
                        .exchange(&binding.source)
                        .map(|exchange| By::of(&exchange.kind))
                        .unwrap_or_default(),
                    ..Compiled::default()
                });
            let number = compiled.bindings.len();
            compiled.bindings.push(binding);
            match &mut compiled.by {
                By::Key(by_key) => by_key.entry(binding.key.as_str()).or_default().push(number),
                By::Pattern(trie) => trie.insert(binding.key.as_str(), number),
                By::Unknown | By::Headers | By::Nothing => {}
            }
        }
        Self {
            topology,
            has_message_containers,
            exchanges,
            into,
        }
    }

    /// The bindings that lead out of an exchange.
    #[must_use]
    pub fn bindings_from(&self, exchange: &ExchangeName) -> &[&'t Binding] {
        self.exchanges
            .get(exchange)
            .map_or(&[], |compiled| &compiled.bindings)
    }

    /// The bindings of an exchange that take a message with this key and
    /// without headers.
    #[must_use]
    pub fn taking(&self, exchange: &ExchangeName, key: &RoutingKey) -> Vec<&'t Binding> {
        let message = Message::new(exchange.clone(), key.clone(), FieldTable::new());
        self.exchanges
            .get(exchange)
            .map_or_else(Vec::new, |here| here.take(&message, self.equality()))
    }

    /// The bindings that lead into a queue or an exchange.
    #[must_use]
    pub fn bindings_to(&self, destination: &Destination) -> &[&'t Binding] {
        self.into.get(destination).map_or(&[], Vec::as_slice)
    }

    /// Where the exchange sends what its bindings take nowhere.
    #[must_use]
    pub fn alternate(&self, exchange: &ExchangeName) -> Option<&ExchangeName> {
        self.exchanges.get(exchange)?.alternate.as_ref()
    }

    /// The queues that a message with this key and without headers reaches.
    #[must_use]
    pub fn queues(&self, exchange: &ExchangeName, key: &RoutingKey) -> BTreeSet<QueueName> {
        let message = Message::new(exchange.clone(), key.clone(), FieldTable::new());
        self.route(&message).queues().cloned().collect()
    }

    /// The topology it routes in.
    #[must_use]
    pub fn topology(&self) -> &'t Topology {
        self.topology
    }

    /// Where the message goes.
    #[must_use]
    pub fn route(&self, message: &Message) -> Routed<'t> {
        let mut routed = Routed::default();
        routed.exchanges.push((message.exchange.clone(), None));
        if message.exchange.is_empty() {
            for key in &message.keys {
                if let Some(queue) = self.queue_named(key) {
                    routed.queues.insert(queue, (0, Hop::Default));
                }
            }
            return routed;
        }
        let mut seen = HashSet::from([message.exchange.clone()]);
        let mut waiting = VecDeque::from([0]);
        while let Some(at) = waiting.pop_front() {
            let Some((name, _)) = routed.exchanges.get(at) else {
                continue;
            };
            let name = name.clone();
            let mut go = |exchange: &ExchangeName, hop, exchanges: &mut Vec<_>| {
                if seen.insert(exchange.clone()) {
                    waiting.push_back(exchanges.len());
                    exchanges.push((exchange.clone(), Some((at, hop))));
                }
            };
            let Some(here) = self.exchanges.get(&name) else {
                if self.topology.exchange(&name).is_none() {
                    routed.unknown.insert(name);
                }
                continue;
            };
            if matches!(here.by, By::Unknown) {
                routed.unknown.insert(name);
                continue;
            }
            let taken = here.take(message, self.equality());
            if let (true, Some(alternate)) = (taken.is_empty(), &here.alternate) {
                go(alternate, Hop::Alternate, &mut routed.exchanges);
            }
            for binding in taken {
                let hop = Hop::Binding(binding);
                match &binding.destination {
                    Destination::Queue(queue) => {
                        routed.queues.entry(queue.clone()).or_insert((at, hop));
                    }
                    Destination::Exchange(exchange) => go(exchange, hop, &mut routed.exchanges),
                }
            }
        }
        routed
    }

    /// Whether the broker keeps messages as message containers.
    pub(super) fn has_message_containers(&self) -> bool {
        self.has_message_containers
    }

    fn equality(&self) -> Equality {
        if self.has_message_containers {
            Equality::Exact
        } else {
            Equality::Numeric
        }
    }

    /// The queue that the default exchange leads this key to.
    fn queue_named(&self, key: &RoutingKey) -> Option<QueueName> {
        let name = QueueName::of_existing(key.as_str()).ok()?;
        let is_there = self.topology.queues.contains_key(&name)
            || self.topology.elsewhere.contains(name.as_str());
        is_there.then_some(name)
    }
}

impl By<'_> {
    fn of(kind: &ExchangeType) -> Self {
        match kind {
            ExchangeType::Direct => Self::Key(HashMap::new()),
            ExchangeType::Topic => Self::Pattern(TopicTrie::default()),
            ExchangeType::Fanout => Self::Nothing,
            ExchangeType::Headers => Self::Headers,
            ExchangeType::Plugin(_) => Self::Unknown,
        }
    }
}

impl<'t> Compiled<'t> {
    /// The bindings that take the message; one may stand twice when two keys
    /// match it.
    fn take(&self, message: &Message, equality: Equality) -> Vec<&'t Binding> {
        let keys = &message.keys;
        let binding = |number: &usize| self.bindings.get(*number).copied();
        match &self.by {
            By::Unknown => Vec::new(),
            By::Nothing => self.bindings.clone(),
            By::Headers => self
                .bindings
                .iter()
                .filter(|binding| headers::matches(&binding.arguments, &message.headers, equality))
                .copied()
                .collect(),
            By::Key(by_key) => keys
                .iter()
                .filter_map(|key| by_key.get(key.as_str()))
                .flatten()
                .filter_map(binding)
                .collect(),
            By::Pattern(trie) => keys
                .iter()
                .flat_map(|key| trie.matches(key.as_str()))
                .filter_map(|number| binding(&number))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests;
