//! What `mq dlq inspect` tells of messages that the brokers dead-lettered
//! themselves: from where, why, and how they were first published.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "what is not there fails the test"
)]

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldArray, FieldTable};
use serde_json::{Value as Json, json};

use crate::dead_letters::{DeadLetter, Reason, Sent, every_property, texts};
use crate::vhost::Vhost;

const KINDS: [&str; 2] = ["classic", "quorum"];

/// The one message of a dead-letter queue.
fn only_letter(vhost: &Vhost, queue: &str) -> Json {
    let mut letters = letters(vhost, queue);
    assert_eq!(letters.len(), 1, "{letters:#?}");
    letters.remove(0)
}

fn letters(vhost: &Vhost, queue: &str) -> Vec<Json> {
    vhost.inspect(queue)["messages"].as_array().unwrap().clone()
}

/// Origin, reason, exchange and keys.
fn story(letter: &Json) -> Json {
    json!([
        letter["origin"],
        letter["reason"],
        letter["exchange"],
        letter["routing_keys"]
    ])
}

#[test]
fn every_reason_is_told_from_and_into_both_queue_types_by_arguments_and_policies() {
    let vhost = Vhost::new();
    vhost.exchange("shop", "topic");
    let mut made = Vec::new();
    for (kind, into) in [
        ("classic", "classic"),
        ("classic", "quorum"),
        ("quorum", "classic"),
        ("quorum", "quorum"),
    ] {
        for reason in Reason::of(kind) {
            for by in ["arguments", "policy"] {
                let origin = format!("{kind}-{}-{into}-{by}", reason.word());
                let dead = format!("{origin}-dead");
                vhost.dead_letter_queue(&dead, into);
                let to = DeadLetter::to_queue(&dead);
                if by == "policy" {
                    vhost.deadly_by_policy(&origin, kind, *reason, to);
                } else {
                    vhost.deadly_queue(&origin, kind, *reason, to);
                }
                vhost.bind("shop", &origin, &format!("order.{origin}"));
                made.push((origin, dead, *reason));
            }
        }
    }
    vhost.send(made.iter().map(|(origin, _, _)| Sent {
        exchange: "shop".to_owned(),
        key: format!("order.{origin}"),
        body: origin.clone().into_bytes(),
        ..Sent::default()
    }));
    for (origin, dead, reason) in &made {
        vhost.let_die(origin, *reason, 1);
        vhost.wait_for_ready(dead, 1);
        let letter = only_letter(&vhost, dead);
        assert_eq!(
            story(&letter),
            json!([origin, reason.word(), "shop", [format!("order.{origin}")]]),
            "{letter:#}"
        );
        assert_eq!(letter["body"], json!(origin));
        assert_eq!(letter["deaths"][0]["count"], 1, "{letter:#}");
        let attempts = (*reason == Reason::Rejected).then_some(1);
        assert_eq!(letter["attempts"], json!(attempts), "{letter:#}");
    }
}

#[test]
fn through_several_queues_the_first_is_the_origin() {
    for kind in KINDS {
        let vhost = Vhost::new();
        vhost.exchange("shop", "direct");
        let steps = [
            ("work", Reason::Rejected, "late"),
            ("late", Reason::Expired, "full"),
            ("full", Reason::MaxLen, "dead"),
        ];
        vhost.dead_letter_queue("dead", kind);
        for (queue, reason, next) in steps {
            vhost.deadly_queue(queue, kind, reason, DeadLetter::to_queue(next));
        }
        vhost.bind("shop", "work", "order");
        vhost.send((0..3).map(|n| Sent {
            exchange: "shop".to_owned(),
            key: "order".to_owned(),
            body: vec![n],
            ..Sent::default()
        }));
        vhost.let_die("work", Reason::Rejected, 3);
        vhost.wait_for_ready("dead", 3);
        for letter in letters(&vhost, "dead") {
            assert_eq!(letter["origin"], "work", "{kind}: {letter:#}");
            assert_eq!(letter["exchange"], "shop", "{kind}: {letter:#}");
            assert_eq!(letter["routing_keys"], json!(["order"]));
            let mut deaths: Vec<_> = letter["deaths"]
                .as_array()
                .unwrap()
                .iter()
                .map(|death| (death["queue"].clone(), death["reason"].clone()))
                .collect();
            // Behind the newest their order tells nothing on 3.10.
            assert_eq!(deaths[0], (json!("full"), json!("maxlen")));
            deaths.sort_by_key(|(queue, _)| queue.to_string());
            let expected = ["full", "late", "work"].map(|queue| json!(queue));
            assert_eq!(
                deaths
                    .into_iter()
                    .map(|(queue, _)| queue)
                    .collect::<Vec<_>>(),
                expected
            );
        }
    }
}

