use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::field::FieldValue;
use crate::message::{Delivery, Properties};
use crate::topology::QueueName;

fn job(properties: Properties, body: &[u8]) -> Job {
    Job {
        queue: QueueName::new("q").expect("queue"),
        tag: 1,
        delivery: Arc::new(Delivery {
            exchange: "e".to_owned(),
            routing_key: "k".to_owned(),
            redelivered: true,
            properties,
            body: body.to_vec(),
        }),
        attempt: 2,
        max_attempts: 3,
        wants_result: false,
    }
}

fn line(id: u64, job: &Job) -> Vec<u8> {
    let mut line = Vec::new();
    encode(&mut line, id, job).expect("a vector takes everything");
    line
}

fn parsed(line: &[u8]) -> Json {
    serde_json::from_slice(line).expect("json")
}

#[test]
fn a_message_is_one_line_under_the_names_of_printed_messages() {
    let properties = Properties {
        message_id: Some("m\n".to_owned()),
        kind: Some("t".to_owned()),
        headers: [("h".to_owned(), FieldValue::text("v"))].into(),
        ..Properties::default()
    };
    assert_eq!(
        String::from_utf8(line(7, &job(properties, "é\r\n\"".as_bytes()))).expect("text"),
        concat!(
            r#"{"v":1,"id":7,"queue":"q","exchange":"e","routing_key":"k","attempt":2,"max_attempts":3,"#,
            r#""redelivered":true,"properties":{"message_id":"m\n","type":"t"},"headers":{"h":"v"},"#,
            r#""body":"é\r\n\"","body_encoding":"text"}"#,
            "\n"
        )
    );
}

#[test]
fn a_retried_message_shows_the_route_it_first_came_by() {
    let death = json!([
        {"queue": "wait", "reason": "expired", "count": 1, "exchange": "dlx", "routing-keys": ["retry"]},
        {"queue": "q", "reason": "rejected", "count": 1, "exchange": "orders", "routing-keys": ["new"]},
    ]);
    let properties = Properties {
        headers: [("x-death".to_owned(), FieldValue::from_json(&death))].into(),
        ..Properties::default()
    };
    let json = parsed(&line(1, &job(properties, b"")));
    assert_eq!(
        (&json["exchange"], &json["routing_key"]),
        (&json!("orders"), &json!("new"))
    );
}

