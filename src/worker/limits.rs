//! What bounds the worker.

use crate::retry::{OnExhausted, Strategy};

/// How a message gets to the dead-letter queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadLetterBy {
    /// As a confirmed, routed copy that tells why; then the original is acked.
    #[default]
    Republish,
    /// By a nack: the broker's own way, which tells nothing and proves nothing.
    Nack,
}

/// What bounds the worker; fixed for its life.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most messages in work at once; at least 1.
    pub prefetch: u16,
    /// Most handlers that run at once; at least 1, of use up to `prefetch`.
    pub jobs: u16,
    /// Stop after this many deliveries were taken; each is still worked to its end.
    pub max_messages: Option<u64>,
    /// Attempts for each message, the first included; at least 1.
    pub max_attempts: u32,
    /// What then happens to it.
    pub on_exhausted: OnExhausted,
    /// How often a message may come back to its queue without an outcome.
    pub max_returns: u64,
    /// How failed messages come back.
    pub strategy: Strategy,
    /// Whether retries through the broker must be proved by a confirmed, routed
    /// copy, because it could not be seen where a nack leads.
    pub prove_retries: bool,
    /// How a message gets to the dead-letter queue. A nack that could lose it,
    /// or that is not known to lead there, is a copy all the same.
    pub dead_letter: DeadLetterBy,
    /// Whether what handlers give back is published.
    pub publish_results: bool,
    /// Whether what a failed handler gives back is the body of the next attempt.
    pub retry_with_result: bool,
}
