//! The `queues:` of a file, with their bindings.

use crate::diagnostic::Diagnostic;
use crate::lint::Subject;
use crate::topology::{Binding, Destination, ExchangeName, QueueName, Topology};
use crate::topologyfile::bindings;
use crate::topologyfile::check::Places;
use crate::topologyfile::fields::Reader;
use crate::topologyfile::queue_fields::{KEYS, Part};
use crate::topologyfile::tree::{Key, Node};

/// Every key of a binding that stands under its queue.
pub(super) const BIND_KEYS: [&str; 3] = ["exchange", "key", "arguments"];

pub(super) fn read(node: &Node, reader: &mut Reader, topology: &mut Topology, places: &mut Places) {
    for (key, value) in reader.entries(node, "queues") {
        let Some(name) = queue_name(key, reader) else {
            continue;
        };
        let what = format!("queue '{name}'");
        let Some(fields) = reader.fields(value, &what, &KEYS) else {
            continue;
        };
        let queue = Part {
            fields,
            what: &what,
            reader,
            places,
            default_type: None,
            of_worker: false,
        }
        .queue();
        if let Some(node) = fields.get("bind") {
            read_bind(node, reader, &name, topology, places);
        }
        places.declared(&name, key.place.clone());
        places.spots.add(
            Subject::Queue(name.clone()),
            key.place.clone(),
            Some(fields),
        );
        if topology.queues.insert(name.clone(), queue).is_some() {
            reader.declared_twice(key, &what);
        }
    }
}

/// A name that queues may have.
pub(super) fn queue_name(key: &Key, reader: &mut Reader) -> Option<QueueName> {
    let name = reader.key_name(key, QueueName::new)?;
    if !name.is_empty() && !name.is_reserved() {
        return Some(name);
    }
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
    None
}

/// The `bind:` of a queue.
pub(super) fn read_bind(
    node: &Node,
    reader: &mut Reader,
    queue: &QueueName,
    topology: &mut Topology,
    places: &mut Places,
) {
    let what = format!("`bind` of queue '{queue}'");
    for item in reader.items(node, &what) {
        let item_what = format!("a binding of queue '{queue}'");
        let Some(fields) = reader.fields(item, &item_what, &BIND_KEYS) else {
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
        places.spots.add(
            Subject::Binding(topology.bindings.len()),
            item.start(),
            Some(fields),
        );
        topology.bindings.push(Binding {
            source,
            destination: Destination::Queue(queue.clone()),
            key,
            arguments,
        });
    }
}
