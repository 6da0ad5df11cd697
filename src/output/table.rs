//! Columns for people.

use unicode_width::UnicodeWidthStr as _;

/// Rows under a header; numbers stand to the right.
#[derive(Debug, Default)]
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    #[must_use]
    pub fn new(header: &[&'static str]) -> Self {
        Self {
            header: header.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row with one cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The lines, without spaces at their ends.
    #[must_use]
    pub fn render(&self) -> String {
        let columns = self.header.len();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.width()).max().unwrap_or(0);
            widest.max(self.header.get(column).map_or(0, |title| title.width()))
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let is_number = |column: usize| {
            !self.rows.is_empty()
                && self
                    .rows
                    .iter()
                    .filter_map(|row| row.get(column))
                    .all(|cell| {
                        cell.chars()
                            .all(|c| c.is_ascii_digit() || matches!(c, '-' | '–'))
                    })
        };
        let right: Vec<bool> = (0..columns).map(is_number).collect();
        let header: Vec<String> = self.header.iter().map(|&title| title.to_owned()).collect();
        let lines: Vec<String> = std::iter::once(&header)
            .chain(&self.rows)
            .map(|row| line(row, &widths, &right))
            .collect();
        lines.join("\n")
    }
}

fn line(cells: &[String], widths: &[usize], right: &[bool]) -> String {
    let mut line = String::new();
    for ((cell, width), right) in cells.iter().zip(widths).zip(right) {
        if !line.is_empty() {
            line.push_str("  ");
        }
        let padding = " ".repeat(width.saturating_sub(cell.width()));
        if *right {
            line.push_str(&padding);
            line.push_str(cell);
        } else {
            line.push_str(cell);
            line.push_str(&padding);
        }
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligns_by_what_is_seen() {
        let mut table = Table::new(&["NAME", "COUNT"]);
        table.row(["日本".to_owned(), "7".to_owned()]);
        table.row(["abcdef".to_owned(), "12".to_owned()]);
        assert_eq!(
            table.render(),
            "NAME    COUNT\n日本        7\nabcdef     12"
        );
    }
}
