//! Why a queue cannot be worked without losing messages, and the way out.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use humantime::format_duration;

use crate::topology::{ExchangeName, QueueName, RoutingKey};

/// Why a queue cannot be worked without losing messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathProblem {
    /// The queue is not there.
    NoQueue(QueueName),
    /// It has no dead-letter exchange: a nack deletes the message.
    NoDeadLetterExchange(QueueName),
    /// The exchange is not there: dead letters vanish.
    NoExchange(ExchangeName),
    /// No binding takes the dead letter: it vanishes.
    Unrouted(ExchangeName, RoutingKey),
    /// Different keys of the queue's messages lead to different ends.
    KeysDiffer(ExchangeName),
    /// Dead letters come straight back: an endless loop without a pause.
    Loop(QueueName),
    /// One copy waits while another rests: every failure would multiply.
    Mixed(BTreeSet<QueueName>, BTreeSet<QueueName>),
    /// There is a wait queue but no place for exhausted messages.
    NoDeadLetterQueue(ExchangeName),
    /// Several queues could be that place.
    SeveralDeadLetterQueues(ExchangeName, BTreeSet<QueueName>),
    /// The named queue cannot be reached alone through the exchange.
    NotParkable(ExchangeName, QueueName),
    /// The queue can lose messages in another way than by a nack, and the
    /// broker drops such a message when the wait queue brings it back.
    DiesOtherwise(QueueName, OtherDeath),
    /// The wait queue deletes itself with the messages that wait in it.
    WaitQueueExpires(QueueName),
    /// A step of `backoff` has no wait queue.
    NoWaitQueue(QueueName, Duration),
    /// `native` is asked for and the queue holds nothing back.
    NoDelayedRetry(QueueName),
    /// The delivery limit of a `native` queue, which the given number of
    /// attempts would reach first.
    LimitEndsFirst(QueueName, u64, u32),
    /// The delay asked for, and the one that the topology keeps.
    WaitsOtherwise(QueueName, Duration, Duration),
}

/// A way to leave a queue that is no rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherDeath {
    /// A finite `delivery_limit`, or none said on a quorum queue, which means
    /// 20 on 4.x: a worker that crashes often enough reaches it.
    DeliveryLimit,
    /// A message TTL.
    Expiry,
    /// A length limit that drops the oldest message.
    DropHead,
}

impl fmt::Display for OtherDeath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeliveryLimit => "a finite delivery limit (on 4.x it is 20 where none is set)",
            Self::Expiry => "a message TTL",
            Self::DropHead => "a length limit that drops its oldest message",
        })
    }
}

impl fmt::Display for PathProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoQueue(queue) => write!(f, "queue '{queue}' does not exist"),
            Self::NoDeadLetterExchange(queue) => write!(
                f,
                "queue '{queue}' has no dead-letter exchange, so a failed message would be deleted"
            ),
            Self::NoExchange(exchange) => write!(
                f,
                "the dead-letter exchange '{exchange}' does not exist, so dead letters vanish"
            ),
            Self::Unrouted(exchange, key) => write!(
                f,
                "the dead-letter exchange '{exchange}' has no binding for key '{key}', so dead letters vanish"
            ),
            Self::KeysDiffer(exchange) => write!(
                f,
                "dead letters keep their keys, and exchange '{exchange}' leads them to different queues"
            ),
            Self::Loop(queue) => write!(
                f,
                "dead letters of queue '{queue}' come straight back to it"
            ),
            Self::Mixed(wait, rest) => write!(
                f,
                "a dead letter goes to {} to be retried and at the same time to {} to rest",
                list(wait),
                list(rest)
            ),
            Self::NoDeadLetterQueue(exchange) => write!(
                f,
                "exchange '{exchange}' leads to no dead-letter queue, so exhausted messages have no place"
            ),
            Self::SeveralDeadLetterQueues(exchange, queues) => write!(
                f,
                "exchange '{exchange}' leads to several dead-letter queues: {}",
                list(queues)
            ),
            Self::DiesOtherwise(queue, death) => write!(
                f,
                "queue '{queue}' has {death}: a message that leaves it that way goes into the wait queue, and when it comes back the broker drops it without a trace (a wait queue with at-least-once keeps it for ever, unseen)"
            ),
            Self::WaitQueueExpires(queue) => write!(
                f,
                "the wait queue '{queue}' has `expires`: it deletes itself with the messages that wait in it"
            ),
            Self::NoWaitQueue(queue, delay) => write!(
                f,
                "no queue (without `expires`) holds messages for {} and then leads back to '{queue}' alone",
                format_duration(*delay)
            ),
            Self::NoDelayedRetry(queue) => write!(
                f,
                "queue '{queue}' is no quorum queue with `delayed_retry`, so a requeued message comes back at once"
            ),
            Self::LimitEndsFirst(queue, limit, attempts) => write!(
                f,
                "queue '{queue}' has a delivery limit of {limit}, which ends a message before its {attempts} attempts are used"
            ),
            Self::WaitsOtherwise(queue, wanted, kept) => write!(
                f,
                "a delay of {} is asked for, but messages of queue '{queue}' wait {}",
                format_duration(*wanted),
                format_duration(*kept)
            ),
            Self::NotParkable(exchange, queue) => write!(
                f,
                "no key of exchange '{exchange}' leads to queue '{queue}' alone"
            ),
        }
    }
}

