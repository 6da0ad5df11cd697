//! YAML text to a tree in which every key and value knows its place.
//!
//! Scalars are typed by YAML 1.2: only `true` and `false` are booleans, `017`
//! and `1_000` stay text. Duplicate keys, tabs and alias bombs are errors of
//! the YAML library, passed on with their place.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Location, Options, Spanned};

use crate::diagnostic::{Diagnostic, Place};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    place: Place,
}

/// What a YAML node can be.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
    /// Its mistake has been reported already; whoever reads it stays quiet.
    Unreadable,
}

/// A key of a map and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) text: String,
    pub(super) place: Place,
}

impl Node {
    pub(super) fn place(&self) -> Place {
        self.place.clone()
    }

    /// The first character, for what is missing as a whole.
    pub(super) fn start(&self) -> Place {
        let start = self.place.bytes.start;
        Place {
            source: self.place.source,
            bytes: start..start + 1,
        }
    }

    /// The value under a key of a map.
    pub(super) fn entry(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Map(entries) => entries
                .iter()
                .find(|(candidate, _)| candidate.text == key)
                .map(|(_, node)| node),
            _ => None,
        }
    }

    /// Where a key of a map stands.
    pub(super) fn key_place(&self, key: &str) -> Option<Place> {
        let Value::Map(entries) = &self.value else {
            return None;
        };
        let (found, _) = entries.iter().find(|(found, _)| found.text == key)?;
        Some(found.place.clone())
    }

    /// The places of the texts in it, keys too, that have this character.
    pub(super) fn texts_with(&self, character: char, found: &mut Vec<Place>) {
        match &self.value {
            Value::Text(text) if text.contains(character) => found.push(self.place()),
            Value::List(items) => {
                for item in items {
                    item.texts_with(character, found);
                }
            }
            Value::Map(entries) => {
                for (key, node) in entries {
                    if key.text.contains(character) {
                        found.push(key.place.clone());
                    }
                    node.texts_with(character, found);
                }
            }
            _ => {}
        }
    }

    /// How many items a list has; `None` for what is no list.
    pub(super) fn item_count(&self) -> Option<usize> {
        match &self.value {
            Value::List(items) => Some(items.len()),
            Value::Null => Some(0),
            _ => None,
        }
    }

    /// What the value is, in the user's words.
    pub(super) fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => format!("the boolean {value}"),
            Value::Integer(value) => format!("the number {value}"),
            Value::Float(value) => format!("the number {value}"),
            Value::Text(text) => format!("the text '{text}'"),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
            Value::Unreadable => "unreadable".to_owned(),
        }
    }
}

/// Parses one file.
pub(super) fn parse(source: usize, text: &str) -> Result<Node, Box<Diagnostic>> {
    let options = serde_yaml::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
        // A vhost of 100,000 queues exports as 2 million nodes; aliases are
        // bounded by themselves.
        budget: serde_yaml::budget! {
            max_events: 8_000_000,
            max_nodes: 2_000_000,
        },
    };
    parse_with(source, text, options)
}

fn parse_with(source: usize, text: &str, options: Options) -> Result<Node, Box<Diagnostic>> {
    let root: Option<Spanned<Raw>> =
        serde_yaml::from_str_with_options(text, options).map_err(|error| {
            let bytes = error
                .location()
                .map_or(0..1, |location| range(location, text));
            let (code, help) = match error.without_snippet() {
                serde_yaml::Error::DuplicateMappingKey { .. } => {
                    ("MQ109", "keep one of the two; the other would be ignored")
                }
                serde_yaml::Error::Budget { .. } => (
                    "MQ100",
                    "split it into several files, which are one topology; anchors and aliases are bounded too",
                ),
                _ if text.lines().any(unquoted_variable) => (
                    "MQ100",
                    "put variables in quotes where braces or brackets are around them: \"${NAME}\"",
                ),
                _ => (
                    "MQ100",
                    "YAML: indent with spaces, never with tabs, and quote text that holds `: ` or ` #`",
                ),
            };
            // What cannot be read as YAML may be a password in the wrong quotes.
            let source = if about_a_password(text, &bytes) {
                usize::MAX
            } else {
                source
            };
            Box::new(
                Diagnostic::new(code, Place { source, bytes }, message_of(&error)).help(help),
            )
        })?;
    match root {
        Some(root) => Ok(locate(root, source, text)),
        None => Err(Box::new(
            Diagnostic::new(
                "MQ100",
                Place {
                    source,
                    bytes: 0..0,
                },
                "the file is empty",
            )
            .help("begin it with `version: 1`"),
        )),
    }
}

