//! Walking through a queue and sending many messages at once: what `mq dlq` moves
//! messages with.
#![expect(clippy::unwrap_used, reason = "async bodies of tests")]

use std::time::Duration;

use mq::amqp::{Connection, Frames, Pipeline, Receipt, Walk};
use mq::field::{FieldTable, FieldValue};
use mq::message::{Properties, Publication};
use mq::topology::{ExchangeName, QueueName, QueueType, RoutingKey};

use crate::vhost::{Vhost, block_on, no_tls};

const LIMIT: Duration = Duration::from_secs(30);

async fn connect(vhost: &Vhost) -> Connection {
    let endpoints = [vhost.endpoint()];
    let tls = no_tls();
    let opened = Connection::open(&endpoints, &tls, "mq walk test", LIMIT, Frames::Large);
    opened.await.unwrap()
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

fn message(exchange: &str, key: &str, headers: FieldTable, body: &str) -> Publication {
    Publication {
        exchange: ExchangeName::new(exchange).unwrap(),
        routing_key: RoutingKey::new(key).unwrap(),
        properties: Properties {
            headers,
            ..Properties::default()
        },
        body: body.as_bytes().to_vec(),
    }
}

/// Every seventh message has nowhere to go, and some have the content of another.
#[test]
fn each_of_many_messages_under_way_gets_its_own_outcome() {
    let vhost = Vhost::new();
    vhost.apply("queues: { c: { type: classic }, q: { type: quorum } }\n");
    for queue in ["c", "q"] {
        let wrong: Vec<(u64, Receipt)> = block_on(async {
            let connection = connect(&vhost).await;
            let mut pipeline = Pipeline::open(&connection, 300, LIMIT).await.unwrap();
            let mut told = Vec::new();
            for number in 1..=3000_u64 {
                while !pipeline.has_room() {
                    told.push(pipeline.next().await.unwrap().unwrap());
                }
                let key = if number % 7 == 0 { "nowhere" } else { queue };
                let headers = FieldTable::from([("half".to_owned(), FieldValue::F64(0.5))]);
                let body = format!("{}", number / 3);
                let sent = pipeline.send(message("", key, headers, &body)).unwrap();
                assert_eq!(sent, number);
            }
            while let Some(next) = pipeline.next().await.unwrap() {
                told.push(next);
            }
            assert_eq!(pipeline.open_outcomes(), 0);
            connection.close().await;
            let numbers: Vec<u64> = told.iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers, (1..=3000).collect::<Vec<_>>());
            told.retain(|(number, receipt)| match receipt {
                Receipt::Unroutable(_) => number % 7 != 0,
                Receipt::Routed => number % 7 == 0,
                Receipt::Refused | Receipt::Unknown(_) => true,
            });
            told
        });
        assert!(wrong.is_empty(), "{queue}: {wrong:?}");
        vhost.wait_for_ready(queue, 3000 - 3000 / 7);
    }
}

#[test]
fn a_refusal_is_told_from_a_confirm() {
    let vhost = Vhost::new();
    vhost.apply("queues: { full: { type: classic, max_length: 2, overflow: reject-publish } }\n");
    let told = block_on(async {
        let connection = connect(&vhost).await;
        let mut pipeline = Pipeline::open(&connection, 300, LIMIT).await.unwrap();
        for number in 0..20 {
            let next = message("", "full", FieldTable::new(), &number.to_string());
            pipeline.send(next).unwrap();
        }
        let mut told = Vec::new();
        while let Some((_, receipt)) = pipeline.next().await.unwrap() {
            told.push(receipt);
        }
        told
    });
    let routed = told.iter().filter(|one| **one == Receipt::Routed).count();
    let refused = told.iter().filter(|one| **one == Receipt::Refused).count();
    assert_eq!(routed + refused, 20, "{told:?}");
    assert_eq!(u32::try_from(routed).unwrap(), vhost.ready("full"));
}

#[test]
fn a_channel_that_the_broker_closes_leaves_all_outcomes_unknown() {
    let vhost = Vhost::new();
    let error = block_on(async {
        let connection = connect(&vhost).await;
        let mut pipeline = Pipeline::open(&connection, 300, LIMIT).await.unwrap();
        let lost = message("no-such-exchange", "k", FieldTable::new(), "x");
        pipeline.send(lost).unwrap();
        let error = pipeline.next().await.unwrap_err();
        assert_eq!(pipeline.open_outcomes(), 1);
        error
    });
    assert!(error.message().contains("no-such-exchange"), "{error}");
}

