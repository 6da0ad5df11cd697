//! Whether looking at a queue through the management API can cost a message.
//!
//! A look takes messages and puts them back (`ack_requeue_true`, a nack with
//! requeue). A quorum queue counts such returns against its delivery limit up
//! to 4.2 and drops the message past it; since 4.3 it does not count them, but
//! compares the count a message carried over from the queue it died in, and
//! drops it at the first look if that is past the limit. All measured on 3.10.8,
//! 4.0.5 and 4.3.6 with 25 looks each. So was that a policy with the limit -1
//! makes looks safe on 4.0.5 and 4.3.6 where no argument sets another (30 looks,
//! also at a message that came with the count 23).

use crate::broker::BrokerFacts;
use crate::topology::QueueType;

/// The delivery limit in force, arguments and policies taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectiveLimit {
    /// No limit.
    None,
    /// A limit; negative numbers only where the broker does not read them as "none".
    Finite(i64),
    /// The broker does not tell (yet): its statistics come up to nine seconds
    /// after a queue was declared (measured on 3.10.8 and 4.0.5).
    Unknown,
}

impl EffectiveLimit {
    /// The limit that `argument` and `policy` amount to on a broker like `facts`.
    ///
    /// The smaller of the two. Since 4.0 a negative one means "no limit" and counts
    /// only if the other is absent or negative too; on 3.x it is the smaller number
    /// like any other (measured on 3.10.8: with the argument -1 and the policy 5 the
    /// first look loses the message).
    #[must_use]
    pub fn of(argument: Option<i64>, policy: Option<i64>, facts: &BrokerFacts) -> Self {
        let has_unlimited = facts.unlimited_delivery_limit().is_some();
        let set = match (argument, policy) {
            (Some(a), Some(p)) if !has_unlimited || (a >= 0 && p >= 0) => Some(a.min(p)),
            (Some(a), Some(p)) => Some(a.max(p)),
            (one, other) => one.or(other),
        };
        match set {
            Some(limit) if limit < 0 && has_unlimited => Self::None,
            Some(limit) => Self::Finite(limit),
            None => facts
                .default_delivery_limit()
                .map_or(Self::None, |limit| Self::Finite(limit.into())),
        }
    }

    /// Of two accounts of one limit the one that allows less.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Finite(one), Self::Finite(other)) => Self::Finite(one.min(other)),
            (Self::None, limit) | (limit, Self::None) => limit,
        }
    }
}

/// What a look can do to the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeekRisk {
    /// Nothing.
    Safe,
    /// Each look counts; after `looks` looks the next one loses the message.
    Counts {
        /// Looks a fresh message survives.
        looks: i64,
        /// The limit in force.
        limit: i64,
    },
    /// The first look loses every message it shows.
    LosesAtOnce {
        /// The limit in force.
        limit: i64,
    },
    /// Looks do not count, but a message that came with a count past the limit
    /// is lost at its first look.
    CarriedCount {
        /// The limit in force.
        limit: i64,
    },
    /// The broker does not tell the limit, so the worst has to be expected.
    UnknownLimit,
    /// A stream cannot be looked at this way.
    Impossible,
    /// A queue type of which nothing is known.
    Unknown(QueueType),
}

impl PeekRisk {
    /// The risk in one word: `safe`, `counts`, `loses`, `carried`, `unknown` or `stream`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Counts { .. } => "counts",
            Self::LosesAtOnce { .. } => "loses",
            Self::CarriedCount { .. } => "carried",
            Self::UnknownLimit | Self::Unknown(_) => "unknown",
            Self::Impossible => "stream",
        }
    }

    /// Whether a message with this count of deliveries must be expected to be lost
    /// when it goes back; a broken connection counts once more than a nack does on
    /// 4.3. Where the broker counts from anew in each queue (4.0 to 4.2), a count
    /// that came along makes this too careful.
    #[must_use]
    pub const fn is_lost_by_return(&self, delivery_count: i64) -> bool {
        match self {
            Self::Safe => false,
            Self::Counts { limit, .. } | Self::CarriedCount { limit } => delivery_count >= *limit,
            Self::LosesAtOnce { .. } | Self::UnknownLimit | Self::Impossible | Self::Unknown(_) => {
                true
            }
        }
    }
}

