//! What people send: the shipped topologies, schemas and handlers with real
//! messages, good ones and bad ones.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read what handlers left behind"
)]

use reqwest::Method;
use serde_json::{Value as Json, json};

use crate::consume::consumers;
use crate::support::{Mq, wait_until};
use crate::vhost::Vhost;

/// A queue of a shipped topology, worked by a shipped handler.
struct Example {
    vhost: Vhost,
    file: &'static str,
    queue: &'static str,
    handler: &'static str,
}

impl Example {
    fn new(file: &'static str, queue: &'static str, handler: &'static str) -> Self {
        let example = Self {
            vhost: Vhost::new(),
            file,
            queue,
            handler,
        };
        example.apply();
        example
    }

    fn apply(&self) {
        self.vhost
            .mq(["topology", "apply", self.file])
            .run()
            .code(0);
    }

    fn publish(&self, exchange: &str, key: &str, body: &str) {
        self.publish_with(exchange, key, &[], body);
    }

    fn publish_with(&self, exchange: &str, key: &str, flags: &[&str], body: &str) {
        let args = ["publish", "-e", exchange, "-k", key];
        let args = args.iter().chain(flags).chain(&["-"]);
        self.vhost.mq(args).stdin(body).run().code(0);
    }

    fn worker(&self, flags: &[&str]) -> Mq {
        let args = ["consume", self.queue, "--topology", self.file];
        let handler = ["--exec", "python3", self.handler];
        self.vhost
            .mq(args.iter().chain(flags).chain(&handler))
            .env("PYTHONDONTWRITEBYTECODE", "1")
    }

    /// What rests in a dead-letter queue: body and reason, sorted.
    fn letters(&self, queue: &str) -> Vec<(String, String)> {
        let mut letters: Vec<(String, String)> = self
            .messages(queue)
            .iter()
            .map(|letter| {
                let text = |key: &str| letter.get(key).and_then(Json::as_str).unwrap().to_owned();
                (text("body"), text("error"))
            })
            .collect();
        letters.sort();
        letters
    }

    fn messages(&self, queue: &str) -> Vec<Json> {
        let found = self.vhost.inspect(queue);
        found
            .get("messages")
            .and_then(Json::as_array)
            .unwrap()
            .clone()
    }

    fn unbind(&self, exchange: &str, queue: &str, key: &str) {
        let path = ["bindings", &self.vhost.name, "e", exchange, "q", queue, key];
        self.vhost.api(Method::DELETE, &path, &json!({}));
    }
}

fn letter(body: &str, error: &str) -> (String, String) {
    (body.to_owned(), error.to_owned())
}

const TWO_FAULTS: &str = r#"{"device_id":"x","temperature":150.0,"timestamp":1700000000}"#;

const WHY_TWO_FAULTS: &str = r#"schema telemetry.schema.json: /device_id: "x" is shorter than 3 characters (minLength); /temperature: 150.0 is greater than the maximum of 100 (maximum)"#;

fn telemetry() -> Example {
    Example::new(
        "topologies/telemetry.yaml",
        "telemetry.ingest.queue",
        "topologies/handlers/ingest_reading.py",
    )
}

