//! Looking into dead-letter queues without costing a message.

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};

use serde_json::{Value as Json, json};

use crate::dead_letters::{DeadLetter, Reason};
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
        ran.stdout.contains("(3 bytes, base64) /wAb"),
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

/// Looks although it counts.
fn forced(vhost: &Vhost, queue: &str) -> Json {
    vhost
        .mq(["dlq", "inspect", queue, "--even-if-it-counts", "-o", "json"])
        .run()
        .code(0)
        .says(&["looking all the same"])
        .json()
}

#[test]
fn a_message_that_would_not_survive_a_look_is_replaced_first() {
    let vhost = Vhost::new();
    let dead = DeadLetter::to_queue("dead");
    vhost.deadly_queue("work", "quorum", Reason::DeliveryLimit, dead);
    // On 4.3 only the count that it came with is compared, which is 1.
    let limit = i64::from(vhost.version() < (4, 3));
    vhost.queue("dead", "quorum", &json!({"x-delivery-limit": limit}));
    vhost.publish("work", "kept");
    vhost.let_die("work", Reason::DeliveryLimit, 1);
    vhost.wait_for_ready("dead", 1);
    let mut replaced = 0;
    for look in 0..8 {
        let seen = forced(&vhost, "dead");
        assert_eq!(seen["ready"], 1, "look {look}: {seen:#}");
        let message = &seen["messages"][0];
        assert_eq!(message["body"], "kept", "look {look}");
        assert_eq!(message["origin"], "work", "look {look}");
        assert_eq!(message["reason"], "delivery_limit", "look {look}");
        replaced += seen["replaced"].as_u64().unwrap_or(0);
        vhost.wait_for_ready("dead", 1);
    }
    assert!(replaced > 0, "the limit was never reached");
}

#[test]
fn minus_one_on_3_x_costs_nothing_when_a_look_is_forced() {
    let vhost = Vhost::new();
    if vhost.version() >= (4, 0) {
        return;
    }
    vhost.queue("q", "quorum", &json!({"x-delivery-limit": -1}));
    vhost.publish_all("q", &["a".to_owned(), "b".to_owned()]);
    for _ in 0..3 {
        let seen = forced(&vhost, "q");
        assert_eq!((&seen["ready"], &seen["replaced"]), (&json!(2), &json!(2)));
        assert_eq!(seen["messages"][1]["body"], "b");
        vhost.wait_for_ready("q", 2);
    }
}

#[test]
fn where_a_copy_could_push_others_out_nothing_is_taken() {
    let mut vhost = Vhost::new();
    let full = json!({"x-delivery-limit": 0, "x-max-length": 1});
    vhost.queue("full", "quorum", &full);
    vhost.queue("q", "quorum", &json!({"x-delivery-limit": 0}));
    vhost.publish("full", "x");
    vhost.publish("q", "x");
    vhost
        .mq(["dlq", "inspect", "full", "--even-if-it-counts"])
        .run()
        .code(2)
        .says(&["max-length", "rabbitmq-queues peek"]);
    let reader = vhost.user(".*", "^$", ".*", "management");
    vhost
        .mq(["dlq", "inspect", "q", "--even-if-it-counts"])
        .env("MQ_URL", vhost.url_of(&reader, "pw"))
        .run()
        .code(2)
        .says(&["nothing was taken from queue 'q'", "amq.default"]);
    assert_eq!((vhost.ready("full"), vhost.ready("q")), (1, 1));
}

#[test]
fn a_policy_that_lifts_the_limit_is_a_way_out_and_makes_looks_safe() {
    let vhost = Vhost::new();
    if vhost.version() < (4, 0) {
        return;
    }
    vhost.queue("a.dlq", "quorum", &json!({}));
    vhost.publish("a.dlq", "x");
    vhost.mq(["dlq", "inspect", "a.dlq"]).run().code(2).says(&[
        "set_policy",
        r"'^a\.dlq$'",
        "{\"delivery-limit\":-1}",
    ]);
    vhost.policy(
        "a.dlq-unlimited",
        r"^a\.dlq$",
        &json!({"delivery-limit": -1}),
    );
    let look = || vhost.mq(["dlq", "inspect", "a.dlq"]).run();
    crate::support::wait_until("the policy to be told", || look().code == 0);
    for _ in 0..25 {
        look().code(0).shows(&["1 ready"]);
    }
    assert_eq!(vhost.ready("a.dlq"), 1);
}

