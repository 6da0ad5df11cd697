//! Comments that silence a rule: `# mq: allow MQ203`.
//!
//! On a line with something else, or on the line above it, a comment is for
//! what begins in that line: a key, or an object with all of its keys. Before
//! everything else it is for the whole file.

use crate::diagnostic::{Diagnostic, Level, Place, Source};
use crate::lint::RULES;
use crate::lint::rule::USELESS_ALLOW;

/// One comment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Allow {
    place: Place,
    codes: Vec<String>,
    /// The line it is for, from 0; `None`: the whole file.
    line: Option<usize>,
}

/// The comments of all files, and which of them silenced something.
#[derive(Debug, Default)]
pub(super) struct Allows {
    all: Vec<(Allow, bool)>,
    /// Where each line of each file begins.
    lines: Vec<Vec<usize>>,
}

const MARK: &str = "# mq: allow ";

impl Allows {
    pub(super) fn of(sources: &[Source]) -> Self {
        let mut allows = Self::default();
        for (number, source) in sources.iter().enumerate() {
            let found = of_source(number, source);
            allows
                .all
                .extend(found.into_iter().map(|allow| (allow, false)));
            let ends = source.text.match_indices('\n').map(|(at, _)| at + 1);
            allows.lines.push(std::iter::once(0).chain(ends).collect());
        }
        allows
    }

    /// Whether a comment silences that code in the line of one of the places.
    pub(super) fn silence(&mut self, code: &str, places: &[&Place]) -> bool {
        let lines = &self.lines;
        let line = |place: &Place| {
            let starts = lines.get(place.source)?;
            starts
                .partition_point(|start| *start <= place.bytes.start)
                .checked_sub(1)
        };
        let mut silenced = false;
        for (allow, used) in &mut self.all {
            let is_meant = places.iter().any(|place| {
                place.source == allow.place.source
                    && (allow.line.is_none() || allow.line == line(place))
            });
            if is_meant && allow.codes.iter().any(|own| own == code) {
                *used = true;
                silenced = true;
            }
        }
        silenced
    }

    /// What is wrong with the comments themselves.
    pub(super) fn useless(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (allow, used) in &self.all {
            let unknown = allow
                .codes
                .iter()
                .find(|code| RULES.iter().all(|rule| rule.code != code.as_str()));
            let (message, help) = match unknown {
                Some(code) if code.starts_with("MQ1") => (
                    format!("{code} cannot be allowed: what has such a code cannot be applied"),
                    "correct what it is about",
                ),
                Some(code) => (
                    format!("there is no rule '{code}'"),
                    "codes stand in brackets in front of each finding",
                ),
                None if !used => (
                    format!("nothing here is found by {}", allow.codes.join(", ")),
                    "take the comment away",
                ),
                None => continue,
            };
            found.push(
                Diagnostic::new(USELESS_ALLOW.code, allow.place.clone(), message)
                    .level(Level::Warning)
                    .label("silences nothing")
                    .help(help),
            );
        }
        found
    }
}

fn of_source(number: usize, source: &Source) -> Vec<Allow> {
    let mut found = Vec::new();
    let mut is_begin = true;
    // Comments on lines of their own are for the next line that is none.
    let mut ahead: Vec<usize> = Vec::new();
    let mut start = 0;
    for (line, text) in source.text.split_inclusive('\n').enumerate() {
        let trimmed = text.trim_start();
        let is_comment = trimmed.starts_with('#');
        let is_content = !is_comment && !trimmed.trim_end().is_empty();
        if is_content {
            for at in ahead.drain(..) {
                if let Some(allow) = found.get_mut(at) {
                    let allow: &mut Allow = allow;
                    allow.line = Some(line);
                }
            }
        }
        if let Some(at) = mark(text) {
            let codes: Vec<String> = text
                .get(at + MARK.len()..)
                .unwrap_or_default()
                .split([',', ' '])
                .map(|code| code.trim().to_owned())
                .filter(|code| !code.is_empty())
                .collect();
            if is_comment && !is_begin {
                ahead.push(found.len());
            }
            found.push(Allow {
                place: Place {
                    source: number,
                    bytes: start + at..start + text.trim_end().len(),
                },
                codes,
                line: (!is_comment).then_some(line),
            });
        }
        is_begin &= !is_content;
        start += text.len();
    }
    found
}

/// Where the comment begins: a `#` at the start or behind a blank.
fn mark(text: &str) -> Option<usize> {
    text.match_indices(MARK).map(|(at, _)| at).find(|at| {
        text.get(..*at)
            .is_some_and(|b| b.is_empty() || b.ends_with([' ', '\t']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_for_its_line_the_next_or_all() {
        let text = "\
# mq: allow MQ212
version: 1
queues:
  # mq: allow MQ209, MQ211
  # why

  a: {}
  b: {} # mq: allow MQ207
  c: {} # not mq: allow MQ999
";
        let source = Source {
            name: "t.yaml".to_owned(),
            text: text.to_owned(),
        };
        let allows = of_source(0, &source);
        let shown: Vec<(Option<usize>, String)> = allows
            .iter()
            .map(|allow| (allow.line, allow.codes.join("+")))
            .collect();
        assert_eq!(
            shown,
            [
                (None, "MQ212".to_owned()),
                (Some(6), "MQ209+MQ211".to_owned()),
                (Some(7), "MQ207".to_owned()),
            ]
        );
    }

    #[test]
    fn what_silences_nothing_is_told() {
        let source = Source {
            name: "t.yaml".to_owned(),
            text: "a: 1 # mq: allow MQ209\nb: 2 # mq: allow MQ211\nc: 3 # mq: allow MQ999, MQ106\n"
                .to_owned(),
        };
        let mut allows = Allows::of(std::slice::from_ref(&source));
        let at = |bytes| Place { source: 0, bytes };
        assert!(allows.silence("MQ209", &[&at(0..1)]));
        assert!(!allows.silence("MQ211", &[&at(0..1)]));
        let told: Vec<String> = allows.useless().into_iter().map(|d| d.message).collect();
        assert_eq!(
            told,
            ["nothing here is found by MQ211", "there is no rule 'MQ999'"]
        );
    }
}