/// The data, the downstream and the broker, each with its own kind of failure.
#[test]
fn telemetry_tells_bad_readings_from_a_database_that_is_down() {
    let example = telemetry();
    let not_json = "{device_id: 'sensor-beta', temperature: NaN}";
    let held_up = r#"{"device_id":"db-fail","temperature":21.0,"timestamp":1700000003}"#;
    for body in [
        r#"{"device_id":"sensor-alpha","temperature":22.5,"timestamp":1700000000}"#,
        not_json,
        TWO_FAULTS,
        held_up,
    ] {
        example.publish("telemetry.exchange", "telemetry.hall.7", body);
    }
    let database = tempfile::NamedTempFile::new().unwrap();
    let path = database.path().to_owned();
    database.close().unwrap();
    let summary = example
        .worker(&["--until-empty", "-o", "json"])
        .env("TELEMETRY_DATABASE", &path)
        .run()
        .code(69)
        .says(&["downstream down: the database does not answer"])
        .json();
    let counts = ["acked", "retried", "released"].map(|count| summary.get(count).unwrap().clone());
    assert_eq!(counts, [json!(1), json!(0), json!(1)], "{summary}");
    assert_eq!(
        example.letters("dlq.events.queue"),
        [
            letter(TWO_FAULTS, WHY_TWO_FAULTS),
            letter(
                not_json,
                "schema telemetry.schema.json: the body is no JSON: key must be a string at line 1 column 2"
            ),
        ]
    );
    example.vhost.wait_for_ready("telemetry.ingest.queue", 1);
    // The database is back.
    std::fs::write(&path, "").unwrap();
    example
        .worker(&["--until-empty"])
        .env("TELEMETRY_DATABASE", &path)
        .run()
        .code(0)
        .shows(&["1 acked", "0 given back"]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(example.vhost.ready("telemetry.ingest.queue"), 0);
    assert_eq!(example.letters("dlq.events.queue").len(), 2);
}

#[test]
fn without_its_dead_letter_queue_telemetry_keeps_what_is_poison() {
    let example = telemetry();
    let unbind = || {
        let key = "dlq.events.routing";
        example.unbind("dlx.events.exchange", "dlq.events.queue", key);
    };
    // The binding goes while the worker runs.
    let worker = example.worker(&[]).spawn();
    wait_until("the worker to be there", || consumers(&example.vhost) == 1);
    unbind();
    example.publish("telemetry.exchange", "telemetry.hall.7", TWO_FAULTS);
    worker
        .wait()
        .code(67)
        .says(&["dlx.events.exchange", "given back", "topology apply"]);
    example.vhost.wait_for_ready("telemetry.ingest.queue", 1);
    // It is not there when a worker starts.
    example
        .worker(&["--until-empty"])
        .run()
        .code(2)
        .says(&["refusing to work queue 'telemetry.ingest.queue'"]);
    assert_eq!(example.vhost.ready("telemetry.ingest.queue"), 1);
    assert_eq!(example.vhost.ready("dlq.events.queue"), 0);
    example.apply();
    example
        .worker(&["--until-empty"])
        .run()
        .code(0)
        .shows(&["1 poison"]);
    assert_eq!(
        example.letters("dlq.events.queue"),
        [letter(TWO_FAULTS, WHY_TWO_FAULTS)]
    );
}

#[test]
fn the_state_of_an_agent_is_kept_with_its_correlation_id() {
    let example = Example::new(
        "topologies/antigravity-state.yaml",
        "q.antigravity.state",
        "topologies/handlers/keep_agent_state.py",
    );
    let state = |id: &str, status: &str, steps: &str| {
        format!(
            "{{\"task_id\":\"{id}\", \"parent_agent\":\"root\", \"current_agent\":\"planner\",\n \"payload\":{{\"status\":\"{status}\"}}, \"step_count\":{steps}, \"correlation_id\":\"corr-{id}\"}}"
        )
    };
    let invalid = state("T-2", "invalid", "2");
    let no_step = state("T-3", "running", "0");
    let incomplete = r#"{"task_id":"T-4","payload":[]}"#.to_owned();
    for (id, body) in [
        ("T-1", &state("T-1", "running", "1")),
        ("T-2", &invalid),
        ("T-3", &no_step),
        ("T-4", &incomplete),
    ] {
        let id = format!("corr-{id}");
        let flags = ["--correlation-id", &id];
        example.publish_with("ex.antigravity.work", "agent_state", &flags, body);
    }
    example
        .worker(&["--until-empty"])
        .run()
        .code(0)
        .shows(&["1 acked", "3 poison"]);
    let schema = "schema agent-state.schema.json: ";
    let mut expected = [
        ("corr-T-2", invalid, "exit 65: payload.status is invalid".to_owned()),
        (
            "corr-T-3",
            no_step,
            format!("{schema}/step_count: 0 is less than the minimum of 1 (minimum)"),
        ),
        (
            "corr-T-4",
            incomplete,
            format!(
                "{schema}/: \"parent_agent\" is missing (required); /: \"current_agent\" is missing (required); /: \"step_count\" is missing (required); /: \"correlation_id\" is missing (required); /payload: [] is not of type \"object\" (type)"
            ),
        ),
    ]
    .map(|(id, body, error)| (id.to_owned(), body, error));
    expected.sort();
    let mut found: Vec<(String, String, String)> = example
        .messages("q.antigravity.dlq")
        .iter()
        .map(|letter| {
            let text = |at: &str| {
                letter
                    .pointer(at)
                    .and_then(Json::as_str)
                    .unwrap()
                    .to_owned()
            };
            (
                text("/properties/correlation_id"),
                text("/body"),
                text("/error"),
            )
        })
        .collect();
    found.sort();
    assert_eq!(found, expected);
}

/// Each failed attempt hands what it mended to the next one.
#[test]
fn the_quality_gate_mends_code_within_three_attempts() {
    let example = Example::new(
        "topologies/code-processing.yaml",
        "code_submission_queue",
        "topologies/handlers/quality_gate.py",
    );
    let task = |id: &str, code: &str| json!({"task_id": id, "code": code}).to_string();
    for body in [
        task("fine", "x = 1\n"),
        task("mended", "def process_data(value)\n    return value * 2"),
        task("broken", "def f(:\n  ]"),
        json!({"task_id": "no-code"}).to_string(),
    ] {
        example.publish("code_processing_ex", "code.submitted", &body);
    }
    let flags = [
        "--retry-body",
        "result",
        "--result-exchange",
        "code_processing_ex",
        "--result-key",
        "code.valid",
        "--until-empty",
    ];
    example.worker(&flags).run().code(0).shows(&[
        "2 acked",
        "3 retried",
        "1 poison",
        "1 exhausted",
    ]);
    let args = ["consume", "valid_code_queue", "--print", "--until-empty"];
    let printed = example.vhost.mq(args).run().code(0).stdout;
    let mut valid: Vec<Json> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    valid.sort_by_key(ToString::to_string);
    let passed = |id: &str, code: &str, attempt: u32| json!({"task_id": id, "code": code, "attempt": attempt, "max_attempts": 3});
    assert_eq!(
        valid,
        [
            passed("fine", "x = 1\n", 1),
            passed(
                "mended",
                "def process_data(value):\n    return value * 2",
                2
            ),
        ]
    );
    let letters = example.messages("invalid_code_dlq");
    assert_eq!(letters.len(), 2, "{letters:#?}");
    let of = |id: &str| {
        let body = |letter: &&Json| letter.get("body").unwrap().to_string().contains(id);
        letters.iter().find(body).unwrap()
    };
    let broken = of("broken");
    assert_eq!(broken.get("attempts"), Some(&json!(3)));
    let error = broken.get("error").and_then(Json::as_str).unwrap();
    assert!(error.starts_with("exit 75: line "), "{error}");
    assert_eq!(
        of("no-code").get("error"),
        Some(&json!(
            "schema code-task.schema.json: /: \"code\" is missing (required)"
        ))
    );
}

#[test]
fn plans_of_pipelines_keep_their_contract() {
    let example = Example::new(
        "topologies/pipelines.yaml",
        "pipeline.plans",
        "topologies/handlers/run_plan.py",
    );
    let fine = r#"{"pipeline_id":"p-1","target_environment":"staging","steps":[{"step_number":1,"command":"redis-cli ping","timeout_seconds":30,"port":6379}]}"#;
    // JSON Schema counts a float without a fraction as an integer.
    let float = &fine.replace("6379", "6379.0");
    // A field that nobody knows does no harm.
    let extra = &fine.replace("{\"pipeline_id\"", "{\"confidence\":0.9,\"pipeline_id\"");
    let wrong = r#"{"pipeline_id":"p-2","target_environment":"prod","steps":[{"step_number":0,"command":"true","timeout_seconds":30},{"step_number":2,"timeout_seconds":301,"port":6379.5}]}"#;
    let empty = r#"{"pipeline_id":"p-3","target_environment":"production","steps":[]}"#;
    for body in [fine, float, extra, wrong, empty] {
        example.publish("pipelines", "plan.staging", body);
    }
    example
        .worker(&["--until-empty"])
        .run()
        .code(0)
        .shows(&["3 acked", "2 poison"])
        .says(&["staging: redis-cli ping at port 6379"]);
    let schema = "schema pipeline-plan.schema.json: ";
    assert_eq!(
        example.letters("pipeline.plans.dlq"),
        [
            letter(
                wrong,
                &format!(
                    "{schema}/target_environment: \"prod\" is not one of \"production\", \"staging\" or \"development\" (enum); /steps/0/step_number: 0 is less than the minimum of 1 (minimum); /steps/1: \"command\" is missing (required); /steps/1/timeout_seconds: 301 is greater than the maximum of 300 (maximum); /steps/1/port: 6379.5 is not of type \"integer\" (type)"
                )
            ),
            letter(
                empty,
                &format!("{schema}/steps: [] has less than 1 item (minItems)")
            ),
        ]
    );
}

#[test]
fn metric_events_are_completed_and_bad_ones_kept() {
    let example = Example::new(
        "topologies/metrics.yaml",
        "metrics.events",
        "topologies/handlers/complete_metric.py",
    );
    let wrong = r#"{"event_id":"e-2","device_id":"d-1","timestamp":"invalid_timestamp_string","metric_value":"NOT_A_FLOAT"}"#;
    for body in [
        r#"{"event_id":"e-1","device_id":"d-1","timestamp":1700000000.5,"metric_value":0.97}"#,
        wrong,
    ] {
        example.publish("metrics", "event.metric.cpu", body);
    }
    // Another key, another schema.
    example.publish("metrics", "event.reading.hall", TWO_FAULTS);
    let flags = [
        "--result-exchange",
        "metrics",
        "--result-key",
        "stored.metric",
        "--until-empty",
    ];
    example
        .worker(&flags)
        .run()
        .code(0)
        .shows(&["1 acked", "2 poison"]);
    assert_eq!(
        example.letters("metrics.events.dlq"),
        [
            letter(TWO_FAULTS, WHY_TWO_FAULTS),
            letter(
                wrong,
                "schema metric-event.schema.json: /timestamp: \"invalid_timestamp_string\" is not of type \"number\" (type); /metric_value: \"NOT_A_FLOAT\" is not of type \"number\" (type)"
            ),
        ]
    );
    let stored = example.messages("metrics.stored");
    let body = stored
        .first()
        .and_then(|one| one.get("body"))
        .and_then(Json::as_str);
    let event: Json = serde_json::from_str(body.unwrap()).unwrap();
    assert_eq!(event.get("status"), Some(&json!("ok")), "{event}");
    assert_eq!(stored.len(), 1);
}

/// A publisher that got no confirm sends again, at once or much later.
#[test]
fn the_same_order_twice_is_booked_once() {
    let example = Example::new(
        "topologies/order-process.yaml",
        "order.main.queue",
        "topologies/handlers/book_order.py",
    );
    let folder = tempfile::tempdir().unwrap();
    let book = folder.path().join("book");
    let store = folder.path().join("done.redb");
    let send = |id: &str, amount: u32| {
        let body = json!({"order_id": id, "amount": amount}).to_string();
        let flags = ["--message-id", id];
        example.publish_with("order.main.exchange", "order.process", &flags, &body);
    };
    let work = || {
        let store = store.to_str().unwrap();
        let dedupe = ["--dedupe", "message-id", "--dedupe-store", store];
        let ran = example
            .worker(
                &[
                    &dedupe[..],
                    &["--prefetch", "4", "--until-empty", "-o", "json"],
                ]
                .concat(),
            )
            .env("ORDER_BOOK", &book)
            .run()
            .code(0)
            .json();
        let count = |name: &str| ran.get(name).and_then(Json::as_u64).unwrap();
        (count("acked"), count("deduplicated"))
    };
    send("order-42", 100);
    send("order-42", 100);
    send("order-43", 5);
    assert_eq!(work(), (2, 1));
    send("order-42", 100);
    assert_eq!(work(), (0, 1));
    let booked = std::fs::read_to_string(&book).unwrap();
    let mut lines: Vec<&str> = booked.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["order-42 100", "order-43 5"]);
    assert!(example.messages("order.dlq.queue").is_empty());
}
