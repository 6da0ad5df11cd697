//! Looking into dead-letter queues without costing a message.

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};

use crate::vhost::Vhost;

#[test]
fn a_look_that_counts_is_refused_with_a_safe_way() {
    let vhost = Vhost::new();
    vhost.apply("queues: { dlq: { type: quorum }, small: { type: quorum, delivery_limit: 2 } }\n");
    vhost.publish("dlq", "x");
    vhost.publish("small", "x");
    let inspect = |queue: &str| vhost.mq(["dlq", "inspect", queue]).run();
    // Without a limit of its own a quorum queue is safe on 3.x and limited to 20 on 4.x.
    if vhost.version() >= (4, 0) {
        inspect("dlq").code(2).says(&[
            "delivery limit 20",
            "rabbitmq-queues peek --vhost 'mq test/",
            " dlq 1",
            "--even-if-it-counts",
        ]);
    } else {
        inspect("dlq").code(0).shows(&["1 ready"]);
    }
    inspect("small").code(2).says(&["delivery limit 2"]);
    vhost
        .mq(["dlq", "inspect", "small", "--even-if-it-counts"])
        .run()
        .code(0)
        .says(&["looking all the same"])
        .shows(&["1 ready"]);
    assert_eq!(vhost.ready("small"), 1);
}

#[test]
fn minus_one_is_refused_where_it_loses_messages() {
    let vhost = Vhost::new();
    // The file format has no way to say -1, so the queue is made by another client.
    let body = serde_json::json!({
        "durable": true,
        "arguments": {"x-queue-type": "quorum", "x-delivery-limit": -1},
    });
    vhost.api(reqwest::Method::PUT, &["queues", &vhost.name, "q"], &body);
    vhost.publish("q", "x");
    let ran = vhost.mq(["dlq", "inspect", "q"]).run();
    if vhost.version() >= (4, 0) {
        ran.code(0).shows(&["1 ready"]);
    } else {
        ran.code(2).says(&["one look would lose every message"]);
    }
    assert_eq!(vhost.ready("q"), 1);
}

#[test]
fn classic_queues_may_be_looked_at_and_streams_may_not() {
    let vhost = Vhost::new();
    vhost.apply("queues: { c: { type: classic }, s: { type: stream } }\n");
    vhost
        .mq(["dlq", "inspect", "c"])
        .run()
        .code(0)
        .shows(&["0 ready"]);
    vhost
        .mq(["dlq", "inspect", "s", "--even-if-it-counts"])
        .run()
        .code(2)
        .says(&["stream"]);
}

#[test]
fn a_missing_queue_and_a_user_without_rights_are_told_apart() {
    let mut vhost = Vhost::new();
    vhost
        .mq(["dlq", "inspect", "nope"])
        .run()
        .code(65)
        .says(&["queue 'nope'", "check the name"]);
    vhost.apply("queues: { q: { type: classic } }\n");
    let untagged = vhost.user(".*", ".*", ".*", "");
    let blind = vhost.user("^$", "^$", "^$", "management");
    for user in [untagged, blind] {
        vhost
            .mq(["dlq", "inspect", "q"])
            .env(
                "MQ_MANAGEMENT_URL",
                vhost
                    .management_url
                    .replace("guest:guest", &format!("{user}:pw")),
            )
            .run()
            .code(77)
            .says(&["set_user_tags", &user]);
    }
}

#[test]
fn more_than_the_limit_is_counted_and_said() {
    let vhost = Vhost::new();
    vhost.apply("queues: { q: { type: classic } }\n");
    let bodies: Vec<String> = (0..30).map(|n| format!("body {n}")).collect();
    vhost.publish_all("q", &bodies);
    vhost
        .mq(["dlq", "inspect", "q", "--limit", "10"])
        .run()
        .code(0)
        .shows(&["30 ready", "20 more are not shown", "body 9"]);
    assert_eq!(vhost.ready("q"), 30);
}

#[test]
fn hostile_messages_cannot_drive_the_terminal() {
    let vhost = Vhost::new();
    vhost.apply("queues: { q: { type: classic } }\n");
    let mut headers = FieldTable::default();
    headers.insert("x-death".into(), AMQPValue::LongString("nonsense".into()));
    headers.insert(
        "mq-queue".into(),
        AMQPValue::LongString("\x1b[2J\u{202e}evil".into()),
    );
    headers.insert(
        "mq-error-kind".into(),
        AMQPValue::LongString("\r\n\x07".into()),
    );
    let properties = BasicProperties::default().with_headers(headers);
    let binary = vec![0xff, 0x00, 0x1b];
    vhost.publish_raw(
        "q",
        &[
            (b"\x1b]0;owned\x07\x1b[31mred".to_vec(), properties),
            (binary, BasicProperties::default()),
            (vec![b'x'; 300_000], BasicProperties::default()),
        ],
    );
    let ran = vhost.mq(["dlq", "inspect", "q"]).run().code(0);
    let odd: Vec<char> = ran
        .stdout
        .chars()
        .filter(|c| c.is_control() && *c != '\n')
        .collect();
    assert!(odd.is_empty(), "{odd:?}");
    assert!(
        ran.stdout.contains("body (3 bytes, base64): /wAb"),
        "{}",
        ran.stdout
    );
    let raw = vhost
        .mq(["dlq", "inspect", "q", "-o", "json"])
        .run()
        .code(0);
    assert!(!raw.stdout.contains('\u{202e}'), "{}", raw.stdout);
    let json = raw.json();
    assert_eq!(json["messages"][0]["deaths_malformed"], true);
    assert_eq!(json["messages"][2]["body_bytes"], 300_000);
    assert_eq!(json["messages"][2]["body_truncated"], true);
    assert_eq!(
        json["messages"][2]["body"].as_str().map(str::len),
        Some(256)
    );
}
