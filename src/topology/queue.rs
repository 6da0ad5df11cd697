//! Queues: their type, how messages may leave them, and the arguments that say so.

use std::fmt;
use std::time::Duration;

use crate::broker::BrokerFacts;
use crate::field::{FieldTable, FieldValue};
use crate::topology::{
    DeadLetterKey, DeadLetterStrategy, DeadLettering, DelayedRetry, MaxAge, MessageSchemas,
    RetryPolicy,
};

/// The `x-queue-type` of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueType {
    /// One node, no delivery limit.
    Classic,
    /// Replicated, with a delivery limit.
    Quorum,
    /// A log that is read, not emptied.
    Stream,
    /// Another type, by its name.
    Other(String),
}

impl QueueType {
    /// The type of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "classic" => Self::Classic,
            "quorum" => Self::Quorum,
            "stream" => Self::Stream,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for QueueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Classic => "classic",
            Self::Quorum => "quorum",
            Self::Stream => "stream",
            Self::Other(name) => name,
        })
    }
}

/// How often a quorum queue hands a message out again before it drops it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryLimit {
    /// Never drops: `-1` on 4.x, no argument on 3.x, where -1 loses messages.
    Unlimited,
    /// Dropped or dead-lettered at the return after this many.
    Finite(u32),
}

/// What a full queue does (`x-overflow`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The oldest message leaves.
    DropHead,
    /// The publisher gets a nack.
    RejectPublish,
    /// The publisher gets a nack and the message is dead-lettered (classic only).
    RejectPublishDlx,
}

impl Overflow {
    /// Every value, in the broker's words.
    pub const ALL: [(&'static str, Self); 3] = [
        ("drop-head", Self::DropHead),
        ("reject-publish", Self::RejectPublish),
        ("reject-publish-dlx", Self::RejectPublishDlx),
    ];

    /// The value that the broker has this word for.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, overflow)| *overflow)
    }

    fn name(self) -> &'static str {
        match self {
            Self::DropHead => "drop-head",
            Self::RejectPublish => "reject-publish",
            Self::RejectPublishDlx => "reject-publish-dlx",
        }
    }
}

/// Where the leader of a replicated queue starts (`x-queue-leader-locator`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderLocator {
    /// On the node the declaring client is connected to.
    ClientLocal,
    /// Where few leaders are.
    Balanced,
}

impl LeaderLocator {
    /// Every value, in the broker's words.
    pub const ALL: [(&'static str, Self); 2] = [
        ("client-local", Self::ClientLocal),
        ("balanced", Self::Balanced),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::ClientLocal => "client-local",
            Self::Balanced => "balanced",
        }
    }
}

/// One queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// `None` leaves it to the vhost's default queue type.
    pub kind: Option<QueueType>,
    /// Whether it survives a broker restart.
    pub durable: bool,
    /// Whether it goes away with its last consumer.
    pub auto_delete: bool,
    /// Where its dead letters go; `None`: they are dropped.
    pub dead_lettering: Option<DeadLettering>,
    /// How safely they go there; `None`: at most once.
    pub dead_letter_strategy: Option<DeadLetterStrategy>,
    /// `None` leaves it to the broker: none on 3.x, 20 on 4.x.
    pub delivery_limit: Option<DeliveryLimit>,
    /// Messages older than this are dead-lettered as `expired`.
    pub message_ttl: Option<Duration>,
    /// The queue deletes itself, and its messages, after this long unused.
    pub expires: Option<Duration>,
    /// Most messages it holds.
    pub max_length: Option<u64>,
    /// Most bytes of bodies it holds.
    pub max_length_bytes: Option<u64>,
    /// What happens over either limit.
    pub overflow: Option<Overflow>,
    /// Whether one consumer at a time gets messages.
    pub single_active_consumer: bool,
    /// Highest priority of a classic queue, 1 to 255.
    pub max_priority: Option<u8>,
    /// How long returned messages are held back (quorum, 4.3).
    pub delayed_retry: Option<DelayedRetry>,
    /// How long a consumer may hold a message unsettled.
    pub consumer_timeout: Option<Duration>,
    /// Where its leader starts.
    pub leader_locator: Option<LeaderLocator>,
    /// On how many nodes a quorum queue or stream starts.
    pub initial_cluster_size: Option<u32>,
    /// How old the segments of a stream become.
    pub max_age: Option<MaxAge>,
    /// Bytes of one segment file of a stream.
    pub max_segment_size: Option<u64>,
    /// Bytes of the filter of each chunk of a stream, 16 to 255 (since 3.13).
    pub filter_size: Option<u8>,
    /// Further `x-` arguments.
    pub arguments: FieldTable,
    /// How `mq consume` retries messages of this queue; not sent to the broker.
    pub retry: Option<RetryPolicy>,
    /// What `mq consume` holds its messages against; not sent to the broker.
    pub schemas: Option<MessageSchemas>,
    /// What people should know; not sent to the broker.
    pub description: Option<String>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            kind: None,
            durable: true,
            auto_delete: false,
            dead_lettering: None,
            dead_letter_strategy: None,
            delivery_limit: None,
            message_ttl: None,
            expires: None,
            max_length: None,
            max_length_bytes: None,
            overflow: None,
            single_active_consumer: false,
            max_priority: None,
            delayed_retry: None,
            consumer_timeout: None,
            leader_locator: None,
            initial_cluster_size: None,
            max_age: None,
            max_segment_size: None,
            filter_size: None,
            arguments: FieldTable::new(),
            retry: None,
            schemas: None,
            description: None,
        }
    }
}