#[test]
fn every_property_and_header_survives_its_death() {
    for kind in KINDS {
        let vhost = Vhost::new();
        vhost.dead_letter_queue("dead", kind);
        vhost.deadly_queue("work", kind, Reason::Expired, DeadLetter::to_queue("dead"));
        let user = BasicProperties::default().with_user_id("guest".into());
        vhost.send([
            Sent::to_queue("work", "{}").with(every_property()),
            Sent::to_queue("work", "").with(user),
        ]);
        vhost.wait_for_ready("dead", 2);
        let found = letters(&vhost, "dead");
        let full = &found.iter().find(|one| one["body"] == "{}").unwrap()["properties"];
        for (name, value) in [
            ("content_type", json!("application/json")),
            ("content_encoding", json!("identity")),
            ("delivery_mode", json!(2)),
            ("priority", json!(7)),
            ("correlation_id", json!("correlation é")),
            ("reply_to", json!("answers")),
            ("message_id", json!("id-1")),
            ("timestamp", json!(1_650_000_000)),
            ("type", json!("order.created")),
            ("app_id", json!("shop")),
            ("cluster_id", json!("c")),
        ] {
            // The API knows a cluster id, but brokers since 4.0 keep none.
            assert!(
                full[name] == value || (name == "cluster_id" && full[name].is_null()),
                "{kind} {name}: {full:#}"
            );
        }
        let headers = &full["headers"];
        for (name, value) in [
            ("int8", json!(-8)),
            ("uint8", json!(200)),
            ("int64", json!(i64::MIN)),
            ("time", json!(1_600_000_000)),
            ("text", json!("plain")),
            ("bool", json!(true)),
        ] {
            assert_eq!(headers[name], value, "{kind} {name}: {headers:#}");
        }
        assert_eq!(headers["array"][1]["deep"], "é\u{1f407}", "{headers:#}");
        let of_user = found.iter().find(|one| one["body"] == "").unwrap();
        assert_eq!(of_user["properties"]["user_id"], "guest", "{of_user:#}");
        assert_eq!(of_user["body_bytes"], 0);
    }
}

#[test]
fn copies_expirations_and_long_keys_are_told() {
    for kind in KINDS {
        let vhost = Vhost::new();
        vhost.dead_letter_queue("dead", kind);
        // Without a key of its own the broker keeps those of the message, CC too.
        vhost.exchange("dlx", "fanout");
        vhost.bind("dlx", "dead", "");
        let to = DeadLetter {
            exchange: "dlx",
            key: None,
        };
        vhost.deadly_queue("work", kind, Reason::Rejected, to);
        vhost.queue("copy", "classic", &json!({}));
        vhost.exchange("shop", "fanout");
        vhost.bind("shop", "work", "");
        let long = "k".repeat(255);
        let mut headers = FieldTable::default();
        headers.insert("CC".into(), texts(&["second", "third"]));
        headers.insert("BCC".into(), texts(&["copy"]));
        let copied = BasicProperties::default()
            .with_headers(headers)
            .with_expiration("3600000".into());
        vhost.send([
            Sent {
                exchange: "shop".to_owned(),
                key: "first".to_owned(),
                properties: copied,
                body: b"copied".to_vec(),
            },
            Sent {
                exchange: "shop".to_owned(),
                key: long.clone(),
                body: b"long".to_vec(),
                ..Sent::default()
            },
        ]);
        vhost.let_die("work", Reason::Rejected, 2);
        vhost.wait_for_ready("dead", 2);
        let found = letters(&vhost, "dead");
        let of = |body: &str| found.iter().find(|one| one["body"] == body).unwrap();
        let copied = of("copied");
        assert_eq!(
            story(copied),
            json!(["work", "rejected", "shop", ["first", "second", "third"]]),
            "{copied:#}"
        );
        let properties = &copied["properties"];
        assert_eq!(properties["expiration"], Json::Null, "{copied:#}");
        let death = &properties["headers"]["x-death"][0];
        assert_eq!(death["original-expiration"], "3600000", "{copied:#}");
        assert_eq!(properties["headers"]["BCC"], Json::Null, "{copied:#}");
        assert_eq!(
            story(of("long")),
            json!(["work", "rejected", "shop", [long]])
        );
    }
}

