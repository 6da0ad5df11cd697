//! Field values and properties: ours to lapin's and back, losing nothing.

use lapin::BasicProperties;
use lapin::types::{AMQPValue, DecimalValue, FieldArray, FieldTable as LapinTable, ShortString};

use crate::error::{Error, ErrorKind, Result};
use crate::field::{FieldTable, FieldValue};
use crate::message::{DeliveryMode, Properties};

/// A short string, checked: lapin panics over 255 bytes.
pub(super) fn short(text: &str, what: &str) -> Result<ShortString> {
    ShortString::try_new(text).map_err(|_| {
        Error::new(
            ErrorKind::InvalidInput,
            format!("{what} has {} bytes; AMQP allows 255", text.len()),
        )
        .hint("shorten it")
    })
}

pub(super) fn table(table: &FieldTable) -> Result<LapinTable> {
    let mut converted = LapinTable::default();
    for (name, entry) in table {
        converted.insert(short(name, "a header or argument name")?, value(entry)?);
    }
    Ok(converted)
}

fn value(value_: &FieldValue) -> Result<AMQPValue> {
    Ok(match value_ {
        FieldValue::Void => AMQPValue::Void,
        FieldValue::Bool(v) => AMQPValue::Boolean(*v),
        FieldValue::I8(v) => AMQPValue::ShortShortInt(*v),
        FieldValue::U8(v) => AMQPValue::ShortShortUInt(*v),
        FieldValue::I16(v) => AMQPValue::ShortInt(*v),
        FieldValue::U16(v) => AMQPValue::ShortUInt(*v),
        FieldValue::I32(v) => AMQPValue::LongInt(*v),
        FieldValue::U32(v) => AMQPValue::LongUInt(*v),
        FieldValue::I64(v) => AMQPValue::LongLongInt(*v),
        FieldValue::F32(v) if v.is_finite() => AMQPValue::Float(*v),
        FieldValue::F64(v) if v.is_finite() => AMQPValue::Double(*v),
        FieldValue::F32(_) | FieldValue::F64(_) => return Err(no_number()),
        FieldValue::Decimal { scale, value } => AMQPValue::DecimalValue(DecimalValue {
            scale: *scale,
            value: *value,
        }),
        FieldValue::LongStr(bytes) => AMQPValue::LongString(bytes.clone().into()),
        FieldValue::Bytes(bytes) => AMQPValue::ByteArray(bytes.clone().into()),
        FieldValue::Timestamp(seconds) => AMQPValue::Timestamp(*seconds),
        FieldValue::Array(items) => {
            let items = items.iter().map(value).collect::<Result<Vec<_>>>()?;
            AMQPValue::FieldArray(FieldArray::from(items))
        }
        FieldValue::Table(entries) => AMQPValue::FieldTable(table(entries)?),
    })
}

/// Erlang has no such numbers: the broker would break the connection off, and
/// with it everything that is under way (measured on 4.0.5).
fn no_number() -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        "a header has a floating-point number that is infinite or none (NaN), which brokers cannot read",
    )
    .hint("send it as text")
}

pub(super) fn from_table(table: &LapinTable) -> FieldTable {
    table
        .inner()
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), from_value(value)))
        .collect()
}

fn from_value(value: &AMQPValue) -> FieldValue {
    match value {
        AMQPValue::Boolean(v) => FieldValue::Bool(*v),
        AMQPValue::ShortShortInt(v) => FieldValue::I8(*v),
        AMQPValue::ShortShortUInt(v) => FieldValue::U8(*v),
        AMQPValue::ShortInt(v) => FieldValue::I16(*v),
        AMQPValue::ShortUInt(v) => FieldValue::U16(*v),
        AMQPValue::LongInt(v) => FieldValue::I32(*v),
        AMQPValue::LongUInt(v) => FieldValue::U32(*v),
        AMQPValue::LongLongInt(v) => FieldValue::I64(*v),
        AMQPValue::Float(v) => FieldValue::F32(*v),
        AMQPValue::Double(v) => FieldValue::F64(*v),
        AMQPValue::DecimalValue(v) => FieldValue::Decimal {
            scale: v.scale,
            value: v.value,
        },
        AMQPValue::ShortString(v) => FieldValue::text(v.as_str()),
        AMQPValue::LongString(v) => FieldValue::LongStr(v.as_bytes().to_vec()),
        AMQPValue::FieldArray(v) => {
            FieldValue::Array(v.as_slice().iter().map(from_value).collect())
        }
        AMQPValue::Timestamp(v) => FieldValue::Timestamp(*v),
        AMQPValue::FieldTable(v) => FieldValue::Table(from_table(v)),
        AMQPValue::ByteArray(v) => FieldValue::Bytes(v.as_slice().to_vec()),
        AMQPValue::Void => FieldValue::Void,
    }
}

