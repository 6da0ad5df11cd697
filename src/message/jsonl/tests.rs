use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::field::{FieldTable, FieldValue};

/// The same with floats as their bits: NaN is the same as itself.
fn bits(value: &FieldValue) -> FieldValue {
    match value {
        FieldValue::F32(n) => FieldValue::text(format!("f32 {:08x}", n.to_bits())),
        FieldValue::F64(n) => FieldValue::text(format!("f64 {:016x}", n.to_bits())),
        FieldValue::Array(items) => FieldValue::Array(items.iter().map(bits).collect()),
        FieldValue::Table(table) => FieldValue::Table(table_bits(table)),
        other => other.clone(),
    }
}

fn table_bits(table: &FieldTable) -> FieldTable {
    table
        .iter()
        .map(|(name, value)| (name.clone(), bits(value)))
        .collect()
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,12}",
        Just("$int8".to_owned()),
        Just("$table".to_owned()),
        Just("$".to_owned()),
        Just("é".repeat(127)),
        any::<String>().prop_map(|text| text.chars().take(60).collect()),
    ]
}

fn value() -> impl Strategy<Value = FieldValue> {
    let leaf = prop_oneof![
        Just(FieldValue::Void),
        any::<bool>().prop_map(FieldValue::Bool),
        any::<i8>().prop_map(FieldValue::I8),
        any::<u8>().prop_map(FieldValue::U8),
        any::<i16>().prop_map(FieldValue::I16),
        any::<u16>().prop_map(FieldValue::U16),
        any::<i32>().prop_map(FieldValue::I32),
        any::<u32>().prop_map(FieldValue::U32),
        any::<i64>().prop_map(FieldValue::I64),
        (-5_i64..5).prop_map(|near| FieldValue::I64((1 << 53) + near)),
        any::<u32>().prop_map(|bits| FieldValue::F32(f32::from_bits(bits))),
        any::<u64>().prop_map(|bits| FieldValue::F64(f64::from_bits(bits))),
        Just(FieldValue::F32(f32::NAN)),
        Just(FieldValue::F64(f64::NEG_INFINITY)),
        Just(FieldValue::F64(-0.0)),
        (any::<u8>(), any::<u32>()).prop_map(|(scale, value)| FieldValue::Decimal { scale, value }),
        any::<String>().prop_map(FieldValue::text),
        vec(any::<u8>(), 0..20).prop_map(FieldValue::LongStr),
        vec(any::<u8>(), 0..20).prop_map(FieldValue::Bytes),
        any::<u64>().prop_map(FieldValue::Timestamp),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(FieldValue::Array),
            btree_map(name(), inner, 0..4).prop_map(FieldValue::Table),
        ]
    })
}

fn text() -> impl Strategy<Value = Option<String>> {
    option::of(prop_oneof![
        any::<String>().prop_map(|text| text.chars().take(60).collect::<String>()),
        Just("x".repeat(255)),
    ])
}

prop_compose! {
    fn properties()(
        texts in proptest::array::uniform10(text()),
        headers in btree_map(name(), value(), 0..5),
        persistent in option::of(any::<bool>()),
        priority in option::of(any::<u8>()),
        timestamp in option::of(any::<u64>()),
    ) -> Properties {
        let [content_type, content_encoding, correlation_id, reply_to, expiration, message_id,
            kind, user_id, app_id, cluster_id] = texts;
        Properties {
            content_type, content_encoding, headers, correlation_id, reply_to, expiration,
            message_id, kind, user_id, app_id, cluster_id, priority, timestamp,
            delivery_mode: persistent.map(|persistent| if persistent {
                DeliveryMode::Persistent
            } else {
                DeliveryMode::Transient
            }),
        }
    }
}

prop_compose! {
    fn delivery()(
        properties in properties(),
        exchange in "\\PC{0,30}",
        routing_key in prop_oneof![Just("k".repeat(255)), "\\PC{0,30}"],
        redelivered in any::<bool>(),
        body in prop_oneof![vec(any::<u8>(), 0..100), any::<String>().prop_map(String::into_bytes)],
    ) -> Delivery {
        Delivery { exchange, routing_key, redelivered, properties, body }
    }
}

