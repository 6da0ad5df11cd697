//! Field values as JSON that keeps their types: what is written can be read back
//! bit for bit.
//!
//! Plain JSON stands for the types that programs mean by it: `null` void,
//! booleans, integers `l` of at most 53 bits, UTF-8 text `S`, lists `A` and
//! objects `F`. Everything else is an object with one key that names the type:
//! `{"$int8": -1}`, `{"$timestamp": 9}`, `{"$bytes": "base64"}`. A table that
//! looks like one is wrapped itself: `{"$table": {"$int8": "no number"}}`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Number, Value as Json, json};

use crate::error::{Error, ErrorKind, Result};
use crate::field::{FieldTable, FieldValue};
use crate::printable::one_line;

/// Integers up to here are the same in every JSON reader.
const EXACT: u64 = 1 << 53;

/// Tables and lists in one another that are written at most. What is deeper can
/// be sent, but readers that call themselves for each level would not survive it.
pub(super) const DEEPEST: usize = 200;

/// The headers as a JSON object, types kept.
///
/// # Errors
/// When they are nested deeper than 200 tables and lists.
pub(super) fn table_to_typed(table: &FieldTable) -> Result<Json> {
    let deepest = table.values().map(nesting).max().unwrap_or_default();
    if deepest > DEEPEST {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!("its headers are nested {deepest} deep; {DEEPEST} is the most"),
        ));
    }
    Ok(Json::Object(entries(table)))
}

/// Lists and tables in one another, followed no further than is of interest.
fn nesting(value: &FieldValue) -> usize {
    let mut level = vec![value];
    let mut depth = 0;
    while depth <= DEEPEST {
        let mut next: Vec<&FieldValue> = Vec::new();
        let mut nested = false;
        for value in level {
            match value {
                FieldValue::Array(items) => {
                    nested = true;
                    next.extend(items);
                }
                FieldValue::Table(table) => {
                    nested = true;
                    next.extend(table.values());
                }
                _ => {}
            }
        }
        if !nested {
            break;
        }
        depth += 1;
        level = next;
    }
    depth
}

fn entries(table: &FieldTable) -> Map<String, Json> {
    table
        .iter()
        .map(|(name, value)| (name.clone(), to_typed(value)))
        .collect()
}

fn to_typed(value: &FieldValue) -> Json {
    match value {
        FieldValue::Void => Json::Null,
        FieldValue::Bool(value) => json!(value),
        FieldValue::I8(n) => json!({ "$int8": n }),
        FieldValue::U8(n) => json!({ "$uint8": n }),
        FieldValue::I16(n) => json!({ "$int16": n }),
        FieldValue::U16(n) => json!({ "$uint16": n }),
        FieldValue::I32(n) => json!({ "$int32": n }),
        FieldValue::U32(n) => json!({ "$uint32": n }),
        FieldValue::I64(n) if n.unsigned_abs() <= EXACT => json!(n),
        FieldValue::I64(n) => json!({ "$int64": n.to_string() }),
        FieldValue::F32(n) => json!({ "$float": float_text(*n) }),
        FieldValue::F64(n) => json!({ "$double": double_text(*n) }),
        FieldValue::Decimal { scale, value } => {
            json!({ "$decimal": { "scale": scale, "value": value } })
        }
        FieldValue::LongStr(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => json!(text),
            Err(_) => json!({ "$longstr": BASE64.encode(bytes) }),
        },
        FieldValue::Bytes(bytes) => json!({ "$bytes": BASE64.encode(bytes) }),
        FieldValue::Timestamp(n) if *n <= EXACT => json!({ "$timestamp": n }),
        FieldValue::Timestamp(n) => json!({ "$timestamp": n.to_string() }),
        FieldValue::Array(items) => Json::Array(items.iter().map(to_typed).collect()),
        FieldValue::Table(table) => {
            let object = entries(table);
            if tag(&object).is_some() {
                json!({ "$table": object })
            } else {
                Json::Object(object)
            }
        }
    }
}

/// Shortest text that reads back to the same bits; a NaN that is not the usual
/// one tells its bits.
fn float_text(n: f32) -> String {
    if n.is_nan() && n.to_bits() != f32::NAN.to_bits() {
        format!("NaN:{:08x}", n.to_bits())
    } else {
        format!("{n:?}")
    }
}

fn double_text(n: f64) -> String {
    if n.is_nan() && n.to_bits() != f64::NAN.to_bits() {
        format!("NaN:{:016x}", n.to_bits())
    } else {
        format!("{n:?}")
    }
}

/// Headers from a JSON object.
///
/// # Errors
/// When a value has no type of AMQP, or is not what its type says; `place` tells
/// where the table stands.
pub(super) fn table_from_typed(object: Map<String, Json>, place: &str) -> Result<FieldTable> {
    object
        .into_iter()
        .map(|(name, value)| {
            let place = format!("{place}.{}", one_line(&name, 60));
            if name.len() > 255 {
                return Err(wrong(
                    &place,
                    &format!("the name has {} bytes; AMQP allows 255", name.len()),
                ));
            }
            let value = from_typed(value, &place)?;
            Ok((name, value))
        })
        .collect()
}

