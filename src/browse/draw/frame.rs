//! The rows every screen has: title, counts, what is shown, a note, the keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use unicode_width::UnicodeWidthStr as _;

use crate::browse::wrap::{fitted, wrapped};

/// Between two columns.
const GAP: usize = 2;

/// Rows and columns to write into.
pub(super) struct Frame<'b> {
    area: Rect,
    buffer: &'b mut Buffer,
}

/// A column: its header and its width; numbers stand to the right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) header: &'static str,
    pub(super) columns: usize,
    pub(super) is_number: bool,
}

impl<'b> Frame<'b> {
    pub(super) const fn new(area: Rect, buffer: &'b mut Buffer) -> Self {
        Self { area, buffer }
    }

    pub(super) fn columns(&self) -> usize {
        self.area.width.into()
    }

    fn rows(&self) -> usize {
        self.area.height.into()
    }

    pub(super) fn text_rows(&self) -> usize {
        self.rows().saturating_sub(4)
    }

    pub(super) fn table_rows(&self) -> usize {
        self.rows().saturating_sub(5)
    }

    fn write(&mut self, row: usize, text: &str, style: Style) {
        let Ok(row) = u16::try_from(row) else {
            return;
        };
        if row < self.area.height {
            let width = self.area.width.into();
            self.buffer
                .set_stringn(self.area.x, self.area.y + row, text, width, style);
        }
    }

    /// Plain text.
    pub(super) fn line(&mut self, row: usize, text: &str) {
        self.write(row, text, Style::new());
    }

    /// The first row.
    pub(super) fn title(&mut self, title: &str) {
        let text = fitted(&format!(" {title}"), self.columns());
        self.write(0, &text, Style::new().add_modifier(Modifier::REVERSED));
    }

    /// The second row: how many there are.
    pub(super) fn counts(&mut self, counts: &str) {
        let text = fitted(counts, self.columns());
        self.line(1, &text);
    }

    /// The row above the keys.
    pub(super) fn status(&mut self, status: &str) {
        let text = fitted(status, self.columns());
        let row = self.rows().saturating_sub(2);
        self.write(row, &text, Style::new().add_modifier(Modifier::BOLD));
    }

    /// The whole of what is said, above the keys and over what stands there.
    pub(super) fn note(&mut self, note: &str) {
        let lines = wrapped(note, self.columns());
        // Title, counts and keys stay.
        let room = self.rows().saturating_sub(3);
        let first = self.rows().saturating_sub(1 + lines.len().min(room));
        for (row, line) in lines.iter().take(room).enumerate() {
            let text = fitted(line, self.columns());
            let style = Style::new().add_modifier(Modifier::BOLD);
            self.write(first + row, &text, style);
        }
    }

    /// The last row: as many keys as there is room for, and always `?`.
    pub(super) fn keys(&mut self, keys: &[(&str, &str)]) {
        let last = keys.last().map(|(key, what)| format!("{key} {what}"));
        let last = last.unwrap_or_default();
        let room = self.columns().saturating_sub(last.width());
        let mut line = String::new();
        for (key, what) in keys.iter().take(keys.len().saturating_sub(1)) {
            let next = format!("{key} {what}  ");
            if line.width() + next.width() > room {
                break;
            }
            line.push_str(&next);
        }
        line.push_str(&last);
        let text = fitted(&line, self.columns());
        let row = self.rows().saturating_sub(1);
        self.write(row, &text, Style::new().add_modifier(Modifier::REVERSED));
    }

    /// The header of a table.
    pub(super) fn header(&mut self, columns: &[Column]) {
        let cells: Vec<String> = columns.iter().map(|it| it.header.to_owned()).collect();
        let text = format!("  {}", row_text(&cells, columns));
        self.write(2, &text, Style::new().add_modifier(Modifier::BOLD));
    }

    /// A row of a table; `row` counts from the header on.
    pub(super) fn row(
        &mut self,
        row: usize,
        cells: &[String],
        columns: &[Column],
        is_selected: bool,
        is_marked: bool,
    ) {
        let cursor = if is_selected { '>' } else { ' ' };
        let mark = if is_marked { '*' } else { ' ' };
        let text = format!("{cursor}{mark}{}", row_text(cells, columns));
        let style = if is_selected {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new()
        };
        let text = fitted(&text, self.columns());
        self.write(row + 3, &text, style);
    }
}

fn row_text(cells: &[String], columns: &[Column]) -> String {
    let mut text = String::new();
    for (cell, column) in cells.iter().zip(columns) {
        if !text.is_empty() {
            text.push_str(&" ".repeat(GAP));
        }
        text.push_str(&if column.is_number {
            crate::browse::wrap::right(cell, column.columns)
        } else {
            fitted(cell, column.columns)
        });
    }
    text
}

/// What is left for the last column beside these, cursor and mark.
pub(super) fn room_beside(columns: &[Column], all: usize) -> usize {
    let used: usize = columns.iter().map(|it| it.columns + GAP).sum();
    all.saturating_sub(used + 2)
}