proptest! {
    #[test]
    fn a_message_is_the_same_after_its_line(delivery in delivery()) {
        let line = message_line(&delivery, None).expect("line").to_string();
        prop_assert!(!line.contains('\n'));
        let mut read = read_message_line(&line).expect("read");
        prop_assert_eq!(read.exchange.as_str(), &delivery.exchange);
        prop_assert_eq!(read.routing_key.as_str(), &delivery.routing_key);
        prop_assert_eq!(&read.body, &delivery.body);
        let mut properties = delivery.properties;
        properties.headers = table_bits(&properties.headers);
        read.properties.headers = table_bits(&read.properties.headers);
        prop_assert_eq!(read.properties, properties);
    }

    #[test]
    fn a_torn_line_is_never_read(delivery in delivery(), at in any::<prop::sample::Index>()) {
        let line = message_line(&delivery, None).expect("line").to_string();
        let mut end = at.index(line.len());
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        prop_assert!(read_message_line(&line[..end]).is_err());
    }

    #[test]
    fn no_text_is_a_crash(text in ".*") {
        let _ = read_message_line(&text);
    }
}

fn with_header(value: FieldValue) -> Delivery {
    Delivery {
        exchange: "x".to_owned(),
        routing_key: "k".to_owned(),
        redelivered: true,
        properties: Properties {
            headers: FieldTable::from([("h".to_owned(), value)]),
            ..Properties::default()
        },
        body: b"\xff".to_vec(),
    }
}