impl Queue {
    /// Everything the declaration sends as arguments to a broker like `facts`.
    #[must_use]
    pub fn declared_arguments(&self, facts: &BrokerFacts) -> FieldTable {
        let mut arguments = self.arguments.clone();
        let mut set = |name: &str, value: Option<FieldValue>| {
            if let Some(value) = value {
                arguments.insert(name.to_owned(), value);
            }
        };
        let text = |text: &str| Some(FieldValue::text(text));
        set(
            "x-queue-type",
            self.kind
                .as_ref()
                .map(|kind| FieldValue::text(kind.to_string())),
        );
        if let Some(dead_lettering) = &self.dead_lettering {
            set(
                "x-dead-letter-exchange",
                text(dead_lettering.exchange.as_str()),
            );
            if let DeadLetterKey::Replaced(key) = &dead_lettering.key {
                set("x-dead-letter-routing-key", text(key.as_str()));
            }
        }
        set(
            "x-dead-letter-strategy",
            self.dead_letter_strategy
                .and_then(|strategy| text(&strategy.to_string())),
        );
        set(
            "x-delivery-limit",
            self.delivery_limit.and_then(|limit| match limit {
                DeliveryLimit::Unlimited => facts.unlimited_delivery_limit().map(FieldValue::I64),
                DeliveryLimit::Finite(limit) => Some(FieldValue::I64(limit.into())),
            }),
        );
        set("x-message-ttl", self.message_ttl.map(milliseconds));
        set("x-expires", self.expires.map(milliseconds));
        set("x-max-length", self.max_length.map(integer));
        set("x-max-length-bytes", self.max_length_bytes.map(integer));
        set("x-overflow", self.overflow.and_then(|o| text(o.name())));
        if self.single_active_consumer {
            set("x-single-active-consumer", Some(FieldValue::Bool(true)));
        }
        set(
            "x-max-priority",
            self.max_priority
                .map(|priority| FieldValue::I64(priority.into())),
        );
        if let Some(delayed) = &self.delayed_retry {
            set("x-delayed-retry-type", text(&delayed.kind.to_string()));
            set("x-delayed-retry-min", Some(milliseconds(delayed.min)));
            set("x-delayed-retry-max", delayed.max.map(milliseconds));
        }
        set(
            "x-consumer-timeout",
            self.consumer_timeout.map(milliseconds),
        );
        set(
            "x-queue-leader-locator",
            self.leader_locator.and_then(|locator| text(locator.name())),
        );
        // The same setting has two names.
        let cluster_size = if self.kind == Some(QueueType::Stream) {
            "x-initial-cluster-size"
        } else {
            "x-quorum-initial-group-size"
        };
        set(
            cluster_size,
            self.initial_cluster_size
                .map(|size| FieldValue::I64(size.into())),
        );
        set(
            "x-max-age",
            self.max_age.and_then(|age| text(&age.to_string())),
        );
        set(
            "x-stream-max-segment-size-bytes",
            self.max_segment_size.map(integer),
        );
        set(
            "x-stream-filter-size-bytes",
            self.filter_size.map(|size| FieldValue::I64(size.into())),
        );
        arguments
    }
}

fn integer(number: u64) -> FieldValue {
    FieldValue::I64(i64::try_from(number).unwrap_or(i64::MAX))
}

fn milliseconds(duration: Duration) -> FieldValue {
    FieldValue::I64(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit_sent(limit: DeliveryLimit, version: &str) -> Option<i64> {
        let queue = Queue {
            kind: Some(QueueType::Quorum),
            delivery_limit: Some(limit),
            ..Queue::default()
        };
        let facts = BrokerFacts::new("RabbitMQ", version);
        queue
            .declared_arguments(&facts)
            .get("x-delivery-limit")
            .and_then(FieldValue::as_integer)
    }

    #[test]
    fn unlimited_is_minus_one_on_4_and_nothing_on_3() {
        assert_eq!(limit_sent(DeliveryLimit::Unlimited, "4.0.5"), Some(-1));
        assert_eq!(limit_sent(DeliveryLimit::Unlimited, "4.3.6"), Some(-1));
        assert_eq!(limit_sent(DeliveryLimit::Unlimited, "3.10.8"), None);
        assert_eq!(limit_sent(DeliveryLimit::Finite(5), "3.10.8"), Some(5));
    }

    #[test]
    fn typed_keys_become_typed_arguments() {
        let queue = Queue {
            message_ttl: Some(Duration::from_mins(10)),
            max_length: Some(9),
            overflow: Some(Overflow::RejectPublish),
            ..Queue::default()
        };
        let arguments = queue.declared_arguments(&BrokerFacts::new("RabbitMQ", "4.0.5"));
        assert_eq!(
            arguments.get("x-message-ttl"),
            Some(&FieldValue::I64(600_000))
        );
        assert_eq!(arguments.get("x-max-length"), Some(&FieldValue::I64(9)));
        assert_eq!(
            arguments.get("x-overflow"),
            Some(&FieldValue::text("reject-publish"))
        );
        assert_eq!(arguments.len(), 3);
    }
}
