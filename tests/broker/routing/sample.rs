//! One random topology with all that routing knows, and messages for it.
#![expect(
    clippy::expect_used,
    reason = "test support: helpers are outside #[test] functions"
)]

use std::fmt;

use fastrand::Rng;
use mq::field::{FieldTable, FieldValue};
use mq::topology::{
    ApplyTo, Binding, Destination, Exchange, ExchangeName, ExchangeType, Pattern, Policy,
    PolicyKind, PolicyName, Queue, QueueName, QueueType, RoutingKey, Topology,
};

use crate::random::{dice, one_of, percent};

const EXCHANGES: usize = 6;
const QUEUES: usize = 6;

/// One message to publish.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) exchange: String,
    pub(crate) key: String,
    pub(crate) headers: FieldTable,
}

/// A random topology and messages for it.
pub(crate) struct Sample {
    pub(crate) number: usize,
    pub(crate) topology: Topology,
    pub(crate) messages: Vec<Sent>,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "topology {}", self.number)?;
        for (name, exchange) in &self.topology.exchanges {
            writeln!(f, "  {name}: {} {:?}", exchange.kind, exchange.alternate)?;
        }
        for policy in self.topology.policies.values() {
            writeln!(f, "  {} {:?}", policy.pattern, policy.definition)?;
        }
        for binding in &self.topology.bindings {
            writeln!(f, "  {binding} {:?}", binding.arguments)?;
        }
        Ok(())
    }
}

pub(crate) fn sample(number: usize, messages: usize) -> Sample {
    let mut rng = dice(number);
    let topology = topology(&mut rng, number);
    let messages = (0..messages)
        .map(|_| message(&mut rng, number, &topology))
        .collect();
    Sample {
        number,
        topology,
        messages,
    }
}

fn exchange(number: usize, at: usize) -> ExchangeName {
    ExchangeName::new(format!("t{number}.x{at}")).expect("name")
}

fn queue(number: usize, at: usize) -> QueueName {
    QueueName::new(format!("t{number}.q{at}")).expect("name")
}

/// Six exchanges and six queues, bound and given alternates at random: to
/// themselves and in rings too.
fn topology(rng: &mut Rng, number: usize) -> Topology {
    let mut topology = Topology::default();
    for at in 0..EXCHANGES {
        let mut declared = Exchange::durable(one_of(
            rng,
            &[
                ExchangeType::Direct,
                ExchangeType::Topic,
                ExchangeType::Topic,
                ExchangeType::Fanout,
                ExchangeType::Headers,
                ExchangeType::Headers,
            ],
        ));
        declared.internal = at > 0 && percent(rng, 15);
        declared.alternate = match rng.u32(0..20) {
            0..8 => Some(exchange(number, rng.usize(0..EXCHANGES))),
            8 => Some(ExchangeName::default_exchange()),
            9 => Some(exchange(number, 99)),
            _ => None,
        };
        topology.exchanges.insert(exchange(number, at), declared);
    }
    if percent(rng, 40) {
        let to = exchange(number, rng.usize(0..EXCHANGES));
        let definition = FieldTable::from([(
            "alternate-exchange".to_owned(),
            FieldValue::text(to.as_str()),
        )]);
        let from = rng.usize(0..EXCHANGES);
        let pattern = format!("^t{number}\\.x[{from}-{}]$", EXCHANGES - 1);
        let policy = Policy {
            pattern: Pattern::new(pattern).expect("pattern"),
            apply_to: one_of(rng, &[ApplyTo::All, ApplyTo::Exchanges, ApplyTo::Queues]),
            priority: 0,
            definition,
            description: None,
        };
        // A policy for queues cannot have it.
        if policy.apply_to != ApplyTo::Queues {
            let name = PolicyName::new(format!("t{number}")).expect("name");
            topology.policies.insert((PolicyKind::User, name), policy);
        }
    }
    for at in 0..QUEUES {
        let declared = Queue {
            kind: Some(QueueType::Classic),
            ..Queue::default()
        };
        topology.queues.insert(queue(number, at), declared);
    }
    for _ in 0..rng.usize(0..28) {
        let from = rng.usize(0..EXCHANGES);
        let source = exchange(number, from);
        let by_headers = topology
            .exchanges
            .get(&source)
            .is_some_and(|exchange| exchange.kind == ExchangeType::Headers);
        let binding = Binding {
            destination: if percent(rng, 60) {
                Destination::Queue(queue(number, rng.usize(0..QUEUES)))
            } else {
                Destination::Exchange(exchange(number, rng.usize(0..EXCHANGES)))
            },
            source,
            key: pattern(rng),
            arguments: if by_headers || percent(rng, 10) {
                arguments(rng)
            } else {
                FieldTable::new()
            },
        };
        if !topology.bindings.contains(&binding) {
            topology.bindings.push(binding);
        }
    }
    topology
}

