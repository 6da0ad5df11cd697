//! Queues: their type, how messages may leave them, and the arguments that say so.

use std::fmt;
use std::time::Duration;

use crate::broker::BrokerFacts;
use crate::field::{FieldTable, FieldValue};
use crate::topology::{ExchangeName, RetryPolicy, RoutingKey};

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
    /// Further `x-` arguments.
    pub arguments: FieldTable,
    /// How `mq consume` retries messages of this queue; not sent to the broker.
    pub retry: Option<RetryPolicy>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            kind: None,
            durable: true,
            auto_delete: false,
            dead_lettering: None,
            delivery_limit: None,
            message_ttl: None,
            expires: None,
            max_length: None,
            max_length_bytes: None,
            overflow: None,
            single_active_consumer: false,
            max_priority: None,
            arguments: FieldTable::new(),
            retry: None,
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
