//! What bounds the worker.

use std::time::Duration;

use crate::retry::{OnExhausted, Strategy};

/// How a message gets to the dead-letter queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadLetterBy {
    /// As a confirmed, routed copy that tells why; then the original is acked.
    #[default]
    Republish,
    /// By a nack: the broker's own way, which tells nothing and proves nothing.
    Nack,
    /// There is none: the worker stops at such a message.
    Nowhere,
}

/// What is known of where a nack leads. Only the first kind is trusted with a
/// retry; every other one is a confirmed, routed copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NackPath {
    /// It was seen on the broker, which keeps what is nacked until it is there.
    Confirmed,
    /// It was seen; a node that is killed on the way loses the message.
    Seen,
    /// A file says so.
    Believed,
}

/// When the worker waits out an outage downstream, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pausing {
    /// So many failed attempts in a row are an outage; at least 1.
    pub after: u32,
    /// The longest wait between two probes, at most
    /// [`LONGEST_HOLD`](crate::worker::LONGEST_HOLD).
    pub probe_wait: Duration,
}

/// What bounds the worker; fixed for its life.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most messages in work at once; at least 1. One more may wait.
    pub prefetch: u16,
    /// Most handlers that run at once; at least 1, at most `prefetch`.
    pub jobs: u16,
    /// Stop after this many deliveries were taken; each is still worked to its end.
    pub max_messages: Option<u64>,
    /// Attempts for each message, the first included; at least 1.
    pub max_attempts: u32,
    /// What then happens to it.
    pub on_exhausted: OnExhausted,
    /// How often a message may come back to its queue without an outcome;
    /// `None`: for ever.
    pub max_returns: Option<u64>,
    /// How failed messages come back.
    pub strategy: Strategy,
    /// What is known of where a nack leads.
    pub nack_path: NackPath,
    /// How a message gets to the dead-letter queue. A nack that could lose it,
    /// or that is not known to lead there, is a copy all the same.
    pub dead_letter: DeadLetterBy,
    /// Whether what handlers give back is published.
    pub publish_results: bool,
    /// Whether what a failed handler gives back is the body of the next attempt.
    pub retry_with_result: bool,
    /// Whether a message whose like was done before is only acked.
    pub dedupe: bool,
    /// Whether an outage downstream is waited out; else every failure counts.
    pub pausing: Option<Pausing>,
}
