//! The `policies:` and `operator_policies:` of a file.

use crate::diagnostic::Diagnostic;
use crate::field::{FieldTable, FieldValue};
use crate::lint::Subject;
use crate::topology::{ApplyTo, ExchangeName, Pattern, Policy, PolicyKind, PolicyName, Topology};
use crate::topologyfile::bindings::required;
use crate::topologyfile::check::Places;
use crate::topologyfile::closest;
use crate::topologyfile::fields::Reader;
use crate::topologyfile::tree::{Node, Value};

/// Every key a policy can have.
pub(super) const KEYS: [&str; 5] = [
    "pattern",
    "apply_to",
    "priority",
    "definition",
    "description",
];

/// Settings that RabbitMQ itself knows; plugins bring more.
pub(super) const KNOWN: [&str; 22] = [
    "alternate-exchange",
    "consumer-timeout",
    "dead-letter-exchange",
    "dead-letter-routing-key",
    "dead-letter-strategy",
    "delayed-retry-max",
    "delayed-retry-min",
    "delayed-retry-type",
    "delivery-limit",
    "expires",
    "federation-upstream-set",
    "max-age",
    "max-in-memory-bytes",
    "max-in-memory-length",
    "max-length",
    "max-length-bytes",
    "message-ttl",
    "overflow",
    "queue-leader-locator",
    "stream-filter-size-bytes",
    "stream-max-segment-size-bytes",
    "target-group-size",
];

/// Settings whose value is a number: text would be accepted and do nothing.
pub(super) const NUMBERS: [&str; 10] = [
    "delayed-retry-max",
    "delayed-retry-min",
    "delivery-limit",
    "expires",
    "max-length",
    "max-length-bytes",
    "message-ttl",
    "consumer-timeout",
    "stream-filter-size-bytes",
    "stream-max-segment-size-bytes",
];

/// Settings whose value is one of a few words.
pub(super) const WORDS: [(&str, &[(&str, ())]); 2] = [
    (
        "dead-letter-strategy",
        &[("at-most-once", ()), ("at-least-once", ())],
    ),
    (
        "delayed-retry-type",
        &[
            ("disabled", ()),
            ("all", ()),
            ("failed", ()),
            ("returned", ()),
        ],
    ),
];

pub(super) fn read(
    kind: PolicyKind,
    node: &Node,
    reader: &mut Reader,
    topology: &mut Topology,
    places: &mut Places,
) {
    for (key, value) in reader.entries(node, kind.word()) {
        let Some(name) = reader.key_name(key, PolicyName::new) else {
            continue;
        };
        let what = format!("{} '{name}'", kind.word());
        let Some(policy) = read_one(value, &what, reader, places) else {
            continue;
        };
        let subject = Subject::Policy(kind, name.clone());
        places.spots.add(subject, key.place.clone(), None);
        if topology.policies.insert((kind, name), policy).is_some() {
            reader.declared_twice(key, &what);
        }
    }
}

fn read_one(node: &Node, what: &str, reader: &mut Reader, places: &mut Places) -> Option<Policy> {
    let fields = reader.fields(node, what, &KEYS)?;
    let pattern = required(reader, node, fields, "pattern", what, Pattern::new)?;
    let apply_to = match fields.get("apply_to") {
        None => ApplyTo::All,
        Some(node) => reader.word(node, &format!("`apply_to` of {what}"), &ApplyTo::ALL)?,
    };
    let priority = match fields.get("priority") {
        None => 0,
        Some(node) => reader.signed(node, &format!("`priority` of {what}"))?,
    };
    let Some(definition_node) = fields.get("definition") else {
        reader.report(
            Diagnostic::new("MQ107", node.start(), format!("{what} has no `definition`"))
                .help("add `definition: { message-ttl: 60000 }` or the like"),
        );
        return None;
    };
    let definition = definition(definition_node, what, reader, places);
    let description = fields.get("description").and_then(|node| {
        let of = format!("`description` of {what}");
        reader.text(node, &of).map(str::to_owned)
    });
    Some(Policy {
        pattern,
        apply_to,
        priority,
        definition,
        description,
    })
}

fn definition(node: &Node, what: &str, reader: &mut Reader, places: &mut Places) -> FieldTable {
    let Value::Map(entries) = &node.value else {
        return reader.table(node, &format!("`definition` of {what}"));
    };
    for (key, value) in entries {
        let name = key.text.as_str();
        if let Some(near) = closest(name, KNOWN.iter().copied()).filter(|near| *near != name) {
            reader.report(
                Diagnostic::new(
                    "MQ101",
                    key.place.clone(),
                    format!("unknown setting `{name}`"),
                )
                .label("not a setting of RabbitMQ's policies")
                .help(format!("did you mean `{near}`?")),
            );
        }
        if let Some((_, words)) = WORDS.iter().find(|(setting, _)| *setting == name) {
            reader.word(value, &format!("`{name}` of {what}"), words);
        }
        if NUMBERS.contains(&name) && !matches!(value.value, Value::Integer(_)) {
            reader.report(
                Diagnostic::new(
                    "MQ102",
                    value.place(),
                    format!("`{name}` of {what} is {}", value.describe()),
                )
                .label("expected a whole number, as the broker counts it (ms, messages, bytes)"),
            );
        }
    }
    let definition = reader.table(node, &format!("`definition` of {what}"));
    for setting in ["dead-letter-exchange", "alternate-exchange"] {
        let Some(name) = definition.get(setting).and_then(FieldValue::as_text) else {
            continue;
        };
        if let (Ok(name), Some((_, node))) = (
            ExchangeName::new(name),
            entries.iter().find(|(key, _)| key.text == setting),
        ) {
            places.exchange(&name, node.place(), format!("{what} sets it as {setting}"));
        }
    }
    definition
}
