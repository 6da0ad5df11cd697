use proptest::prelude::*;

use std::time::Duration;

use super::*;
use crate::broker::BrokerFacts;
use crate::diagnostic::Source;
use crate::field::FieldValue;
use crate::topology::{
    DeadLetterKey, DeadLetterStrategy, DeadLettering, DelayedRetry, DelayedRetryType,
    DeliveryLimit, ExchangeType, LeaderLocator, MaxAge, Overflow, Queue, QueueType, RoutingKey,
};
use crate::topologyfile::schema;

/// Whatever is read here, the schema takes too.
fn parsed(text: &str) -> Topology {
    assert_eq!(schema::tests::complaints(text), Vec::<String>::new());
    let source = Source {
        name: "t.yaml".to_owned(),
        text: text.to_owned(),
    };
    crate::topologyfile::parse(std::slice::from_ref(&source), &|_| None)
        .unwrap_or_else(|found| panic!("{}\n{text}", crate::diagnostic::render(&found, &[source])))
}

fn name() -> impl proptest::strategy::Strategy<Value = String> {
    "[a-zé日 :#'\"/*{}\\[\\]&!|>%@`,?-][a-z0-9é日 :#'\"/*{}$\\\\-]{0,20}"
}

fn queue() -> impl proptest::strategy::Strategy<Value = Queue> {
    let limits = (
        proptest::option::of(0_u64..5_000_000_000),
        proptest::option::of(0_u64..5_000_000_000),
        proptest::option::of(0_u64..4_000_000_000),
        proptest::option::of(0_u32..1000),
    );
    let waits = (
        proptest::option::of((1_u64..100_000, proptest::option::of(0_u64..100_000))),
        proptest::option::of(1_u64..4_000_000_000),
        proptest::option::of(1_u64..10_000_000),
        proptest::option::of(1_u32..9),
        proptest::option::of((1_u64..3_000_000_000, 16_u8..=255)),
    );
    (limits, waits, any::<bool>(), any::<bool>(), 0_u8..4).prop_map(
        |(
            (length, bytes, ttl, limit),
            (delayed, timeout, age, size, stream),
            durable,
            sac,
            kind,
        )| {
            let anything = Queue {
                max_length: length,
                max_length_bytes: bytes,
                message_ttl: ttl.map(Duration::from_millis),
                consumer_timeout: timeout.map(Duration::from_millis),
                ..Queue::default()
            };
            let overflow = sac.then_some(Overflow::RejectPublish);
            match kind {
                0 => Queue {
                    durable,
                    single_active_consumer: sac,
                    overflow,
                    ..anything
                },
                1 => Queue {
                    kind: Some(QueueType::Classic),
                    durable,
                    auto_delete: sac,
                    max_priority: size.and_then(|size| u8::try_from(size).ok()),
                    overflow: sac.then_some(Overflow::RejectPublishDlx),
                    ..anything
                },
                2 => Queue {
                    kind: Some(QueueType::Quorum),
                    delivery_limit: limit.map(|limit| match limit {
                        0..500 => DeliveryLimit::Unlimited,
                        limit => DeliveryLimit::Finite(limit),
                    }),
                    single_active_consumer: sac,
                    overflow,
                    dead_letter_strategy: sac.then_some(DeadLetterStrategy::AtLeastOnce),
                    delayed_retry: delayed.map(|(min, more)| DelayedRetry {
                        kind: DelayedRetryType::Failed,
                        min: Duration::from_millis(min),
                        max: more.map(|more| Duration::from_millis(min + more)),
                    }),
                    leader_locator: sac.then_some(LeaderLocator::Balanced),
                    initial_cluster_size: size,
                    ..anything
                },
                _ => Queue {
                    kind: Some(QueueType::Stream),
                    max_length: None,
                    message_ttl: None,
                    max_age: age.and_then(MaxAge::from_seconds),
                    max_segment_size: stream.map(|(segment, _)| segment),
                    filter_size: stream.map(|(_, filter)| filter),
                    leader_locator: sac.then_some(LeaderLocator::ClientLocal),
                    initial_cluster_size: size,
                    ..anything
                },
            }
        },
    )
}

