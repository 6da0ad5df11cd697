//! What `mq publish` would send is shown to the last property, without a broker.

use serde_json::{Value as Json, json};

use crate::support::{Mq, TextFile};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn dry_run(args: &[&str]) -> Mq {
    Mq::new(["publish", "-q", "q", "--dry-run"]).args(args)
}

/// The properties of each message.
fn properties(mq: Mq) -> Vec<Json> {
    let ran = mq.run().code(0);
    (ran.stdout.lines())
        .map(|line| {
            let line: Json = serde_json::from_str(line).unwrap_or_default();
            line.pointer("/properties").cloned().unwrap_or_default()
        })
        .collect()
}

#[test]
fn nothing_is_added_that_nobody_asked_for() {
    assert_eq!(properties(dry_run(&["{}"])), [json!({"delivery_mode": 2})]);
}

#[test]
fn a_content_type_is_guessed_by_the_body() {
    let of = |args: &[&str]| {
        let found = properties(dry_run(&[&["--guess-content-type"], args].concat()));
        found[0]["content_type"].clone()
    };
    assert_eq!(of(&["{\"a\":1}"]), "application/json");
    assert_eq!(of(&["hello"]), "text/plain; charset=utf-8");
    assert_eq!(of(&["{}", "--content-encoding", "gzip"]), Json::Null);
    let lines = "{}\nhello\n\n";
    let found = properties(dry_run(&["--guess-content-type", "--lines", "-"]).stdin(lines));
    let types: Vec<_> = found.iter().map(|it| it["content_type"].clone()).collect();
    assert_eq!(
        types,
        [
            json!("application/json"),
            json!("text/plain; charset=utf-8"),
            Json::Null
        ]
    );
    dry_run(&["--guess-content-type", "--content-type", "a/b", "x"])
        .run()
        .code(64);
}

#[test]
fn a_message_becomes_a_cloud_event_with_its_message_id() {
    let event = [
        "--ce-type",
        "order.created",
        "--ce-source",
        "/shop",
        "--ce-subject",
        "7",
    ];
    let found = properties(dry_run(&event).args(["{}", "--message-id", "m1"]));
    let headers = &found[0]["headers"];
    for (name, value) in [
        ("specversion", "1.0"),
        ("id", "m1"),
        ("type", "order.created"),
        ("source", "/shop"),
        ("subject", "7"),
    ] {
        assert_eq!(headers[format!("cloudEvents:{name}")], value, "{headers}");
    }
    let time = headers["cloudEvents:time"].as_str().unwrap_or_default();
    assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
    // An id is made where there is none, another for each.
    let found = properties(dry_run(&event).args(["--repeat", "2", "{}"]));
    for message in &found {
        assert_eq!(message["headers"]["cloudEvents:id"], message["message_id"]);
    }
    assert_ne!(found[0]["message_id"], found[1]["message_id"]);
    // Those of a file that are events stay what they are.
    let line = |headers: &Json| json!({"body": "", "properties": {"headers": headers}}).to_string();
    let lines = [
        line(&json!({"ce-specversion": "1.0"})),
        line(&json!({"a": "b"})),
    ];
    let found = properties(
        dry_run(&event)
            .args(["--jsonl", "-"])
            .stdin(lines.join("\n")),
    );
    assert_eq!(found[0]["headers"], json!({"ce-specversion": "1.0"}));
    assert_eq!(found[1]["headers"]["cloudEvents:specversion"], "1.0");
    assert_eq!(found[1]["headers"]["a"], "b");
    dry_run(&event)
        .args(["x", "--content-type", "application/cloudevents+json"])
        .run()
        .code(64)
        .says(&["a whole event"]);
    dry_run(&["--ce-type", "a", "x"])
        .run()
        .code(64)
        .says(&["--ce-source"]);
    dry_run(&["--ce-type", "a", "--ce-source", "a b", "x"])
        .run()
        .code(64)
        .says(&["--ce-source", "no URI"]);
}

#[test]
fn a_trace_goes_on_or_begins() {
    let traces = |mq: Mq| -> Vec<(String, Json)> {
        (properties(mq).iter())
            .map(|it| {
                let headers = &it["headers"];
                let parent = headers["traceparent"].as_str().unwrap_or_default();
                (parent.to_owned(), headers["tracestate"].clone())
            })
            .collect()
    };
    let given = format!("--traceparent={TRACE}");
    assert_eq!(
        traces(dry_run(&[&given, "x"]).env("TRACESTATE", "a=1")),
        [(TRACE.to_owned(), Json::Null)]
    );
    let from_environment = |parent: &str, state: &str| {
        // The body is no value of the flag.
        traces(
            dry_run(&["--traceparent", "x"])
                .env("TRACEPARENT", parent)
                .env("TRACESTATE", state),
        )
    };
    assert_eq!(
        from_environment(TRACE, "a=1"),
        [(TRACE.to_owned(), json!("a=1"))]
    );
    assert_eq!(
        from_environment(TRACE, "nonsense"),
        [(TRACE.to_owned(), Json::Null)]
    );
    let (parent, state) = from_environment("00-0-0-0", "a=1").remove(0);
    assert!(parent != TRACE && parent.len() == 55, "{parent}");
    assert_eq!(state, Json::Null);
    // One trace, and a parent id for each.
    let found = traces(dry_run(&["--traceparent", "--repeat", "2", "x"]));
    assert_eq!(found[0].0[..36], found[1].0[..36]);
    assert_ne!(found[0].0[36..52], found[1].0[36..52]);
    let line = json!({"body": "", "properties": {"headers": {"traceparent": "its own"}}});
    let found = traces(dry_run(&["--traceparent", "--jsonl", "-"]).stdin(line.to_string()));
    assert_eq!(found[0].0, "its own");
    dry_run(&["--traceparent=00-1-2-3", "x"])
        .run()
        .code(64)
        .says(&["its trace id is no 32 digits"]);
}

#[test]
fn every_body_that_does_not_fit_the_schema_is_told() {
    let schema = TextFile::new(
        "order.json",
        "{\"type\": \"object\", \"properties\": {\"id\": {\"type\": \"integer\"}}, \"required\": [\"id\"]}",
    );
    let check = |args: &[&str]| dry_run(&["--schema", &schema.path()]).args(args);
    check(&["{\"id\":1}"]).run().code(0);
    check(&["{\"id\":\"1\"}"]).run().code(65).says(&[
        "message 1: the body does not fit schema order.json: ",
        "/id",
    ]);
    let ran = check(&["--lines", "-"])
        .stdin("{\"id\":1}\n{}\n{\"id\":2}\nno JSON\n{\"id\":3}\n")
        .run()
        .code(65)
        .says(&["standard input:2: ", "standard input:4: ", "no JSON"]);
    assert_eq!(ran.stdout.lines().count(), 3, "{}", ran.stdout);
    dry_run(&["--schema", "/no/such/schema", "x"])
        .run()
        .code(66);
}
