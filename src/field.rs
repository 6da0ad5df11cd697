//! AMQP field values: the typed values of headers and of `x-` arguments.
//!
//! Lossless: every type RabbitMQ puts on the wire has its own variant, so a
//! message can be copied without changing what a strict client would see.
//! Source: RabbitMQ's AMQP 0-9-1 errata, table of field types.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value as Json, json};

/// Field values by name. Names are at most 255 bytes (AMQP short strings).
pub type FieldTable = BTreeMap<String, FieldValue>;

/// One typed field value.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// `V`: no value.
    Void,
    /// `t`.
    Bool(bool),
    /// `b`.
    I8(i8),
    /// `B`.
    U8(u8),
    /// `s`.
    I16(i16),
    /// `u`.
    U16(u16),
    /// `I`.
    I32(i32),
    /// `i`.
    U32(u32),
    /// `l`.
    I64(i64),
    /// `f`.
    F32(f32),
    /// `d`.
    F64(f64),
    /// `D`: `value` divided by ten to the `scale`.
    Decimal {
        /// Digits after the decimal point.
        scale: u8,
        /// The digits as one number.
        value: u32,
    },
    /// `S`: text by custom, any bytes by law.
    LongStr(Vec<u8>),
    /// `x`: bytes.
    Bytes(Vec<u8>),
    /// `T`: seconds since 1970.
    Timestamp(u64),
    /// `A`.
    Array(Vec<FieldValue>),
    /// `F`.
    Table(FieldTable),
}

impl FieldValue {
    /// A long string from text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::LongStr(text.into().into_bytes())
    }

    /// The text of a long string that is valid UTF-8.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::LongStr(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// Any integer type, widened: brokers compare and clients send all widths.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match *self {
            Self::I8(n) => Some(n.into()),
            Self::U8(n) => Some(n.into()),
            Self::I16(n) => Some(n.into()),
            Self::U16(n) => Some(n.into()),
            Self::I32(n) => Some(n.into()),
            Self::U32(n) => Some(n.into()),
            Self::I64(n) => Some(n),
            _ => None,
        }
    }

    /// Bytes of the value on the wire, its type letter included.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        1 + match self {
            Self::Void => 0,
            Self::Bool(_) | Self::I8(_) | Self::U8(_) => 1,
            Self::I16(_) | Self::U16(_) => 2,
            Self::I32(_) | Self::U32(_) | Self::F32(_) => 4,
            Self::Decimal { .. } => 5,
            Self::I64(_) | Self::F64(_) | Self::Timestamp(_) => 8,
            Self::LongStr(bytes) | Self::Bytes(bytes) => 4 + bytes.len(),
            Self::Array(items) => 4 + items.iter().map(Self::encoded_bytes).sum::<usize>(),
            Self::Table(table) => table_encoded_bytes(table),
        }
    }

    /// The value as JSON for people and scripts; types of equal meaning become one.
    ///
    /// Bytes that are not UTF-8 become `{"base64": "…"}`, a timestamp its seconds.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match self {
            Self::Void => Json::Null,
            Self::Bool(value) => json!(value),
            Self::I8(_)
            | Self::U8(_)
            | Self::I16(_)
            | Self::U16(_)
            | Self::I32(_)
            | Self::U32(_)
            | Self::I64(_) => json!(self.as_integer()),
            Self::F32(value) => json!(value),
            Self::F64(value) => json!(value),
            Self::Decimal { scale, value } => {
                json!(f64::from(*value) / 10_f64.powi(i32::from(*scale)))
            }
            Self::LongStr(bytes) | Self::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => json!(text),
                Err(_) => json!({ "base64": BASE64.encode(bytes) }),
            },
            Self::Timestamp(seconds) => json!(seconds),
            Self::Array(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            Self::Table(table) => table_to_json(table),
        }
    }

    /// The value JSON means, with the types RabbitMQ itself picks for JSON
    /// (integers become `l`, other numbers `d`).
    #[must_use]
    pub fn from_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::Void,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => Self::I64(integer),
                (None, Some(float)) => Self::F64(float),
                (None, None) => Self::text(number.to_string()),
            },
            Json::String(text) => Self::text(text.clone()),
            Json::Array(items) => Self::Array(items.iter().map(Self::from_json).collect()),
            Json::Object(object) => Self::Table(table_from_json(object)),
        }
    }
}

/// Bytes of a table on the wire.
#[must_use]
pub fn table_encoded_bytes(table: &FieldTable) -> usize {
    let entries = table
        .iter()
        .map(|(name, value)| 1 + name.len() + value.encoded_bytes());
    4 + entries.sum::<usize>()
}

/// A table as a JSON object; see [`FieldValue::to_json`].
#[must_use]
pub fn table_to_json(table: &FieldTable) -> Json {
    Json::Object(
        table
            .iter()
            .map(|(name, value)| (name.clone(), value.to_json()))
            .collect(),
    )
}

/// A table from a JSON object; see [`FieldValue::from_json`].
#[must_use]
pub fn table_from_json(object: &Map<String, Json>) -> FieldTable {
    object
        .iter()
        .map(|(name, value)| (name.clone(), FieldValue::from_json(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_integer_width_is_one_number() {
        for value in [
            FieldValue::I8(7),
            FieldValue::U8(7),
            FieldValue::I16(7),
            FieldValue::U16(7),
            FieldValue::I32(7),
            FieldValue::U32(7),
            FieldValue::I64(7),
        ] {
            assert_eq!(value.as_integer(), Some(7));
            assert_eq!(value.to_json(), json!(7));
        }
    }

    #[test]
    fn json_keeps_text_numbers_and_nesting() {
        let json = json!({"a": [1, -2.5, "x", true, null], "b": {"c": 9}});
        assert_eq!(FieldValue::from_json(&json).to_json(), json);
    }

    #[test]
    fn sizes_are_those_of_the_wire() {
        // table(4) + name(1+1) + type(1) + length(4) + text(3)
        let table = FieldTable::from([("a".to_owned(), FieldValue::text("xyz"))]);
        assert_eq!(table_encoded_bytes(&table), 14);
        assert_eq!(FieldValue::Table(table).encoded_bytes(), 15);
        assert_eq!(
            FieldValue::Array(vec![FieldValue::I64(1)]).encoded_bytes(),
            14
        );
    }

    #[test]
    fn bytes_that_are_no_text_become_base64() {
        assert_eq!(
            FieldValue::LongStr(vec![0xff, 0xfe]).to_json(),
            json!({"base64": "//4="})
        );
    }
}
