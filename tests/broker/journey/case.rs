//! One random topology of dead-letter paths, a message, and how it dies there.
#![expect(
    clippy::expect_used,
    reason = "test support: helpers are outside #[test] functions"
)]

use std::fmt;
use std::time::Duration;

use fastrand::Rng;
use mq::field::{FieldTable, FieldValue};
use mq::routing::{Death, Message};
use mq::topology::{
    Binding, DeadLetterKey, DeadLetterStrategy, DeadLettering, DeliveryLimit, Destination,
    Exchange, ExchangeName, ExchangeType, Overflow, Queue, QueueName, QueueType, RoutingKey,
    Topology,
};

use crate::random::{dice, one_of, percent};

const QUEUES: usize = 5;
const EXCHANGES: usize = 3;

/// A topology, a message that begins in its queue 0, and its deaths there: each
/// time it has come back, the next one.
pub(crate) struct Case {
    pub(crate) number: usize,
    pub(crate) topology: Topology,
    pub(crate) message: Message,
    /// As a client sends them: with `BCC`.
    pub(crate) headers: FieldTable,
    pub(crate) deaths: Vec<Death>,
    /// Expires by its own time to live, not by the queue's.
    pub(crate) expiration: Option<Duration>,
}

fn queue(number: usize, at: usize) -> QueueName {
    QueueName::new(format!("j{number}.q{at}")).expect("name")
}

fn exchange(number: usize, at: &str) -> ExchangeName {
    ExchangeName::new(format!("j{number}.{at}")).expect("name")
}

impl Case {
    pub(crate) fn origin(&self) -> QueueName {
        queue(self.number, 0)
    }

    pub(crate) fn settings(&self) -> &Queue {
        self.topology.queues.get(&self.origin()).expect("origin")
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "case {} dies {:?} (expiration {:?}), published to '{}' with {:?} {:?}",
            self.number,
            self.deaths,
            self.expiration,
            self.message.exchange,
            self.message.keys,
            self.headers
        )?;
        for (name, exchange) in &self.topology.exchanges {
            writeln!(f, "  {name}: {} {:?}", exchange.kind, exchange.alternate)?;
        }
        for (name, queue) in &self.topology.queues {
            writeln!(
                f,
                "  {name}: {:?} ttl {:?} max {:?} {:?} {:?} {:?}",
                queue.kind,
                queue.message_ttl,
                queue.max_length,
                queue.overflow,
                queue.dead_letter_strategy,
                queue.dead_lettering
            )?;
        }
        for binding in &self.topology.bindings {
            writeln!(f, "  {binding} {:?}", binding.arguments)?;
        }
        Ok(())
    }
}

pub(crate) fn case(number: usize) -> Case {
    let rng = &mut dice(number);
    let deaths = deaths(rng);
    let mut topology = Topology::default();
    let entry = exchange(number, "e");
    let direct = Exchange::durable(ExchangeType::Direct);
    topology.exchanges.insert(entry.clone(), direct);
    topology.bindings.push(Binding {
        source: entry.clone(),
        destination: Destination::Queue(queue(number, 0)),
        key: RoutingKey::new("in").expect("key"),
        arguments: FieldTable::new(),
    });
    for at in 0..EXCHANGES {
        let mut declared = Exchange::durable(one_of(
            rng,
            &[
                ExchangeType::Direct,
                ExchangeType::Topic,
                ExchangeType::Fanout,
                ExchangeType::Headers,
            ],
        ));
        if percent(rng, 20) {
            declared.alternate = Some(random_exchange(rng, number));
        }
        let name = exchange(number, &format!("x{at}"));
        topology.exchanges.insert(name, declared);
    }
    let (origin, expiration) = origin(rng, number, &deaths);
    topology.queues.insert(queue(number, 0), origin);
    for at in 1..QUEUES {
        let declared = other(rng, number);
        topology.queues.insert(queue(number, at), declared);
    }
    for _ in 0..rng.usize(6..18) {
        let binding = binding(rng, number);
        if !topology.bindings.contains(&binding) {
            topology.bindings.push(binding);
        }
    }
    let mut headers = FieldTable::new();
    if percent(rng, 30) {
        headers.insert("h".to_owned(), FieldValue::I32(1));
    }
    let through_default = percent(rng, 40);
    if !through_default {
        for (name, chance) in [("CC", 30), ("BCC", 15)] {
            if percent(rng, chance) {
                let keys = (0..rng.usize(1..3)).map(|_| FieldValue::text(word(rng, number)));
                headers.insert(name.to_owned(), FieldValue::Array(keys.collect()));
            }
        }
    }
    let (to, key) = if through_default {
        (
            ExchangeName::default_exchange(),
            RoutingKey::of_queue(&queue(number, 0)),
        )
    } else {
        (entry, RoutingKey::new("in").expect("key"))
    };
    Case {
        number,
        topology,
        message: Message::new(to, key, headers.clone()),
        headers,
        deaths,
        expiration,
    }
}

/// Only a rejected message can come back, so every death but the last is one.
fn deaths(rng: &mut Rng) -> Vec<Death> {
    let mut deaths = vec![Death::Rejected; rng.usize(0..4)];
    deaths.push(one_of(
        rng,
        &[
            Death::Rejected,
            Death::Expired,
            Death::MaxLength,
            Death::DeliveryLimit,
        ],
    ));
    deaths
}

