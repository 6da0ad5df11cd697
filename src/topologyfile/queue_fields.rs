//! The keys of one queue, read into their types.

use std::ops::RangeInclusive;

use crate::diagnostic::Diagnostic;
use crate::topology::{
    DeadLetterKey, DeadLetterStrategy, DeadLettering, DelayedRetry, DelayedRetryType,
    DeliveryLimit, ExchangeName, LeaderLocator, Overflow, Queue, QueueType, RoutingKey,
};
use crate::topologyfile::check::Places;
use crate::topologyfile::fields::{Fields, Reader};
use crate::topologyfile::tree::{Node, Value};
use crate::topologyfile::{bindings, queue_types};

/// Every key a queue can have.
pub(super) const KEYS: [&str; 24] = [
    "type",
    "durable",
    "auto_delete",
    "bind",
    "dead_letter",
    "delivery_limit",
    "message_ttl",
    "expires",
    "max_length",
    "max_length_bytes",
    "overflow",
    "single_active_consumer",
    "max_priority",
    "delayed_retry",
    "consumer_timeout",
    "leader_locator",
    "initial_cluster_size",
    "max_age",
    "max_segment_size",
    "filter_size",
    "arguments",
    "retry",
    "schema",
    "description",
];

/// Every key of `dead_letter`.
pub(super) const DEAD_LETTER_KEYS: [&str; 3] = ["exchange", "key", "strategy"];

/// Every key of `delayed_retry`.
pub(super) const DELAYED_RETRY_KEYS: [&str; 3] = ["type", "min", "max"];

/// Raw arguments that have a typed key of their own.
pub(super) const TYPED: [(&str, &str); 22] = [
    ("x-queue-type", "type"),
    ("x-dead-letter-exchange", "dead_letter"),
    ("x-dead-letter-routing-key", "dead_letter"),
    ("x-dead-letter-strategy", "dead_letter"),
    ("x-delivery-limit", "delivery_limit"),
    ("x-message-ttl", "message_ttl"),
    ("x-expires", "expires"),
    ("x-max-length", "max_length"),
    ("x-max-length-bytes", "max_length_bytes"),
    ("x-overflow", "overflow"),
    ("x-single-active-consumer", "single_active_consumer"),
    ("x-max-priority", "max_priority"),
    ("x-delayed-retry-type", "delayed_retry"),
    ("x-delayed-retry-min", "delayed_retry"),
    ("x-delayed-retry-max", "delayed_retry"),
    ("x-consumer-timeout", "consumer_timeout"),
    ("x-queue-leader-locator", "leader_locator"),
    ("x-quorum-initial-group-size", "initial_cluster_size"),
    ("x-initial-cluster-size", "initial_cluster_size"),
    ("x-max-age", "max_age"),
    ("x-stream-max-segment-size-bytes", "max_segment_size"),
    ("x-stream-filter-size-bytes", "filter_size"),
];

/// The largest segment of a stream that brokers take (streams.md).
const MAX_SEGMENT_BYTES: u64 = 3_000_000_000;

/// Priorities that classic queues can have.
pub(super) const PRIORITIES: RangeInclusive<u64> = 1..=255;

/// How many replicas can be asked for.
pub(super) const REPLICAS: RangeInclusive<u64> = 1..=1000;

/// Delivery limits that are no `unlimited`.
pub(super) const DELIVERY_LIMITS: RangeInclusive<u64> = 0..=u32::MAX as u64;

/// The key of the file that stands for a raw argument.
pub(super) fn typed_key(argument: &str) -> Option<&'static str> {
    TYPED
        .iter()
        .find(|(raw, _)| *raw == argument)
        .map(|(_, key)| *key)
}

/// The types a queue of a file can have.
pub(super) const TYPES: [(&str, ()); 3] = [("quorum", ()), ("classic", ()), ("stream", ())];

/// One queue while its fields are read.
pub(super) struct Part<'r, 'n> {
    pub(super) fields: Fields<'n>,
    pub(super) what: &'r str,
    pub(super) reader: &'r mut Reader,
    pub(super) places: &'r mut Places,
    /// The type it has when the file says none.
    pub(super) default_type: Option<QueueType>,
    /// The queue of a worker, whose dead-letter queue is given.
    pub(super) of_worker: bool,
}

