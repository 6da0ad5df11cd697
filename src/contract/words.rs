//! Violations in words: where, what, and by which rule, short enough for a header.

use std::io;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value as Json;

use crate::printable::one_line;

/// The longest reason in bytes: the header of a dead letter keeps 1024.
const MAX_REASON_BYTES: usize = 1000;

/// What stays free for the count of those that did not fit.
const COUNT_BYTES: usize = 30;

/// How much of a value is told, in characters.
const VALUE_WIDTH: usize = 60;

/// How much of a path is told, in characters.
const PATH_WIDTH: usize = 120;

/// How much is told of what is wrong, in characters.
const WHAT_WIDTH: usize = 200;

/// Whole violations, as many as fit, and how many did not.
pub(super) struct Reason {
    text: String,
    told: usize,
    untold: usize,
}

impl Reason {
    pub(super) fn new(schema: &str) -> Self {
        Self {
            text: format!("schema {schema}: "),
            told: 0,
            untold: 0,
        }
    }

    pub(super) fn add(&mut self, violation: &str) {
        let separator = if self.told == 0 { "" } else { "; " };
        let bytes = self.text.len() + separator.len() + violation.len();
        // The first one fits by the widths above, unless every character of it
        // takes several bytes.
        if self.untold > 0 || (self.told > 0 && bytes + COUNT_BYTES > MAX_REASON_BYTES) {
            self.untold += 1;
            return;
        }
        self.text.push_str(separator);
        self.text.push_str(violation);
        self.told += 1;
    }

    /// The same without making the words of what is only counted.
    pub(super) fn add_with(&mut self, violation: impl FnOnce() -> String) {
        if self.untold > 0 {
            self.untold += 1;
        } else {
            self.add(&violation());
        }
    }

    pub(super) fn finish(self) -> String {
        let mut text = self.text;
        if self.told == 0 {
            text.push_str("the body does not fit");
        }
        let mut end = text.len().min(MAX_REASON_BYTES - COUNT_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        if self.untold > 0 {
            text.push_str(&format!("; and {} more", self.untold));
        }
        text
    }
}

/// `/path: what is wrong (rule)`.
pub(super) fn violation(error: &ValidationError<'_>) -> String {
    format!(
        "{}: {}",
        place(error.instance_path().as_str()),
        rule_broken(error)
    )
}

/// A JSON pointer, where the whole is `/`.
pub(super) fn place(pointer: &str) -> String {
    match pointer {
        "" => "/".to_owned(),
        pointer => one_line(pointer, PATH_WIDTH),
    }
}

/// `what is wrong (rule)`.
pub(super) fn rule_broken(error: &ValidationError<'_>) -> String {
    let what = match error.kind() {
        Kind::Required { property } => format!("{property} is missing"),
        Kind::FalseSchema => format!("{} is not allowed here", value(error.instance())),
        Kind::RegexEngineFailure { .. } => format!(
            "{} could not be compared with the pattern",
            value(error.instance())
        ),
        _ => error.masked_with(value(error.instance())).to_string(),
    };
    let rule = match error.kind() {
        // A schema that is `false`, which has no keyword.
        Kind::FalseSchema => "false",
        kind => kind.keyword(),
    };
    format!("{} ({rule})", one_line(&what, WHAT_WIDTH))
}

/// A value as JSON, cut where it becomes long.
pub(super) fn value(value: &Json) -> String {
    let mut start = Start::default();
    // Only as much is written as is told: the value may be the whole body.
    let whole = serde_json::to_writer(&mut start, value).is_ok();
    let text = String::from_utf8_lossy(&start.bytes);
    if whole && text.chars().count() <= VALUE_WIDTH {
        return text.into_owned();
    }
    let quote = if value.is_string() { "\"" } else { "" };
    let shown: String = text.chars().take(VALUE_WIDTH - 3).collect();
    format!("{shown}…{quote}")
}

/// The first bytes that are written to it.
#[derive(Default)]
struct Start {
    bytes: Vec<u8>,
}

impl io::Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let free = (4 * VALUE_WIDTH).saturating_sub(self.bytes.len());
        if free == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let taken = bytes.get(..free).unwrap_or(bytes);
        self.bytes.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Line and column, both from 1, of the end of a text; a column counts bytes, as
/// serde_json's do.
pub(super) fn location(before: &str) -> (usize, usize) {
    let line = before.matches('\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or_default();
    (line, last.len() + 1)
}
