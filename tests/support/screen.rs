//! What a terminal shows after it was written to: as much of one as progress lines need.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test support: helpers are outside #[test] functions"
)]

/// A terminal that never scrolls anything away.
pub(crate) struct Screen {
    columns: usize,
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// How often a line went on in the next row.
    pub(crate) wraps: usize,
}

impl Screen {
    pub(crate) fn after(columns: usize, written: &str) -> Self {
        let mut screen = Self {
            columns,
            rows: vec![Vec::new()],
            row: 0,
            column: 0,
            wraps: 0,
        };
        let mut rest = written.chars();
        while let Some(c) = rest.next() {
            match c {
                '\r' => screen.column = 0,
                '\n' => screen.down(1),
                '\x1b' => {
                    assert_eq!(rest.next(), Some('['), "{written:?}");
                    let mut number = String::new();
                    let end = loop {
                        match rest.next().unwrap() {
                            digit @ '0'..='9' => number.push(digit),
                            end => break end,
                        }
                    };
                    screen.control(end, number.parse().unwrap_or(1));
                }
                c => screen.put(c),
            }
        }
        screen
    }

    fn control(&mut self, end: char, number: usize) {
        match end {
            'A' => self.row = self.row.checked_sub(number).unwrap(),
            'B' => self.down(number),
            'C' => self.column += number,
            'D' => self.column = self.column.saturating_sub(number),
            'K' => self.rows[self.row].clear(),
            other => panic!("the terminal was told CSI {number} {other}"),
        }
    }

    fn down(&mut self, rows: usize) {
        self.row += rows;
        while self.rows.len() <= self.row {
            self.rows.push(Vec::new());
        }
    }

    fn put(&mut self, c: char) {
        // As xterm does: the last column may be filled without a wrap.
        if self.column == self.columns {
            self.wraps += 1;
            self.column = 0;
            self.down(1);
        }
        let row = &mut self.rows[self.row];
        while row.len() <= self.column {
            row.push(' ');
        }
        row[self.column] = c;
        self.column += 1;
    }

    /// What can be seen, without what is empty at the end.
    pub(crate) fn text(&self) -> String {
        let rows: Vec<String> = self.rows.iter().map(|row| row.iter().collect()).collect();
        let seen: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
        seen.join("\n").trim_end().to_owned()
    }
}