impl Part<'_, '_> {
    pub(super) fn queue(&mut self) -> Queue {
        let default = Queue::default();
        let (dead_lettering, dead_letter_strategy) = self.dead_lettering();
        let queue = Queue {
            kind: self.kind().or_else(|| self.default_type.clone()),
            durable: self.flag("durable").unwrap_or(default.durable),
            auto_delete: self.flag("auto_delete").unwrap_or(default.auto_delete),
            dead_lettering,
            dead_letter_strategy,
            delivery_limit: self.delivery_limit(),
            message_ttl: self.field("message_ttl", Reader::duration),
            expires: self.field("expires", Reader::duration),
            max_length: self.field("max_length", |r, node, of| {
                r.integer(node, of, 0..=u64::MAX)
            }),
            max_length_bytes: self.field("max_length_bytes", Reader::size),
            overflow: self.field("overflow", |r, node, of| r.word(node, of, &Overflow::ALL)),
            single_active_consumer: self.flag("single_active_consumer").unwrap_or(false),
            max_priority: self
                .field("max_priority", |r, node, of| {
                    r.integer(node, of, PRIORITIES)
                })
                .and_then(|priority| u8::try_from(priority).ok()),
            delayed_retry: self.delayed_retry(),
            consumer_timeout: self.field("consumer_timeout", Reader::duration),
            leader_locator: self.field("leader_locator", |r, node, of| {
                r.word(node, of, &LeaderLocator::ALL)
            }),
            initial_cluster_size: self
                .field("initial_cluster_size", |r, node, of| {
                    r.integer(node, of, REPLICAS)
                })
                .and_then(|size| u32::try_from(size).ok()),
            max_age: self.field("max_age", Reader::max_age),
            max_segment_size: self.field("max_segment_size", |r, node, of| {
                r.size_within(node, of, 1..=MAX_SEGMENT_BYTES)
            }),
            filter_size: self
                .field("filter_size", |r, node, of| {
                    r.size_within(node, of, 16..=255)
                })
                .and_then(|size| u8::try_from(size).ok()),
            arguments: self.arguments(),
            retry: self.retry(),
            schemas: self.schemas(),
            description: self.field("description", |r, node, of| {
                r.text(node, of).map(str::to_owned)
            }),
        };
        queue_types::check(&queue, self.fields, self.what, self.reader);
        queue
    }

    fn field<T>(
        &mut self,
        field: &str,
        read: impl Fn(&mut Reader, &Node, &str) -> Option<T>,
    ) -> Option<T> {
        let node = self.fields.get(field)?;
        read(self.reader, node, &format!("`{field}` of {}", self.what))
    }

    fn flag(&mut self, field: &str) -> Option<bool> {
        self.field(field, Reader::boolean)
    }

    fn kind(&mut self) -> Option<QueueType> {
        self.field("type", |reader, node, of| {
            reader.word(node, of, &TYPES)?;
            reader.text(node, of).map(QueueType::from_name)
        })
    }

    fn delivery_limit(&mut self) -> Option<DeliveryLimit> {
        let node = self.fields.get("delivery_limit")?;
        let what = format!("`delivery_limit` of {}", self.what);
        match &node.value {
            Value::Text(text) if text == "unlimited" => Some(DeliveryLimit::Unlimited),
            Value::Integer(n) if *n < 0 => {
                self.reader.report(
                    Diagnostic::new("MQ103", node.place(), format!("{what} cannot be negative"))
                        .label("-1 means unlimited on 4.x and loses messages on 3.x")
                        .help("write `delivery_limit: unlimited`; mq sends what the broker's version needs"),
                );
                None
            }
            Value::Integer(_) => self
                .reader
                .integer(node, &what, DELIVERY_LIMITS)
                .and_then(|limit| u32::try_from(limit).ok())
                .map(DeliveryLimit::Finite),
            Value::Unreadable => None,
            _ => {
                self.reader.report(
                    Diagnostic::new(
                        "MQ102",
                        node.place(),
                        format!("{what} is {}", node.describe()),
                    )
                    .label("expected `unlimited` or a whole number"),
                );
                None
            }
        }
    }

