//! What happens to the worker, and what is then to be done.

use std::time::Duration;

use crate::dedupe::Claim;
use crate::error::Error;
use crate::retry::{BuryReason, Outcome};

/// Why the worker stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// SIGTERM, SIGINT or SIGHUP.
    Signal,
    /// `--max-messages` were taken.
    MaxMessages,
    /// The queue and its retries are drained.
    Empty,
    /// Nothing came for `--idle-timeout`.
    Idle,
    /// Whoever read our standard output went away.
    ReaderGone,
    /// Our own output could not be written.
    Output(String),
    /// The handler said that something it needs is down, or could not be started.
    Handler {
        /// Its words.
        why: String,
    },
    /// A copy for the dead-letter queue was not taken; its message was put back.
    NotParked(Error),
    /// What is done could not be asked, or not be remembered.
    NotDeduplicated(Error),
    /// The broker ended the subscription and the queue is gone.
    QueueGone,
    /// A message cannot be done, and there is no dead-letter queue for it.
    NoDeadLetterQueue {
        /// Its delivery tag.
        tag: u64,
        /// Why it cannot.
        reason: BuryReason,
    },
    /// The position in a stream could not be kept.
    NotKept,
}

/// What happens to the worker.
#[derive(Clone, Debug)]
pub enum Event {
    /// A message arrived for its `attempt`-th attempt.
    Delivered {
        /// Its delivery tag.
        tag: u64,
        /// 1 for the first.
        attempt: u32,
        /// Whether a nack could lose it: see [`crate::broker::BrokerFacts`].
        nack_is_unsafe: bool,
        /// How often it came back to its queue without an outcome, as far as
        /// the queue counts that.
        returns: u64,
    },
    /// An attempt ended.
    Finished {
        /// Its delivery tag.
        tag: u64,
        /// How.
        outcome: Outcome,
        /// Whether the handler gave something back that is to be used.
        result: bool,
    },
    /// Whether the like of a message was done before.
    Claimed {
        /// Its delivery tag.
        tag: u64,
        /// What the store says.
        result: Result<Claim, Error>,
    },
    /// That a message is done is remembered, or is not.
    Recorded {
        /// Its delivery tag.
        tag: u64,
        /// Remembered, or why not.
        result: Result<(), Error>,
    },
    /// A message that was held back has waited long enough.
    Waited {
        /// Its delivery tag.
        tag: u64,
    },
    /// The result was for a requester who is gone.
    NobodyToAnswer {
        /// The delivery tag of the request.
        tag: u64,
        /// The broker's words.
        why: String,
    },
    /// A message could not be printed: give it back and stop.
    Unprinted {
        /// Its delivery tag.
        tag: u64,
        /// Why.
        reason: StopReason,
    },
    /// A copy was published, or was not.
    Published {
        /// The delivery tag of its original.
        tag: u64,
        /// Confirmed and routed, or why not.
        result: Result<(), Error>,
    },
    /// The wait before the next probe is over.
    Rested,
    /// Stop taking messages.
    Stop(StopReason),
    /// The connection broke: what was in work comes back by itself.
    ConnectionLost,
}

/// The longest that a message is held back in the worker's hands. Well under
/// the 30 minutes after which brokers take it back (measured on 4.0 and 4.3).
pub const LONGEST_HOLD: Duration = Duration::from_mins(10);

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Ask whether its like was done before, then say [`Event::Claimed`].
    Claim {
        /// Its delivery tag.
        tag: u64,
    },
    /// Remember that it is done, then say [`Event::Recorded`].
    Record {
        /// Its delivery tag.
        tag: u64,
    },
    /// Start an attempt.
    Run {
        /// Its delivery tag.
        tag: u64,
        /// 1 for the first.
        attempt: u32,
    },
    /// Hold it back for this long, then say [`Event::Waited`].
    Hold {
        /// Its delivery tag.
        tag: u64,
        /// At most [`LONGEST_HOLD`].
        wait: Duration,
    },
    /// Publish what the handler gave back, confirmed and routed.
    PublishResult {
        /// The delivery tag of what it is the result of.
        tag: u64,
    },
    /// Settle as done.
    Ack {
        /// Its delivery tag.
        tag: u64,
    },
    /// Nack without requeue, to be retried.
    DeadLetter {
        /// Its delivery tag.
        tag: u64,
    },
    /// Nack without requeue, for good.
    Bury {
        /// Its delivery tag.
        tag: u64,
    },
    /// Reject with requeue: the queue counts it and holds it back.
    Requeue {
        /// Its delivery tag.
        tag: u64,
    },
    /// Nack with requeue.
    Release {
        /// Its delivery tag.
        tag: u64,
    },
    /// Publish a copy to the dead-letter queue, confirmed and routed.
    Park {
        /// Its delivery tag.
        tag: u64,
        /// The attempt that was the last.
        attempt: u32,
        /// Why.
        reason: BuryReason,
    },
    /// Publish a copy without the broker's records into the wait queue of its
    /// step, or to where a nack would lead, confirmed and routed.
    RetryByCopy {
        /// Its delivery tag.
        tag: u64,
        /// The attempt that failed.
        attempt: u32,
        /// How long the handler asks to wait.
        wait: Option<Duration>,
    },
    /// Cancel the consumer; comes before any settle of the same event.
    CancelConsumer,
    /// Cancel the consumer for a while, for something downstream is down; comes
    /// before any settle of the same event.
    Pause {
        /// What was taken for an outage.
        sign: String,
        /// The last failure.
        why: String,
        /// The wait before the first probe.
        wait: Duration,
    },
    /// Say [`Event::Rested`] after this long.
    Rest {
        /// At most [`LONGEST_HOLD`].
        wait: Duration,
    },
    /// Subscribe for a single message.
    TakeOne,
    /// That message came: cancel its consumer.
    Unsubscribe,
    /// The outage is over: subscribe with the full prefetch.
    Resume,
}
