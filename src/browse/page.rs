//! A text that may be longer and wider than the screen.

use crate::browse::Key;
use crate::browse::list::List;
use crate::browse::wrap::wrapped;

/// A text, broken for the columns there are.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    text: String,
    pub(super) lines: Vec<String>,
    pub(super) place: List,
}

impl Page {
    /// A page with printable text.
    pub(super) fn new(text: String, columns: usize) -> Self {
        let mut page = Self {
            text,
            ..Self::default()
        };
        page.lines = wrapped(&page.text, columns);
        page
    }

    /// Breaks the text anew; about the same part of it stays on the screen.
    pub(super) fn resize(&mut self, columns: usize, rows: usize) {
        let before = self.lines.len().max(1);
        self.lines = wrapped(&self.text, columns);
        self.place.top =
            (self.place.top * self.lines.len() / before).min(self.lines.len().saturating_sub(rows));
    }

    /// Whether the key scrolls.
    pub(super) fn scrolls(&mut self, key: Key, rows: usize) -> bool {
        self.place.scrolls(key, self.lines.len(), rows)
    }
}
