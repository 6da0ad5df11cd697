//! What stands against migrating a queue, before anything is touched.

use crate::field::{FieldTable, FieldValue};
use crate::plan::migrate::MigrateNames;
use crate::topology::{
    Binding, DeadLetterKey, Destination, ExchangeType, Queue, QueueName, QueueType, Topology,
};

/// The queue as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Existing {
    /// Its type.
    pub kind: QueueType,
    /// Whether it survives a restart.
    pub durable: bool,
    /// Whether it goes with its last consumer.
    pub auto_delete: bool,
    /// Whether it belongs to a connection.
    pub exclusive: bool,
    /// The arguments it was declared with.
    pub arguments: FieldTable,
    /// The settings of the policies in force for it.
    pub policy: FieldTable,
    /// Messages in it, those out for delivery included where they are known.
    pub messages: u64,
    /// Bytes of their bodies, where they are known.
    pub message_bytes: Option<u64>,
    /// Its consumers.
    pub consumers: u64,
}

/// A queue whose dead letters go straight into the migrated queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feeder {
    /// Its name.
    pub queue: QueueName,
    /// Messages in it.
    pub messages: u64,
}

/// What stands against it. `wanted` is the queue of the file with the policies
/// that will be in force for it; `there` is everything in the vhost.
#[must_use]
pub fn objections(
    names: &MigrateNames,
    wanted: &Queue,
    existing: &Existing,
    there: &Topology,
    with_consumers: bool,
) -> Vec<String> {
    let mut found = Vec::new();
    let queue = &names.queue;
    kinds(&mut found, wanted, existing);
    if queue.is_reserved() {
        found.push("its name begins with 'amq.': it cannot be declared again".to_owned());
    }
    if existing.consumers > 0 && !with_consumers {
        found.push(format!(
            "it has {} consumers: stop them, or let them compete for the messages with --with-consumers",
            existing.consumers
        ));
    }
    let single = existing.arguments.get("x-single-active-consumer");
    if existing.consumers > 0 && single == Some(&FieldValue::Bool(true)) {
        found.push(
            "it lets one consumer at a time have messages, and somebody is it: stop the consumers"
                .to_owned(),
        );
    }
    hidden(&mut found, existing);
    limits(&mut found, wanted, existing);
    for binding in there.bindings.iter().filter(|binding| {
        binding.destination == Destination::Queue(queue.clone())
            && binding.source != names.entry
            && binding.source != names.back
    }) {
        let kind = there
            .exchange(&binding.source)
            .map(|exchange| exchange.kind);
        if let Some(ExchangeType::Plugin(plugin)) = kind
            && plugin != "x-delayed-message"
        {
            found.push(format!(
                "exchange '{}' of type {plugin} feeds it: what a second binding does there is not known",
                binding.source
            ));
        }
    }
    found
}

/// Only durable classic and quorum queues that belong to nobody can be moved.
fn kinds(found: &mut Vec<String>, wanted: &Queue, existing: &Existing) {
    let movable = |kind: &QueueType| match kind {
        QueueType::Classic | QueueType::Quorum => true,
        QueueType::Stream | QueueType::Other(_) => false,
    };
    if !movable(&existing.kind) {
        found.push(format!(
            "it is a {} queue: only classic and quorum queues can be emptied",
            existing.kind
        ));
    }
    if let Some(kind) = wanted.kind.as_ref().filter(|kind| !movable(kind)) {
        found.push(format!(
            "the file makes it a {kind} queue: only classic and quorum queues can be filled in order"
        ));
    }
    if existing.exclusive {
        found.push("it is exclusive: it belongs to a connection and goes with it".to_owned());
    }
    for (whose, durable, auto_delete) in [
        ("it is", existing.durable, existing.auto_delete),
        ("the file makes it", wanted.durable, wanted.auto_delete),
    ] {
        if auto_delete {
            found.push(format!(
                "{whose} auto-delete: it would go with our own consumer"
            ));
        }
        if !durable {
            found.push(format!("{whose} not durable: declare a new one instead"));
        }
    }
}

/// Messages that a queue holds where no consumer and no count shows them.
fn hidden(found: &mut Vec<String>, existing: &Existing) {
    let text = |argument: &str, key: &str| {
        existing
            .arguments
            .get(argument)
            .or_else(|| existing.policy.get(key))
            .and_then(FieldValue::as_text)
    };
    let delayed = text("x-delayed-retry-type", "delayed-retry-type");
    if delayed.is_some_and(|kind| kind != "disabled") {
        found.push(
            "it delays retries (delayed-retry-type): messages that wait inside cannot be seen"
                .to_owned(),
        );
    }
    if text("x-dead-letter-strategy", "dead-letter-strategy") == Some("at-least-once") {
        found.push(
            "it dead-letters at-least-once: dead letters that wait inside cannot be seen"
                .to_owned(),
        );
    }
}

fn limits(found: &mut Vec<String>, wanted: &Queue, existing: &Existing) {
    if let Some(limit) = wanted.max_length.filter(|limit| *limit < existing.messages) {
        found.push(format!(
            "it holds {} messages, and the new queue would hold {limit} (max-length)",
            existing.messages
        ));
    }
    let bytes = existing.message_bytes.unwrap_or(0);
    if let Some(limit) = wanted.max_length_bytes.filter(|limit| *limit < bytes) {
        found.push(format!(
            "it holds {bytes} bytes, and the new queue would hold {limit} (max-length-bytes)"
        ));
    }
}

