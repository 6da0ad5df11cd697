//! Diagnostics: what is wrong in a file, exactly where, and the way out.
//!
//! Checks collect all of them before anything is shown; rendering is the last
//! step and the only one that knows how a terminal looks.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level as Title, Renderer, Snippet};

use crate::printable::{printable, unbroken};

/// A file's name and text, as diagnostics need them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as it was given, or `<stdin>`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// A range of bytes in one of several sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which source, by its position in the list that was read.
    pub source: usize,
    /// Which bytes of it.
    pub bytes: Range<usize>,
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Could be better; told to whoever asks for it.
    Advice,
    /// Told, and stops nothing.
    Warning,
    /// Stops whatever was to be done.
    Error,
}

impl Level {
    /// The word for it, in reports and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Advice => "advice",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How serious it is.
    pub level: Level,
    /// Stable code such as `MQ101`.
    pub code: &'static str,
    /// What is wrong, naming the object.
    pub message: String,
    /// Where.
    pub place: Place,
    /// A few words under the excerpt.
    pub label: String,
    /// The way out.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A mistake without further help.
    #[must_use]
    pub fn new(code: &'static str, place: Place, message: impl Into<String>) -> Self {
        Self {
            level: Level::Error,
            code,
            message: message.into(),
            place,
            label: String::new(),
            help: None,
        }
    }

    /// The same as serious as that.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Adds the words under the excerpt.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds the way out.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// All findings as text, in the order of the files, with excerpts.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], sources: &[Source]) -> String {
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    sorted.sort_by_key(|d| (d.place.source, d.place.bytes.start));
    let renderer = Renderer::plain();
    let blocks: Vec<String> = sorted
        .into_iter()
        .map(|diagnostic| render_one(&renderer, diagnostic, sources))
        .collect();
    blocks.join("\n\n")
}

fn render_one(renderer: &Renderer, diagnostic: &Diagnostic, sources: &[Source]) -> String {
    let title = match diagnostic.level {
        Level::Error => Title::ERROR,
        Level::Warning => Title::WARNING,
        Level::Advice => Title::NOTE.with_name("advice"),
    };
    // Names in them come from files: none may begin a line of its own.
    let title = title
        .primary_title(unbroken(&diagnostic.message))
        .id(diagnostic.code);
    let mut group = annotate_snippets::Group::with_title(title);
    if let Some(source) = sources.get(diagnostic.place.source) {
        let bytes = within(&diagnostic.place.bytes, &source.text);
        let lines = lines_around(&bytes, &source.text);
        let text = source.text.get(lines.clone()).unwrap_or_default();
        let before = source.text.get(..lines.start).unwrap_or_default();
        let span = bytes.start - lines.start..bytes.end - lines.start;
        let mut annotation = AnnotationKind::Primary.span(span);
        if !diagnostic.label.is_empty() {
            annotation = annotation.label(unbroken(&diagnostic.label));
        }
        group = group.element(
            // Only these lines: rendering reads all that it is given.
            Snippet::source(text)
                .line_start(before.matches('\n').count() + 1)
                .path(unbroken(&source.name))
                .annotation(annotation),
        );
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Title::HELP.message(printable(help)));
    }
    renderer.render(&[group])
}

/// The whole lines that the range is on.
fn lines_around(bytes: &Range<usize>, text: &str) -> Range<usize> {
    let before = text.get(..bytes.start).unwrap_or_default();
    let after = text.get(bytes.end..).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let end = after.find('\n').map_or(text.len(), |at| bytes.end + at);
    start..end
}

/// Line and column, both from 1, of a place; a column counts characters.
#[must_use]
pub fn line_and_column(place: &Place, sources: &[Source]) -> Option<(usize, usize)> {
    let text = &sources.get(place.source)?.text;
    let start = within(&place.bytes, text).start;
    let before = text.get(..start)?;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.matches('\n').count() + 1;
    Some((line, before.get(line_start..)?.chars().count() + 1))
}

/// The range cut to the text and to character boundaries.
fn within(bytes: &Range<usize>, text: &str) -> Range<usize> {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(bytes.start);
    let end = floor(bytes.end).max(start);
    // An empty range at the end of a line would be drawn on the next one.
    let line_end = text
        .get(start..)
        .and_then(|rest| rest.find('\n'))
        .map_or(text.len(), |at| start + at);
    start..end.min(line_end.max(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_code_place_excerpt_and_help() {
        let sources = [Source {
            name: "a.yaml".to_owned(),
            text: "queues:\n  q: { typ: quorum }\n".to_owned(),
        }];
        let place = Place {
            source: 0,
            bytes: 15..18,
        };
        let shown = render(
            &[Diagnostic::new("MQ101", place, "unknown key `typ`")
                .label("not a key of a queue")
                .help("did you mean `type`?")],
            &sources,
        );
        for part in [
            "error[MQ101]: unknown key `typ`",
            "a.yaml:2:8",
            "^^^ not a key of a queue",
            "help: did you mean `type`?",
        ] {
            assert!(shown.contains(part), "{part} missing in\n{shown}");
        }
    }

    #[test]
    fn a_name_forges_no_lines() {
        let sources = [Source {
            name: "a\nerror[MQ997]: fake.yaml".to_owned(),
            text: "queues:\n".to_owned(),
        }];
        let place = Place {
            source: 0,
            bytes: 0..6,
        };
        let shown = render(
            &[
                Diagnostic::new("MQ101", place, "'x\n\nerror[MQ999]: fake\r\u{1b}[2J'")
                    .label("'y\nerror[MQ998]: fake'")
                    .help("one of\nthese"),
            ],
            &sources,
        );
        let forged = shown.lines().filter(|line| line.starts_with("error["));
        assert_eq!(forged.count(), 1, "{shown}");
        assert!(
            shown.contains(r"'x\n\nerror[MQ999]: fake\r\u{1b}[2J'"),
            "{shown}"
        );
        assert!(shown.contains(r"'y\nerror[MQ998]: fake'"), "{shown}");
        assert!(shown.contains("one of\n"), "{shown}");
    }

    #[test]
    fn a_range_outside_the_text_does_no_harm() {
        assert_eq!(within(&(900..901), "é\n"), 3..3);
        assert_eq!(within(&(1..2), "é"), 0..2);
    }
}
