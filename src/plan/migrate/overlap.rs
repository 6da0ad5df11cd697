//! Which messages of a queue were copied already when the last run was cut short.

use std::collections::BTreeSet;

use crate::message::Fingerprint;

/// What the head of a source and the tail of its destination tell together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// The first so many were copied for certain; 0: none was.
    Copied(usize),
    /// It cannot be told; up to so many may have been copied.
    Unclear(usize),
}

/// Compares the messages that come back first (`head`, those handed out before)
/// with the last copies in the destination (`tail`, oldest first).
///
/// Copies are made in order, so those of the head are the end of the tail. Two
/// messages of equal content are the same one only if both carry the same id of
/// their own: without one the second might be another message that looks alike,
/// and taking it for a copy would lose it. `None` stands for such a message.
#[must_use]
pub fn overlap(head: &[Option<Fingerprint>], tail: &[Option<Fingerprint>]) -> Overlap {
    let unclear = Overlap::Unclear(head.len().min(tail.len()));
    if head.is_empty() || tail.is_empty() {
        return Overlap::Copied(0);
    }
    let Some(head) = head.iter().copied().collect::<Option<Vec<_>>>() else {
        return unclear;
    };
    let distinct: BTreeSet<&Fingerprint> = head.iter().collect();
    if distinct.len() < head.len() {
        return unclear;
    }
    let known: Vec<Fingerprint> = tail.iter().filter_map(|print| *print).collect();
    let found = known.iter().filter(|print| head.contains(print)).count();
    if found == 0 {
        return Overlap::Copied(0);
    }
    // All that is found must be one block at the very end, in the order of the head.
    let end: Option<Vec<Fingerprint>> = tail
        .get(tail.len().saturating_sub(found)..)
        .unwrap_or_default()
        .iter()
        .copied()
        .collect();
    match (end, head.get(..found)) {
        (Some(end), Some(start)) if end == start => Overlap::Copied(found),
        _ => unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Delivery, Properties};

    fn prints(text: &str) -> Vec<Option<Fingerprint>> {
        text.chars()
            .map(|c| {
                Fingerprint::of(&Delivery {
                    exchange: String::new(),
                    routing_key: String::new(),
                    redelivered: true,
                    properties: Properties {
                        message_id: (c != '-').then(|| c.to_string()),
                        ..Properties::default()
                    },
                    body: Vec::new(),
                })
            })
            .collect()
    }

    #[test]
    fn only_a_certain_copy_is_skipped() {
        for (head, tail, expected) in [
            ("cde", "abcd", Overlap::Copied(2)),
            ("cde", "abcde", Overlap::Copied(3)),
            ("cde", "ab", Overlap::Copied(0)),
            ("cde", "", Overlap::Copied(0)),
            ("", "abc", Overlap::Copied(0)),
            // Not at the end, not in order, not from the first on.
            ("cde", "cdx", Overlap::Unclear(3)),
            ("cde", "dc", Overlap::Unclear(2)),
            ("cde", "abd", Overlap::Unclear(3)),
            // Twice the same, or without a name of its own.
            ("cc", "abc", Overlap::Unclear(2)),
            ("c-", "abc", Overlap::Unclear(2)),
            ("cd", "ab-", Overlap::Copied(0)),
            ("cd", "c-", Overlap::Unclear(2)),
            ("cd", "cac", Overlap::Unclear(2)),
        ] {
            assert_eq!(
                overlap(&prints(head), &prints(tail)),
                expected,
                "{head} {tail}"
            );
        }
    }
}