/// The key of a binding. 4.3.6 refuses more than two `#` (measured).
fn pattern(rng: &mut Rng) -> RoutingKey {
    loop {
        let words = ["a", "b", "*", "#", "", "é", "#a", "**"];
        let text = key_of(rng, &words);
        if text.split('.').filter(|word| *word == "#").count() <= 2 {
            return RoutingKey::new(text).expect("key");
        }
    }
}

fn key_of(rng: &mut Rng, words: &[&str]) -> String {
    match rng.u32(0..40) {
        0 => String::new(),
        // As long as a key can be.
        1 => "a".repeat(255),
        2 => format!("{}a", "a.".repeat(127)),
        3 => format!("{}b", "日.é.".repeat(36)),
        _ => {
            let count = rng.usize(1..5);
            let picked: Vec<&str> = (0..count).map(|_| one_of(rng, words)).collect();
            picked.join(".")
        }
    }
}

fn arguments(rng: &mut Rng) -> FieldTable {
    let mut arguments = FieldTable::new();
    for _ in 0..rng.usize(0..4) {
        let name = one_of(rng, &["a", "b", "c", "x-c", "x-d", "CC", "BCC", "é"]);
        let value = if percent(rng, 15) || name.ends_with("CC") {
            FieldValue::Void
        } else {
            header(rng)
        };
        arguments.insert(name.to_owned(), value);
    }
    let modes = ["all", "any", "all-with-x", "any-with-x"];
    if percent(rng, 80) {
        let mode = one_of(rng, &modes);
        arguments.insert("x-match".to_owned(), FieldValue::text(mode));
    }
    arguments
}

/// A value that often equals another, perhaps but for its type.
fn header(rng: &mut Rng) -> FieldValue {
    if percent(rng, 60) {
        one_of(rng, &[FieldValue::I64(1), FieldValue::text("a")])
    } else {
        one_of(rng, &super::values())
    }
}

fn message(rng: &mut Rng, number: usize, topology: &Topology) -> Sent {
    let words = ["a", "b", "", "é", "*", "#"];
    let mut headers = FieldTable::new();
    for _ in 0..rng.usize(0..5) {
        let name = one_of(rng, &["a", "b", "c", "x-c", "x-d", "é", "x-match"]);
        headers.insert(name.to_owned(), header(rng));
    }
    let to_default = percent(rng, 12);
    let key = |rng: &mut Rng| {
        if to_default || percent(rng, 5) {
            // Some of them are nobody's.
            format!("t{number}.q{}", rng.usize(0..QUEUES + 2))
        } else {
            key_of(rng, &words)
        }
    };
    for (name, chance) in [("CC", 20), ("BCC", 15)] {
        if percent(rng, chance) {
            let keys = (0..rng.usize(0..3)).map(|_| FieldValue::text(key(rng)));
            headers.insert(name.to_owned(), FieldValue::Array(keys.collect()));
        }
    }
    let key = key(rng);
    // A client cannot publish to an internal one.
    let open: Vec<&ExchangeName> = topology
        .exchanges
        .iter()
        .filter(|(_, exchange)| !exchange.internal)
        .map(|(name, _)| name)
        .collect();
    Sent {
        exchange: if to_default {
            String::new()
        } else {
            one_of(rng, &open).to_string()
        },
        key,
        headers,
    }
}
