//! Messages that somebody marked, by their content: messages have no id.

use std::collections::BTreeMap;

use crate::message::{Delivery, Fingerprint};

/// Which messages are meant, and how many of each content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    left: BTreeMap<Fingerprint, u64>,
}

impl Marked {
    /// One more of this content is meant.
    pub fn add(&mut self, fingerprint: Fingerprint) {
        *self.left.entry(fingerprint).or_default() += 1;
    }

    /// How many are meant that were not met yet.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.left.values().sum()
    }

    /// Whether all were met.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left.is_empty()
    }

    /// Whether this message is meant; it counts as met then, so that no more of
    /// the same content are taken than were marked.
    pub fn meets(&mut self, delivery: &Delivery) -> bool {
        if self.is_over() {
            return false;
        }
        let fingerprint = Fingerprint::of_content(delivery);
        let Some(left) = self.left.get_mut(&fingerprint) else {
            return false;
        };
        *left -= 1;
        if *left == 0 {
            self.left.remove(&fingerprint);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Properties;

    #[test]
    fn as_many_are_met_as_were_marked() {
        let message = |body: &[u8]| Delivery {
            exchange: "dlx".to_owned(),
            routing_key: "k".to_owned(),
            redelivered: false,
            properties: Properties::default(),
            body: body.to_vec(),
        };
        let mut marked = Marked::default();
        for body in [b"twin", b"twin", b"solo"] {
            marked.add(Fingerprint::of_content(&message(body)));
        }
        assert_eq!(marked.count(), 3);
        assert!(!marked.meets(&message(b"other")));
        assert!(marked.meets(&message(b"twin")) && marked.meets(&message(b"twin")));
        assert!(!marked.meets(&message(b"twin")), "a third one came later");
        assert!(!marked.is_over());
        assert!(marked.meets(&message(b"solo")) && marked.is_over());
    }
}
