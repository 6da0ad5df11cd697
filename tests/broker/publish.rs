//! Publishing: done means confirmed and routed.

use serde_json::json;

use crate::support::Mq;
use crate::vhost::Vhost;

const QUEUE: &str = "queues: { q: { type: classic } }\n";

#[test]
fn routed_is_0_and_unroutable_is_67() {
    let vhost = Vhost::new();
    vhost.apply("exchanges: { e: { type: direct } }\nqueues: { q: { bind: [ { exchange: e, key: k } ] } }\n");
    vhost
        .mq(["publish", "-e", "e", "-k", "k", "hello"])
        .run()
        .code(0)
        .shows(&["routed: 5 bytes to exchange 'e' with key 'k'"]);
    assert_eq!(vhost.ready("q"), 1);
    let ran = vhost
        .mq(["publish", "-e", "e", "-k", "other", "hello", "-o", "json"])
        .run()
        .code(67)
        .says(&[
            "reached no queue",
            "exchange 'e' with key 'other'",
            "bind a queue",
        ]);
    assert_eq!(ran.json()["receipt"], "unroutable");
    vhost
        .mq(["publish", "-q", "missing", "hello"])
        .run()
        .code(67)
        .says(&["queue 'missing'", "declare the queue"]);
}

#[test]
fn a_missing_exchange_is_65() {
    let vhost = Vhost::new();
    vhost
        .mq(["publish", "-e", "nope", "x"])
        .run()
        .code(65)
        .says(&["exchange 'nope'", "declare it first"]);
}

#[test]
fn no_permission_on_the_exchange_is_77() {
    let mut vhost = Vhost::new();
    vhost.apply("exchanges: { e: { type: fanout } }\n");
    let user = vhost.user(".*", "^$", ".*", "");
    Mq::new(["publish", "-e", "e", "x"])
        .env("MQ_URL", vhost.url_of(&user, "pw"))
        .run()
        .code(77)
        .says(&["exchange 'e'", "set_permissions"]);
}

#[test]
fn a_full_queue_is_75() {
    let vhost = Vhost::new();
    vhost.apply("queues: { q: { type: classic, max_length: 1, overflow: reject-publish } }\n");
    vhost.publish("q", "first");
    vhost
        .mq(["publish", "-q", "q", "second"])
        .run()
        .code(75)
        .says(&["refused (nack)", "queue 'q'", "may be full"]);
    assert_eq!(vhost.ready("q"), 1);
}

#[test]
fn bodies_arrive_byte_for_byte() {
    let vhost = Vhost::new();
    vhost.apply(QUEUE);
    let every_byte: Vec<u8> = (0..=255).collect();
    for body in [Vec::new(), every_byte.clone(), every_byte.repeat(2000)] {
        vhost
            .mq(["publish", "-q", "q"])
            .stdin(body.clone())
            .run()
            .code(0);
        let ran = vhost
            .mq([
                "consume",
                "q",
                "--print",
                "--max-messages",
                "1",
                "-o",
                "json",
            ])
            .run()
            .code(0);
        let json = ran.json();
        assert_eq!(json["body_bytes"], body.len());
        let printed = vhost_body(&json);
        assert!(printed == body, "{} bytes differ", body.len());
    }
}

fn vhost_body(json: &serde_json::Value) -> Vec<u8> {
    use base64::Engine as _;
    let text = json["body"].as_str().unwrap_or_default();
    match json["body_encoding"].as_str() {
        Some("base64") => base64::engine::general_purpose::STANDARD
            .decode(text)
            .unwrap_or_default(),
        _ => text.as_bytes().to_vec(),
    }
}

#[test]
fn a_body_from_a_file_and_an_empty_one() {
    let vhost = Vhost::new();
    vhost.apply(QUEUE);
    vhost
        .mq(["publish", "-q", "q", "@topologies/orders.yaml"])
        .run()
        .code(0);
    vhost
        .mq(["publish", "-q", "q", ""])
        .run()
        .code(0)
        .shows(&["0 bytes"]);
    assert_eq!(vhost.ready("q"), 2);
}

#[test]
fn twenty_megabytes_are_taken_or_refused_with_the_limit() {
    let vhost = Vhost::new();
    vhost.apply(QUEUE);
    let ran = vhost
        .mq(["publish", "-q", "q"])
        .stdin(vec![b'x'; 20 << 20])
        .run();
    // The default limit went from 128 MiB to 16 MiB with 4.0.
    if vhost.version() >= (4, 0) {
        ran.code(65)
            .says(&["larger than configured max size", "max_message_size"]);
        assert_eq!(vhost.ready("q"), 0);
    } else {
        ran.code(0);
        assert_eq!(vhost.ready("q"), 1);
    }
}

#[test]
fn headers_that_do_not_fit_a_frame_are_65() {
    let vhost = Vhost::new();
    vhost.apply(QUEUE);
    let huge = format!("big={}", "x".repeat(100_000));
    let ran = vhost
        .mq([
            "publish",
            "-q",
            "q",
            "-H",
            &huge,
            "-H",
            &format!("2{huge}"),
            "x",
        ])
        .run();
    ran.code(65).says(&["frame"]);
}

#[test]
fn every_property_arrives() {
    let vhost = Vhost::new();
    vhost.apply(QUEUE);
    vhost
        .mq([
            "publish",
            "-q",
            "q",
            "-H",
            "text=a=b",
            "--header-json",
            "n=5",
            "--header-json",
            "deep={\"a\":[1,true,null]}",
            "--content-type",
            "application/json",
            "--content-encoding",
            "identity",
            "--message-id",
            "m1",
            "--correlation-id",
            "c1",
            "--reply-to",
            "r1",
            "--type",
            "order",
            "--app-id",
            "shop",
            "--user-id",
            "guest",
            "--timestamp",
            "1700000000",
            "--priority",
            "3",
            "--expiration",
            "1h",
            "{}",
        ])
        .run()
        .code(0);
    let ran = vhost
        .mq([
            "consume",
            "q",
            "--print",
            "--max-messages",
            "1",
            "-o",
            "jsonl",
        ])
        .run()
        .code(0);
    let mut properties = ran.json()["properties"].clone();
    // Quorum queues of some versions add a count of their own; this one is classic.
    assert_eq!(properties["headers"]["deep"], json!({"a": [1, true, null]}));
    properties
        .as_object_mut()
        .map(|object| object.remove("headers"));
    assert_eq!(
        properties,
        json!({
            "content_type": "application/json", "content_encoding": "identity",
            "correlation_id": "c1", "reply_to": "r1", "expiration": "3600000",
            "message_id": "m1", "type": "order", "user_id": "guest", "app_id": "shop",
            "delivery_mode": 2, "priority": 3, "timestamp": 1_700_000_000_u64,
        })
    );
}

#[test]
fn somebody_elses_user_id_is_refused_with_the_brokers_words() {
    let vhost = Vhost::new();
    vhost.apply(QUEUE);
    vhost
        .mq(["publish", "-q", "q", "--user-id", "root", "x"])
        .run()
        .code(65)
        .says(&["user_id", "root"]);
    assert_eq!(vhost.ready("q"), 0);
}

#[test]
fn quiet_says_nothing_when_all_is_well() {
    let vhost = Vhost::new();
    vhost.apply(QUEUE);
    let ran = vhost
        .mq(["publish", "-q", "q", "x", "--quiet"])
        .run()
        .code(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
}