/// The queue it begins in, made so that it can die as it must.
fn origin(rng: &mut Rng, number: usize, deaths: &[Death]) -> (Queue, Option<Duration>) {
    let mut origin = dead_lettering(rng, number, 5);
    let mut expiration = None;
    match deaths.last() {
        Some(Death::Expired) if deaths.len() == 1 && percent(rng, 50) => {
            expiration = Some(ttl(rng));
        }
        Some(Death::Expired) => origin.message_ttl = Some(ttl(rng)),
        Some(Death::MaxLength) => {
            origin.max_length = Some(1);
            let all = [
                None,
                Some(Overflow::DropHead),
                Some(Overflow::RejectPublish),
                Some(Overflow::RejectPublishDlx),
            ];
            // Behind rejections the last one would take what comes back.
            let known = if deaths.len() == 1 && origin.kind == Some(QueueType::Classic) {
                4
            } else {
                2
            };
            origin.overflow = all.get(rng.usize(0..known)).copied().flatten();
            origin.dead_letter_strategy = None;
        }
        Some(Death::DeliveryLimit) => {
            origin.kind = Some(QueueType::Quorum);
            origin.delivery_limit = Some(DeliveryLimit::Finite(1));
        }
        // A consumer holds it, so it is not the TTL that ends it.
        _ if percent(rng, 40) => origin.message_ttl = Some(ttl(rng)),
        _ => {}
    }
    (origin, expiration)
}

/// Long enough that a consumer has it first, short enough for many rounds.
fn ttl(rng: &mut Rng) -> Duration {
    Duration::from_millis(rng.u64(30..80))
}

/// A wait queue, mostly, or one to rest in.
fn other(rng: &mut Rng, number: usize) -> Queue {
    let mut queue = dead_lettering(rng, number, 10);
    if queue.dead_lettering.is_some() && percent(rng, 55) {
        queue.message_ttl = Some(Duration::from_millis(rng.u64(15..60)));
    } else if queue.dead_lettering.is_none() && percent(rng, 20) {
        queue.message_ttl = Some(Duration::from_mins(5));
    }
    queue
}

fn dead_lettering(rng: &mut Rng, number: usize, none: u32) -> Queue {
    let mut declared = Queue::default();
    let is_quorum = percent(rng, 20);
    declared.kind = Some(if is_quorum {
        QueueType::Quorum
    } else {
        QueueType::Classic
    });
    if percent(rng, none) {
        return declared;
    }
    let back = RoutingKey::of_queue(&queue(number, 0));
    declared.dead_lettering = Some(match rng.u32(0..100) {
        0..35 => DeadLettering {
            exchange: ExchangeName::default_exchange(),
            key: match rng.u32(0..4) {
                0 => DeadLetterKey::Kept,
                1 => DeadLetterKey::Replaced(random_key(rng, number)),
                _ => DeadLetterKey::Replaced(back),
            },
        },
        35..40 => DeadLettering {
            exchange: exchange(number, "missing"),
            key: DeadLetterKey::Kept,
        },
        _ => DeadLettering {
            exchange: random_exchange(rng, number),
            key: if percent(rng, 50) {
                DeadLetterKey::Kept
            } else {
                DeadLetterKey::Replaced(random_key(rng, number))
            },
        },
    });
    if is_quorum && percent(rng, 40) {
        declared.overflow = Some(Overflow::RejectPublish);
        declared.dead_letter_strategy = Some(DeadLetterStrategy::AtLeastOnce);
    }
    declared
}

fn random_exchange(rng: &mut Rng, number: usize) -> ExchangeName {
    exchange(number, &format!("x{}", rng.usize(0..EXCHANGES)))
}

fn word(rng: &mut Rng, number: usize) -> String {
    match rng.u32(0..10) {
        0 | 1 => queue(number, rng.usize(0..=QUEUES)).to_string(),
        2 => "in".to_owned(),
        at => format!("k{}", at % 2),
    }
}

fn random_key(rng: &mut Rng, number: usize) -> RoutingKey {
    RoutingKey::new(word(rng, number)).expect("key")
}

fn binding(rng: &mut Rng, number: usize) -> Binding {
    let key = match rng.u32(0..8) {
        0 => "#".to_owned(),
        1 => "*".to_owned(),
        2 => format!("j{number}.*"),
        _ => word(rng, number),
    };
    Binding {
        source: random_exchange(rng, number),
        destination: if percent(rng, 85) {
            Destination::Queue(queue(number, rng.usize(0..QUEUES)))
        } else {
            Destination::Exchange(random_exchange(rng, number))
        },
        key: RoutingKey::new(key).expect("key"),
        arguments: arguments(rng, number),
    }
}

/// What a headers exchange can know of a dead letter.
fn arguments(rng: &mut Rng, number: usize) -> FieldTable {
    let mut arguments = FieldTable::new();
    for _ in 0..rng.usize(0..3) {
        let which = one_of(rng, &["first", "last"]);
        let (name, value) = match rng.u32(0..7) {
            0 | 1 => (
                format!("x-{which}-death-queue"),
                queue(number, rng.usize(0..QUEUES)).to_string(),
            ),
            2 | 3 => {
                let (reason, _) = one_of(rng, &Death::ALL);
                (format!("x-{which}-death-reason"), reason.to_owned())
            }
            4 => {
                let from = [exchange(number, "e"), ExchangeName::default_exchange()];
                let name = format!("x-{which}-death-exchange");
                (name, one_of(rng, &from).to_string())
            }
            5 => {
                arguments.insert("h".to_owned(), FieldValue::I64(1));
                continue;
            }
            _ => {
                let name = one_of(
                    rng,
                    &["x-death", "x-death", "CC", "BCC", "x-last-death-queue"],
                );
                arguments.insert(name.to_owned(), FieldValue::Void);
                continue;
            }
        };
        arguments.insert(name, FieldValue::text(value));
    }
    let mode = one_of(
        rng,
        &["all-with-x", "any-with-x", "all-with-x", "all", "any"],
    );
    arguments.insert("x-match".to_owned(), FieldValue::text(mode));
    arguments
}