/// Whether the line of these bytes speaks of a password.
fn about_a_password(text: &str, bytes: &std::ops::Range<usize>) -> bool {
    let before = text.get(..bytes.start).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(start..).unwrap_or_default();
    let line = line.lines().next().unwrap_or_default();
    line.to_ascii_lowercase().contains("passw")
}

/// Whether a line has a `${` that YAML takes for the beginning of a map.
fn unquoted_variable(line: &str) -> bool {
    line.split_once("${")
        .is_some_and(|(before, _)| before.contains(['{', '[']) && !before.ends_with(['"', '\'']))
}

/// The library's words without its own place, which the excerpt shows already.
fn message_of(error: &serde_yaml::Error) -> String {
    let formatter = serde_yaml::UserMessageFormatter;
    let text = error.without_snippet().render_with_formatter(&formatter);
    let first = text.lines().next().unwrap_or_default();
    match first.rfind(" at line ") {
        Some(at) => first.get(..at).unwrap_or(first).to_owned(),
        None => first.to_owned(),
    }
}

fn locate(spanned: Spanned<Raw>, source: usize, text: &str) -> Node {
    let place = Place {
        source,
        bytes: range(spanned.referenced, text),
    };
    let value = match spanned.value {
        Raw::Null => Value::Null,
        Raw::Bool(value) => Value::Bool(value),
        Raw::Integer(value) => Value::Integer(value),
        Raw::Float(value) => Value::Float(value),
        Raw::Text(value) => Value::Text(value),
        Raw::List(items) => Value::List(
            items
                .into_iter()
                .map(|item| locate(item, source, text))
                .collect(),
        ),
        Raw::Map(entries) => Value::Map(
            entries
                .into_iter()
                .map(|(key, value)| {
                    let place = Place {
                        source,
                        bytes: range(key.referenced, text),
                    };
                    let key = Key {
                        text: key.value,
                        place,
                    };
                    (key, locate(value, source, text))
                })
                .collect(),
        ),
    };
    Node { value, place }
}

fn range(location: Location, text: &str) -> std::ops::Range<usize> {
    let span = location.span();
    let start = span
        .byte_offset()
        .unwrap_or_else(|| offset_of_line(location.line(), text));
    let length = span.byte_len().unwrap_or(1).max(1);
    let clamp = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(text.len());
    clamp(start)..clamp(start.saturating_add(length))
}

fn offset_of_line(line: u64, text: &str) -> u64 {
    let lines = usize::try_from(line.saturating_sub(1)).unwrap_or(0);
    text.split_inclusive('\n')
        .take(lines)
        .map(|line| line.len() as u64)
        .sum()
}

/// The tree before its places are known in bytes.
enum Raw {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        // Beyond i64 AMQP has no integer: kept as text, so a number is asked for.
        Ok(i64::try_from(value).map_or_else(|_| Raw::Text(value.to_string()), Raw::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_texts_cover_them_and_nothing_else() {
        let text = "\
a: | # no
  x # yes
  ö # yes
# no
b: >- # no
  folded # yes

  more # yes
\"k # yes\": \"q # yes

  more # yes\" # no
c: 'it''s # yes' # no
l: # no
  - |+
    keep # yes

  # no
  - &x |2-
    # yes
  - *x # no
d: plain
  more # no
e: |
  # yes
  last # yes";
        for text in [
            text.to_owned(),
            text.replace('\n', "\r\n"),
            format!("\u{feff}%YAML 1.2\n---\n{text}"),
        ] {
            let mut places = Vec::new();
            parse(0, &text).expect("YAML").texts_with('#', &mut places);
            for (at, _) in text.match_indices("# ") {
                let covered = places.iter().any(|place| place.bytes.contains(&at));
                let is_text = text[at..].starts_with("# yes");
                assert_eq!(covered, is_text, "at {at}: {}", &text[at - 4..at + 5]);
            }
        }
    }
}
