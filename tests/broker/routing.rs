//! The routing of mq's own simulation equals the broker's, on random topologies.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test, outside #[test] functions"
)]

mod sample;

use std::collections::{BTreeMap, BTreeSet};

use lapin::options::{BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, ConnectionProperties};
use mq::field::{FieldTable, FieldValue};
use mq::routing::{Message, Router};
use mq::topology::{
    Binding, Destination, Exchange, ExchangeName, ExchangeType, Queue, QueueName, QueueType,
    RoutingKey, Topology,
};

use crate::random::{batches, declare, lapin_table};
use crate::vhost::{Vhost, block_on};
use sample::{Sample, Sent, sample};

const TOPOLOGIES: usize = 40;
const MESSAGES: usize = 60;

/// Values of every type, many of them equal but for it.
fn values() -> Vec<FieldValue> {
    let array = |value| FieldValue::Array(vec![value]);
    let table = |value| FieldValue::Table(FieldTable::from([("k".to_owned(), value)]));
    vec![
        FieldValue::Void,
        FieldValue::Bool(true),
        FieldValue::Bool(false),
        FieldValue::I8(1),
        FieldValue::U8(1),
        FieldValue::I16(1),
        FieldValue::U16(1),
        FieldValue::I32(1),
        FieldValue::U32(1),
        FieldValue::I64(1),
        FieldValue::I8(-1),
        FieldValue::I64(-1),
        FieldValue::I64(0),
        FieldValue::I64(1_000),
        FieldValue::I64(i64::MAX),
        FieldValue::F32(1.0),
        FieldValue::F64(1.0),
        FieldValue::F32(0.1),
        FieldValue::F64(0.1),
        FieldValue::F64(0.0),
        FieldValue::F64(-0.0),
        FieldValue::Decimal { scale: 0, value: 1 },
        FieldValue::Decimal {
            scale: 1,
            value: 10,
        },
        FieldValue::text("1"),
        FieldValue::text("true"),
        FieldValue::text("undefined"),
        FieldValue::text("a"),
        FieldValue::text(""),
        FieldValue::LongStr(vec![0xff]),
        FieldValue::Bytes(b"a".to_vec()),
        FieldValue::Bytes(vec![0xff]),
        FieldValue::Timestamp(1),
        FieldValue::Timestamp(1_000),
        FieldValue::Array(Vec::new()),
        array(FieldValue::I64(1)),
        array(FieldValue::I32(1)),
        array(FieldValue::F64(1.0)),
        array(FieldValue::Timestamp(1)),
        array(FieldValue::text("a")),
        array(FieldValue::Bytes(b"a".to_vec())),
        FieldValue::Table(FieldTable::new()),
        table(FieldValue::I64(1)),
        table(FieldValue::I32(1)),
        array(table(FieldValue::text("a"))),
    ]
}

