//! The `retry:` block of a queue.

use std::fmt;

use crate::topology::QueueName;

/// Attempts when nobody says how many.
pub const DEFAULT_MAX_ATTEMPTS: u32 = 5;

/// How a failed message comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// nack → DLX → wait queue with TTL → back; attempts are counted by the broker.
    Dlx,
    /// The worker tries again at once while it holds the message; then nack → DLX.
    Immediate,
}

impl Strategy {
    /// Every strategy by the word the topology file uses.
    pub const ALL: [(&'static str, Self); 2] = [("dlx", Self::Dlx), ("immediate", Self::Immediate)];
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dlx => "dlx",
            Self::Immediate => "immediate",
        })
    }
}

/// What the file says about retries of one queue; what it leaves out is found
/// in the topology itself or has a default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Checked against what the dead-letter path really does.
    pub strategy: Option<Strategy>,
    /// Attempts in all, the first one included; at least 1.
    pub max_attempts: Option<u32>,
    /// Where exhausted and poison messages rest; needed only where the
    /// dead-letter exchange leads to several such queues.
    pub dead_letter_queue: Option<QueueName>,
}
