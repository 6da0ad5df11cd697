//! One argument or property that is otherwise on the broker, and how to tell.

use std::collections::BTreeSet;
use std::fmt;

use crate::field::{FieldTable, FieldValue};
use crate::topology::{
    Exchange, Password, Permissions, Policy, Queue, TopicPermission, User, VhostSettings,
};

/// One argument or property that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// `durable`, `type`, `x-message-ttl` …
    pub argument: String,
    /// What the file asks for; `None`: nothing.
    pub file: Option<String>,
    /// What the broker has; `None`: nothing.
    pub broker: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(
            f,
            "{}: the file says {}, the broker has {}",
            self.argument,
            side(&self.file),
            side(&self.broker)
        )
    }
}

impl Difference {
    /// Whether brokers compare it when a queue is declared again. What they do
    /// not compare they accept and ignore, so a declaration proves nothing.
    #[must_use]
    pub fn is_compared(&self) -> bool {
        !self.argument.starts_with("x-") || COMPARED.contains(&self.argument.as_str())
    }
}

/// Queue arguments that RabbitMQ knows, of all types and versions up to 4.3
/// (the `capabilities` of each queue type in its source). Any other `x-`
/// argument is stored and never looked at.
const COMPARED: [&str; 27] = [
    "x-consumer-timeout",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-delayed-retry-max",
    "x-delayed-retry-min",
    "x-delayed-retry-type",
    "x-delivery-limit",
    "x-expires",
    "x-initial-cluster-size",
    "x-max-age",
    "x-max-in-memory-bytes",
    "x-max-in-memory-length",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-message-ttl",
    "x-overflow",
    "x-queue-leader-locator",
    "x-queue-master-locator",
    "x-queue-mode",
    "x-queue-type",
    "x-queue-version",
    "x-quorum-initial-group-size",
    "x-single-active-consumer",
    "x-stream-filter-size-bytes",
    "x-stream-max-segment-size-bytes",
];

/// What a queue that exists, with these raw arguments, has otherwise than
/// `wanted`, whose declaration would send `arguments`.
///
/// Numbers compare by value, as on the broker. No `type` in the file means
/// whatever the vhost's default made of it; an absent `x-queue-type` on the
/// broker means classic (3.10 stores none).
#[must_use]
pub fn queue_differences(
    wanted: &Queue,
    arguments: &FieldTable,
    there: &Queue,
    there_arguments: &FieldTable,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    flag(&mut differences, "durable", wanted.durable, there.durable);
    flag(
        &mut differences,
        "auto_delete",
        wanted.auto_delete,
        there.auto_delete,
    );
    let mut wanted_arguments = arguments.clone();
    let mut there_arguments = there_arguments.clone();
    let there_type = there_arguments
        .remove("x-queue-type")
        .unwrap_or_else(|| FieldValue::text("classic"));
    if let Some(wanted_type) = wanted_arguments.remove("x-queue-type")
        && wanted_type != there_type
    {
        differences.push(Difference {
            argument: "x-queue-type".to_owned(),
            file: Some(show(&wanted_type)),
            broker: Some(show(&there_type)),
        });
    }
    tables(&mut differences, &wanted_arguments, &there_arguments);
    differences
}

/// What an exchange that exists has otherwise than `wanted`.
#[must_use]
pub(super) fn exchange_differences(wanted: &Exchange, there: &Exchange) -> Vec<Difference> {
    let mut differences = Vec::new();
    if wanted.kind != there.kind {
        differences.push(Difference {
            argument: "type".to_owned(),
            file: Some(wanted.kind.to_string()),
            broker: Some(there.kind.to_string()),
        });
    }
    flag(&mut differences, "durable", wanted.durable, there.durable);
    flag(
        &mut differences,
        "auto_delete",
        wanted.auto_delete,
        there.auto_delete,
    );
    flag(
        &mut differences,
        "internal",
        wanted.internal,
        there.internal,
    );
    tables(
        &mut differences,
        &wanted.declared_arguments(),
        &there.arguments,
    );
    differences
}

/// What a policy that exists has otherwise than `wanted`.
pub(super) fn policy_differences(wanted: &Policy, there: &Policy) -> Vec<Difference> {
    let mut differences = Vec::new();
    let words = |policy: &Policy| {
        [
            policy.pattern.to_string(),
            policy.apply_to.to_string(),
            policy.priority.to_string(),
        ]
    };
    let names = ["pattern", "apply-to", "priority"];
    for ((argument, file), broker) in names.into_iter().zip(words(wanted)).zip(words(there)) {
        text(&mut differences, argument, &file, &broker);
    }
    tables(&mut differences, &wanted.definition, &there.definition);
    differences
}

/// What a vhost has otherwise than `wanted`, which may leave settings open.
pub(super) fn vhost_differences(wanted: &VhostSettings, there: &VhostSettings) -> Vec<Difference> {
    let list = |tags: &Vec<String>| tags.join(", ");
    let sides = [
        (
            "description",
            wanted.description.clone(),
            there.description.clone(),
        ),
        (
            "tags",
            wanted.tags.as_ref().map(list),
            there.tags.as_ref().map(list),
        ),
        (
            "default_queue_type",
            wanted.default_queue_type.as_ref().map(ToString::to_string),
            there.default_queue_type.as_ref().map(ToString::to_string),
        ),
        (
            "max-connections",
            wanted.max_connections.map(|limit| limit.to_string()),
            there.max_connections.map(|limit| limit.to_string()),
        ),
        (
            "max-queues",
            wanted.max_queues.map(|limit| limit.to_string()),
            there.max_queues.map(|limit| limit.to_string()),
        ),
    ];
    sides
        .into_iter()
        .filter(|(_, file, broker)| file.is_some() && file != broker)
        .map(|(argument, file, broker)| Difference {
            argument: argument.to_owned(),
            file,
            broker,
        })
        .collect()
}