#[test]
fn types_are_written_as_readers_expect_them() {
    let table =
        |name: &str| FieldValue::Table(FieldTable::from([(name.to_owned(), FieldValue::I64(1))]));
    for (value, written) in [
        (FieldValue::Void, "null"),
        (FieldValue::Bool(true), "true"),
        (FieldValue::I8(-1), r#"{"$int8":-1}"#),
        (FieldValue::U8(1), r#"{"$uint8":1}"#),
        (FieldValue::I16(-1), r#"{"$int16":-1}"#),
        (FieldValue::U16(1), r#"{"$uint16":1}"#),
        (FieldValue::I32(-1), r#"{"$int32":-1}"#),
        (FieldValue::U32(1), r#"{"$uint32":1}"#),
        (FieldValue::I64(-7), "-7"),
        (FieldValue::I64(1 << 53), "9007199254740992"),
        (
            FieldValue::I64((1 << 53) + 1),
            r#"{"$int64":"9007199254740993"}"#,
        ),
        (
            FieldValue::I64(i64::MIN),
            r#"{"$int64":"-9223372036854775808"}"#,
        ),
        (FieldValue::F32(0.1), r#"{"$float":"0.1"}"#),
        (FieldValue::F64(-0.0), r#"{"$double":"-0.0"}"#),
        (FieldValue::F64(f64::NAN), r#"{"$double":"NaN"}"#),
        (
            FieldValue::F32(f32::from_bits(0x7fc0_0001)),
            r#"{"$float":"NaN:7fc00001"}"#,
        ),
        (FieldValue::F64(1e300), r#"{"$double":"1e300"}"#),
        (
            FieldValue::Decimal {
                scale: 2,
                value: 314,
            },
            r#"{"$decimal":{"scale":2,"value":314}}"#,
        ),
        (FieldValue::text("é"), "\"é\""),
        (FieldValue::LongStr(vec![0xff]), r#"{"$longstr":"/w=="}"#),
        (FieldValue::Bytes(b"a".to_vec()), r#"{"$bytes":"YQ=="}"#),
        (FieldValue::Timestamp(9), r#"{"$timestamp":9}"#),
        (
            FieldValue::Timestamp(u64::MAX),
            r#"{"$timestamp":"18446744073709551615"}"#,
        ),
        (
            FieldValue::Array(vec![FieldValue::Void, FieldValue::I64(1)]),
            "[null,1]",
        ),
        (table("a"), r#"{"a":1}"#),
        (table("$a"), r#"{"$table":{"$a":1}}"#),
    ] {
        let line = message_line(&with_header(value), None).expect("line");
        assert_eq!(line["properties"]["headers"]["h"].to_string(), written);
    }
    let line = message_line(&with_header(FieldValue::Void), None).expect("line");
    assert_eq!(
        line.to_string(),
        r#"{"exchange":"x","routing_key":"k","redelivered":true,"properties":{"headers":{"h":null}},"body":"/w==","body_encoding":"base64"}"#
    );
}

#[test]
fn what_the_queue_counts_stands_beside_the_message() {
    let mut delivery = with_header(FieldValue::Void);
    let count = ("x-delivery-count".to_owned(), FieldValue::I64(3));
    delivery.properties.headers = FieldTable::from([count]);
    let (vhost, queue) = (
        VhostName::new("v").expect("vhost"),
        QueueName::new("q").expect("queue"),
    );
    let source = |counts_deliveries| Source {
        vhost: &vhost,
        queue: &queue,
        counts_deliveries,
    };
    let quorum = message_line(&delivery, Some(source(true))).expect("line");
    assert_eq!(
        quorum["source"],
        json!({"vhost": "v", "queue": "q", "delivery_count": 3})
    );
    assert_eq!(quorum["properties"], json!({}));
    let classic = message_line(&delivery, Some(source(false))).expect("line");
    assert_eq!(
        classic["properties"]["headers"],
        json!({"x-delivery-count": 3})
    );
}

#[test]
fn lines_by_hand_may_be_short_but_not_misspelled() {
    let read = read_message_line(r#"{"routing_key":"q","body":"x","source":{"queue":7}}"#);
    let read = read.expect("read");
    assert_eq!(
        (read.exchange.as_str(), read.routing_key.as_str()),
        ("", "q")
    );
    assert_eq!(read.properties, Properties::default());
    let odd = read_message_line(r#"{"routing_kay":"q","body":"x"}"#).expect_err("misspelled");
    assert!(odd.message().contains("'routing_kay'"), "{odd}");
    let read = read_message_line(
        r#"{"body":"","properties":{"priority":4,"type":null,"headers":{"f":1.5,"i":{"$int64":7},"n":{"$double":2}}}}"#,
    )
    .expect("read");
    assert_eq!(read.properties.priority, Some(4));
    assert_eq!(read.properties.headers["f"], FieldValue::F64(1.5));
    assert_eq!(read.properties.headers["i"], FieldValue::I64(7));
    assert_eq!(read.properties.headers["n"], FieldValue::F64(2.0));
}

#[test]
fn what_a_line_gets_wrong_is_named() {
    let long = format!(
        r#"{{"body":"","properties":{{"message_id":"{}"}}}}"#,
        "x".repeat(256)
    );
    let header = format!(
        r#"{{"body":"","properties":{{"headers":{{"{}":1}}}}}}"#,
        "x".repeat(256)
    );
    let nested = format!("{{\"body\":{}", "[".repeat(100_000));
    for (line, what) in [
        ("", "ends in the middle"),
        (r#"{"body":"x""#, "ends in the middle"),
        ("[]", "no JSON object"),
        ("{} {}", "not JSON"),
        ("{}", "it has no body"),
        (r#"{"body":{}}"#, "body: {} is no text"),
        (r#"{"body":"x","exchange":1}"#, "exchange: 1 is no text"),
        (
            r#"{"body":"x","properties":[]}"#,
            "properties: [] is no object",
        ),
        (
            r#"{"body":"x","properties":{"headers":1}}"#,
            "properties.headers: 1 is no object",
        ),
        (
            r#"{"body":"x","properties":{"corelation_id":"1"}}"#,
            "properties.corelation_id",
        ),
        (
            r#"{"body":"x","properties":{"priority":256}}"#,
            "priority 256",
        ),
        (
            r#"{"body":"x","properties":{"priority":-1}}"#,
            "priority: -1",
        ),
        (
            r#"{"body":"x","properties":{"delivery_mode":3}}"#,
            "delivery_mode 3",
        ),
        (r#"{"body":"?","body_encoding":"base64"}"#, "not base64"),
        (
            r#"{"body":"?","body_encoding":"hex"}"#,
            "body_encoding 'hex'",
        ),
        (r#"{"body":"","body_truncated":true}"#, "cut off"),
        (
            r#"{"body":"","properties":{"headers":{"a":[{"$int9":1}]}}}"#,
            "headers.a[0]: the type '$int9'",
        ),
        (
            r#"{"body":"","properties":{"headers":{"a":{"$int8":128}}}}"#,
            "headers.a: 128 is no $int8",
        ),
        (
            r#"{"body":"","properties":{"headers":{"a":{"$bytes":"?"}}}}"#,
            "is no base64",
        ),
        (
            r#"{"body":"","properties":{"headers":{"a":{"$decimal":1}}}}"#,
            "headers.a",
        ),
        (
            r#"{"body":"","properties":{"headers":{"a":18446744073709551615}}}"#,
            "does not fit",
        ),
        (&long, "message_id has 256 bytes"),
        (&header, "the name has 256 bytes"),
        (&nested, "nested too deep"),
    ] {
        let error = read_message_line(line).expect_err(line);
        assert!(error.to_string().contains(what), "{line}: {error}");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn headers_may_be_nested_as_deep_as_can_be_read_back() {
    let nested = |depth: usize| {
        let wrap = |inner, _| FieldValue::Table(FieldTable::from([("$t".to_owned(), inner)]));
        with_header((0..depth).fold(FieldValue::Void, wrap))
    };
    let line = message_line(&nested(DEEPEST), None)
        .expect("line")
        .to_string();
    assert_eq!(
        read_message_line(&line).expect("read").properties,
        nested(DEEPEST).properties
    );
    assert!(message_line(&nested(DEEPEST + 1), None).is_err());
}