/// What is acked is gone, what is kept is back in its order, and what came
/// during the walk was not taken.
#[test]
fn a_walk_takes_each_message_once_and_returns_what_is_kept() {
    let vhost = Vhost::new();
    vhost.apply(
        "queues: { c: { type: classic }, q: { type: quorum, delivery_limit: unlimited } }\n",
    );
    for queue in ["c", "q"] {
        let nacks_keep_order = vhost.version() >= (4, 3);
        let late = if queue == "c" || nacks_keep_order {
            30
        } else {
            0
        };
        let bodies = numbered(3000);
        vhost.publish_all(queue, &bodies);
        vhost.wait_for_ready(queue, 3000);
        let name = QueueName::new(queue).unwrap();
        block_on(async {
            let connection = connect(&vhost).await;
            let mut walk = Walk::open(&connection, &name, &kind(queue), 3000, 0)
                .await
                .unwrap();
            let mut pipeline = Pipeline::open(&connection, 300, LIMIT).await.unwrap();
            let mut seen = Vec::new();
            while let Some(taken) = walk.next().await.unwrap() {
                let body = String::from_utf8(taken.delivery.body).unwrap();
                // Before 4.3 order is promised only where nothing stands behind.
                if late > 0 && seen.len() % 100 == 0 {
                    pipeline
                        .send(message("", queue, FieldTable::new(), "late"))
                        .unwrap();
                    assert_eq!(pipeline.next().await.unwrap().unwrap().1, Receipt::Routed);
                }
                if seen.len() % 3 == 0 {
                    walk.keep(taken.tag);
                } else {
                    walk.ack(taken.tag);
                }
                seen.push(body);
            }
            assert_eq!(seen, bodies);
            assert_eq!(walk.release().await.unwrap(), 1000);
            connection.close().await;
        });
        vhost.wait_for_ready(queue, 1000 + late);
        let left = everything(&vhost, queue);
        let kept = bodies.iter().step_by(3);
        let late = std::iter::repeat_n("late", late as usize);
        let expected: Vec<&str> = kept.map(String::as_str).chain(late).collect();
        assert_eq!(left, expected, "{queue}");
    }
}

/// Half of the messages acked at once, as fast as they come.
#[test]
fn a_walk_ends_exactly_at_its_count() {
    let vhost = Vhost::new();
    vhost.apply(
        "queues: { c: { type: classic }, q: { type: quorum, delivery_limit: unlimited } }\n",
    );
    for queue in ["c", "q"] {
        vhost.publish_all(queue, &numbered(3000));
        vhost.wait_for_ready(queue, 3000);
        let name = QueueName::new(queue).unwrap();
        block_on(async {
            let connection = connect(&vhost).await;
            let mut walk = Walk::open(&connection, &name, &kind(queue), 1500, 0)
                .await
                .unwrap();
            let mut count = 0;
            while let Some(taken) = walk.next().await.unwrap() {
                walk.ack(taken.tag);
                count += 1;
            }
            assert_eq!(count, 1500);
            assert_eq!(walk.release().await.unwrap(), 0);
            connection.close().await;
        });
        vhost.wait_for_ready(queue, 1500);
        let left = everything(&vhost, queue);
        assert_eq!(left, numbered(3000)[1500..], "{queue}");
    }
}

#[test]
fn a_walk_ends_where_the_queue_does() {
    let vhost = Vhost::new();
    vhost.apply("queues: { c: { type: classic } }\n");
    vhost.publish_all("c", &numbered(10));
    vhost.wait_for_ready("c", 10);
    let name = QueueName::new("c").unwrap();
    block_on(async {
        let connection = connect(&vhost).await;
        let mut walk = Walk::open(&connection, &name, &QueueType::Classic, 100, 0)
            .await
            .unwrap();
        let mut count = 0;
        while let Some(taken) = walk.next().await.unwrap() {
            walk.keep(taken.tag);
            count += 1;
        }
        assert_eq!(count, 10);
        assert_eq!(walk.release().await.unwrap(), 10);
        connection.close().await;
    });
    vhost.wait_for_ready("c", 10);
}

/// The tests call a classic queue `c`, and a quorum queue `q`.
fn kind(queue: &str) -> QueueType {
    match queue {
        "c" => QueueType::Classic,
        _ => QueueType::Quorum,
    }
}

fn everything(vhost: &Vhost, queue: &str) -> Vec<String> {
    let name = QueueName::new(queue).unwrap();
    block_on(async {
        let connection = connect(vhost).await;
        let mut walk = Walk::open(&connection, &name, &kind(queue), u64::MAX, 0)
            .await
            .unwrap();
        let mut all = Vec::new();
        while let Some(taken) = walk.next().await.unwrap() {
            all.push(String::from_utf8(taken.delivery.body).unwrap());
            walk.keep(taken.tag);
        }
        walk.release().await.unwrap();
        connection.close().await;
        all
    })
}