fn from_typed(value: Json, place: &str) -> Result<FieldValue> {
    Ok(match value {
        Json::Null => FieldValue::Void,
        Json::Bool(value) => FieldValue::Bool(value),
        Json::Number(number) => plain_number(&number, place)?,
        Json::String(text) => FieldValue::LongStr(text.into_bytes()),
        Json::Array(items) => FieldValue::Array(
            items
                .into_iter()
                .enumerate()
                .map(|(at, item)| from_typed(item, &format!("{place}[{at}]")))
                .collect::<Result<_>>()?,
        ),
        Json::Object(mut object) => match tag(&object).map(str::to_owned) {
            None => FieldValue::Table(table_from_typed(object, place)?),
            Some(tag) => {
                let value = object.remove(&tag).unwrap_or_default();
                tagged(&tag, value, place)?
            }
        },
    })
}

/// The one key of an object that names a type.
fn tag(object: &Map<String, Json>) -> Option<&str> {
    let mut keys = object.keys();
    match (keys.next(), keys.next()) {
        (Some(only), None) if only.starts_with('$') => Some(only),
        _ => None,
    }
}

fn plain_number(number: &Number, place: &str) -> Result<FieldValue> {
    match (number.as_i64(), number.is_u64(), number.as_f64()) {
        (Some(integer), ..) => Ok(FieldValue::I64(integer)),
        (None, false, Some(float)) => Ok(FieldValue::F64(float)),
        _ => Err(wrong(place, &format!("{number} does not fit into 64 bits"))),
    }
}

fn tagged(tag: &str, value: Json, place: &str) -> Result<FieldValue> {
    let no = |what: &str| {
        wrong(
            place,
            &format!("{} is no {what}", one_line(&value.to_string(), 60)),
        )
    };
    Ok(match tag {
        "$int8" => FieldValue::I8(parsed(&value).ok_or_else(|| no(tag))?),
        "$uint8" => FieldValue::U8(parsed(&value).ok_or_else(|| no(tag))?),
        "$int16" => FieldValue::I16(parsed(&value).ok_or_else(|| no(tag))?),
        "$uint16" => FieldValue::U16(parsed(&value).ok_or_else(|| no(tag))?),
        "$int32" => FieldValue::I32(parsed(&value).ok_or_else(|| no(tag))?),
        "$uint32" => FieldValue::U32(parsed(&value).ok_or_else(|| no(tag))?),
        "$int64" => FieldValue::I64(parsed(&value).ok_or_else(|| no(tag))?),
        "$timestamp" => FieldValue::Timestamp(parsed(&value).ok_or_else(|| no(tag))?),
        "$float" => FieldValue::F32(float(&value).ok_or_else(|| no(tag))?),
        "$double" => FieldValue::F64(double(&value).ok_or_else(|| no(tag))?),
        "$bytes" => FieldValue::Bytes(bytes(&value).ok_or_else(|| no("base64"))?),
        "$longstr" => FieldValue::LongStr(bytes(&value).ok_or_else(|| no("base64"))?),
        "$decimal" => {
            let part = |name| value.get(name);
            match (
                part("scale").and_then(parsed),
                part("value").and_then(parsed),
            ) {
                (Some(scale), Some(value)) => FieldValue::Decimal { scale, value },
                _ => return Err(no("object with scale and value")),
            }
        }
        "$table" => match value {
            Json::Object(object) => FieldValue::Table(table_from_typed(object, place)?),
            _ => return Err(no("object")),
        },
        _ => {
            return Err(wrong(place, &format!("the type '{}' is not known", one_line(tag, 30)))
                .hint("a newer mq may have written it; a table with such a key is written {\"$table\": {…}}"));
        }
    })
}

/// An integer as a number or as text.
fn parsed<N: std::str::FromStr>(value: &Json) -> Option<N> {
    match value {
        Json::Number(number) => number.to_string().parse().ok(),
        Json::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn float(value: &Json) -> Option<f32> {
    match value {
        Json::Number(number) => number.to_string().parse().ok(),
        Json::String(text) => match text.strip_prefix("NaN:") {
            Some(bits) => Some(f32::from_bits(u32::from_str_radix(bits, 16).ok()?)),
            None => text.parse().ok(),
        },
        _ => None,
    }
}

fn double(value: &Json) -> Option<f64> {
    match value {
        Json::Number(number) => number.to_string().parse().ok(),
        Json::String(text) => match text.strip_prefix("NaN:") {
            Some(bits) => Some(f64::from_bits(u64::from_str_radix(bits, 16).ok()?)),
            None => text.parse().ok(),
        },
        _ => None,
    }
}

fn bytes(value: &Json) -> Option<Vec<u8>> {
    BASE64.decode(value.as_str()?).ok()
}

fn wrong(place: &str, what: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("{place}: {what}"))
}