#[test]
fn what_a_client_wrote_as_history_is_overruled_where_the_broker_does() {
    let vhost = Vhost::new();
    vhost.dead_letter_queue("dead", "classic");
    let mut forged = FieldTable::default();
    forged.insert("queue".into(), AMQPValue::LongString("forged".into()));
    forged.insert("reason".into(), AMQPValue::LongString("rejected".into()));
    forged.insert("count".into(), AMQPValue::LongLongInt(41));
    forged.insert("exchange".into(), AMQPValue::LongString("evil".into()));
    forged.insert("time".into(), AMQPValue::Timestamp(1));
    forged.insert("routing-keys".into(), texts(&["k"]));
    let mut deaths = FieldArray::default();
    deaths.push(AMQPValue::FieldTable(forged));
    let mut headers = FieldTable::default();
    headers.insert("x-death".into(), AMQPValue::FieldArray(deaths));
    headers.insert(
        "x-first-death-queue".into(),
        AMQPValue::LongString("forged".into()),
    );
    let properties = BasicProperties::default().with_headers(headers);
    for kind in KINDS {
        vhost.deadly_queue(kind, kind, Reason::Expired, DeadLetter::to_queue("dead"));
        vhost.send([Sent::to_queue(kind, kind).with(properties.clone())]);
    }
    vhost.wait_for_ready("dead", 2);
    for letter in letters(&vhost, "dead") {
        let deaths = letter["deaths"].as_array().unwrap();
        assert_eq!(deaths[0]["queue"], letter["body"], "{letter:#}");
        // Up to 3.12 the broker takes the client's history for its own.
        let expected = if vhost.version() >= (4, 0) { 1 } else { 2 };
        assert_eq!(deaths.len(), expected, "{letter:#}");
        if expected == 1 {
            assert_eq!(letter["origin"], letter["body"], "{letter:#}");
            assert_eq!(letter["exchange"], "", "{letter:#}");
        }
    }
}

#[test]
fn large_and_binary_bodies_are_looked_at_in_part() {
    for kind in KINDS {
        let vhost = Vhost::new();
        vhost.dead_letter_queue("dead", kind);
        vhost.deadly_queue("work", kind, Reason::MaxLen, DeadLetter::to_queue("dead"));
        let large: Vec<u8> = (0..10_000_000u32).map(|n| n.to_be_bytes()[3]).collect();
        vhost.send([
            Sent::to_queue("work", large),
            Sent::to_queue("work", b"\xff\x00\x1b".to_vec()),
        ]);
        vhost.wait_for_ready("dead", 2);
        let found = letters(&vhost, "dead");
        let sizes: Vec<_> = found.iter().map(|one| one["body_bytes"].clone()).collect();
        assert_eq!(sizes, [json!(10_000_000), json!(3)]);
        assert_eq!(found[0]["body_truncated"], true);
        assert_eq!(found[1]["body"], "/wAb");
        assert!(found.iter().all(|one| one["reason"] == "maxlen"));
    }
}

#[test]
fn a_hundred_thousand_are_made_and_counted() {
    let vhost = Vhost::new();
    // Once is enough: it is the same for all versions, and takes its time.
    let is_newest = vhost.version() >= (4, 3);
    let count = if is_newest { 100_000 } else { 5_000 };
    vhost.dead_letters("work", "dead", "classic", count);
    let told = vhost.inspect("dead");
    assert_eq!(told["ready"], count, "{}", told["ready"]);
    let first = &told["messages"][0];
    assert_eq!(story(first), json!(["work", "expired", "", ["work"]]));
    assert_eq!(first["body"], "0");
    assert_eq!(vhost.ready("dead") as usize, count);
}