pub(super) fn properties(ours: &Properties) -> Result<BasicProperties> {
    let mut theirs = BasicProperties::default();
    let text = |value: &Option<String>, what: &str| -> Result<Option<ShortString>> {
        value.as_deref().map(|text| short(text, what)).transpose()
    };
    if let Some(v) = text(&ours.content_type, "content_type")? {
        theirs = theirs.with_content_type(v);
    }
    if let Some(v) = text(&ours.content_encoding, "content_encoding")? {
        theirs = theirs.with_content_encoding(v);
    }
    if !ours.headers.is_empty() {
        theirs = theirs.with_headers(table(&ours.headers)?);
    }
    if let Some(mode) = ours.delivery_mode {
        theirs = theirs.with_delivery_mode(match mode {
            DeliveryMode::Transient => 1,
            DeliveryMode::Persistent => 2,
        });
    }
    if let Some(v) = ours.priority {
        theirs = theirs.with_priority(v);
    }
    if let Some(v) = text(&ours.correlation_id, "correlation_id")? {
        theirs = theirs.with_correlation_id(v);
    }
    if let Some(v) = text(&ours.reply_to, "reply_to")? {
        theirs = theirs.with_reply_to(v);
    }
    if let Some(v) = text(&ours.expiration, "expiration")? {
        theirs = theirs.with_expiration(v);
    }
    if let Some(v) = text(&ours.message_id, "message_id")? {
        theirs = theirs.with_message_id(v);
    }
    if let Some(v) = ours.timestamp {
        theirs = theirs.with_timestamp(v);
    }
    if let Some(v) = text(&ours.kind, "type")? {
        theirs = theirs.with_type(v);
    }
    if let Some(v) = text(&ours.user_id, "user_id")? {
        theirs = theirs.with_user_id(v);
    }
    if let Some(v) = text(&ours.app_id, "app_id")? {
        theirs = theirs.with_app_id(v);
    }
    if let Some(v) = text(&ours.cluster_id, "cluster_id")? {
        theirs = theirs.with_cluster_id(v);
    }
    Ok(theirs)
}

pub(super) fn from_properties(theirs: &BasicProperties) -> Properties {
    let text = |value: &Option<ShortString>| value.as_ref().map(|v| v.as_str().to_owned());
    Properties {
        content_type: text(theirs.content_type()),
        content_encoding: text(theirs.content_encoding()),
        headers: theirs
            .headers()
            .as_ref()
            .map(from_table)
            .unwrap_or_default(),
        delivery_mode: theirs.delivery_mode().map(|mode| match mode {
            2 => DeliveryMode::Persistent,
            _ => DeliveryMode::Transient,
        }),
        priority: *theirs.priority(),
        correlation_id: text(theirs.correlation_id()),
        reply_to: text(theirs.reply_to()),
        expiration: text(theirs.expiration()),
        message_id: text(theirs.message_id()),
        timestamp: *theirs.timestamp(),
        kind: text(theirs.kind()),
        user_id: text(theirs.user_id()),
        app_id: text(theirs.app_id()),
        cluster_id: text(theirs.cluster_id()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_and_property_survives_the_way_there_and_back() {
        let mut headers = FieldTable::new();
        for (at, value) in [
            FieldValue::Void,
            FieldValue::Bool(true),
            FieldValue::I8(-1),
            FieldValue::U8(1),
            FieldValue::I16(-2),
            FieldValue::U16(2),
            FieldValue::I32(-3),
            FieldValue::U32(3),
            FieldValue::I64(i64::MIN),
            FieldValue::F32(0.5),
            FieldValue::F64(-0.25),
            FieldValue::Decimal {
                scale: 2,
                value: 314,
            },
            FieldValue::LongStr(vec![0, 255]),
            FieldValue::Bytes(vec![1, 2]),
            FieldValue::Timestamp(9),
            FieldValue::Array(vec![FieldValue::text("é"), FieldValue::Void]),
            FieldValue::Table(FieldTable::from([("k".to_owned(), FieldValue::U8(7))])),
        ]
        .into_iter()
        .enumerate()
        {
            headers.insert(format!("h{at}"), value);
        }
        let some = |text: &str| Some(text.to_owned());
        let ours = Properties {
            content_type: some("a"),
            content_encoding: some("b"),
            headers,
            delivery_mode: Some(DeliveryMode::Persistent),
            priority: Some(4),
            correlation_id: some("c"),
            reply_to: some("d"),
            expiration: some("5"),
            message_id: some("e"),
            timestamp: Some(6),
            kind: some("f"),
            user_id: some("g"),
            app_id: some("h"),
            cluster_id: some("i"),
        };
        let theirs = properties(&ours).expect("converted");
        assert_eq!(from_properties(&theirs), ours);
    }

    #[test]
    fn what_no_broker_can_read_is_not_sent() {
        for value in [
            FieldValue::F64(f64::NAN),
            FieldValue::Array(vec![FieldValue::F32(f32::INFINITY)]),
        ] {
            let headers = FieldTable::from([("n".to_owned(), value)]);
            let error = table(&headers).expect_err("no number");
            assert!(error.to_string().contains("NaN"), "{error}");
        }
    }

    #[test]
    fn a_long_property_is_an_error_and_no_panic() {
        let ours = Properties {
            message_id: Some("x".repeat(256)),
            ..Properties::default()
        };
        let error = properties(&ours).expect_err("too long");
        assert!(
            error.to_string().contains("message_id has 256 bytes"),
            "{error}"
        );
    }
}