impl PathProblem {
    /// What to do about it.
    #[must_use]
    pub fn way_out(&self) -> String {
        match self {
            Self::NoQueue(_) => "declare it, or check its name and vhost".to_owned(),
            Self::NoDeadLetterExchange(queue) => format!(
                "give queue '{queue}' a `dead_letter:` in the topology file, or set a dead-letter-exchange by policy"
            ),
            Self::NoExchange(exchange) => {
                format!("declare exchange '{exchange}' and bind a dead-letter queue to it")
            }
            Self::Unrouted(exchange, key) => {
                format!("bind a dead-letter queue to '{exchange}' with key '{key}'")
            }
            Self::KeysDiffer(_) => {
                "give the queue a `dead_letter:` with a `key` of its own".to_owned()
            }
            Self::Loop(_) => {
                "dead-letter into a wait queue with a `message_ttl`, or into a dead-letter queue"
                    .to_owned()
            }
            Self::Mixed(..) => {
                "let the dead-letter key lead to the wait queue only, or to the dead-letter queue only"
                    .to_owned()
            }
            Self::NoDeadLetterQueue(exchange) => {
                format!("bind a dead-letter queue to '{exchange}' under a key of its own")
            }
            Self::SeveralDeadLetterQueues(..) => {
                "name one: `retry: { dead_letter_queue: NAME }` in the topology file, or --dead-letter-queue NAME"
                    .to_owned()
            }
            Self::DiesOtherwise(_, OtherDeath::DeliveryLimit) => {
                "give the queue `delivery_limit: unlimited` (it must be declared anew); mq counts attempts itself"
                    .to_owned()
            }
            Self::DiesOtherwise(_, OtherDeath::Expiry) => {
                "leave `message_ttl` to the wait queue".to_owned()
            }
            Self::DiesOtherwise(_, OtherDeath::DropHead) => {
                "add `overflow: reject-publish`, so that publishers learn that the queue is full"
                    .to_owned()
            }
            Self::WaitQueueExpires(_) => {
                "leave `expires` out; a wait queue has no consumers, so it always counts as unused"
                    .to_owned()
            }
            Self::NoWaitQueue(queue, delay) => format!(
                "declare one: `message_ttl: {}`, `dead_letter: {{ exchange: \"\", key: {queue} }}`, bound to nothing",
                format_duration(*delay).to_string().replace(' ', "")
            ),
            Self::NoDelayedRetry(_) => {
                "add `type: quorum` and `delayed_retry: { type: all, min: 1s, max: 1m }` (RabbitMQ 4.3), or use another strategy"
                    .to_owned()
            }
            Self::LimitEndsFirst(_, limit, _) => format!(
                "give the queue `delivery_limit: unlimited`, or allow at most {} attempts",
                limit + 1
            ),
            Self::WaitsOtherwise(..) => {
                "make them the same, or leave `delays` out: the topology decides".to_owned()
            }
            Self::NotParkable(exchange, queue) => format!(
                "bind '{queue}' to '{exchange}' (direct or topic) under a key that no other queue has"
            ),
        }
    }
}

fn list(queues: &BTreeSet<QueueName>) -> String {
    let names: Vec<String> = queues.iter().map(|queue| format!("'{queue}'")).collect();
    names.join(", ")
}
