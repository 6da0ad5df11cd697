//! The log of a worker: one line for each message, and none that a message can write.
#![expect(
    clippy::expect_used,
    reason = "helpers outside #[test] functions read what mq wrote"
)]

use std::collections::BTreeMap;

use lapin::BasicProperties;
use serde_json::Value as Json;

use crate::consume::{DLX, IMMEDIATE, consume, of_type};
use crate::support::Script;
use crate::vhost::Vhost;

const HOSTILE: &str = "\x1b[2J\u{9b}31m\u{7f}\u{202e}\"}\n WARN forged";

/// Fails by body: `bad` is poison, `once` fails once, `later` asks for a pause
/// besides, `down` stops the worker.
const HANDLER: &str = "read -r body
case $body in
  bad) exit 65 ;;
  down) exit 69 ;;
  later) [ \"$MQ_ATTEMPT\" -gt 1 ] || { echo 200ms >\"$MQ_RETRY_AFTER\"; exit 1; } ;;
  once) [ \"$MQ_ATTEMPT\" -gt 1 ] || exit 1 ;;
esac";

fn with_messages(topology: &str, bodies: &[&str]) -> Vhost {
    let vhost = Vhost::new();
    vhost.apply(topology);
    let messages: Vec<_> = bodies
        .iter()
        .map(|body| {
            let id = format!("{body} {HOSTILE}");
            let properties = BasicProperties::default().with_message_id(id.into());
            (format!("{body}\n").into_bytes(), properties)
        })
        .collect();
    vhost.publish_raw("work", &messages);
    vhost
}

/// What was told of each message by JSON lines, which must be as they should.
fn told(stderr: &str) -> BTreeMap<String, Vec<String>> {
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in stderr.lines().filter(|line| line.starts_with('{')) {
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(!line.contains('\u{202e}'), "{line:?}");
        let object: Json = serde_json::from_str(line).expect(line);
        let object = object.as_object().expect("an object");
        for key in ["timestamp", "level", "message"] {
            assert!(object[key].is_string(), "{line}");
        }
        let is_flat = |value: &Json| !value.is_object() && !value.is_array();
        assert!(object.values().all(is_flat), "{line}");
        if object["message"] == "message handled" || object["message"] == "attempt failed" {
            let id = object["message_id"].as_str().expect(line);
            let (body, rest) = id.split_once(' ').expect(line);
            assert_eq!(rest, HOSTILE);
            assert_eq!(object["queue"], "work");
            assert_eq!(object["of"], 5);
            assert!(object["seconds"].is_f64(), "{line}");
            let outcome = object["outcome"].as_str().expect(line);
            assert_eq!(object.contains_key("why"), outcome != "done", "{line}");
            let level = object["level"].as_str().expect(line);
            let entry = format!("{level} {outcome} {}", object["attempt"]);
            told.entry(body.to_owned()).or_default().push(entry);
        }
    }
    told
}

fn expected(all: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let lines = |told: &[&str]| told.iter().map(|line| (*line).to_owned()).collect();
    all.iter()
        .map(|(body, told)| ((*body).to_owned(), lines(told)))
        .collect()
}

const JSON_LINES: [&str; 3] = ["-v", "--log-format", "json"];

#[test]
fn each_line_is_a_flat_object_with_the_outcome() {
    let bodies = ["good", "bad", "once", "later", "down"];
    let vhost = with_messages(&of_type(IMMEDIATE, "classic"), &bodies);
    let ran = consume(&vhost, &JSON_LINES, &Script::new(HANDLER))
        .run()
        .code(69);
    let expected = expected(&[
        ("bad", &["WARN poison 1", "INFO dead_lettered 1"]),
        ("down", &["WARN downstream_down 1", "INFO released 1"]),
        ("good", &["INFO done 1"]),
        ("later", &["WARN failed 1", "INFO retried 1", "INFO done 2"]),
        ("once", &["WARN failed 1", "INFO retried 1", "INFO done 2"]),
    ]);
    assert_eq!(told(&ran.stderr), expected, "{}", ran.stderr);
}

/// Of a quorum queue by a nack, of a classic one by a copy that is confirmed.
#[test]
fn a_retry_through_the_broker_is_told_as_one() {
    for kind in ["quorum", "classic"] {
        let vhost = with_messages(&of_type(DLX, kind), &["good", "bad", "once"]);
        let mut args = JSON_LINES.to_vec();
        args.push("--until-empty");
        let ran = consume(&vhost, &args, &Script::new(HANDLER)).run().code(0);
        let expected = expected(&[
            ("bad", &["WARN poison 1", "INFO dead_lettered 1"]),
            ("good", &["INFO done 1"]),
            ("once", &["WARN failed 1", "INFO retried 1", "INFO done 2"]),
        ]);
        assert_eq!(told(&ran.stderr), expected, "{kind}: {}", ran.stderr);
    }
}

#[test]
fn a_message_drives_no_terminal_and_forges_no_line() {
    let vhost = with_messages(
        &of_type(IMMEDIATE, "classic"),
        &["good", "bad", "once", "down"],
    );
    let ran = consume(&vhost, &["-v"], &Script::new(HANDLER))
        .run()
        .code(69);
    assert!(
        ran.stderr.contains("outcome=\"dead_lettered\""),
        "{}",
        ran.stderr
    );
    for line in ran.stderr.lines() {
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(!line.contains('\u{202e}'), "{line:?}");
        assert!(!line.starts_with(" WARN forged"), "{line:?}");
    }
}

#[test]
fn without_v_only_failures_are_told() {
    let vhost = with_messages(&of_type(IMMEDIATE, "classic"), &["good", "bad"]);
    let ran = consume(&vhost, &["--until-empty"], &Script::new(HANDLER))
        .run()
        .code(0);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("attempt failed"), "{}", ran.stderr);
}
