//! The `bindings:` of a file, and what they share with the `bind:` of a queue.

use crate::diagnostic::Diagnostic;
use crate::error::Result as MqResult;
use crate::field::FieldTable;
use crate::lint::Subject;
use crate::topology::{Binding, Destination, ExchangeName, QueueName, RoutingKey, Topology};
use crate::topologyfile::check::Places;
use crate::topologyfile::fields::{Fields, Reader};
use crate::topologyfile::tree::Node;

/// Every key a binding can have.
pub(super) const KEYS: [&str; 5] = [
    "source",
    "destination",
    "destination_type",
    "key",
    "arguments",
];

/// What a binding can lead to, and whether it is an exchange.
pub(super) const DESTINATIONS: [(&str, bool); 2] = [("queue", false), ("exchange", true)];

pub(super) fn read(node: &Node, reader: &mut Reader, topology: &mut Topology, places: &mut Places) {
    for item in reader.items(node, "bindings") {
        let number = topology.bindings.len();
        if let Some(binding) = read_one(item, number, reader, places) {
            topology.bindings.push(binding);
        }
    }
}

fn read_one(
    node: &Node,
    number: usize,
    reader: &mut Reader,
    places: &mut Places,
) -> Option<Binding> {
    let what = "a binding";
    let fields = reader.fields(node, what, &KEYS)?;
    let subject = Subject::Binding(number);
    places.spots.add(subject, node.start(), Some(fields));
    let source = required(reader, node, fields, "source", what, ExchangeName::new)?;
    if let Some(node) = fields.get("source") {
        places.exchange(
            &source,
            node.place(),
            "a binding has it as its source".into(),
        );
    }
    let to_exchange = fields.get("destination_type").map_or(Some(false), |node| {
        reader.word(node, "`destination_type` of a binding", &DESTINATIONS)
    })?;
    let destination = if to_exchange {
        let name = required(reader, node, fields, "destination", what, ExchangeName::new)?;
        if let Some(node) = fields.get("destination") {
            places.exchange(&name, node.place(), "a binding leads to it".into());
        }
        Destination::Exchange(name)
    } else {
        let name = required(reader, node, fields, "destination", what, QueueName::new)?;
        if let Some(node) = fields.get("destination") {
            places.queue(&name, node.place(), "a binding leads to it".into());
        }
        Destination::Queue(name)
    };
    let (key, arguments) = key_and_arguments(reader, fields, node, what, &source, places)?;
    Some(Binding {
        source,
        destination,
        key,
        arguments,
    })
}

/// A name that must be there.
pub(super) fn required<T>(
    reader: &mut Reader,
    node: &Node,
    fields: Fields<'_>,
    field: &str,
    what: &str,
    new: impl Fn(String) -> MqResult<T>,
) -> Option<T> {
    match fields.get(field) {
        Some(node) => reader.name(node, &format!("`{field}` of {what}"), new),
        None => {
            reader.report(
                Diagnostic::new("MQ107", node.start(), format!("{what} has no `{field}`"))
                    .help(format!("add `{field}: NAME`")),
            );
            None
        }
    }
}

/// `key` and `arguments`, the same in both places where bindings are written.
pub(super) fn key_and_arguments(
    reader: &mut Reader,
    fields: Fields<'_>,
    node: &Node,
    what: &str,
    source: &ExchangeName,
    places: &mut Places,
) -> Option<(RoutingKey, FieldTable)> {
    let key = match fields.get("key") {
        Some(node) => reader.name(node, &format!("`key` of {what}"), RoutingKey::new)?,
        None => {
            places.keyless(source, node.start(), what);
            RoutingKey::new("").ok()?
        }
    };
    let arguments = fields
        .get("arguments")
        .map_or_else(FieldTable::new, |node| {
            reader.table(node, &format!("`arguments` of {what}"))
        });
    Some((key, arguments))
}