/// Publishes every message and tells which queues have it, by its number.
async fn what_the_broker_does(
    vhost: &Vhost,
    messages: &[&Sent],
    queues: &[&QueueName],
) -> BTreeMap<usize, BTreeSet<String>> {
    let connection = lapin::Connection::connect(&vhost.url(), ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await
        .unwrap();
    let mut confirms = Vec::new();
    for (number, sent) in messages.iter().enumerate() {
        let confirm = channel
            .basic_publish(
                sent.exchange.as_str().into(),
                sent.key.as_str().into(),
                BasicPublishOptions::default(),
                number.to_string().as_bytes(),
                BasicProperties::default().with_headers(lapin_table(&sent.headers)),
            )
            .await
            .unwrap();
        confirms.push(confirm);
    }
    for confirm in confirms {
        confirm.await.unwrap();
    }
    let mut found: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for queue in queues {
        while let Some(got) = channel
            .basic_get(queue.as_str().into(), BasicGetOptions { no_ack: true })
            .await
            .unwrap()
        {
            let number = std::str::from_utf8(&got.data).unwrap().parse().unwrap();
            let is_new = found.entry(number).or_default().insert(queue.to_string());
            assert!(is_new, "message {number} is twice in {queue}");
        }
    }
    connection.close(200, "bye".into()).await.unwrap();
    found
}

fn what_mq_says(router: &Router<'_>, sent: &Sent) -> BTreeSet<String> {
    let message = Message::new(
        ExchangeName::new(sent.exchange.as_str()).unwrap(),
        RoutingKey::new(sent.key.as_str()).unwrap(),
        sent.headers.clone(),
    );
    let routed = router.route(&message);
    routed.queues().map(ToString::to_string).collect()
}

/// Applies these together and gives what differs, and how many messages were routed.
fn differences(samples: &[Sample]) -> (Vec<String>, usize) {
    let vhost = Vhost::new();
    let mut topology = Topology::default();
    for sample in samples {
        let part = sample.topology.clone();
        topology.exchanges.extend(part.exchanges);
        topology.queues.extend(part.queues);
        topology.bindings.extend(part.bindings);
        topology.policies.extend(part.policies);
    }
    let messages: Vec<(&Sample, &Sent)> = samples
        .iter()
        .flat_map(|sample| sample.messages.iter().map(move |sent| (sample, sent)))
        .collect();
    let found = block_on(async {
        declare(&vhost, &topology).await;
        let sent: Vec<&Sent> = messages.iter().map(|(_, sent)| *sent).collect();
        let queues: Vec<&QueueName> = topology.queues.keys().collect();
        what_the_broker_does(&vhost, &sent, &queues).await
    });
    let router = Router::on(&topology, &vhost.facts());
    let mut differences = Vec::new();
    for (number, (sample, sent)) in messages.iter().enumerate() {
        let broker = found.get(&number).cloned().unwrap_or_default();
        let ours = what_mq_says(&router, sent);
        if ours != broker {
            differences.push(format!(
                "{sent:?}\n  mq {ours:?}\n  broker {broker:?}\n{sample}"
            ));
        }
    }
    (differences, found.len())
}

#[test]
fn messages_go_where_the_simulation_says() {
    for batch in batches(TOPOLOGIES, 50) {
        let samples: Vec<Sample> = batch
            .clone()
            .map(|number| sample(number, MESSAGES))
            .collect();
        let (differences, routed) = differences(&samples);
        let count = differences.len();
        let shown: Vec<String> = differences.into_iter().take(5).collect();
        assert!(count == 0, "{count} differ:\n{}", shown.join("\n"));
        // Neither side may be right by routing nothing.
        assert!(routed > batch.len() * MESSAGES / 4, "{routed} routed");
    }
}

/// Every value against every other one, as a header and as an `x-` header.
#[test]
fn header_values_of_all_types_compare_as_the_simulation_says() {
    let mut topology = Topology::default();
    let mut messages = Vec::new();
    for (header, mode) in [("v", "all"), ("x-v", "any-with-x")] {
        let exchange = ExchangeName::new(header).unwrap();
        let kind = ExchangeType::Headers;
        topology
            .exchanges
            .insert(exchange.clone(), Exchange::durable(kind));
        for (at, value) in values().into_iter().enumerate() {
            let queue = QueueName::new(format!("{header}{at}")).unwrap();
            let declared = Queue {
                kind: Some(QueueType::Classic),
                ..Queue::default()
            };
            topology.queues.insert(queue.clone(), declared);
            topology.bindings.push(Binding {
                source: exchange.clone(),
                destination: Destination::Queue(queue),
                key: RoutingKey::empty(),
                arguments: FieldTable::from([
                    ("x-match".to_owned(), FieldValue::text(mode)),
                    (header.to_owned(), value.clone()),
                ]),
            });
            messages.push(Sent {
                exchange: header.to_owned(),
                key: String::new(),
                headers: FieldTable::from([(header.to_owned(), value)]),
            });
        }
    }
    let (differences, routed) = differences(&[Sample {
        number: 0,
        topology,
        messages,
    }]);
    assert_eq!(routed, 2 * values().len());
    let shown: Vec<&str> = differences
        .iter()
        .map(|text| text.split("\ntopology").next().unwrap_or_default())
        .collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
}