/// What a user has otherwise than `wanted`. A password that is only known by
/// its source is not compared.
pub(super) fn user_differences(wanted: &User, there: &User) -> Vec<Difference> {
    let mut differences = Vec::new();
    let list = |tags: &BTreeSet<String>| {
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        tags.join(", ")
    };
    text(
        &mut differences,
        "tags",
        &list(&wanted.tags),
        &list(&there.tags),
    );
    let same = match (&wanted.password, &there.password) {
        (Some(Password::Known(secret)), Some(Password::Hash(hash))) => hash.is_of(secret),
        (Some(Password::Hash(wanted)), Some(Password::Hash(there))) => wanted == there,
        (Some(Password::Known(_) | Password::Hash(_)), _) => false,
        (None | Some(Password::Environment(_) | Password::File(_)), _) => true,
    };
    if !same {
        differences.push(Difference {
            argument: "password".to_owned(),
            file: Some("another one".to_owned()),
            broker: Some("an old one".to_owned()),
        });
    }
    differences
}

/// What a user may do otherwise than `wanted`.
pub(super) fn permission_differences(wanted: &Permissions, there: &Permissions) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (argument, file, broker) in [
        ("configure", &wanted.configure, &there.configure),
        ("write", &wanted.write, &there.write),
        ("read", &wanted.read, &there.read),
    ] {
        text(&mut differences, argument, file.as_str(), broker.as_str());
    }
    differences
}

/// The same on a topic exchange.
pub(super) fn topic_permission_differences(
    wanted: &TopicPermission,
    there: &TopicPermission,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (argument, file, broker) in [
        ("write", &wanted.write, &there.write),
        ("read", &wanted.read, &there.read),
    ] {
        text(&mut differences, argument, file.as_str(), broker.as_str());
    }
    differences
}

fn text(differences: &mut Vec<Difference>, argument: &str, file: &str, broker: &str) {
    if file != broker {
        differences.push(Difference {
            argument: argument.to_owned(),
            file: Some(quoted(file)),
            broker: Some(quoted(broker)),
        });
    }
}

/// Nothing at all would not be seen.
fn quoted(value: &str) -> String {
    if value.is_empty() {
        "''".to_owned()
    } else {
        value.to_owned()
    }
}

fn flag(differences: &mut Vec<Difference>, argument: &str, file: bool, broker: bool) {
    if file != broker {
        differences.push(Difference {
            argument: argument.to_owned(),
            file: Some(file.to_string()),
            broker: Some(broker.to_string()),
        });
    }
}

fn tables(differences: &mut Vec<Difference>, file: &FieldTable, broker: &FieldTable) {
    let mut names: Vec<&String> = file.keys().chain(broker.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let (wanted, there) = (file.get(name), broker.get(name));
        // Through JSON the width of a number is forgotten, as the broker forgets it.
        if wanted.map(FieldValue::to_json) != there.map(FieldValue::to_json) {
            differences.push(Difference {
                argument: name.clone(),
                file: wanted.map(show),
                broker: there.map(show),
            });
        }
    }
}

fn show(value: &FieldValue) -> String {
    match value.as_text() {
        Some(text) => text.to_owned(),
        None => value.to_json().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::QueueType;

    fn table(pairs: &[(&str, FieldValue)]) -> FieldTable {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect()
    }

    fn differing(
        kind: Option<QueueType>,
        file: &[(&str, FieldValue)],
        broker: &[(&str, FieldValue)],
    ) -> Vec<String> {
        let wanted = Queue {
            kind,
            ..Queue::default()
        };
        queue_differences(&wanted, &table(file), &Queue::default(), &table(broker))
            .into_iter()
            .map(|difference| difference.to_string())
            .collect()
    }

    #[test]
    fn compares_as_the_broker_does() {
        let text = FieldValue::text;
        let classic = ("x-queue-type", text("classic"));
        let quorum = ("x-queue-type", text("quorum"));
        let none: [String; 0] = [];
        // An absent type is classic; a type nobody asked for is the vhost's default.
        assert_eq!(differing(None, std::slice::from_ref(&classic), &[]), none);
        assert_eq!(differing(None, &[], std::slice::from_ref(&quorum)), none);
        assert_eq!(
            differing(None, &[classic], &[quorum]),
            ["x-queue-type: the file says classic, the broker has quorum"]
        );
        // Widths do not matter, values do.
        assert_eq!(
            differing(
                None,
                &[("x-max-length", FieldValue::I32(5))],
                &[("x-max-length", FieldValue::I64(5))]
            ),
            none
        );
        assert_eq!(
            differing(
                None,
                &[("x-max-length", FieldValue::I64(5))],
                &[("x-expires", FieldValue::I64(9))]
            ),
            [
                "x-expires: the file says nothing, the broker has 9",
                "x-max-length: the file says 5, the broker has nothing",
            ]
        );
    }

    #[test]
    fn knows_what_brokers_accept_and_ignore() {
        let difference = |argument: &str| Difference {
            argument: argument.to_owned(),
            file: None,
            broker: None,
        };
        assert!(difference("x-message-ttl").is_compared());
        assert!(difference("durable").is_compared());
        assert!(!difference("x-anything").is_compared());
    }
}
