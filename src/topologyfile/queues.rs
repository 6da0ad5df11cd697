//! The `queues:` of a file, with their bindings, dead-lettering and retry policy.

use crate::diagnostic::Diagnostic;
use crate::retry::{RetryPolicy, Strategy};
use crate::topology::{
    Binding, DeadLetterKey, DeadLettering, DeliveryLimit, Destination, ExchangeName, Overflow,
    Queue, QueueName, QueueType, RoutingKey, Topology,
};
use crate::topologyfile::bindings;
use crate::topologyfile::check::Places;
use crate::topologyfile::fields::{Fields, Reader};
use crate::topologyfile::tree::{Node, Value};

const KEYS: [&str; 16] = [
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
    "arguments",
    "retry",
    "description",
];

/// Raw arguments that have a typed key of their own.
const TYPED: [(&str, &str); 11] = [
    ("x-queue-type", "type"),
    ("x-dead-letter-exchange", "dead_letter"),
    ("x-dead-letter-routing-key", "dead_letter"),
    ("x-delivery-limit", "delivery_limit"),
    ("x-message-ttl", "message_ttl"),
    ("x-expires", "expires"),
    ("x-max-length", "max_length"),
    ("x-max-length-bytes", "max_length_bytes"),
    ("x-overflow", "overflow"),
    ("x-single-active-consumer", "single_active_consumer"),
    ("x-max-priority", "max_priority"),
];

/// The key of the file that stands for a raw argument.
pub(super) fn typed_key(argument: &str) -> Option<&'static str> {
    TYPED
        .iter()
        .find(|(raw, _)| *raw == argument)
        .map(|(_, key)| *key)
}

pub(super) const TYPES: [(&str, ()); 3] = [("quorum", ()), ("classic", ()), ("stream", ())];

pub(super) fn read(node: &Node, reader: &mut Reader, topology: &mut Topology, places: &mut Places) {
    for (key, value) in reader.entries(node, "queues") {
        let Some(name) = reader.key_name(key, QueueName::new) else {
            continue;
        };
        if name.is_empty() || name.is_reserved() {
            let why = if name.is_empty() {
                "the broker would invent a name"
            } else {
                "names that begin with `amq.` are reserved"
            };
            reader.report(
                Diagnostic::new(
                    "MQ105",
                    key.place.clone(),
                    format!("a queue cannot be named '{name}'"),
                )
                .label(why)
                .help("give it a name of its own"),
            );
            continue;
        }
        let what = format!("queue '{name}'");
        let Some(fields) = reader.fields(value, &what, &KEYS) else {
            continue;
        };
        let queue = Part {
            fields,
            what: &what,
            reader,
            places,
        }
        .queue();
        if let Some(node) = fields.get("bind") {
            read_bind(node, reader, &name, topology, places);
        }
        places.declared(&name, key.place.clone());
        if topology.queues.insert(name.clone(), queue).is_some() {
            reader.declared_twice(key, &what);
        }
    }
}

fn read_bind(
    node: &Node,
    reader: &mut Reader,
    queue: &QueueName,
    topology: &mut Topology,
    places: &mut Places,
) {
    let what = format!("`bind` of queue '{queue}'");
    for item in reader.items(node, &what) {
        let item_what = format!("a binding of queue '{queue}'");
        let Some(fields) = reader.fields(item, &item_what, &["exchange", "key", "arguments"])
        else {
            continue;
        };
        let Some(source) = bindings::required(
            reader,
            item,
            fields,
            "exchange",
            &item_what,
            ExchangeName::new,
        ) else {
            continue;
        };
        if let Some(node) = fields.get("exchange") {
            places.exchange(&source, node.place(), format!("{item_what} names it"));
        }
        let Some((key, arguments)) =
            bindings::key_and_arguments(reader, fields, item, &item_what, &source, places)
        else {
            continue;
        };
        topology.bindings.push(Binding {
            source,
            destination: Destination::Queue(queue.clone()),
            key,
            arguments,
        });
    }
}

/// One queue while its fields are read.
struct Part<'r, 'n> {
    fields: Fields<'n>,
    what: &'r str,
    reader: &'r mut Reader,
    places: &'r mut Places,
}

impl Part<'_, '_> {
    fn queue(&mut self) -> Queue {
        let default = Queue::default();
        Queue {
            kind: self.kind(),
            durable: self.flag("durable").unwrap_or(default.durable),
            auto_delete: self.flag("auto_delete").unwrap_or(default.auto_delete),
            dead_lettering: self.dead_lettering(),
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
                .field("max_priority", |r, node, of| r.integer(node, of, 1..=255))
                .and_then(|priority| u8::try_from(priority).ok()),
            arguments: self.arguments(),
            retry: self.retry(),
        }
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
                .integer(node, &what, 0..=u32::MAX.into())
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

    fn dead_lettering(&mut self) -> Option<DeadLettering> {
        let node = self.fields.get("dead_letter")?;
        let what = format!("`dead_letter` of {}", self.what);
        let fields = self.reader.fields(node, &what, &["exchange", "key"])?;
        let exchange = bindings::required(
            self.reader,
            node,
            fields,
            "exchange",
            &what,
            ExchangeName::new,
        )?;
        if let Some(node) = fields.get("exchange") {
            let of = self.what;
            self.places
                .exchange(&exchange, node.place(), format!("{of} dead-letters to it"));
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

    fn retry(&mut self) -> Option<RetryPolicy> {
        let node = self.fields.get("retry")?;
        let what = format!("`retry` of {}", self.what);
        let known = ["strategy", "max_attempts", "dead_letter_queue"];
        let fields = self.reader.fields(node, &what, &known)?;
        let strategy = fields.get("strategy").and_then(|node| {
            self.reader
                .word(node, &format!("`strategy` of {what}"), &Strategy::ALL)
        });
        let max_attempts = fields.get("max_attempts").and_then(|node| {
            self.reader.integer(
                node,
                &format!("`max_attempts` of {what}"),
                1..=u32::MAX.into(),
            )
        });
        let dead_letter_queue = fields.get("dead_letter_queue").and_then(|node| {
            let name = self.reader.name(
                node,
                &format!("`dead_letter_queue` of {what}"),
                QueueName::new,
            )?;
            self.places
                .queue(&name, node.place(), format!("{what} names it"));
            Some(name)
        });
        Some(RetryPolicy {
            strategy,
            max_attempts: max_attempts.and_then(|n| u32::try_from(n).ok()),
            dead_letter_queue,
        })
    }
}
