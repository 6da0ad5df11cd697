//! Routing many messages without a broker: `cargo bench --bench routing`.
#![expect(clippy::unwrap_used, reason = "a benchmark")]

use divan::Bencher;
use mq::field::{FieldTable, FieldValue};
use mq::routing::{Death, Message, Router};
use mq::topology::{
    Binding, DeadLetterKey, DeadLettering, Destination, Exchange, ExchangeName, ExchangeType,
    Queue, QueueName, RoutingKey, Topology,
};

const BINDINGS: usize = 1_000;
const MESSAGES: usize = 10_000;

fn main() {
    divan::main();
}

/// One exchange with a queue behind each of its bindings.
fn topology(kind: ExchangeType) -> Topology {
    let mut topology = Topology::default();
    let source = ExchangeName::new("events").unwrap();
    topology
        .exchanges
        .insert(source.clone(), Exchange::durable(kind));
    for n in 0..BINDINGS {
        let queue = QueueName::new(format!("q.{n}")).unwrap();
        topology.queues.insert(queue.clone(), Queue::default());
        // Each key is taken by a word, by a star and by a hash.
        let key = match n % 3 {
            0 => format!("order.{}.created", n / 3),
            1 => format!("order.*.s{n}"),
            _ => format!("#.{}.#", n / 3),
        };
        topology.bindings.push(Binding {
            source: source.clone(),
            destination: Destination::Queue(queue),
            key: RoutingKey::new(key).unwrap(),
            arguments: FieldTable::from([(
                "n".to_owned(),
                FieldValue::I64(i64::try_from(n).unwrap()),
            )]),
        });
    }
    topology
}

fn messages() -> Vec<Message> {
    (0..MESSAGES)
        .map(|n| {
            let key = match n % 2 {
                0 => format!("order.{}.created", n % BINDINGS),
                _ => format!("order.x.s{}", n % BINDINGS),
            };
            let headers = FieldTable::from([(
                "n".to_owned(),
                FieldValue::I32(i32::try_from(n % BINDINGS).unwrap()),
            )]);
            Message::new(
                ExchangeName::new("events").unwrap(),
                RoutingKey::new(key).unwrap(),
                headers,
            )
        })
        .collect()
}

fn route_all(bencher: Bencher<'_, '_>, kind: ExchangeType) {
    let topology = topology(kind);
    let messages = messages();
    bencher.bench(|| {
        let router = Router::new(&topology);
        messages
            .iter()
            .map(|message| router.route(message).queues().count())
            .sum::<usize>()
    });
}

#[divan::bench]
fn topic_10_000_messages_through_1_000_bindings(bencher: Bencher<'_, '_>) {
    route_all(bencher, ExchangeType::Topic);
}

#[divan::bench]
fn direct_10_000_messages_through_1_000_bindings(bencher: Bencher<'_, '_>) {
    route_all(bencher, ExchangeType::Direct);
}

#[divan::bench(sample_count = 10)]
fn headers_10_000_messages_through_1_000_bindings(bencher: Bencher<'_, '_>) {
    route_all(bencher, ExchangeType::Headers);
}

/// A dead letter through a chain of 1,000 wait queues.
#[divan::bench]
fn journey_through_1_000_wait_queues(bencher: Bencher<'_, '_>) {
    let mut topology = Topology::default();
    let name = |n: usize| QueueName::new(format!("wait.{n}")).unwrap();
    for n in 0..=1_000 {
        let queue = Queue {
            message_ttl: Some(std::time::Duration::from_secs(1)),
            dead_lettering: (n < 1_000).then(|| DeadLettering {
                exchange: ExchangeName::default_exchange(),
                key: DeadLetterKey::Replaced(RoutingKey::of_queue(&name(n + 1))),
            }),
            ..Queue::default()
        };
        topology.queues.insert(name(n), queue);
    }
    let router = Router::new(&topology);
    let to = ExchangeName::default_exchange();
    let message = Message::new(to, RoutingKey::of_queue(&name(0)), FieldTable::new());
    let held = router.publish(&message).pop().unwrap();
    bencher.bench(|| router.journey(held.clone(), Death::Rejected).steps.len());
}
