//! How far a reader came: everything before its position is done.

use std::collections::BTreeMap;

/// What came of the messages of a stream, as far as it is not all done.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Nothing before this is wanted.
    floor: u64,
    /// Came and is not done.
    open: BTreeMap<u64, Open>,
    /// One more than the highest offset that came.
    end: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    InWork,
    GivenBack,
    /// Given back, and the present subscription started at or before it.
    Expected,
}

impl Progress {
    /// Of a reader that wants nothing before `floor`.
    #[must_use]
    pub fn new(floor: u64) -> Self {
        Self {
            floor,
            ..Self::default()
        }
    }

    /// The first offset that is not done; `None` before the first message came.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        self.open.keys().next().copied().or(self.end)
    }

    /// Whether messages were given back that are to come again.
    #[must_use]
    pub fn has_gaps(&self) -> bool {
        self.open.values().any(|open| *open != Open::InWork)
    }

    /// A message came; whether it is to be worked. It is not if it lies before
    /// the wanted offset (brokers start with a whole chunk), is in work, or is
    /// done already.
    pub fn came(&mut self, offset: u64) -> bool {
        if offset < self.floor {
            return false;
        }
        // They come in order: what was expected before this one is no longer kept.
        let gone: Vec<u64> = (self.open.range(..offset))
            .filter(|(_, open)| **open == Open::Expected)
            .map(|(offset, _)| *offset)
            .collect();
        for offset in gone {
            self.open.remove(&offset);
        }
        let is_new = self.end.is_none_or(|end| offset >= end);
        if is_new {
            self.end = Some(offset.saturating_add(1));
        }
        match self.open.get(&offset) {
            Some(Open::InWork) => false,
            None if !is_new => false,
            Some(Open::GivenBack | Open::Expected) | None => {
                self.open.insert(offset, Open::InWork);
                true
            }
        }
    }

    /// One is done.
    pub fn done(&mut self, offset: u64) {
        self.open.remove(&offset);
    }

    /// One was given back.
    pub fn given_back(&mut self, offset: u64) {
        if let Some(open) = self.open.get_mut(&offset) {
            *open = Open::GivenBack;
        }
    }

    /// Everything in work was given back.
    pub fn all_given_back(&mut self) {
        for open in self.open.values_mut() {
            *open = Open::GivenBack;
        }
    }

    /// A subscription starts at the position.
    pub fn subscribed(&mut self) {
        for open in self.open.values_mut() {
            if *open == Open::GivenBack {
                *open = Open::Expected;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn out_of_order_the_position_stays_before_the_first_gap() {
        let mut progress = Progress::new(10);
        assert_eq!(progress.position(), None);
        // The chunk begins before what is wanted.
        assert!(!progress.came(8));
        for offset in 10..14 {
            assert!(progress.came(offset));
        }
        for (done, position) in [(12, 10), (11, 10), (10, 13), (13, 14)] {
            progress.done(done);
            assert_eq!(progress.position(), Some(position));
        }
    }

    #[test]
    fn what_was_given_back_comes_again_and_the_rest_is_skipped() {
        let mut progress = Progress::new(0);
        for offset in 0..5 {
            progress.came(offset);
        }
        progress.done(0);
        progress.given_back(1);
        progress.done(2);
        progress.given_back(4);
        assert_eq!(progress.position(), Some(1));
        progress.subscribed();
        let taken: Vec<u64> = (1..7).filter(|offset| progress.came(*offset)).collect();
        assert_eq!(taken, [1, 4, 5, 6], "3 is in work");
    }

    #[test]
    fn what_the_stream_no_longer_keeps_is_waited_for_by_nobody() {
        let mut progress = Progress::new(0);
        for offset in 0..3 {
            progress.came(offset);
        }
        progress.all_given_back();
        progress.subscribed();
        assert!(progress.came(2));
        progress.done(2);
        assert_eq!(progress.position(), Some(3));
        assert!(!progress.has_gaps());
    }

    proptest! {
        /// Whatever is done in whatever order and however often it starts
        /// anew: what lies before the position was done, and nothing twice.
        #[test]
        fn nothing_is_skipped_and_nothing_done_twice(
            steps in proptest::collection::vec((0_u8..5, 0_usize..8), 1..200)
        ) {
            let mut progress = Progress::new(0);
            let mut cursor = 0;
            let mut in_work = BTreeSet::new();
            let mut done = BTreeSet::new();
            for (what, which) in steps {
                let one = in_work.iter().nth(which).copied();
                match (what, one) {
                    (0 | 1, _) => {
                        if progress.came(cursor) {
                            prop_assert!(in_work.insert(cursor) && !done.contains(&cursor));
                        }
                        cursor += 1;
                    }
                    (2, Some(offset)) => {
                        in_work.remove(&offset);
                        progress.done(offset);
                        prop_assert!(done.insert(offset));
                    }
                    (3, Some(offset)) => {
                        in_work.remove(&offset);
                        progress.given_back(offset);
                    }
                    (4, _) => {
                        cursor = progress.position().unwrap_or(0);
                        progress.subscribed();
                    }
                    _ => {}
                }
                let position = progress.position().unwrap_or(0);
                prop_assert!((0..position).all(|offset| done.contains(&offset)));
            }
        }
    }
}