proptest! {
    #[test]
    fn an_exported_topology_plans_empty(
        names in proptest::collection::btree_set(name(), 1..6),
        queues in proptest::collection::vec(queue(), 6),
        keys in proptest::collection::vec(name(), 6),
    ) {
        let facts = BrokerFacts::new("RabbitMQ", "4.0.5");
        let mut topology = Topology::default();
        let mut last: Option<ExchangeName> = None;
        for ((name, mut queue), key) in names.into_iter().zip(queues).zip(keys) {
            let exchange = ExchangeName::new(name.clone()).expect("exchange");
            let queue_name = QueueName::new(name).expect("queue");
            let key = RoutingKey::new(key).expect("key");
            let mut declared = Exchange::durable(ExchangeType::Topic);
            declared.alternate = last.clone();
            topology.exchanges.insert(exchange.clone(), declared);
            queue.dead_lettering = last
                .filter(|_| queue.kind != Some(QueueType::Stream))
                .map(|exchange| DeadLettering {
                    exchange,
                    key: DeadLetterKey::Replaced(key.clone()),
                });
            if queue.dead_lettering.is_none() {
                queue.dead_letter_strategy = None;
            }
            topology.queues.insert(queue_name.clone(), queue);
            topology.bindings.push(Binding {
                source: exchange.clone(),
                destination: Destination::Queue(queue_name),
                key,
                arguments: FieldTable::from([("n".to_owned(), FieldValue::I64(5))]),
            });
            last = Some(exchange);
        }
        let there = topology.as_declared(&facts);
        let exported = export(&there).expect("exported");
        prop_assert_eq!(&exported.left_out, &Vec::<String>::new());
        let read = parsed(&exported.text);
        let again = read.as_declared(&facts);
        prop_assert_eq!(&again.exchanges, &there.exchanges);
        let arguments = |topology: &Topology| -> Vec<FieldTable> {
            topology.queues.values().map(|queue| queue.arguments.clone()).collect()
        };
        prop_assert_eq!(arguments(&again), arguments(&there));
        prop_assert_eq!(read.bindings.len(), topology.bindings.len());
        for binding in &topology.bindings {
            prop_assert!(read.bindings.contains(binding), "{}", binding);
        }
    }
}

#[test]
fn what_the_format_cannot_say_is_told() {
    let mut topology = Topology::default();
    let queue = Queue {
        arguments: FieldTable::from([
            ("x-delivery-limit".to_owned(), FieldValue::text("3")),
            ("x-own".to_owned(), FieldValue::I64(1)),
        ]),
        ..Queue::default()
    };
    topology
        .queues
        .insert(QueueName::new("q").expect("name"), queue);
    let exported = export(&topology).expect("exported");
    assert_eq!(
        exported.left_out,
        ["queue 'q': x-delivery-limit is \"3\", which the file format cannot say"]
    );
    assert!(exported.text.contains("x-own: 1"), "{}", exported.text);
}

#[test]
fn at_least_once_is_written_where_it_is_in_force() {
    let arguments = [
        ("x-queue-type", "quorum"),
        ("x-dead-letter-exchange", ""),
        ("x-dead-letter-strategy", "at-least-once"),
        ("x-overflow", "reject-publish"),
    ];
    let mut topology = Topology::default();
    let queue = Queue {
        arguments: arguments
            .map(|(name, value)| (name.to_owned(), FieldValue::text(value)))
            .into(),
        ..Queue::default()
    };
    topology
        .queues
        .insert(QueueName::new("q").expect("name"), queue);
    let exported = export(&topology).expect("exported");
    assert_eq!(exported.left_out, Vec::<String>::new());
    let read = parsed(&exported.text);
    let queue = read.queues.values().next().expect("queue");
    assert_eq!(
        queue.dead_letter_strategy,
        Some(DeadLetterStrategy::AtLeastOnce)
    );
}

#[test]
fn what_a_broker_took_and_ignores_is_told_and_not_written() {
    let text = FieldValue::text;
    let table = |pairs: &[(&str, FieldValue)]| -> FieldTable {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect()
    };
    let quorum = ("x-queue-type", text("quorum"));
    for (arguments, ignored) in [
        (
            table(&[quorum.clone(), ("x-overflow", text("reject-publish-dlx"))]),
            "x-overflow",
        ),
        (
            table(&[
                quorum.clone(),
                ("x-dead-letter-exchange", text("")),
                ("x-dead-letter-strategy", text("at-least-once")),
            ]),
            "x-dead-letter-strategy",
        ),
        (
            table(&[quorum, ("x-stream-filter-size-bytes", FieldValue::I64(16))]),
            "x-stream-filter-size-bytes",
        ),
        (
            table(&[
                ("x-delayed-retry-type", text("all")),
                ("x-queue-type", text("classic")),
            ]),
            "x-delayed-retry-type",
        ),
    ] {
        let mut topology = Topology::default();
        let queue = Queue {
            arguments,
            ..Queue::default()
        };
        topology
            .queues
            .insert(QueueName::new("q").expect("name"), queue);
        let exported = export(&topology).expect("exported");
        let told: Vec<bool> = exported
            .left_out
            .iter()
            .map(|told| told.contains(ignored))
            .collect();
        assert_eq!(told, [true], "{ignored}");
        parsed(&exported.text);
    }
}
