//! The routing of mq's own simulation equals the broker's, on random topologies.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test, outside #[test] functions"
)]

use std::collections::{BTreeMap, BTreeSet};

use lapin::options::{BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable as LapinTable};
use lapin::{BasicProperties, ConnectionProperties};
use mq::diagnostic::Source;
use mq::field::{FieldTable, FieldValue};
use mq::routing::route;
use mq::topology::{ExchangeName, RoutingKey, Topology};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::support::TextFile;
use crate::vhost::{Vhost, block_on};

const TOPOLOGIES: usize = 40;
const MESSAGES: usize = 60;

/// One message to publish.
#[derive(Clone, Debug)]
struct Sent {
    exchange: String,
    key: String,
    headers: BTreeMap<String, i64>,
}

/// A topology of five exchanges and six queues, bound at random, under names of its own.
fn topology(number: usize) -> impl Strategy<Value = String> {
    let kind = prop_oneof![
        Just("direct"),
        Just("topic"),
        Just("fanout"),
        Just("headers")
    ];
    let exchanges = proptest::collection::vec((kind, proptest::option::of(0_usize..5)), 5);
    // 4.3.6 refuses a binding key with more than two `#` (measured).
    let word = "([ab*#]|)(\\.([ab*#]|)){0,3}"
        .prop_filter("too many #", |key: &String| key.matches('#').count() <= 2);
    let arguments = (
        prop_oneof![
            Just(""),
            Just("x-match: all, "),
            Just("x-match: any, "),
            Just("x-match: all-with-x, "),
            Just("x-match: any-with-x, ")
        ],
        proptest::collection::btree_map("(a|b|x-c)", 0_i64..3, 0..3),
    );
    let binding = (0_usize..5, 0_usize..11, word, arguments);
    let bindings = proptest::collection::vec(binding, 0..25);
    (exchanges, bindings).prop_map(move |(exchanges, bindings)| {
        let mut text = String::from("version: 1\nexchanges:\n");
        for (at, (kind, alternate)) in exchanges.iter().enumerate() {
            let alternate = alternate.map_or(String::new(), |to| {
                format!(", alternate: t{number}.x{to}")
            });
            text.push_str(&format!(
                "  t{number}.x{at}: {{ type: {kind}{alternate} }}\n"
            ));
        }
        text.push_str("queues:\n");
        for at in 0..6 {
            text.push_str(&format!("  t{number}.q{at}: {{ type: classic }}\n"));
        }
        text.push_str("bindings:\n");
        for (from, to, key, (mode, arguments)) in &bindings {
            let destination = if *to < 6 {
                format!("destination: t{number}.q{to}")
            } else {
                format!(
                    "destination: t{number}.x{}, destination_type: exchange",
                    to - 6
                )
            };
            let arguments: Vec<String> = arguments
                .iter()
                .map(|(name, value)| format!("{name}: {value}"))
                .collect();
            text.push_str(&format!(
                "  - {{ source: t{number}.x{from}, {destination}, key: '{key}', arguments: {{ {mode}{} }} }}\n",
                arguments.join(", ")
            ));
        }
        text
    })
}

fn message(number: usize) -> impl Strategy<Value = Sent> {
    let headers = proptest::collection::btree_map("(a|b|x-c)", 0_i64..3, 0..4);
    (0_usize..6, "([ab]|)(\\.([ab]|)){0,3}", headers).prop_map(move |(exchange, key, headers)| {
        // The sixth is the default exchange, which goes by the queue's name.
        let is_default = exchange == 5;
        Sent {
            exchange: if is_default {
                String::new()
            } else {
                format!("t{number}.x{exchange}")
            },
            key: if is_default {
                format!("t{number}.q{}", key.len() % 8)
            } else {
                key
            },
            headers,
        }
    })
}

/// Publishes every message and tells which queues have it, by its number.
fn what_the_broker_does(
    vhost: &Vhost,
    messages: &[Sent],
    queues: &[String],
) -> BTreeMap<usize, BTreeSet<String>> {
    block_on(async {
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
            let mut headers = LapinTable::default();
            for (name, value) in &sent.headers {
                headers.insert(name.as_str().into(), AMQPValue::LongLongInt(*value));
            }
            let confirm = channel
                .basic_publish(
                    sent.exchange.as_str().into(),
                    sent.key.as_str().into(),
                    BasicPublishOptions::default(),
                    number.to_string().as_bytes(),
                    BasicProperties::default().with_headers(headers),
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
                let is_new = found.entry(number).or_default().insert(queue.clone());
                assert!(is_new, "message {number} is twice in {queue}");
            }
        }
        connection.close(200, "bye".into()).await.unwrap();
        found
    })
}

fn what_mq_says(topology: &Topology, sent: &Sent) -> BTreeSet<String> {
    let headers: FieldTable = sent
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), FieldValue::I64(*value)))
        .collect();
    route(
        topology,
        &ExchangeName::new(sent.exchange.as_str()).unwrap(),
        &RoutingKey::new(sent.key.as_str()).unwrap(),
        &headers,
    )
    .iter()
    .map(ToString::to_string)
    .collect()
}

#[test]
fn messages_go_where_the_simulation_says() {
    let vhost = Vhost::new();
    // The same topologies on every run and version: a difference can be looked at.
    let mut runner = TestRunner::deterministic();
    let sources: Vec<Source> = (0..TOPOLOGIES)
        .map(|number| Source {
            name: format!("t{number}.yaml"),
            text: topology(number).new_tree(&mut runner).unwrap().current(),
        })
        .collect();
    let files: Vec<TextFile> = sources
        .iter()
        .map(|source| TextFile::new(&source.name, &source.text))
        .collect();
    let paths: Vec<String> = files.iter().map(TextFile::path).collect();
    let apply = ["topology", "apply", "--quiet"].map(str::to_owned);
    vhost.mq(apply.iter().chain(&paths)).run().code(0);

    let topology = mq::topologyfile::parse(&sources, &|_| None).expect("topology");
    let messages: Vec<Sent> = (0..TOPOLOGIES * MESSAGES)
        .map(|number| {
            message(number / MESSAGES)
                .new_tree(&mut runner)
                .unwrap()
                .current()
        })
        .collect();
    let queues: Vec<String> = topology.queues.keys().map(ToString::to_string).collect();
    let found = what_the_broker_does(&vhost, &messages, &queues);
    let mut routed = 0;
    for (number, sent) in messages.iter().enumerate() {
        let broker = found.get(&number).cloned().unwrap_or_default();
        routed += usize::from(!broker.is_empty());
        let source = sources.get(number / MESSAGES).expect("source");
        assert_eq!(
            what_mq_says(&topology, sent),
            broker,
            "{sent:?}\n{}",
            source.text
        );
    }
    // Neither side may be right by routing nothing.
    assert!(routed > messages.len() / 4, "{routed} routed");
}
