//! Comments that silence a rule: `# mq: allow MQ203`.
//!
//! On a line with something else, or on the line above it, a comment is for
//! what begins in that line: a key, or an object with all of its keys. Before
//! everything else it is for the whole file.

mod mark;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::diagnostic::{Diagnostic, Level, Place, Source};
use crate::lint::RULES;
use crate::lint::rule::USELESS_ALLOW;

use mark::{Mark, marks};

/// One comment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Allow {
    place: Place,
    mark: Mark,
    /// The line it is for, from 0; `None`: the whole file.
    line: Option<usize>,
}

/// A file and a line of it, or all of it.
type Scope = (usize, Option<usize>);

/// The comments of all files, and which of them silenced something.
#[derive(Debug, Default)]
pub(super) struct Allows {
    all: Vec<Allow>,
    /// Whether something was silenced, by where and by code.
    used: BTreeMap<Scope, BTreeMap<String, bool>>,
    /// Where each line of each file begins.
    lines: Vec<Vec<usize>>,
}

impl Allows {
    /// Reads the comments; what stands in `texts` is none.
    pub(super) fn of(sources: &[Source], texts: &[Place]) -> Self {
        let mut allows = Self::default();
        for (number, source) in sources.iter().enumerate() {
            let texts = texts.iter().filter(|place| place.source == number);
            let mut texts: Vec<Range<usize>> = texts.map(|place| place.bytes.clone()).collect();
            texts.sort_by_key(|text| text.start);
            for allow in of_source(number, source, &texts) {
                if let Mark::Codes(codes) = &allow.mark {
                    let used = allows.used.entry((number, allow.line)).or_default();
                    used.extend(codes.iter().map(|code| (code.clone(), false)));
                }
                allows.all.push(allow);
            }
            let ends = source.text.match_indices('\n').map(|(at, _)| at + 1);
            allows.lines.push(std::iter::once(0).chain(ends).collect());
        }
        allows
    }

    /// Whether a comment silences that code in the line of one of the places.
    pub(super) fn silence(&mut self, code: &str, places: &[&Place]) -> bool {
        let mut silenced = false;
        for place in places {
            let starts = self.lines.get(place.source);
            let line = starts.and_then(|starts| {
                starts
                    .partition_point(|start| *start <= place.bytes.start)
                    .checked_sub(1)
            });
            for line in [None, line] {
                let used = self.used.get_mut(&(place.source, line));
                if let Some(used) = used.and_then(|used| used.get_mut(code)) {
                    *used = true;
                    silenced = true;
                }
            }
        }
        silenced
    }

    /// What is wrong with the comments themselves.
    pub(super) fn useless(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for allow in &self.all {
            let codes = match &allow.mark {
                Mark::Codes(codes) => codes,
                Mark::Nearly(meant) => {
                    let message = "a comment that looks like an `allow` and is none";
                    found.push(warning(allow, message.to_owned()).help(format!("write `{meant}`")));
                    continue;
                }
            };
            let unknown: Vec<&String> = codes
                .iter()
                .filter(|code| RULES.iter().all(|rule| rule.code != code.as_str()))
                .collect();
            for code in &unknown {
                let (message, help) = if code.starts_with("MQ1") {
                    (
                        format!("{code} cannot be allowed: what has such a code cannot be applied"),
                        "correct what it is about",
                    )
                } else {
                    (
                        format!("there is no rule '{code}'"),
                        "codes stand in brackets in front of each finding",
                    )
                };
                found.push(warning(allow, message).help(help));
            }
            if unknown.is_empty() && !self.is_used(allow, codes) {
                let message = format!("nothing here is found by {}", codes.join(", "));
                found.push(warning(allow, message).help("take the comment away"));
            }
        }
        found
    }

    fn is_used(&self, allow: &Allow, codes: &[String]) -> bool {
        let used = self.used.get(&(allow.place.source, allow.line));
        codes.iter().any(|code| {
            let used = used.and_then(|used| used.get(code));
            used.copied().unwrap_or(false)
        })
    }
}

fn warning(allow: &Allow, message: String) -> Diagnostic {
    Diagnostic::new(USELESS_ALLOW.code, allow.place.clone(), message)
        .level(Level::Warning)
        .label("silences nothing")
}

/// The byte order mark, which some editors put in front of everything.
const BOM: char = '\u{feff}';

fn of_source(number: usize, source: &Source, texts: &[Range<usize>]) -> Vec<Allow> {
    let is_text = |at: usize| {
        let before = texts.partition_point(|text| text.start <= at);
        let last = before.checked_sub(1).and_then(|last| texts.get(last));
        last.is_some_and(|text| text.contains(&at))
    };
    let mut found: Vec<Allow> = Vec::new();
    let mut is_begin = true;
    // Comments on lines of their own are for the next line that is none.
    let mut ahead: Vec<usize> = Vec::new();
    let mut start = 0;
    for (line, whole) in source.text.split_inclusive('\n').enumerate() {
        let text = if line == 0 {
            whole.trim_start_matches(BOM)
        } else {
            whole
        };
        let text_start = start + whole.len() - text.len();
        let trimmed = text.trim_start();
        let is_comment = trimmed.starts_with('#') && !is_text(start + whole.len() - trimmed.len());
        let is_nothing = trimmed.trim_end().is_empty() || (is_begin && is_of_the_document(text));
        let is_content = !is_comment && !is_nothing;
        if is_content {
            for at in ahead.drain(..) {
                if let Some(allow) = found.get_mut(at) {
                    allow.line = Some(line);
                }
            }
        }
        is_begin &= !is_content;
        let mark = marks(text).find(|(at, _)| !is_text(text_start + at));
        if let Some((at, mark)) = mark {
            if is_comment && !is_begin {
                ahead.push(found.len());
            }
            found.push(Allow {
                place: Place {
                    source: number,
                    bytes: text_start + at..text_start + text.trim_end().len(),
                },
                mark,
                line: is_content.then_some(line),
            });
        }
        start += whole.len();
    }
    found
}

/// Lines that YAML has in front of a document: `%YAML 1.2` and `---`.
fn is_of_the_document(line: &str) -> bool {
    let rest = line.strip_prefix("---");
    let is_begin = rest.is_some_and(|rest| {
        let rest = rest.strip_prefix(char::is_whitespace).unwrap_or(rest);
        let rest = rest.trim();
        rest.is_empty() || rest.starts_with('#')
    });
    is_begin || line.starts_with('%')
}

#[cfg(test)]
mod tests;
