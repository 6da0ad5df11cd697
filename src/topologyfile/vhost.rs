//! The `vhost:` of a file: a name, or a map with the settings of the vhost.

use crate::diagnostic::Diagnostic;
use crate::topology::{QueueType, Topology, VhostLimit, VhostName, VhostSettings};
use crate::topologyfile::fields::Reader;
use crate::topologyfile::queue_fields::TYPES;
use crate::topologyfile::tree::{Node, Value};

/// Every key of a vhost that is written as a map.
pub(super) const KEYS: [&str; 5] = [
    "name",
    "description",
    "tags",
    "default_queue_type",
    "limits",
];

/// The limits a vhost can have.
pub(super) const LIMITS: [&str; 2] = ["max_connections", "max_queues"];

pub(super) fn read(node: &Node, reader: &mut Reader, topology: &mut Topology) {
    if !matches!(node.value, Value::Map(_)) {
        read_name(node, reader, topology);
        return;
    }
    let Some(fields) = reader.fields(node, "vhost", &KEYS) else {
        return;
    };
    if let Some(node) = fields.get("name") {
        read_name(node, reader, topology);
    }
    let settings = VhostSettings {
        description: fields
            .get("description")
            .and_then(|node| reader.text(node, "`description` of the vhost"))
            .map(str::to_owned),
        tags: fields
            .get("tags")
            .map(|node| reader.tags(node, "`tags` of the vhost")),
        default_queue_type: fields.get("default_queue_type").and_then(|node| {
            let of = "`default_queue_type` of the vhost";
            reader.word(node, of, &TYPES)?;
            reader.text(node, of).map(QueueType::from_name)
        }),
        ..VhostSettings::default()
    };
    let settings = match fields.get("limits") {
        None => settings,
        Some(node) => with_limits(settings, node, reader),
    };
    if settings == VhostSettings::default() {
        return;
    }
    if topology.vhost_settings.is_some() {
        reader.report(
            Diagnostic::new(
                "MQ109",
                node.start(),
                "the vhost's settings are in two files",
            )
            .help("keep one of the two"),
        );
    }
    topology.vhost_settings = Some(settings);
}

fn read_name(node: &Node, reader: &mut Reader, topology: &mut Topology) {
    let Some(name) = reader.name::<VhostName, _>(node, "vhost", VhostName::new) else {
        return;
    };
    match &topology.vhost {
        Some(other) if *other != name => reader.report(
            Diagnostic::new(
                "MQ109",
                node.place(),
                format!("the files disagree about the vhost: '{other}' and '{name}'"),
            )
            .help("apply them one by one, or keep `vhost` in one of them"),
        ),
        _ => topology.vhost = Some(name),
    }
}

fn with_limits(settings: VhostSettings, node: &Node, reader: &mut Reader) -> VhostSettings {
    let Some(fields) = reader.fields(node, "`limits` of the vhost", &LIMITS) else {
        return settings;
    };
    let mut limit = |name: &str| {
        let node = fields.get(name)?;
        let what = format!("`{name}` of the vhost");
        match &node.value {
            Value::Text(text) if text == "unlimited" => Some(VhostLimit::Unlimited),
            _ => reader
                .integer(node, &what, 0..=u64::MAX)
                .map(VhostLimit::AtMost),
        }
    };
    VhostSettings {
        max_connections: limit("max_connections"),
        max_queues: limit("max_queues"),
        ..settings
    }
}