#[test]
fn an_answer_means_its_outcome() {
    let failed = |why: &str, wait| Outcome::Failed {
        why: why.to_owned(),
        wait,
    };
    let why = |why: &str| why.to_owned();
    for (said, expected) in [
        (r#"{"id":7,"outcome":"done"}"#, Outcome::Done),
        (
            "\t{\"outcome\":\"done\",\"id\":7,\"reason\":null,\"result\":null}\r",
            Outcome::Done,
        ),
        (
            r#"{"id":7,"outcome":"retry","reason":"busy","retry_after":"1m 30s"}"#,
            failed("busy", Some(Duration::from_secs(90))),
        ),
        (
            r#"{"id":7,"outcome":"retry","reason":" ","retry_after":0.25}"#,
            failed(
                "the handler said 'retry' without a reason",
                Some(Duration::from_millis(250)),
            ),
        ),
        (
            r#"{"id":7,"outcome":"retry","reason":"x","retry_after":null}"#,
            failed("x", None),
        ),
        (
            r#"{"id":7,"outcome":"poison","reason":"no id"}"#,
            Outcome::Poison { why: why("no id") },
        ),
        (
            r#"{"id":7,"outcome":"stop","reason":"database is down"}"#,
            Outcome::DownstreamDown {
                why: why("database is down"),
            },
        ),
    ] {
        let answer = decode(said.as_bytes(), 7).expect(said);
        assert_eq!(answer.outcome, expected, "{said}");
        assert_eq!(answer.result, None);
    }
}

#[test]
fn an_answer_may_give_something_back() {
    for (result, body, content_type) in [
        (r#"{"body":"é"}"#, "é".as_bytes(), None),
        (
            r#"{"body":"a","body_encoding":"text","content_type":"text/plain"}"#,
            b"a",
            Some("text/plain"),
        ),
        (
            r#"{"body":"/wA=","body_encoding":"base64"}"#,
            b"\xff\x00",
            None,
        ),
    ] {
        let said = format!(r#"{{"id":7,"outcome":"done","result":{result}}}"#);
        let expected = HandlerResult {
            body: body.to_vec(),
            content_type: content_type.map(str::to_owned),
        };
        let answer = decode(said.as_bytes(), 7).expect(&said);
        assert_eq!(answer.result, Some(expected));
    }
}

#[test]
fn what_is_not_understood_is_quoted_with_what_was_expected() {
    for (said, what) in [
        ("", "EOF"),
        ("hello", "expected value"),
        ("[]", "invalid"),
        (r#"{"id":7}"#, "missing field `outcome`"),
        (r#"{"outcome":"done"}"#, "missing field `id`"),
        (
            r#"{"id":6,"outcome":"done"}"#,
            "it answered message 6, not 7",
        ),
        (r#"{"id":"7","outcome":"done"}"#, "expected u64"),
        (r#"{"id":7,"outcome":"ok"}"#, "unknown variant `ok`"),
        (
            r#"{"id":7,"outcome":"done","retry":1}"#,
            "unknown field `retry`",
        ),
        (r#"{"id":7,"outcome":"done"} {}"#, "trailing characters"),
        (
            r#"{"id":7,"id":7,"outcome":"done"}"#,
            "duplicate field `id`",
        ),
        (
            r#"{"id":7,"outcome":"retry","retry_after":"soon"}"#,
            "retry_after",
        ),
        (
            r#"{"id":7,"outcome":"retry","retry_after":-1}"#,
            "retry_after",
        ),
        (
            r#"{"id":7,"outcome":"retry","retry_after":1e300}"#,
            "retry_after",
        ),
        (
            r#"{"id":7,"outcome":"done","result":{"body":"!","body_encoding":"base64"}}"#,
            "not base64",
        ),
        (
            r#"{"id":7,"outcome":"done","result":{}}"#,
            "missing field `body`",
        ),
    ] {
        let why = decode(said.as_bytes(), 7).expect_err(said);
        for part in [
            what,
            &format!("it said '{said}'"),
            r#"where {"id":7,"outcome":"done"|"retry"|"poison"|"stop",…} was expected"#,
        ] {
            assert!(why.contains(part), "{part:?} is not in {why:?}");
        }
    }
    let why = decode(b"\x1b[31m\xff", 7).expect_err("no JSON");
    assert!(why.contains("\\u{1b}[31m\u{fffd}"), "{why}");
    let said = format!(r#"{{"id":7,"outcome":"\u001b{}"}}"#, "x".repeat(1 << 20));
    let why = decode(said.as_bytes(), 7).expect_err("no outcome");
    assert!(why.contains("`\\u{1b}xx") && why.len() < 1000, "{why}");
    let why = decode("é".repeat(1 << 20).as_bytes(), 7).expect_err("no JSON");
    assert!(why.contains("é…") && why.len() < 1000, "{why}");
}

#[test]
fn a_reason_without_end_is_cut() {
    let said = format!(
        r#"{{"id":7,"outcome":"poison","reason":"{}"}}"#,
        "é".repeat(5000)
    );
    let answer = decode(said.as_bytes(), 7).expect("an answer");
    let why = format!("{}…", "é".repeat(LONGEST_REASON));
    assert_eq!(answer.outcome, Outcome::Poison { why });
}

proptest! {
    #[test]
    fn every_body_survives_on_one_line(body in prop_oneof![
        any::<String>().prop_map(String::into_bytes),
        any::<Vec<u8>>(),
    ]) {
        let line = line(1, &job(Properties::default(), &body));
        let (end, text) = line.split_last().expect("a line end");
        prop_assert_eq!(*end, b'\n');
        prop_assert!(!text.contains(&b'\n') && !text.contains(&b'\r'));
        let json = parsed(&line);
        let shown = json["body"].as_str().expect("text");
        let back = match json["body_encoding"].as_str() {
            Some("text") => shown.as_bytes().to_vec(),
            _ => BASE64.decode(shown).expect("base64"),
        };
        prop_assert_eq!(back, body);
    }

    #[test]
    fn no_line_breaks_the_reader(said in any::<Vec<u8>>(), id in any::<u64>()) {
        let why = decode(&said, id).expect_err("chance makes no answer");
        prop_assert!(!why.chars().any(char::is_control));
    }

    #[test]
    fn a_result_comes_back_byte_for_byte(body in any::<Vec<u8>>(), id in any::<u64>()) {
        let said = json!({
            "id": id,
            "outcome": "done",
            "result": { "body": BASE64.encode(&body), "body_encoding": "base64" },
        });
        let answer = decode(said.to_string().as_bytes(), id).expect("an answer");
        prop_assert_eq!(answer.result.expect("a result").body, body);
    }
}
