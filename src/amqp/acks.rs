//! Acks that are due, in as few frames as they can be said.
//!
//! One ack of its own costs lapin 27 µs of CPU, one of a hundred in a multiple
//! ack 0.1 µs (measured with lapin 4.12.3). A multiple ack covers every delivery
//! up to its tag that is still out on the channel, so it is said only where all
//! of these are done.

use std::collections::BTreeSet;

/// One ack to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DueAck {
    /// Its delivery tag.
    pub(super) tag: u64,
    /// Whether it is for everything that is out up to this tag.
    pub(super) multiple: bool,
}

/// What is out on one channel, and what of it is done.
#[derive(Debug, Default)]
pub(super) struct Acks {
    out: BTreeSet<u64>,
    done: BTreeSet<u64>,
    /// Whether some are out that stay out, and are not remembered one by one.
    keeps: bool,
}

impl Acks {
    /// A delivery came.
    pub(super) fn delivered(&mut self, tag: u64) {
        self.out.insert(tag);
    }

    /// A delivery is done, to be acked with the next that are due.
    pub(super) fn done(&mut self, tag: u64) {
        self.done.insert(tag);
    }

    /// Whether a delivery is done, and its ack not taken to be sent yet.
    pub(super) fn is_done(&self, tag: u64) -> bool {
        self.done.contains(&tag)
    }

    /// A delivery was settled otherwise.
    pub(super) fn settled(&mut self, tag: u64) {
        self.out.remove(&tag);
    }

    /// A delivery stays out, unsettled, for as long as the channel is open. From
    /// then on nothing is acked but one by one.
    pub(super) fn kept(&mut self, tag: u64) {
        self.out.remove(&tag);
        self.keeps = true;
    }

    /// How many are done and not acked yet, of those that came after this tag.
    pub(super) fn waiting_after(&self, tag: u64) -> u64 {
        self.done.range(tag.saturating_add(1)..).count() as u64
    }

    /// The last that is out and not done, of those after one tag and up to another.
    pub(super) fn last_out(&self, after: u64, end: u64) -> Option<u64> {
        // A range that ends before it begins would be a panic.
        let mut out = self.out.range(..=end).rev();
        let last = out.find(|tag| !self.done.contains(tag)).copied();
        last.filter(|tag| *tag > after)
    }

    /// Takes what is due.
    pub(super) fn due(&mut self) -> Vec<DueAck> {
        self.due_up_to(u64::MAX)
    }

    /// Takes what is due up to this tag.
    pub(super) fn due_up_to(&mut self, most: u64) -> Vec<DueAck> {
        let mut due = Vec::new();
        if self.keeps {
            return self.due_one_by_one(due, most);
        }
        let mut run = 0_u32;
        let mut last = None;
        while let Some(first) = self.out.first().copied()
            && first <= most
            && self.done.remove(&first)
        {
            self.out.remove(&first);
            run += 1;
            last = Some(first);
        }
        if let Some(tag) = last {
            due.push(DueAck {
                tag,
                multiple: run > 1,
            });
        }
        self.due_one_by_one(due, most)
    }

    fn due_one_by_one(&mut self, mut due: Vec<DueAck>, most: u64) -> Vec<DueAck> {
        let later = self.done.split_off(&most.saturating_add(1));
        for tag in std::mem::replace(&mut self.done, later) {
            self.out.remove(&tag);
            due.push(DueAck {
                tag,
                multiple: false,
            });
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_done_in_order_is_said_at_once() {
        let mut acks = Acks::default();
        for tag in 1..=6 {
            acks.delivered(tag);
        }
        for tag in [2, 1, 3, 5] {
            acks.done(tag);
        }
        let due = |tag, multiple| DueAck { tag, multiple };
        assert_eq!(acks.due_up_to(2), [due(2, true)]);
        assert_eq!(acks.due(), [due(3, false), due(5, false)]);
        assert_eq!(acks.due(), []);
        acks.settled(4);
        acks.done(6);
        assert_eq!(acks.due(), [due(6, false)]);
    }

    proptest! {
        /// As the broker understands it: never more and never less than is done.
        #[test]
        fn exactly_what_is_done_is_acked(steps in proptest::collection::vec((0_u8..5, 0_usize..20), 0..200)) {
            let mut acks = Acks::default();
            let mut broker: BTreeSet<u64> = BTreeSet::new();
            let mut in_work: BTreeSet<u64> = BTreeSet::new();
            let mut done: BTreeSet<u64> = BTreeSet::new();
            let mut kept: BTreeSet<u64> = BTreeSet::new();
            let mut next = 0;
            for (what, which) in steps {
                let chosen = in_work.iter().nth(which % in_work.len().max(1)).copied();
                match (what, chosen) {
                    (1, Some(tag)) => {
                        in_work.remove(&tag);
                        done.insert(tag);
                        acks.done(tag);
                    }
                    (2, Some(tag)) => {
                        in_work.remove(&tag);
                        broker.remove(&tag);
                        acks.settled(tag);
                    }
                    (3, _) => {
                        for ack in acks.due() {
                            prop_assert!(broker.contains(&ack.tag));
                            if ack.multiple {
                                broker.retain(|tag| *tag > ack.tag);
                            } else {
                                broker.remove(&ack.tag);
                            }
                        }
                        done.clear();
                        prop_assert_eq!(&broker, &(&in_work | &kept));
                    }
                    (4, Some(tag)) => {
                        in_work.remove(&tag);
                        kept.insert(tag);
                        acks.kept(tag);
                    }
                    _ => {
                        next += 1;
                        acks.delivered(next);
                        broker.insert(next);
                        in_work.insert(next);
                    }
                }
            }
        }
    }
}
