//! What a vhost itself is set to.

use std::fmt;

use crate::topology::QueueType;

/// A limit of a vhost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VhostLimit {
    /// None.
    Unlimited,
    /// At most this many.
    AtMost(u64),
}

impl fmt::Display for VhostLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::AtMost(number) => write!(f, "{number}"),
        }
    }
}

/// Settings of a vhost; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VhostSettings {
    /// For people.
    pub description: Option<String>,
    /// For people and tools.
    pub tags: Option<Vec<String>>,
    /// The type of queues that are declared without one (brokers since 3.12;
    /// 3.10 takes it and does nothing, measured).
    pub default_queue_type: Option<QueueType>,
    /// Connections open at once.
    pub max_connections: Option<VhostLimit>,
    /// Queues.
    pub max_queues: Option<VhostLimit>,
}

impl VhostSettings {
    /// These settings, and where they say nothing those of `there`. A request
    /// must carry them all: 4.3 resets what it leaves out (measured).
    #[must_use]
    pub fn over(&self, there: &Self) -> Self {
        Self {
            description: self
                .description
                .clone()
                .or_else(|| there.description.clone()),
            tags: self.tags.clone().or_else(|| there.tags.clone()),
            default_queue_type: self
                .default_queue_type
                .clone()
                .or_else(|| there.default_queue_type.clone()),
            max_connections: self.max_connections.or(there.max_connections),
            max_queues: self.max_queues.or(there.max_queues),
        }
    }
}