    fn dead_lettering(&mut self) -> (Option<DeadLettering>, Option<DeadLetterStrategy>) {
        let Some(node) = self.fields.get("dead_letter") else {
            return (None, None);
        };
        let what = format!("`dead_letter` of {}", self.what);
        let Some(fields) = self.reader.fields(node, &what, &DEAD_LETTER_KEYS) else {
            return (None, None);
        };
        let strategy = fields.get("strategy").and_then(|node| {
            let of = format!("`strategy` of {what}");
            self.reader.word(node, &of, &DeadLetterStrategy::ALL)
        });
        (self.dead_letter_exchange(node, fields, &what), strategy)
    }

    fn dead_letter_exchange(
        &mut self,
        node: &Node,
        fields: Fields<'_>,
        what: &str,
    ) -> Option<DeadLettering> {
        let exchange = bindings::required(
            self.reader,
            node,
            fields,
            "exchange",
            what,
            ExchangeName::new,
        )?;
        if let Some(node) = fields.get("exchange") {
            let of = self.what;
            self.places.exchange(
                &exchange,
                node.place(),
                format!("{of} dead-letters to it and would lose every dead letter"),
            );
        }
        let key = match fields.get("key") {
            None => DeadLetterKey::Kept,
            Some(node) => DeadLetterKey::Replaced(self.reader.name(
                node,
                &format!("`key` of {what}"),
                RoutingKey::new,
            )?),
        };
        Some(DeadLettering { exchange, key })
    }

    fn delayed_retry(&mut self) -> Option<DelayedRetry> {
        let node = self.fields.get("delayed_retry")?;
        let what = format!("`delayed_retry` of {}", self.what);
        let fields = self.reader.fields(node, &what, &DELAYED_RETRY_KEYS)?;
        let mut missing = false;
        for (field, example) in [("type", "all"), ("min", "1s")] {
            if fields.get(field).is_none() {
                missing = true;
                self.reader.report(
                    Diagnostic::new("MQ107", node.start(), format!("{what} has no `{field}`"))
                        .label("without it the broker holds nothing back, and does not say so")
                        .help(format!("add `{field}: {example}`")),
                );
            }
        }
        if missing {
            return None;
        }
        let kind = fields.get("type").and_then(|node| {
            let of = format!("`type` of {what}");
            self.reader.word(node, &of, &DelayedRetryType::ALL)
        });
        let mut duration = |field: &str| {
            let node = fields.get(field)?;
            let duration = self
                .reader
                .duration(node, &format!("`{field}` of {what}"))?;
            Some((duration, node.place()))
        };
        let (min, max) = (duration("min"), duration("max"));
        let (min, min_place) = min?;
        if min.is_zero() {
            self.reader.report(
                Diagnostic::new("MQ103", min_place, format!("`min` of {what} is zero"))
                    .help("leave `delayed_retry` out where nothing is to be held back"),
            );
        }
        if let Some((max, place)) = &max
            && *max < min
        {
            self.reader.report(
                Diagnostic::new(
                    "MQ103",
                    place.clone(),
                    format!("`max` of {what} is less than its `min`"),
                )
                .help("the delay grows from `min` to `max`"),
            );
        }
        Some(DelayedRetry {
            kind: kind?,
            min,
            max: max.map(|(max, _)| max),
        })
    }

    fn arguments(&mut self) -> crate::field::FieldTable {
        let Some(node) = self.fields.get("arguments") else {
            return crate::field::FieldTable::new();
        };
        let what = format!("`arguments` of {}", self.what);
        if let Value::Map(entries) = &node.value {
            for (key, _) in entries {
                if let Some(typed) = typed_key(&key.text) {
                    self.reader.report(
                        Diagnostic::new(
                            "MQ110",
                            key.place.clone(),
                            format!("{} sets {} as a raw argument", self.what, key.text),
                        )
                        .help(format!("write it as `{typed}`, so that it can be checked")),
                    );
                }
            }
        }
        self.reader.table(node, &what)
    }
}
