//! How full a queue is.

use std::collections::BTreeMap;

use crate::topology::QueueName;

/// The depth of every queue of a vhost.
pub type Depths = BTreeMap<QueueName, Depth>;

/// What a broker counts in one queue. What it does not tell is unknown, not 0:
/// a queue just declared has no counts yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Messages ready for delivery.
    pub ready: Option<u64>,
    /// Messages out for delivery.
    pub unacknowledged: Option<u64>,
    /// Consumers.
    pub consumers: Option<u64>,
    /// Whether the queue belongs to one connection.
    pub exclusive: bool,
}

impl Depth {
    /// Whether messages are known to be in the queue.
    #[must_use]
    pub fn holds_messages(&self) -> bool {
        [self.ready, self.unacknowledged]
            .into_iter()
            .flatten()
            .any(|count| count > 0)
    }

    /// In words, for a node of a picture.
    #[must_use]
    pub fn words(&self) -> String {
        if self.ready.is_none() && self.unacknowledged.is_none() && self.consumers.is_none() {
            return "depth unknown".to_owned();
        }
        let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |n| n.to_string());
        let consumers = match self.consumers {
            Some(1) => "1 consumer".to_owned(),
            consumers => format!("{} consumers", count(consumers)),
        };
        format!(
            "{} ready, {} unacked, {consumers}",
            count(self.ready),
            count(self.unacknowledged)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_told_is_not_zero() {
        let depth = |ready, unacknowledged, consumers| Depth {
            ready,
            unacknowledged,
            consumers,
            exclusive: false,
        };
        for (depth, words, holds) in [
            (depth(None, None, None), "depth unknown", false),
            (
                depth(Some(0), Some(0), Some(1)),
                "0 ready, 0 unacked, 1 consumer",
                false,
            ),
            (
                depth(Some(5), None, Some(2)),
                "5 ready, ? unacked, 2 consumers",
                true,
            ),
            (
                depth(Some(0), Some(3), None),
                "0 ready, 3 unacked, ? consumers",
                true,
            ),
        ] {
            assert_eq!(depth.words(), words);
            assert_eq!(depth.holds_messages(), holds, "{words}");
        }
    }
}