/// The risk of one look.
#[must_use]
pub fn peek_risk(kind: &QueueType, limit: EffectiveLimit, facts: &BrokerFacts) -> PeekRisk {
    match (kind, limit) {
        (QueueType::Classic, _) | (QueueType::Quorum, EffectiveLimit::None) => PeekRisk::Safe,
        (QueueType::Stream, _) => PeekRisk::Impossible,
        (QueueType::Other(_), _) => PeekRisk::Unknown(kind.clone()),
        (QueueType::Quorum, EffectiveLimit::Unknown) => PeekRisk::UnknownLimit,
        (QueueType::Quorum, EffectiveLimit::Finite(limit)) if limit < 0 => {
            PeekRisk::LosesAtOnce { limit }
        }
        (QueueType::Quorum, EffectiveLimit::Finite(limit)) if facts.requeue_counts() => {
            PeekRisk::Counts {
                looks: limit.saturating_add(1),
                limit,
            }
        }
        (QueueType::Quorum, EffectiveLimit::Finite(limit)) => PeekRisk::CarriedCount { limit },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_at_its_limit_does_not_go_back() {
        for (risk, kept, lost) in [
            (PeekRisk::Safe, Some(1000), None),
            (PeekRisk::Counts { looks: 6, limit: 5 }, Some(4), Some(5)),
            (PeekRisk::CarriedCount { limit: 5 }, Some(4), Some(5)),
            (PeekRisk::CarriedCount { limit: 0 }, None, Some(0)),
            (PeekRisk::LosesAtOnce { limit: -1 }, None, Some(0)),
            (PeekRisk::UnknownLimit, None, Some(0)),
        ] {
            for (count, is_lost) in [(kept, false), (lost, true)] {
                if let Some(count) = count {
                    assert_eq!(risk.is_lost_by_return(count), is_lost, "{risk:?} {count}");
                }
            }
        }
    }

    #[test]
    fn the_measured_table() {
        let counts = |limit| PeekRisk::Counts {
            looks: limit + 1,
            limit,
        };
        for (argument, policy, on_310, on_40, on_43) in [
            (
                None,
                None,
                PeekRisk::Safe,
                counts(20),
                PeekRisk::CarriedCount { limit: 20 },
            ),
            (
                Some(5),
                None,
                counts(5),
                counts(5),
                PeekRisk::CarriedCount { limit: 5 },
            ),
            (
                None,
                Some(5),
                counts(5),
                counts(5),
                PeekRisk::CarriedCount { limit: 5 },
            ),
            (
                Some(0),
                None,
                counts(0),
                counts(0),
                PeekRisk::CarriedCount { limit: 0 },
            ),
            (
                Some(-1),
                None,
                PeekRisk::LosesAtOnce { limit: -1 },
                PeekRisk::Safe,
                PeekRisk::Safe,
            ),
            (
                Some(-1),
                Some(5),
                PeekRisk::LosesAtOnce { limit: -1 },
                counts(5),
                PeekRisk::CarriedCount { limit: 5 },
            ),
            (
                Some(100),
                Some(5),
                counts(5),
                counts(5),
                PeekRisk::CarriedCount { limit: 5 },
            ),
        ] {
            for (version, expected) in [("3.10.8", on_310), ("4.0.5", on_40), ("4.3.6", on_43)] {
                let facts = BrokerFacts::new("RabbitMQ", version);
                let limit = EffectiveLimit::of(argument, policy, &facts);
                assert_eq!(
                    peek_risk(&QueueType::Quorum, limit, &facts),
                    expected,
                    "{version} {argument:?} {policy:?}"
                );
                assert_eq!(
                    peek_risk(&QueueType::Classic, limit, &facts),
                    PeekRisk::Safe
                );
                assert_eq!(
                    peek_risk(&QueueType::Stream, limit, &facts),
                    PeekRisk::Impossible
                );
            }
        }
    }

    #[test]
    fn of_two_accounts_the_stricter_counts() {
        use EffectiveLimit::{Finite, None, Unknown};
        for (one, other, stricter) in [
            (None, None, None),
            (None, Finite(5), Finite(5)),
            (Finite(3), Finite(20), Finite(3)),
            // Where a negative limit is one, it allows nothing.
            (Finite(-1), Finite(0), Finite(-1)),
            (Unknown, None, Unknown),
            (Unknown, Finite(0), Unknown),
        ] {
            assert_eq!(one.stricter(other), stricter, "{one:?} {other:?}");
            assert_eq!(other.stricter(one), stricter, "{other:?} {one:?}");
        }
    }

    #[test]
    fn a_limit_that_is_not_told_is_not_taken_for_none() {
        for version in ["3.10.8", "4.0.5", "4.3.6"] {
            let facts = BrokerFacts::new("RabbitMQ", version);
            let risk = |kind| peek_risk(kind, EffectiveLimit::Unknown, &facts);
            assert_eq!(risk(&QueueType::Quorum), PeekRisk::UnknownLimit);
            assert_eq!(risk(&QueueType::Classic), PeekRisk::Safe);
            assert_eq!(risk(&QueueType::Stream), PeekRisk::Impossible);
            assert_eq!(risk(&QueueType::Quorum).word(), "unknown");
        }
    }
}
