//! One object of a definitions file, read field by field so that nothing in it
//! is overlooked.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use crate::error::{Error, ErrorKind, Result};
use crate::field::{FieldTable, table_from_json};

/// An object, and which of its fields have been read.
pub(super) struct Item<'j> {
    /// How messages name it.
    pub(super) what: String,
    fields: &'j Map<String, Json>,
    read: BTreeSet<&'j str>,
}

impl<'j> Item<'j> {
    /// Takes a JSON object.
    ///
    /// # Errors
    /// When it is something else.
    pub(super) fn new(json: &'j Json, what: impl Into<String>) -> Result<Self> {
        let what = what.into();
        match json {
            Json::Object(fields) => Ok(Self {
                what,
                fields,
                read: BTreeSet::new(),
            }),
            _ => Err(wrong(&what, "an object", json)),
        }
    }

    pub(super) fn get(&mut self, field: &str) -> Option<&'j Json> {
        let (name, value) = self.fields.get_key_value(field)?;
        self.read.insert(name);
        Some(value)
    }

    /// Fields that say nothing of their own here.
    pub(super) fn skip(&mut self, fields: &[&str]) {
        for field in fields {
            self.get(field);
        }
    }

    pub(super) fn text(&mut self, field: &str) -> Result<Option<&'j str>> {
        match self.get(field) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(field, "text", other)),
        }
    }

    /// A text that must be there.
    pub(super) fn required(&mut self, field: &str) -> Result<&'j str> {
        match self.text(field)? {
            Some(text) => Ok(text),
            None => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{}: there is no `{field}`", self.what),
            )
            .hint("is this a definitions file of RabbitMQ?")),
        }
    }

    pub(super) fn flag(&mut self, field: &str, default: bool) -> Result<bool> {
        match self.get(field) {
            None | Some(Json::Null) => Ok(default),
            Some(Json::Bool(value)) => Ok(*value),
            Some(other) => Err(self.wrong(field, "true or false", other)),
        }
    }

    /// An object of values; exporters write `[]` for an empty one.
    pub(super) fn table(&mut self, field: &str) -> Result<FieldTable> {
        match self.get(field) {
            None | Some(Json::Null) => Ok(FieldTable::new()),
            Some(json @ Json::Object(object)) => match too_large(json) {
                None => Ok(table_from_json(object)),
                Some(number) => Err(self.wrong(field, "numbers of at most 64 bits", number)),
            },
            Some(Json::Array(empty)) if empty.is_empty() => Ok(FieldTable::new()),
            Some(other) => Err(self.wrong(field, "an object", other)),
        }
    }

    pub(super) fn list(&mut self, field: &str) -> Result<&'j [Json]> {
        match self.get(field) {
            None | Some(Json::Null) => Ok(&[]),
            Some(Json::Array(items)) => Ok(items),
            Some(other) => Err(self.wrong(field, "a list", other)),
        }
    }

    /// Tags: a list, or one text with commas (before 3.9).
    pub(super) fn tags(&mut self, field: &str) -> Result<Vec<String>> {
        match self.get(field) {
            None | Some(Json::Null) => Ok(Vec::new()),
            Some(Json::String(text)) => Ok(text
                .split(',')
                .map(str::trim)
                .filter(|tag| !tag.is_empty())
                .map(str::to_owned)
                .collect()),
            Some(list @ Json::Array(items)) => items
                .iter()
                .map(|item| match item {
                    Json::String(tag) => Ok(tag.clone()),
                    _ => Err(self.wrong(field, "a list of texts", list)),
                })
                .collect(),
            Some(other) => Err(self.wrong(field, "a list of texts", other)),
        }
    }

    /// One sentence for each field that nobody read.
    pub(super) fn unread(&self) -> impl Iterator<Item = String> {
        self.fields
            .iter()
            .filter(|(name, _)| !self.read.contains(name.as_str()))
            .map(|(name, value)| format!("{}: `{name}` is {value}", self.what))
    }

    fn wrong(&self, field: &str, expected: &str, found: &Json) -> Error {
        wrong(&format!("{}: `{field}`", self.what), expected, found)
    }
}

/// A whole number that AMQP has no type for: it would become another one.
fn too_large(json: &Json) -> Option<&Json> {
    match json {
        Json::Number(number) if number.is_u64() && !number.is_i64() => Some(json),
        Json::Number(number) if number.is_f64() && number.as_f64()?.abs() >= 9e18 => Some(json),
        Json::Array(items) => items.iter().find_map(too_large),
        Json::Object(object) => object.values().find_map(too_large),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
    }
}

fn wrong(what: &str, expected: &str, found: &Json) -> Error {
    let shown: String = found.to_string().chars().take(80).collect();
    Error::new(
        ErrorKind::InvalidInput,
        format!("{what} should be {expected}, not {shown}"),
    )
    .hint("is this a definitions file of RabbitMQ?")
}
