//! JSON to what jaq computes with, and back, with every digit of every number.

use jaq_json::{Error as Fault, Num, Val, read, write};
use serde::de::IgnoredAny;
use serde_json::Value as Json;

use crate::message::json_nesting;

/// How deep JSON may be nested that a program reads.
const DEEPEST: usize = 1000;

/// JSON of ours.
pub(super) fn of_json(json: &Json) -> Val {
    match json {
        Json::Null => Val::Null,
        Json::Bool(value) => Val::from(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(integer), ..) => Val::Num(Num::from_integral(integer)),
            (None, Some(integer), _) => Val::Num(Num::from_integral(integer)),
            (None, None, float) => Val::from(float.unwrap_or(f64::NAN)),
        },
        Json::String(text) => Val::from(text.clone()),
        Json::Array(items) => items.iter().map(of_json).collect(),
        Json::Object(object) => Val::obj(
            object
                .iter()
                .map(|(name, value)| (Val::from(name.clone()), of_json(value)))
                .collect(),
        ),
    }
}

/// JSON of others: checked first, for jaq itself takes more than JSON and
/// follows any nesting until the stack is used up.
pub(super) fn of_text(text: &[u8]) -> Result<Val, String> {
    let text = std::str::from_utf8(text).map_err(|error| format!("it is not UTF-8: {error}"))?;
    let nesting = json_nesting(text.as_bytes());
    if nesting > DEEPEST {
        return Err(format!(
            "it is nested {nesting} deep; {DEEPEST} is the most"
        ));
    }
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| format!("it is not JSON: {error}"))?;
    read::parse_single(text.as_bytes()).map_err(|error| format!("it is not JSON: {error}"))
}

/// On one line, as few bytes as there can be.
///
/// # Errors
/// When it has no form in JSON: NaN, bytes, keys that are no text.
pub(super) fn to_text(value: &Val) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    write::write(&mut text, &write::Pp::default(), 0, value).map_err(|error| error.to_string())?;
    let is_json = std::str::from_utf8(&text)
        .is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
    if is_json {
        Ok(text)
    } else {
        Err(format!("what it gave is not JSON: {value}"))
    }
}

/// `fromjson`, for exactly one value.
pub(super) fn from_json(text: &Val) -> Result<Val, Fault> {
    let bytes = text.try_as_utf8_bytes_owned()?;
    of_text(&bytes).map_err(|why| Fault::str(format!("fromjson: {why}: {text}")))
}
