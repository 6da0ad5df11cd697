//! Typed reading of the tree: every mistake is collected with its place.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::diagnostic::{Diagnostic, Place, Source};
use crate::error::Result as MqResult;
use crate::field::{FieldTable, FieldValue};
use crate::topology::{Jitter, MaxAge};
use crate::topologyfile::closest;
use crate::topologyfile::secrets::Secrets;
use crate::topologyfile::tree::{Key, Node, Value};
use crate::topologyfile::units;

/// Collects mistakes while values are read.
#[derive(Default)]
pub(super) struct Reader {
    diagnostics: Vec<Diagnostic>,
    secrets: Secrets,
}

/// The entries of a map whose unknown keys have been reported already.
#[derive(Clone, Copy)]
pub(super) struct Fields<'n> {
    entries: &'n [(Key, Node)],
    known: &'static [&'static str],
}

impl<'n> Fields<'n> {
    /// What stands under a key; an unknown one is no part of the object.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        self.entries
            .iter()
            .find(|(candidate, _)| candidate.text == key && self.known.contains(&key))
            .map(|(_, node)| node)
    }

    /// Where each of its keys stands.
    pub(super) fn places(&self) -> impl Iterator<Item = (&'static str, Place)> {
        self.entries.iter().filter_map(|(key, _)| {
            let known = self.known.iter().find(|known| **known == key.text)?;
            Some((*known, key.place.clone()))
        })
    }
}

impl Reader {
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// A secret that stands in a file: no excerpt may show its line, whatever
    /// else is wrong there.
    pub(super) fn secret(&mut self, place: Place) {
        self.secrets.add(place);
    }

    /// Within one file a key that comes twice is an error of YAML already.
    pub(super) fn declared_twice(&mut self, key: &Key, what: &str) {
        self.report(
            Diagnostic::new(
                "MQ109",
                key.place.clone(),
                format!("{what} is declared in two files"),
            )
            .help("keep one of the two"),
        );
    }

