//! A cursor in a list that is longer than the screen.

use crate::browse::Key;

/// Where the cursor is, and which row is the first one shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    pub(super) selected: usize,
    pub(super) top: usize,
}

impl List {
    /// Moves in `length` rows of which `page` are shown; `false`: the key moves
    /// nothing.
    pub(super) fn moves(&mut self, key: Key, length: usize, page: usize) -> bool {
        self.selected = match key {
            Key::Up | Key::Char('k') => self.selected.saturating_sub(1),
            Key::Down | Key::Char('j') => self.selected.saturating_add(1),
            Key::PageUp => self.selected.saturating_sub(page.max(1)),
            Key::PageDown => self.selected.saturating_add(page.max(1)),
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => usize::MAX,
            _ => return false,
        };
        self.fit(length, page);
        true
    }

    /// Keeps the cursor among the rows, and on the screen.
    pub(super) fn fit(&mut self, length: usize, page: usize) {
        let page = page.max(1);
        self.selected = self.selected.min(length.saturating_sub(1));
        let lowest_top = self.selected.saturating_sub(page - 1);
        let most = length.saturating_sub(page);
        self.top = self.top.max(lowest_top).min(self.selected).min(most);
    }

    /// Scrolls text of so many lines; the cursor is its first line then.
    pub(super) fn scrolls(&mut self, key: Key, length: usize, page: usize) -> bool {
        let most = length.saturating_sub(page);
        self.top = match key {
            Key::Up | Key::Char('k') => self.top.saturating_sub(1),
            Key::Down | Key::Char('j') => self.top.saturating_add(1),
            Key::PageUp => self.top.saturating_sub(page),
            Key::PageDown | Key::Char(' ') => self.top.saturating_add(page),
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => most,
            _ => return false,
        }
        .min(most);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_stays_among_the_rows_and_on_the_screen() {
        let mut list = List::default();
        for (key, length, page, selected, top) in [
            (Key::Up, 10, 4, 0, 0),
            (Key::Down, 10, 4, 1, 0),
            (Key::PageDown, 10, 4, 5, 2),
            (Key::End, 10, 4, 9, 6),
            (Key::Down, 10, 4, 9, 6),
            (Key::Up, 10, 4, 8, 6),
            (Key::PageUp, 10, 4, 4, 4),
            // The terminal grew, then shrank to nothing.
            (Key::Up, 10, 20, 3, 0),
            (Key::Down, 10, 0, 4, 4),
            // Others took messages away.
            (Key::Down, 2, 4, 1, 0),
            (Key::Down, 0, 4, 0, 0),
        ] {
            assert!(list.moves(key, length, page));
            assert_eq!((list.selected, list.top), (selected, top), "{key:?}");
        }
        assert!(!list.moves(Key::Enter, 3, 3));
    }

    #[test]
    fn text_scrolls_no_further_than_its_end() {
        let mut list = List::default();
        for (key, top) in [
            (Key::Char(' '), 4),
            (Key::PageDown, 6),
            (Key::Up, 5),
            (Key::Home, 0),
            (Key::End, 6),
        ] {
            assert!(list.scrolls(key, 10, 4));
            assert_eq!(list.top, top, "{key:?}");
        }
    }
}
