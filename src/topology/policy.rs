//! Policies: settings that a broker gives to every queue or exchange whose name
//! matches a pattern, and that can change later, unlike arguments.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::field::FieldTable;
use crate::topology::{Pattern, QueueType};

/// Whose policy it is; an object can have one of each kind in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyKind {
    /// An ordinary policy.
    User,
    /// An operator policy: limits that win over arguments and user policies.
    Operator,
}

impl PolicyKind {
    /// Both kinds with the key of the file that holds them.
    pub const ALL: [(&'static str, Self); 2] = [
        ("policies", Self::User),
        ("operator_policies", Self::Operator),
    ];

    /// What it is called in messages and reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::User => "policy",
            Self::Operator => "operator policy",
        }
    }
}

/// What a policy is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyTo {
    /// Queues and exchanges.
    All,
    /// Queues of every type.
    Queues,
    /// Classic queues (since 3.12).
    ClassicQueues,
    /// Quorum queues (since 3.12).
    QuorumQueues,
    /// Streams (since 3.12).
    Streams,
    /// Exchanges.
    Exchanges,
}

impl ApplyTo {
    /// Every value, in the broker's words.
    pub const ALL: [(&'static str, Self); 6] = [
        ("all", Self::All),
        ("queues", Self::Queues),
        ("classic_queues", Self::ClassicQueues),
        ("quorum_queues", Self::QuorumQueues),
        ("streams", Self::Streams),
        ("exchanges", Self::Exchanges),
    ];

    /// Whether queues of that type are meant; no type said means classic here,
    /// as it does for most vhosts.
    #[must_use]
    pub fn takes_queue(self, kind: Option<&QueueType>) -> bool {
        match self {
            Self::All | Self::Queues => true,
            Self::ClassicQueues => matches!(kind, None | Some(QueueType::Classic)),
            Self::QuorumQueues => kind == Some(&QueueType::Quorum),
            Self::Streams => kind == Some(&QueueType::Stream),
            Self::Exchanges => false,
        }
    }
}

impl fmt::Display for ApplyTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Self::ALL.iter().find(|(_, value)| value == self);
        f.write_str(word.map_or("all", |(word, _)| word))
    }
}

/// One policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The names it is for.
    pub pattern: Pattern,
    /// What it is for.
    pub apply_to: ApplyTo,
    /// Of several that match, the one with the highest wins.
    pub priority: i32,
    /// The settings, under the broker's own names (`message-ttl`, …).
    pub definition: FieldTable,
    /// What people should know; not sent to the broker.
    pub description: Option<String>,
}

impl Policy {
    /// Whether it is for a queue of that name and type.
    #[must_use]
    pub fn takes_queue(&self, name: &str, kind: Option<&QueueType>) -> bool {
        self.apply_to.takes_queue(kind) && self.pattern.is_found_in(name)
    }

    /// Whether it is for an exchange of that name.
    #[must_use]
    pub fn takes_exchange(&self, name: &str) -> bool {
        matches!(self.apply_to, ApplyTo::All | ApplyTo::Exchanges) && self.pattern.is_found_in(name)
    }

    /// The same policy for names that begin with `prefix`.
    ///
    /// # Errors
    /// When the pattern is not anchored with `^`: it would take strangers too.
    pub fn prefixed(&self, prefix: &str) -> Result<Self> {
        let Some(pattern) = self.pattern.prefixed(prefix) else {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "the pattern '{}' of a policy does not begin with ^, so a copy with a prefix would take queues of others",
                    self.pattern
                ),
            )
            .hint("anchor it with ^, or leave --prefix away"));
        };
        Ok(Self {
            pattern,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(pattern: &str, apply_to: ApplyTo) -> Policy {
        Policy {
            pattern: Pattern::new(pattern).expect("pattern"),
            apply_to,
            priority: 0,
            definition: FieldTable::new(),
            description: None,
        }
    }

    #[test]
    fn matches_anywhere_unless_anchored() {
        let quorum = Some(&QueueType::Quorum);
        for (pattern, apply_to, name, expected) in [
            ("orders", ApplyTo::Queues, "my.orders.q", true),
            ("^orders", ApplyTo::Queues, "my.orders.q", false),
            ("^orders\\.(?!dlq)", ApplyTo::All, "orders.dlq", false),
            ("^orders\\.(?!dlq)", ApplyTo::All, "orders.work", true),
            (".*", ApplyTo::ClassicQueues, "q", false),
            (".*", ApplyTo::Exchanges, "q", false),
        ] {
            assert_eq!(
                policy(pattern, apply_to).takes_queue(name, quorum),
                expected,
                "{pattern} {name}"
            );
        }
        assert!(Pattern::new("(").is_err());
    }

    #[test]
    fn a_prefix_goes_behind_the_anchor_and_is_taken_literally() {
        let copy = policy("^orders", ApplyTo::All)
            .prefixed("ci.7-")
            .expect("prefixed");
        assert!(copy.takes_queue("ci.7-orders", None));
        assert!(!copy.takes_queue("cix7-orders", None));
        assert!(policy("orders", ApplyTo::All).prefixed("x").is_err());
    }
}
