//! When messages have come to rest, told from how many there are in each queue.

use std::collections::{BTreeMap, BTreeSet};

use crate::topology::QueueName;

/// Looks in a row that show the same of messages that have arrived already.
const STEADY_ARRIVED: u32 = 3;

/// Looks in a row that show the same before that is where messages rest.
const STEADY: u32 = 10;

/// The same before it is believed that there are none left: one may be on its
/// way, in no queue.
const STEADY_NOWHERE: u32 = 25;

/// The same where messages rest elsewhere than was thought.
const STEADY_ELSEWHERE: u32 = 100;

/// After so many looks they will not come to rest.
const MOST: u32 = 1_500;

/// Where messages are after a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// They rest in these queues.
    AtRest(BTreeSet<QueueName>),
    /// They never came to rest; these are where they were last.
    Restless(BTreeSet<QueueName>),
}

/// Looks at the queues until messages have come to rest.
#[derive(Clone, Debug)]
pub struct Settling {
    target: BTreeSet<QueueName>,
    moving: BTreeSet<QueueName>,
    last: BTreeMap<QueueName, u32>,
    same: u32,
    looks: u32,
    sure: bool,
}

impl Settling {
    /// They should rest in `target`; those of `moving` are left by themselves.
    #[must_use]
    pub fn new(target: BTreeSet<QueueName>, moving: BTreeSet<QueueName>) -> Self {
        Self {
            target,
            moving,
            last: BTreeMap::new(),
            same: 0,
            looks: 0,
            sure: false,
        }
    }

    /// They are known to have arrived already: what a confirm says of a message
    /// that was published.
    #[must_use]
    pub fn arrived(mut self) -> Self {
        self.sure = true;
        self
    }

    /// Takes in how many messages there are, by queues that hold any.
    pub fn see(&mut self, now: BTreeMap<QueueName, u32>) -> Option<Settled> {
        self.looks += 1;
        if now == self.last {
            self.same += 1;
        } else {
            self.same = 1;
            self.last = now;
        }
        let held: BTreeSet<QueueName> = self.last.keys().cloned().collect();
        let needed = match (held == self.target, held.is_empty()) {
            _ if self.sure => STEADY_ARRIVED,
            (true, false) => STEADY,
            (true, true) => STEADY_NOWHERE,
            (false, _) => STEADY_ELSEWHERE,
        };
        if self.same >= needed && held.is_disjoint(&self.moving) {
            return Some(Settled::AtRest(held));
        }
        (self.looks >= MOST).then_some(Settled::Restless(held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<QueueName> {
        names
            .iter()
            .map(|name| QueueName::new(*name).expect("name"))
            .collect()
    }

    /// Shows queues with one message each, each state for so many looks, and
    /// gives what was said and after how many looks.
    fn settled(target: &[&str], states: &[(&[&str], u32)]) -> Option<(Settled, u32)> {
        let mut settling = Settling::new(names(target), names(&["wait"]));
        let mut looks = 0;
        for (held, times) in states {
            for _ in 0..*times {
                looks += 1;
                let now = names(held).into_iter().map(|name| (name, 1)).collect();
                if let Some(settled) = settling.see(now) {
                    return Some((settled, looks));
                }
            }
        }
        None
    }

    #[test]
    fn what_was_thought_is_believed_soon_and_anything_else_late() {
        let at_rest = |held: &[&str], looks| Some((Settled::AtRest(names(held)), looks));
        assert_eq!(settled(&["a"], &[(&["a"], 50)]), at_rest(&["a"], 10));
        assert_eq!(settled(&["a"], &[(&["b"], 200)]), at_rest(&["b"], 100));
        assert_eq!(settled(&["a"], &[(&[], 200)]), at_rest(&[], 100));
        assert_eq!(settled(&[], &[(&[], 200)]), at_rest(&[], 25));
        // What is seen for a moment only does not count.
        assert_eq!(
            settled(&["a"], &[(&["a"], 9), (&["a", "b"], 5), (&["a"], 20)]),
            at_rest(&["a"], 24)
        );
        assert_eq!(settled(&[], &[(&[], 24), (&["a"], 99)]), None);
    }

    #[test]
    fn what_has_arrived_is_believed_at_once() {
        let mut settling = Settling::new(names(&["a"]), names(&[])).arrived();
        assert_eq!(settling.see(BTreeMap::new()), None);
        assert_eq!(settling.see(BTreeMap::new()), None);
        assert_eq!(
            settling.see(BTreeMap::new()),
            Some(Settled::AtRest(names(&[])))
        );
    }

    #[test]
    fn nothing_rests_in_a_queue_that_is_left_by_itself() {
        assert_eq!(settled(&["wait"], &[(&["wait"], 1_499)]), None);
        assert_eq!(
            settled(&["a"], &[(&["a", "wait"], 2_000)]),
            Some((Settled::Restless(names(&["a", "wait"])), 1_500))
        );
    }
}