#[test]
fn a_filter_shows_what_it_accepts_and_says_how_many_it_does_not() {
    let vhost = Vhost::new();
    vhost.apply("queues: { q: { type: classic } }\n");
    let bodies: Vec<String> = (0..10).map(|n| format!("{{\"n\":{n}}}")).collect();
    vhost.publish_all("q", &bodies);
    let filtered = |filter: &str| vhost.mq(["dlq", "inspect", "q", "--filter", filter]);
    filtered(".body | fromjson | .n > 7").run().code(0).shows(&[
        "10 ready",
        "{\"n\":8}",
        "{\"n\":9}",
        "accepts 2 of the 10",
    ]);
    let seen = filtered(".body | fromjson | .n > 7")
        .args(["-o", "json", "--body-bytes", "3"])
        .run()
        .code(0)
        .json();
    assert_eq!(
        (&seen["shown"], &seen["filtered_out"]),
        (&json!(2), &json!(8))
    );
    assert_eq!(
        seen["messages"][0]["body"], "{\"n",
        "the filter saw all of it"
    );
    filtered("false")
        .run()
        .code(0)
        .shows(&["10 ready", "accepts 0 of the 10"]);
    filtered(".body ==").run().code(64).says(&["--filter"]);
    filtered(".body.n")
        .run()
        .code(65)
        .says(&["message #1", "--filter '.body.n'"]);
    assert_eq!(vhost.ready("q"), 10);
}

#[test]
fn in_full_each_message_tells_its_journey_and_its_body() {
    let vhost = Vhost::new();
    vhost.exchange("shop", "topic");
    let dead = DeadLetter::to_queue("dead");
    vhost.deadly_queue("work", "classic", Reason::Rejected, dead);
    vhost.dead_letter_queue("dead", "classic");
    vhost.bind("shop", "work", "order.*");
    let body = "{\"id\":9007199254740993,\"items\":[1]}";
    vhost
        .mq(["publish", "-e", "shop", "-k", "order.created", "-"])
        .stdin(body)
        .run()
        .code(0);
    vhost.let_die("work", Reason::Rejected, 1);
    vhost.wait_for_ready("dead", 1);
    vhost.publish_raw("dead", &[(vec![0, 1, 0xff], BasicProperties::default())]);
    vhost
        .mq(["dlq", "inspect", "dead", "--full"])
        .run()
        .code(0)
        .shows(&[
            "#1 rejected in work after 1 attempt",
            "published to exchange shop with key order.created",
            "in work: rejected by a consumer; came by exchange shop, key order.created",
            "bytes, JSON):\n     {\n       \"id\": 9007199254740993,",
            "#2 of unknown origin, when is not known",
            "body (3 bytes, binary):\n     00000000  00 01 ff",
        ]);
    vhost
        .mq(["dlq", "inspect", "dead", "--full", "--body-bytes", "4"])
        .run()
        .code(0)
        .shows(&["bytes, text): the first 4; more with --body-bytes"]);
}

#[test]
fn messages_are_grouped_by_the_errors_that_other_tools_wrote() {
    let vhost = Vhost::new();
    vhost.apply("queues: { q: { type: classic } }\n");
    let text = |text: &str| AMQPValue::LongString(text.into());
    let spring = |message: &str| {
        let mut headers = FieldTable::default();
        headers.insert("x-exception-message".into(), text(message));
        headers.insert("x-original-exchange".into(), text("orders"));
        headers.insert("x-original-routingKey".into(), text("created"));
        BasicProperties::default().with_headers(headers)
    };
    let mut headers = FieldTable::default();
    headers.insert("NServiceBus.FailedQ".into(), text("Sales"));
    headers.insert(
        "NServiceBus.ExceptionInfo.Message".into(),
        text("boom\nat x"),
    );
    let sales = BasicProperties::default().with_headers(headers);
    vhost.publish_raw(
        "q",
        &[
            (b"1".to_vec(), spring("no stock")),
            (b"2".to_vec(), sales),
            (b"3".to_vec(), spring("no stock")),
            (b"4".to_vec(), spring("no money")),
        ],
    );
    let seen = vhost.inspect("q");
    let groups = seen["groups"].as_array().map_or(&[][..], Vec::as_slice);
    let told: Vec<Json> = groups
        .iter()
        .map(|group| json!([group["count"], group["origin"], group["error"]]))
        .collect();
    assert_eq!(
        json!(told),
        json!([
            [2, null, "no stock"],
            [1, null, "no money"],
            [1, "Sales", "boom"]
        ])
    );
    assert_eq!(seen["messages"][0]["exchange"], "orders");
    assert_eq!(seen["messages"][1]["error_of"], "nservicebus");
    vhost.mq(["dlq", "inspect", "q"]).run().code(0).shows(&[
        "group 1  2×",
        "error: no stock",
        "attempts  not counted: 4×",
    ]);
}
