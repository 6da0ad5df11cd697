//! The log of a worker: one line for each message, and none that a message can write.

use std::collections::BTreeMap;

use lapin::BasicProperties;
use serde_json::Value as Json;

use crate::consume::{IMMEDIATE, consume, of_type};
use crate::support::Script;
use crate::vhost::Vhost;

const HOSTILE: &str = "\x1b[2J\u{9b}31m\u{7f}\u{202e}\"}\n WARN forged";

/// Fails by body: `bad` is poison, `once` fails once, `down` stops the worker.
const HANDLER: &str = "read -r body
case $body in
  bad) exit 65 ;;
  down) exit 69 ;;
  once) [ \"$MQ_ATTEMPT\" -gt 1 ] || exit 1 ;;
esac";

fn with_messages(bodies: &[&str]) -> Vhost {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
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

#[test]
fn each_line_is_a_flat_object_with_the_outcome() {
    let vhost = with_messages(&["good", "bad", "once", "down"]);
    let ran = consume(
        &vhost,
        &["-v", "--log-format", "json"],
        &Script::new(HANDLER),
    )
    .run()
    .code(69);
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in ran.stderr.lines().filter(|line| line.starts_with('{')) {
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
            let (body, rest) = object["message_id"]
                .as_str()
                .expect(line)
                .split_once(' ')
                .expect(line);
            assert_eq!(rest, HOSTILE);
            assert_eq!(object["queue"], "work");
            assert_eq!(object["of"], 5);
            assert!(
                object["attempt"].is_u64() && object["seconds"].is_f64(),
                "{line}"
            );
            let outcome = object["outcome"].as_str().expect(line);
            assert_eq!(object.contains_key("why"), outcome != "done", "{line}");
            let level = object["level"].as_str().expect(line);
            let told = format!("{level} {outcome} {}", object["attempt"]);
            seen.entry(body.to_owned()).or_default().push(told);
        }
    }
    let expected = [
        ("bad", vec!["WARN poison 1", "INFO dead_lettered 1"]),
        ("down", vec!["WARN downstream_down 1", "INFO released 1"]),
        ("good", vec!["INFO done 1"]),
        (
            "once",
            vec!["WARN failed 1", "INFO retried 1", "INFO done 2"],
        ),
    ];
    let seen: Vec<(&str, Vec<&str>)> = seen
        .iter()
        .map(|(body, told)| (body.as_str(), told.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(seen, expected, "{}", ran.stderr);
}

#[test]
fn a_message_drives_no_terminal_and_forges_no_line() {
    let vhost = with_messages(&["good", "bad", "once", "down"]);
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
    let vhost = with_messages(&["good", "bad"]);
    let ran = consume(&vhost, &["--until-empty"], &Script::new(HANDLER))
        .run()
        .code(0);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("attempt failed"), "{}", ran.stderr);
}
