//! What is typed to see fewer rows.

use crate::browse::Key;

/// What makes a filter a jq program.
const PROGRAM: char = '=';

/// The longest filter, in characters.
const LONGEST: usize = 2_000;

/// A line that is typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FilterLine {
    pub(super) text: String,
    /// Why the program cannot be asked.
    pub(super) error: Option<String>,
    /// Whether its answer is still awaited.
    pub(super) waits: bool,
}

impl FilterLine {
    /// Whether the key changed what is typed.
    pub(super) fn types(&mut self, key: Key) -> bool {
        types(&mut self.text, key)
    }

    /// The jq program, if it is one.
    pub(super) fn program(&self) -> Option<&str> {
        let program = self.text.strip_prefix(PROGRAM)?.trim();
        (!program.is_empty()).then_some(program)
    }

    /// Plain text to look for, in lower case; `None`: everything is meant.
    pub(super) fn words(&self) -> Option<String> {
        let is_plain = !self.text.is_empty() && !self.text.starts_with(PROGRAM);
        is_plain.then(|| self.text.to_lowercase())
    }

    /// Why what is shown need not be what the filter means, and the way out;
    /// `None`: it is.
    pub(super) fn not_in_force(&self) -> Option<&'static str> {
        if self.waits {
            Some("the filter is not applied yet: wait for it, or clear it (/ Esc)")
        } else if self.error.is_some() {
            Some("the filter failed: correct or clear it (/)")
        } else if self.lacks_a_program() {
            Some("the filter has no program after =: type one, or clear it (/)")
        } else {
            None
        }
    }

    /// Whether nothing follows the sign of a program.
    pub(super) fn lacks_a_program(&self) -> bool {
        self.text.starts_with(PROGRAM) && self.program().is_none()
    }
}

/// Whether the key changed the line.
pub(super) fn types(line: &mut String, key: Key) -> bool {
    match key {
        Key::Char(c) if !c.is_control() && line.chars().count() < LONGEST => line.push(c),
        Key::Backspace if !line.is_empty() => {
            line.pop();
        }
        Key::ClearLine if !line.is_empty() => line.clear(),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_and_a_program_is_one() {
        for (typed, words, program) in [
            ("", None, None),
            ("Timeout", Some("timeout"), None),
            ("=", None, None),
            ("= ", None, None),
            ("=.attempts > 2", None, Some(".attempts > 2")),
            ("ÄB", Some("äb"), None),
        ] {
            let mut line = FilterLine::default();
            for c in typed.chars() {
                assert!(line.types(Key::Char(c)));
            }
            assert_eq!(line.words().as_deref(), words, "{typed}");
            assert_eq!(line.program(), program, "{typed}");
        }
        let mut line = FilterLine::default();
        assert!(!line.types(Key::Backspace) && !line.types(Key::Char('\u{9b}')));
    }
}
