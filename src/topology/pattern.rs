//! Patterns of names, as policies and permissions have them: Perl syntax, found anywhere.

use std::fmt;

use fancy_regex::Regex;

use crate::error::{Error, ErrorKind, Result};

/// A pattern that has been read once and is known to be one.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    regex: Option<Regex>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl Pattern {
    /// Checks the syntax.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when the text is no pattern.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        let regex = Regex::new(&text).map_err(|error| {
            Error::new(
                ErrorKind::InvalidInput,
                format!("'{text}' is no pattern: {error}"),
            )
            .hint("escape dots and braces that stand for themselves: ^orders\\.")
        })?;
        Ok(Self {
            text,
            regex: Some(regex),
        })
    }

    /// A pattern that a broker holds already. Brokers know more syntax than we
    /// do (`\\Q…\\E`, `(?R)`); what we cannot read is kept as text and found nowhere.
    #[must_use]
    pub fn observed(text: impl Into<String>) -> Self {
        let text = text.into();
        let regex = Regex::new(&text).ok();
        Self { text, regex }
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is found somewhere in `name`.
    #[must_use]
    pub fn is_found_in(&self, name: &str) -> bool {
        self.regex
            .as_ref()
            .is_some_and(|regex| regex.is_match(name).unwrap_or(false))
    }

    /// The same pattern for names that begin with `prefix`; `None` when it is
    /// not anchored with `^`: it would take strangers too.
    #[must_use]
    pub fn prefixed(&self, prefix: &str) -> Option<Self> {
        let rest = self.text.strip_prefix('^')?;
        let prefix = fancy_regex::escape(prefix);
        // Without the group an alternative (`^a|^b`) would stand beside the prefix.
        let text = if rest.contains('|') {
            format!("^{prefix}(?:{rest})")
        } else {
            format!("^{prefix}{rest}")
        };
        Self::new(text).ok()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_goes_behind_the_anchor_and_is_taken_literally() {
        let prefixed = |text: &str| Pattern::new(text).expect("pattern").prefixed("ci.7-");
        let copy = prefixed("^orders").expect("anchored");
        assert!(copy.is_found_in("ci.7-orders"));
        assert!(!copy.is_found_in("cix7-orders"));
        assert_eq!(prefixed("orders"), None);
    }

    #[test]
    fn an_alternative_does_not_escape_the_prefix() {
        let copy = Pattern::new("^a|b")
            .expect("pattern")
            .prefixed("ci.")
            .expect("anchored");
        assert!(copy.is_found_in("ci.a") && copy.is_found_in("ci.b"));
        assert!(!copy.is_found_in("b") && !copy.is_found_in("my.b"));
    }
}
