//! Where a queue's dead letters go, how safely, and how 4.3 holds back what was returned.

use std::fmt;
use std::time::Duration;

use crate::topology::{ExchangeName, RoutingKey};

/// The key a dead-lettered message is published with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadLetterKey {
    /// The keys it came with.
    Kept,
    /// This one (`x-dead-letter-routing-key`).
    Replaced(RoutingKey),
}

/// Where a queue's dead letters go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLettering {
    /// The dead-letter exchange.
    pub exchange: ExchangeName,
    /// With which key.
    pub key: DeadLetterKey,
}

/// What a quorum queue does until a dead letter has arrived
/// (`x-dead-letter-strategy`, since 3.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadLetterStrategy {
    /// Publishes it and forgets it.
    AtMostOnce,
    /// Keeps it until every target has confirmed it. Only with
    /// `overflow: reject-publish`; else the broker falls back to at-most-once
    /// and says so in its log only (dlx.md, measured).
    AtLeastOnce,
}

impl DeadLetterStrategy {
    /// Every value, in the broker's words.
    pub const ALL: [(&'static str, Self); 2] = [
        ("at-most-once", Self::AtMostOnce),
        ("at-least-once", Self::AtLeastOnce),
    ];

    /// The value that the broker has this word for.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        named(&Self::ALL, name)
    }
}

impl fmt::Display for DeadLetterStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtMostOnce => "at-most-once",
            Self::AtLeastOnce => "at-least-once",
        })
    }
}

/// Which returns a quorum queue of 4.3 holds back (`x-delayed-retry-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedRetryType {
    /// Both kinds.
    All,
    /// Rejected with requeue, or lost with the consumer's channel.
    Failed,
    /// Nacked with requeue.
    Returned,
}

impl DelayedRetryType {
    /// Every value, in the broker's words; its `disabled` is the key left out.
    pub const ALL: [(&'static str, Self); 3] = [
        ("all", Self::All),
        ("failed", Self::Failed),
        ("returned", Self::Returned),
    ];

    /// The value that the broker has this word for.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        named(&Self::ALL, name)
    }
}

impl fmt::Display for DelayedRetryType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "all",
            Self::Failed => "failed",
            Self::Returned => "returned",
        })
    }
}

/// How long a quorum queue of 4.3 holds back what was returned: `min` times
/// the delivery count, at most `max`. A nack does not raise that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedRetry {
    /// Which returns.
    pub kind: DelayedRetryType,
    /// Without it the broker holds nothing back (measured on 4.3.6).
    pub min: Duration,
    /// `None`: it never grows beyond `min` (measured on 4.3.6).
    pub max: Option<Duration>,
}

fn named<T: Copy>(all: &[(&str, T)], name: &str) -> Option<T> {
    all.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| *value)
}
