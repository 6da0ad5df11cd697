//! Who of several messages with one key may be worked now: the first that came;
//! the others wait until it is done or gone.

use std::collections::{HashMap, VecDeque};

use crate::dedupe::DedupeKey;

/// What a store says of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nobody has done it, nobody else is at it: work it.
    Mine,
    /// It was done before.
    Done,
}

/// The keys of all deliveries in a worker's hands.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    holders: HashMap<DedupeKey, u64>,
    keys: HashMap<u64, DedupeKey>,
    waiting: HashMap<DedupeKey, VecDeque<u64>>,
}

impl Claims {
    /// Whether a delivery is the one of its key that goes on; else it waits for
    /// the one that is.
    pub fn enter(&mut self, tag: u64, key: DedupeKey) -> bool {
        self.keys.insert(tag, key);
        match self.holders.get(&key) {
            None => {
                self.holders.insert(key, tag);
                true
            }
            Some(holder) if *holder == tag => true,
            Some(_) => {
                self.waiting.entry(key).or_default().push_back(tag);
                false
            }
        }
    }

    /// The key that a delivery holds.
    #[must_use]
    pub fn held_by(&self, tag: u64) -> Option<DedupeKey> {
        let key = self.keys.get(&tag)?;
        (self.holders.get(key) == Some(&tag)).then_some(*key)
    }

    /// Every delivery that holds its key.
    #[must_use]
    pub fn holders(&self) -> Vec<u64> {
        self.holders.values().copied().collect()
    }

    /// A delivery is settled. Gives the key that it held, and who holds it now.
    pub fn leave(&mut self, tag: u64) -> Option<(DedupeKey, Option<u64>)> {
        let key = self.keys.remove(&tag)?;
        if self.holders.get(&key) != Some(&tag) {
            if let Some(waiting) = self.waiting.get_mut(&key) {
                waiting.retain(|other| *other != tag);
            }
            return None;
        }
        let next = (self.waiting.get_mut(&key)).and_then(VecDeque::pop_front);
        if self.waiting.get(&key).is_some_and(VecDeque::is_empty) {
            self.waiting.remove(&key);
        }
        match next {
            Some(next) => self.holders.insert(key, next),
            None => self.holders.remove(&key),
        };
        Some((key, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dedupe::key::of_body as key;

    #[test]
    fn one_of_a_key_goes_on_and_the_others_follow_in_order() {
        let mut claims = Claims::default();
        assert!(claims.enter(1, key("a")));
        assert!(claims.enter(2, key("b")));
        assert!(!claims.enter(3, key("a")));
        assert!(!claims.enter(4, key("a")));
        assert_eq!(claims.held_by(1), Some(key("a")));
        assert_eq!(claims.held_by(3), None);
        assert_eq!(claims.leave(1), Some((key("a"), Some(3))));
        assert_eq!(claims.held_by(3), Some(key("a")));
        assert!(claims.enter(3, key("a")), "asks again, now as the holder");
        assert_eq!(claims.leave(3), Some((key("a"), Some(4))));
        assert_eq!(claims.leave(4), Some((key("a"), None)));
        assert_eq!(claims.leave(2), Some((key("b"), None)));
        assert!(claims.holders.is_empty() && claims.keys.is_empty() && claims.waiting.is_empty());
    }

    #[test]
    fn who_leaves_while_it_waits_is_forgotten() {
        let mut claims = Claims::default();
        assert!(claims.enter(1, key("a")));
        assert!(!claims.enter(2, key("a")));
        assert!(!claims.enter(3, key("a")));
        assert_eq!(claims.leave(2), None);
        assert_eq!(claims.leave(9), None, "never came");
        assert_eq!(claims.leave(1), Some((key("a"), Some(3))));
    }
}