    pub(super) fn is_clean(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// The secrets, or everything that is wrong.
    pub(super) fn finish(mut self, sources: &[Source]) -> Result<Secrets, Vec<Diagnostic>> {
        if self.is_clean() {
            Ok(self.secrets)
        } else {
            self.secrets.hide(&mut self.diagnostics, sources);
            Err(self.diagnostics)
        }
    }

    pub(super) fn expected(&mut self, node: &Node, what: &str, expected: &str) {
        if matches!(node.value, Value::Unreadable) {
            return;
        }
        let found = if self.secrets.hold(&node.place()) {
            "something else".to_owned()
        } else {
            node.describe()
        };
        self.report(
            Diagnostic::new("MQ102", node.place(), format!("{what} is {found}"))
                .label(format!("expected {expected}")),
        );
    }

    /// The entries of a map of named objects; `what` names the map.
    pub(super) fn entries<'n>(&mut self, node: &'n Node, what: &str) -> &'n [(Key, Node)] {
        match &node.value {
            Value::Map(entries) => entries,
            Value::Null => &[],
            _ => {
                self.expected(node, what, "a map of names");
                &[]
            }
        }
    }

    /// The items of a list; `what` names the list.
    pub(super) fn items<'n>(&mut self, node: &'n Node, what: &str) -> &'n [Node] {
        match &node.value {
            Value::List(items) => items,
            Value::Null => &[],
            _ => {
                self.expected(node, what, "a list");
                &[]
            }
        }
    }

    /// A map with a fixed set of keys; nothing at all (`name:`) is the empty map.
    pub(super) fn fields<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        known: &'static [&'static str],
    ) -> Option<Fields<'n>> {
        let entries = match &node.value {
            Value::Map(entries) => entries.as_slice(),
            Value::Null => &[],
            _ => {
                self.expected(node, what, "a map");
                return None;
            }
        };
        for (key, _) in entries {
            if !known.contains(&key.text.as_str()) {
                let help = match closest(&key.text, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known keys: {}", known.join(", ")),
                };
                self.report(
                    Diagnostic::new(
                        "MQ101",
                        key.place.clone(),
                        format!("unknown key `{}`", key.text),
                    )
                    .label(format!("not a key of {what}"))
                    .help(help),
                );
            }
        }
        Some(Fields { entries, known })
    }

    pub(super) fn text<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        if let Value::Text(text) = &node.value {
            return Some(text);
        }
        let quoted = match &node.value {
            Value::Bool(_) | Value::Integer(_) | Value::Float(_) => "text; put it in quotes",
            _ => "text",
        };
        self.expected(node, what, quoted);
        None
    }

    /// A list of texts; whatever is no text is reported and left out.
    pub(super) fn texts(&mut self, node: &Node, what: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for item in self.items(node, what) {
            if let Some(text) = self.text(item, &format!("an item of {what}")) {
                texts.push(text.to_owned());
            }
        }
        texts
    }

    /// A list of tags. The management API takes them as one text with commas, so
    /// they hold none, and no blanks around them.
    pub(super) fn tags(&mut self, node: &Node, what: &str) -> Vec<String> {
        let tags = self.texts(node, what);
        for tag in &tags {
            if tag.is_empty() || tag.contains(',') || tag.trim() != tag {
                self.report(
                    Diagnostic::new("MQ103", node.place(), format!("{what} hold '{tag}'"))
                        .label("a tag is not empty and has no comma and no blanks around it"),
                );
            }
        }
        tags
    }

    pub(super) fn boolean(&mut self, node: &Node, what: &str) -> Option<bool> {
        if let Value::Bool(value) = node.value {
            return Some(value);
        }
        self.expected(node, what, "true or false");
        None
    }

    pub(super) fn integer(
        &mut self,
        node: &Node,
        what: &str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        if let Value::Integer(value) = node.value
            && let Ok(value) = u64::try_from(value)
            && range.contains(&value)
        {
            return Some(value);
        }
        let expected = if *range.end() >= i64::MAX.unsigned_abs() {
            format!("a whole number from {}", range.start())
        } else {
            format!("a whole number from {} to {}", range.start(), range.end())
        };
        self.expected(node, what, &expected);
        None
    }

    /// A whole number of 32 bits that may be negative.
    pub(super) fn signed(&mut self, node: &Node, what: &str) -> Option<i32> {
        if let Value::Integer(value) = node.value
            && let Ok(value) = i32::try_from(value)
        {
            return Some(value);
        }
        self.expected(node, what, "a whole number");
        None
    }

    pub(super) fn duration(&mut self, node: &Node, what: &str) -> Option<Duration> {
        self.with_unit(
            node,
            what,
            "a duration with its unit, such as 10m",
            units::duration,
        )
    }

    pub(super) fn size(&mut self, node: &Node, what: &str) -> Option<u64> {
        self.with_unit(node, what, "a size with its unit, such as 10MiB", |text| {
            units::size(text)
        })
    }

    /// A size between two others, in bytes.
    pub(super) fn size_within(
        &mut self,
        node: &Node,
        what: &str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let expected = "a size with its unit, such as 10MiB";
        self.with_unit(node, what, expected, |text| match units::size(text)? {
            size if range.contains(&size) => Ok(size),
            _ => Err(format!(
                "brokers take {}B to {}B",
                range.start(),
                range.end()
            )),
        })
    }

    pub(super) fn max_age(&mut self, node: &Node, what: &str) -> Option<MaxAge> {
        let expected = "an age with its unit, such as 7d";
        self.with_unit(node, what, expected, units::max_age)
    }

    pub(super) fn jitter(&mut self, node: &Node, what: &str) -> Option<Jitter> {
        let expected = "full, none or a percentage such as 25%";
        self.with_unit(node, what, expected, str::parse)
    }

    fn with_unit<T>(
        &mut self,
        node: &Node,
        what: &str,
        expected: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let Value::Text(text) = &node.value else {
            self.expected(node, what, expected);
            return None;
        };
        match parse(text) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.report(
                    Diagnostic::new("MQ103", node.place(), format!("{what} cannot be '{text}'"))
                        .label(problem),
                );
                None
            }
        }
    }

    /// One of a fixed set of words.
    pub(super) fn word<T: Copy>(
        &mut self,
        node: &Node,
        what: &str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(node, what)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let mut diagnostic =
            Diagnostic::new("MQ103", node.place(), format!("{what} cannot be '{text}'"))
                .label(format!("expected {}", known.join(", ")));
        if let Some(near) = closest(text, known.iter().copied()) {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        }
        self.report(diagnostic);
        None
    }

    /// A name in a value.
    pub(super) fn name<T, F>(&mut self, node: &Node, what: &str, new: F) -> Option<T>
    where
        F: Fn(String) -> MqResult<T>,
    {
        let text = self.text(node, what)?;
        self.checked_name(text, node.place(), new)
    }

    /// A name in a key.
    pub(super) fn key_name<T, F>(&mut self, key: &Key, new: F) -> Option<T>
    where
        F: Fn(String) -> MqResult<T>,
    {
        self.checked_name(&key.text, key.place.clone(), new)
    }

    fn checked_name<T, F>(&mut self, text: &str, place: Place, new: F) -> Option<T>
    where
        F: Fn(String) -> MqResult<T>,
    {
        match new(text.to_owned()) {
            Ok(name) => Some(name),
            Err(error) => {
                let mut diagnostic = Diagnostic::new("MQ104", place, error.message());
                if let Some(help) = error.way_out() {
                    diagnostic = diagnostic.help(help);
                }
                self.report(diagnostic);
                None
            }
        }
    }

    /// Free arguments, typed by YAML.
    pub(super) fn table(&mut self, node: &Node, what: &str) -> FieldTable {
        let mut table = FieldTable::new();
        for (key, value) in self.entries(node, what) {
            if key.text.len() > crate::topology::MAX_NAME_BYTES {
                self.report(Diagnostic::new(
                    "MQ104",
                    key.place.clone(),
                    format!("{what} has a name over 255 bytes"),
                ));
                continue;
            }
            table.insert(key.text.clone(), field_value(value));
        }
        table
    }
}

fn field_value(node: &Node) -> FieldValue {
    match &node.value {
        Value::Null | Value::Unreadable => FieldValue::Void,
        Value::Bool(value) => FieldValue::Bool(*value),
        Value::Integer(value) => FieldValue::I64(*value),
        Value::Float(value) => FieldValue::F64(*value),
        Value::Text(text) => FieldValue::text(text.clone()),
        Value::List(items) => FieldValue::Array(items.iter().map(field_value).collect()),
        Value::Map(entries) => FieldValue::Table(
            entries
                .iter()
                .map(|(key, value)| (key.text.clone(), field_value(value)))
                .collect(),
        ),
    }
}
