#![expect(
    clippy::disallowed_methods,
    reason = "tests measure that hostile bodies take no time"
)]

use std::time::{Duration, Instant};

use serde_json::json;

use super::*;
use crate::message::Properties;
use crate::topology::RoutingKey;

fn schema(text: &str) -> Schema {
    Schema::compile("s.json", text.as_bytes()).unwrap_or_else(|invalid| panic!("{text}: {invalid}"))
}

/// Why the body breaks the schema, without the schema's name; empty: it fits.
fn why(text: &str, body: &str) -> String {
    let reason = schema(text).broken_by(body.as_bytes(), None);
    reason.map_or_else(String::new, |reason| {
        reason
            .strip_prefix("schema s.json: ")
            .expect("name")
            .to_owned()
    })
}

const READING: &str = r#"{
  "type": "object",
  "required": ["device_id", "temperature", "timestamp"],
  "properties": {
    "device_id": { "type": "string", "minLength": 3, "maxLength": 50 },
    "temperature": { "type": "number", "minimum": -50, "maximum": 100 },
    "timestamp": { "type": "integer" }
  }
}"#;

#[test]
fn a_reason_names_each_path_and_rule() {
    for (body, expected) in [
        (
            r#"{"device_id":"abc","temperature":1.5,"timestamp":1700000000,"more":[1]}"#,
            "",
        ),
        (
            r#"{"device_id":"x","temperature":150.0,"timestamp":1700000000}"#,
            r#"/device_id: "x" is shorter than 3 characters (minLength); /temperature: 150.0 is greater than the maximum of 100 (maximum)"#,
        ),
        (
            r#"{"device_id":"abc","temperature":1,"timestamp":"now"}"#,
            r#"/timestamp: "now" is not of type "integer" (type)"#,
        ),
        (
            r#"{"temperature":1,"timestamp":2}"#,
            r#"/: "device_id" is missing (required)"#,
        ),
        ("[]", r#"/: [] is not of type "object" (type)"#),
        (
            r#"{"device_id":"abc","temperature":NaN,"timestamp":2}"#,
            "the body is no JSON: expected value at line 1 column 34",
        ),
        ("", "the body is no JSON: it is empty"),
        (
            "{\n\"a\":\n}",
            "the body is no JSON: expected value at line 3 column 1",
        ),
    ] {
        assert_eq!(why(READING, body), expected, "{body}");
    }
}

#[test]
fn a_body_in_an_encoding_is_told_to_be_one() {
    let schema = schema("{}");
    for (body, encoding, expected) in [
        (
            b"\x1f\x8b\x08".as_slice(),
            Some("gzip"),
            "schema s.json: the body is no JSON: not UTF-8 at line 1 column 2 (its content_encoding is gzip; what is encoded cannot be checked)",
        ),
        (
            b"{}\n \xff",
            Some("UTF-8"),
            "schema s.json: the body is no JSON: not UTF-8 at line 2 column 2",
        ),
        (
            b"{",
            Some("a\n\x1bb"),
            "schema s.json: the body is no JSON: EOF while parsing an object at line 1 column 1 (its content_encoding is a\\n\\u{1b}b; what is encoded cannot be checked)",
        ),
    ] {
        assert_eq!(schema.broken_by(body, encoding).as_deref(), Some(expected));
    }
    assert_eq!(schema.broken_by(b"{}", Some("gzip")), None);
}

#[test]
fn each_rule_has_words() {
    for (schema, body, expected) in [
        (
            r#"{"enum":["a","b"]}"#,
            "3",
            r#"/: 3 is not one of "a" or "b" (enum)"#,
        ),
        (r#"{"const":1}"#, "2", "/: 1 was expected (const)"),
        (
            r#"{"properties":{"b":{}},"additionalProperties":false}"#,
            r#"{"a":1}"#,
            "/: Additional properties are not allowed ('a' was unexpected) (additionalProperties)",
        ),
        (
            r#"{"properties":{"a":{"items":{"multipleOf":2}}}}"#,
            r#"{"a":[2,3]}"#,
            "/a/1: 3 is not a multiple of 2 (multipleOf)",
        ),
        (
            r#"{"properties":{"a":false}}"#,
            r#"{"a":1}"#,
            "/a: 1 is not allowed here (false)",
        ),
        (
            r#"{"anyOf":[{"type":"null"},{"minimum":5}]}"#,
            "4",
            "/: 4 is not valid under any of the schemas listed in the 'anyOf' keyword (anyOf)",
        ),
        (
            r#"{"pattern":"^[a-z]+$"}"#,
            r#""A""#,
            r#"/: "A" does not match "^[a-z]+$" (pattern)"#,
        ),
        (
            r#"{"propertyNames":{"maxLength":1}}"#,
            r#"{"ab":1}"#,
            r#"/: "ab" is longer than 1 character (propertyNames)"#,
        ),
    ] {
        assert_eq!(why(schema, body), expected);
    }
}

/// Draft-07 is what `$schema` says; nothing said is 2020-12.
#[test]
fn drafts_differ() {
    let seven = r#""$schema":"http://json-schema.org/draft-07/schema#""#;
    let twenty = r#""$schema":"https://json-schema.org/draft/2020-12/schema""#;
    for (rules, body, fits_seven, fits_twenty) in [
        // A list of schemas for the first items has another name.
        (r#""prefixItems":[{"type":"string"}]"#, "[1]", true, false),
        (r#""exclusiveMinimum":5"#, "5", false, false),
        (
            r#""dependentRequired":{"a":["b"]}"#,
            r#"{"a":1}"#,
            true,
            false,
        ),
        (r#""dependencies":{"a":["b"]}"#, r#"{"a":1}"#, false, false),
        // Formats are rules in draft-07 and remarks since.
        (r#""format":"date-time""#, r#""yesterday""#, false, true),
        // Beside a $ref nothing counts in draft-07.
        (
            r##""$ref":"#/definitions/d","definitions":{"d":{}},"type":"string""##,
            "1",
            true,
            false,
        ),
    ] {
        for (draft, fits) in [(seven, fits_seven), (twenty, fits_twenty)] {
            let schema = schema(&format!("{{{draft},{rules}}}"));
            let found = schema.broken_by(body.as_bytes(), None);
            assert_eq!(found.is_none(), fits, "{draft} {rules} {body}: {found:?}");
        }
        let unnamed = schema(&format!("{{{rules}}}"));
        assert_eq!(
            unnamed.broken_by(body.as_bytes(), None).is_none(),
            fits_twenty
        );
    }
    // A list under `items` is draft-07 only.
    let list = |draft: &str| format!(r#"{{{draft},"items":[{{"type":"string"}}]}}"#);
    assert_ne!(why(&list(seven), "[1]"), "");
    assert!(Schema::compile("s", list(twenty).as_bytes()).is_err());
}

#[test]
fn numbers_are_what_json_schema_says() {
    let integer = r#"{"type":"integer"}"#;
    for fits in [
        "6379",
        "6379.0",
        "1e3",
        "123456789012345678901234567890",
        "-0",
    ] {
        assert_eq!(why(integer, fits), "", "{fits}");
    }
    for (body, expected) in [
        ("6379.5", r#"/: 6379.5 is not of type "integer" (type)"#),
        (
            "1e400",
            "the body is no JSON: number out of range at line 1 column 5",
        ),
        (
            "Infinity",
            "the body is no JSON: expected value at line 1 column 1",
        ),
        (
            "01",
            "the body is no JSON: invalid number at line 1 column 2",
        ),
    ] {
        assert_eq!(why(integer, body), expected, "{body}");
    }
    // Of equal keys the last counts.
    let schema = r#"{"properties":{"a":{"type":"integer"}}}"#;
    assert_eq!(why(schema, r#"{"a":"x","a":1}"#), "");
    assert_ne!(why(schema, r#"{"a":1,"a":"x"}"#), "");
}

#[test]
fn what_does_not_fit_is_counted() {
    let schema = r#"{"items":{"type":"string"}}"#;
    let body = format!("[{}]", vec!["1"; 100].join(","));
    let reason = why(schema, &body);
    assert!(reason.starts_with(r#"/0: 1 is not of type "string" (type); /1: "#));
    let told = reason.matches("(type)").count();
    assert!(
        reason.ends_with(&format!("(type); and {} more", 100 - told)),
        "{reason}"
    );
    assert!((20..100).contains(&told) && reason.len() < 1000, "{reason}");
}

#[test]
fn values_and_names_are_cut_and_cannot_drive_a_terminal() {
    let long = format!(r#"{{"a":"{}"}}"#, "é".repeat(1_000_000));
    let reason = why(r#"{"properties":{"a":{"maxLength":5}}}"#, &long);
    assert!(reason.len() < 300, "{reason}");
    assert!(reason.starts_with("/a: \"ééé"), "{reason}");
    assert!(
        reason.ends_with("é…\" is longer than 5 characters (maxLength); of a body this large no more is looked for"),
        "{reason}"
    );
    let key = "k\u{202e}\\u001b[2J".repeat(500);
    for (schema, body) in [
        (
            r#"{"additionalProperties":{"type":"null"}}"#,
            format!(r#"{{"{key}":1}}"#),
        ),
        (
            r#"{"additionalProperties":false}"#,
            format!(r#"{{"{key}":1}}"#),
        ),
        (r#"{"type":"null"}"#, format!(r#"["{key}"]"#)),
        (
            r#"{"propertyNames":{"maxLength":3}}"#,
            format!(r#"{{"{key}":1}}"#),
        ),
        (r#"{"type":"null"}"#, "\"\u{9b}31m\u{7f}\"".to_owned()),
        (
            r#"{"type":"null"}"#,
            format!("[{}]", "[1],".repeat(99) + "1"),
        ),
    ] {
        let reason = why(schema, &body);
        assert!(reason.chars().count() < 500, "{reason}");
        assert!(
            !reason.contains(|c: char| c.is_control() || c == '\u{202e}'),
            "{reason}"
        );
    }
    // A name of four bytes a character does not push the reason out.
    let schema = Schema::compile(&"🦀".repeat(300), b"{\"type\":\"null\"}").expect("schema");
    let reason = schema
        .broken_by(format!("\"{}\"", "🦀".repeat(300)).as_bytes(), None)
        .expect("broken");
    assert!(
        reason.len() <= 1000 && reason.contains("🦀…\" is not of type"),
        "{reason}"
    );
}

/// None of it may hang, crash or eat the machine.
#[test]
fn hostile_bodies_and_schemas_do_no_harm() {
    let began = Instant::now();
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let endless = r##"{"items":{"$ref":"#"}}"##;
    assert_eq!(why(endless, &deep(127)), "");
    assert_eq!(
        why(endless, &deep(100_000)),
        "the body is no JSON: recursion limit exceeded at line 1 column 128"
    );
    // 10 MB that fit, and 10 MB of which nothing fits.
    let many = format!("[{}1]", "1,".repeat(5_000_000));
    assert_eq!(why(r#"{"items":{"type":"integer"}}"#, &many), "");
    assert_eq!(
        why(r#"{"items":{"type":"string"}}"#, &many),
        "/0: 1 is not of type \"string\" (type); of a body this large no more is looked for"
    );
    let one = format!("\"{}\"", "x".repeat(10_000_000));
    assert_ne!(why(r#"{"type":"integer"}"#, &one), "");
    // Equal items are looked for among many.
    let distinct: Vec<String> = (0..200_000).map(|n| format!("[{n}]")).collect();
    assert_eq!(
        why(
            r#"{"uniqueItems":true}"#,
            &format!("[{}]", distinct.join(","))
        ),
        ""
    );
    assert!(
        began.elapsed() < Duration::from_mins(2),
        "{:?}",
        began.elapsed()
    );
}

/// Patterns that take for ever elsewhere, one string after another.
#[test]
fn no_pattern_takes_for_ever() {
    let began = Instant::now();
    for pattern in ["^(a+)+$", "^((a|b|ab)*)*c$", "^(.*)*x{50}$"] {
        let schema = json!({
            "items": { "pattern": pattern },
            "patternProperties": { (pattern): false },
        });
        let strings: Vec<String> = (0..2000)
            .map(|n| format!("{}!{n}", "a".repeat(100)))
            .collect();
        let reason = why(&schema.to_string(), &json!(strings).to_string());
        assert!(
            reason.starts_with("/0: ") && reason.ends_with(" more"),
            "{reason}"
        );
        let long = "a".repeat(1_000_000) + "!";
        let object = json!({ (long.as_str()): long });
        assert_eq!(why(&schema.to_string(), &object.to_string()), "");
        assert_ne!(why(&schema.to_string(), &json!([long]).to_string()), "");
    }
    assert!(
        began.elapsed() < Duration::from_mins(1),
        "{:?}",
        began.elapsed()
    );
}

/// It says nothing about anything, and must not be followed for ever.
#[test]
fn a_reference_that_leads_to_itself_ends() {
    for text in [
        r##"{"$ref":"#"}"##,
        r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"not":{"$ref":"#"}}"##,
    ] {
        if let Ok(schema) = Schema::compile("s", text.as_bytes()) {
            for body in ["1", "{\"a\":[1]}"] {
                let _ = schema.broken_by(body.as_bytes(), None);
            }
        }
    }
}

#[test]
fn what_is_no_schema_is_told_where() {
    for (text, expected) in [
        (
            r#"{"properties":{"a":{"type":"strng"}}}"#,
            r#"/properties/a/type: "strng" is not valid under any of the schemas listed in the 'anyOf' keyword (anyOf)"#,
        ),
        (
            r#"{"minLength":-1}"#,
            "/minLength: -1 is less than the minimum of 0 (minimum)",
        ),
        ("{", "EOF while parsing an object at line 1 column 1"),
        ("", "it is empty"),
        (
            r#"{"$ref":"https://example.com/other.json#/a"}"#,
            "its $ref leads to https://example.com/other.json, out of the file",
        ),
        (
            r#"{"properties":{"a":{"$ref":"other.json"}}}"#,
            "its $ref leads to other.json, out of the file",
        ),
        (
            r##"{"$ref":"#/$defs/a"}"##,
            "Pointer '/$defs/a' does not exist",
        ),
        (
            r#"{"$schema":"https://example.com/mine"}"#,
            "its $schema, https://example.com/mine, is no draft that mq knows",
        ),
        (
            r#"{"pattern":"("}"#,
            r#"/pattern: "(" is no pattern that mq takes: without look-around and back-references"#,
        ),
        (
            r#"{"properties":{"a":{"pattern":"^(?=a)"}}}"#,
            r#"/properties/a/pattern: "^(?=a)" is no pattern that mq takes: without look-around and back-references"#,
        ),
        (
            r#"{"patternProperties":{"(a)\\1":true}}"#,
            r#"/patternProperties/(a)\1: "(a)\\1" is no pattern that mq takes: without look-around and back-references"#,
        ),
        ("3", r#"/: 3 is not of types "boolean", "object" (type)"#),
    ] {
        let found = Schema::compile("s.json", text.as_bytes()).err();
        let found = found.map_or_else(String::new, |invalid| invalid.to_string());
        assert_eq!(found, expected, "{text}");
    }
    // References within are fine.
    for fine in [
        r##"{"$defs":{"a":{"type":"null"}},"$ref":"#/$defs/a"}"##,
        r#"{"$id":"https://example.com/s","$defs":{"a":{"$id":"a.json"}},"$ref":"a.json"}"#,
        "true",
    ] {
        schema(fine);
    }
}

fn delivery(key: &str, kind: Option<&str>, body: &str) -> Delivery {
    Delivery {
        exchange: "in".to_owned(),
        routing_key: key.to_owned(),
        redelivered: false,
        properties: Properties {
            kind: kind.map(str::to_owned),
            ..Properties::default()
        },
        body: body.as_bytes().to_vec(),
    }
}

#[test]
fn the_first_rule_that_is_about_a_message_counts() {
    let mut contracts = Contracts::default();
    for (key, kind, name) in [
        (Some("order.*"), Some("v2"), "both"),
        (Some("order.#"), None, "key"),
        (None, Some("v2"), "kind"),
    ] {
        let rule = SchemaRule {
            key: key.map(|key| RoutingKey::new(key).expect("key")),
            kind: kind.map(str::to_owned),
            file: name.to_owned(),
        };
        let schema = Schema::compile(name, b"false").expect("schema");
        contracts.add(rule, Arc::new(schema));
    }
    let queue = QueueName::new("work").expect("name");
    for (key, kind, expected) in [
        ("order.new", Some("v2"), Some("both")),
        ("order.new", Some("v1"), Some("key")),
        ("order.new", None, Some("key")),
        ("order.new.eu", Some("v2"), Some("key")),
        ("mail", Some("v2"), Some("kind")),
        ("mail", None, None),
        ("mail", Some("V2"), None),
    ] {
        let found = contracts.broken_by(&queue, &delivery(key, kind, "{}"));
        let expected =
            expected.map(|name| format!("schema {name}: /: {{}} is not allowed here (false)"));
        assert_eq!(found, expected, "{key} {kind:?}");
    }
    // Back from its wait queue it has another key, and is the same message.
    let mut retried = delivery("work", None, "{}");
    retried.properties.headers = crate::field::table_from_json(
        json!({"x-death": [
            {"queue": "wait", "reason": "expired", "count": 1, "exchange": "dlx", "routing-keys": ["retry"]},
            {"queue": "work", "reason": "rejected", "count": 1, "exchange": "in", "routing-keys": ["order.new"]}
        ]})
        .as_object()
        .expect("object"),
    );
    let found = contracts.broken_by(&queue, &retried).expect("broken");
    assert!(found.starts_with("schema key:"), "{found}");
    // What nobody has a rule for is not even read.
    assert_eq!(
        contracts.broken_by(&queue, &delivery("mail", None, "no JSON")),
        None
    );
}
