//! The kinds of values that a topology file is made of.
//!
//! `${VARIABLES}` are allowed in every text, so whatever holds one is taken
//! unseen. They stay text: where a number or a boolean is expected there are
//! none. `name:` alone is the empty map or list, as the reader has it.

use std::ops::RangeInclusive;

use serde_json::{Map, Value as Json, json};

/// One number with its unit; blanks are allowed nearly everywhere.
const SPAN: &str = r"[0-9][0-9\s]*(\.[0-9\s]+)?";

/// Units that have a fixed length.
const FIXED: &str = "nanos|nsec|ns|usec|us|µs|millis|msec|ms|seconds|second|secs|sec|s|minutes|minute|mins|min|m|hours|hour|hrs|hr|h|days|day|d|weeks|week|wks|wk|w";

/// Units that are an average.
const AVERAGE: &str = "months|month|M|years|year|yrs|yr|y";

/// Which names the objects of a map can have.
#[derive(Clone, Copy)]
pub(super) enum Names {
    /// Whatever the reader takes.
    Any,
    /// Not empty, and not the broker's own.
    Own,
}

/// A text with a variable in it. It has no description: an editor would show it
/// beside that of every word.
pub(super) fn variable() -> Json {
    json!({
        "type": "string",
        "pattern": r"\$\{",
    })
}

pub(super) fn text(description: &str) -> Json {
    json!({ "description": description, "type": "string" })
}

pub(super) fn flag(description: &str, default: bool) -> Json {
    json!({ "description": description, "type": "boolean", "default": default })
}

/// One of a few words.
pub(super) fn word<T>(description: &str, words: &[(&str, T)]) -> Json {
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    json!({
        "description": description,
        "anyOf": [{ "enum": words }, reference("variable")],
    })
}

/// A whole number; what AMQP has no integer for is no upper limit.
pub(super) fn whole(description: &str, range: &RangeInclusive<u64>) -> Json {
    let mut json = json!({
        "description": description,
        "type": "integer",
        "minimum": range.start(),
    });
    if *range.end() < i64::MAX.unsigned_abs()
        && let Json::Object(json) = &mut json
    {
        json.insert("maximum".to_owned(), json!(range.end()));
    }
    json
}

/// A whole number or `unlimited`.
pub(super) fn limit(description: &str, range: &RangeInclusive<u64>) -> Json {
    let mut number = whole(description, range);
    if let Json::Object(number) = &mut number {
        number.shift_remove("description");
    }
    json!({
        "description": description,
        "anyOf": [number, { "const": "unlimited" }, reference("variable")],
    })
}

pub(super) fn duration(description: &str) -> Json {
    let pattern = format!(r"^\s*(0|({SPAN}({FIXED}|{AVERAGE})\s*)+)\s*$");
    with_unit(
        description,
        &pattern,
        "a duration with its unit, such as 500ms, 30s, 10m or 24h",
    )
}

/// The age of a stream, which months and years have no exact word for unless
/// it is the broker's own.
pub(super) fn age(description: &str) -> Json {
    let pattern = format!(r"^\s*([1-9][0-9]*[YMD]|({SPAN}({FIXED})\s*)+)\s*$");
    with_unit(
        description,
        &pattern,
        "an age with its unit, such as 90s, 12h or 7d",
    )
}

pub(super) fn size(description: &str) -> Json {
    with_unit(
        description,
        r"^\s*[0-9]+\s*(B|kB|KB|KiB|MB|MiB|GB|GiB)\s*$",
        "a size with its unit, such as 1000B, 64KiB, 10MB or 1GiB",
    )
}

/// `patternErrorMessage` is what editors show instead of the pattern.
pub(super) fn with_unit(description: &str, pattern: &str, expected: &str) -> Json {
    json!({
        "description": description,
        "type": "string",
        "pattern": format!(r"{pattern}|\$\{{"),
        "patternErrorMessage": format!("expected {expected}"),
    })
}

/// A list of texts.
pub(super) fn texts(description: &str) -> Json {
    list_of(description, json!({ "type": "string" }))
}

/// Tags of a vhost or a user, which the broker separates by commas.
pub(super) fn tags(description: &str) -> Json {
    list_of(
        description,
        json!({
            "type": "string",
            "pattern": r"^[^,\s]([^,]*[^,\s])?$|\$\{",
            "patternErrorMessage": "a tag is not empty and has no comma and no blanks around it",
        }),
    )
}

pub(super) fn list_of(description: &str, item: impl Into<Json>) -> Json {
    json!({
        "description": description,
        "type": ["array", "null"],
        "items": item.into(),
    })
}

/// Objects by name.
pub(super) fn map_of(description: &str, names: Names, definition: &str) -> Json {
    let mut json = json!({
        "description": description,
        "type": ["object", "null"],
        "additionalProperties": reference(definition),
    });
    if let (Names::Own, Json::Object(json)) = (names, &mut json) {
        let names = json!({
            "pattern": r"^(?!amq\.)[\s\S]",
            "patternErrorMessage": "names that are empty or begin with `amq.` are the broker's",
        });
        json.insert("propertyNames".to_owned(), names);
    }
    json
}

/// Free arguments, except those that have a typed key.
pub(super) fn arguments<'a>(description: &str, typed: impl IntoIterator<Item = &'a str>) -> Json {
    let typed: Vec<&str> = typed.into_iter().collect();
    let mut json = json!({ "description": description, "type": ["object", "null"] });
    if let (false, Json::Object(json)) = (typed.is_empty(), &mut json) {
        // An editor has words of ours for a pattern only, not for `not`.
        let names = json!({
            "pattern": format!("^(?!({})$)", typed.join("|")),
            "patternErrorMessage": "this argument has a key of its own, which can be checked",
        });
        json.insert("propertyNames".to_owned(), names);
    }
    json
}

/// A map with a fixed set of keys; nothing at all is the empty map.
pub(super) fn object(description: &str, properties: Json, required: &[&str]) -> Json {
    let kind = if required.is_empty() {
        json!(["object", "null"])
    } else {
        json!("object")
    };
    let mut json = Map::new();
    json.insert("description".to_owned(), json!(description));
    json.insert("type".to_owned(), kind);
    json.insert("properties".to_owned(), properties);
    if !required.is_empty() {
        json.insert("required".to_owned(), json!(required));
    }
    json.insert("additionalProperties".to_owned(), json!(false));
    Json::Object(json)
}

/// A map of which exactly one of these keys must be there, besides others.
pub(super) fn one_of(description: &str, properties: Json, either: &[&str]) -> Json {
    let mut json = object(description, properties, &[]);
    if let Json::Object(json) = &mut json {
        let either: Vec<Json> = either
            .iter()
            .map(|key| json!({ "required": [key] }))
            .collect();
        json.insert("type".to_owned(), json!("object"));
        json.insert("oneOf".to_owned(), Json::Array(either));
    }
    json
}

pub(super) fn reference(definition: &str) -> Json {
    json!({ "$ref": format!("#/definitions/{definition}") })
}