/// Queues whose dead letters go into `queue` over the default exchange, which
/// no binding can lead aside.
#[must_use]
pub fn straight_feeders(names: &MigrateNames, there: &Topology) -> Vec<QueueName> {
    let leads_here = |name: &QueueName, key: &DeadLetterKey| match key {
        DeadLetterKey::Replaced(key) => key.as_str() == names.queue.as_str(),
        // Dead letters keep their keys, so a binding by that key brings some.
        DeadLetterKey::Kept => there.bindings.iter().any(|binding: &Binding| {
            binding.destination == Destination::Queue(name.clone())
                && binding.key.as_str() == names.queue.as_str()
        }),
    };
    there
        .queues
        .iter()
        .filter(|(name, queue)| {
            ![&names.queue, &names.old, &names.new].contains(name)
                && queue.dead_lettering.as_ref().is_some_and(|dead_lettering| {
                    dead_lettering.exchange.is_empty() && leads_here(name, &dead_lettering.key)
                })
        })
        .map(|(name, _)| name.clone())
        .collect()
}

/// What a policy in force for a temporary queue would do to the messages in it.
#[must_use]
pub fn harmful_settings(policy: &FieldTable) -> Vec<&'static str> {
    const HARMFUL: [&str; 5] = [
        "message-ttl",
        "max-length",
        "max-length-bytes",
        "expires",
        "delivery-limit",
    ];
    HARMFUL
        .into_iter()
        .filter(|name| policy.contains_key(*name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{DeadLettering, Exchange, ExchangeName, RoutingKey};

    fn names() -> MigrateNames {
        MigrateNames::of(&QueueName::new("q").expect("name")).expect("names")
    }

    fn existing() -> Existing {
        Existing {
            kind: QueueType::Classic,
            durable: true,
            auto_delete: false,
            exclusive: false,
            arguments: FieldTable::new(),
            policy: FieldTable::new(),
            messages: 5,
            message_bytes: Some(500),
            consumers: 0,
        }
    }

    #[test]
    fn each_thing_that_could_lose_a_message_is_named() {
        let plain = Queue::default();
        let check = |wanted: &Queue, existing: &Existing, expected: &[&str]| {
            let found = objections(&names(), wanted, existing, &Topology::default(), false);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.contains(expected), "{found} has no {expected}");
            }
        };
        check(&plain, &existing(), &[]);
        let with = |change: &dyn Fn(&mut Existing)| {
            let mut existing = existing();
            change(&mut existing);
            existing
        };
        let text = FieldValue::text;
        check(
            &plain,
            &with(&|e| e.kind = QueueType::Stream),
            &["a stream queue"],
        );
        check(&plain, &with(&|e| e.exclusive = true), &["exclusive"]);
        check(
            &plain,
            &with(&|e| {
                e.durable = false;
                e.auto_delete = true;
            }),
            &["auto-delete", "not durable"],
        );
        check(&plain, &with(&|e| e.consumers = 2), &["2 consumers"]);
        check(
            &plain,
            &with(&|e| {
                e.policy
                    .insert("delayed-retry-type".to_owned(), text("all"));
                e.arguments
                    .insert("x-dead-letter-strategy".to_owned(), text("at-least-once"));
            }),
            &["delays retries", "at-least-once"],
        );
        let small = Queue {
            max_length: Some(4),
            max_length_bytes: Some(499),
            kind: Some(QueueType::Stream),
            ..Queue::default()
        };
        check(
            &small,
            &existing(),
            &["stream", "(max-length)", "(max-length-bytes)"],
        );
    }

    #[test]
    fn an_exchange_that_counts_its_bindings_is_refused() {
        let mut there = Topology::default();
        let source = ExchangeName::new("h").expect("name");
        let kind = ExchangeType::Plugin("x-consistent-hash".to_owned());
        there
            .exchanges
            .insert(source.clone(), Exchange::durable(kind));
        there.bindings.push(Binding {
            source,
            ..names().back_binding()
        });
        let found = objections(&names(), &Queue::default(), &existing(), &there, false);
        assert_eq!(found.len(), 1, "{found:?}");
        // The temporary exchanges are no such thing.
        there.bindings = vec![names().back_binding(), names().entry_binding()];
        assert!(objections(&names(), &Queue::default(), &existing(), &there, false).is_empty());
    }

    #[test]
    fn a_wait_queue_that_leads_here_over_the_default_exchange_is_found() {
        let mut there = Topology::default();
        let wait = |exchange: &str, key: Option<&str>| Queue {
            dead_lettering: Some(DeadLettering {
                exchange: ExchangeName::new(exchange).expect("name"),
                key: key.map_or(DeadLetterKey::Kept, |key| {
                    DeadLetterKey::Replaced(RoutingKey::new(key).expect("key"))
                }),
            }),
            ..Queue::default()
        };
        for (name, queue) in [
            ("a", wait("", Some("q"))),
            ("b", wait("", Some("other"))),
            ("c", wait("dlx", Some("q"))),
            ("d", wait("", None)),
            ("q", wait("", Some("q"))),
            ("e", Queue::default()),
        ] {
            there
                .queues
                .insert(QueueName::new(name).expect("name"), queue);
        }
        let found = |there: &Topology| -> Vec<String> {
            straight_feeders(&names(), there)
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        assert_eq!(found(&there), ["a"]);
        there.bindings.push(Binding {
            destination: Destination::Queue(QueueName::new("d").expect("name")),
            key: RoutingKey::new("q").expect("key"),
            ..names().back_binding()
        });
        assert_eq!(found(&there), ["a", "d"]);
    }
}
