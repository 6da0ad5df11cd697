//! The `super_streams:` of a file: an exchange and its partitions in one line.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::diagnostic::Diagnostic;
use crate::topology::{ExchangeName, QueueType, RoutingKey, SuperStream, Topology};
use crate::topologyfile::check::Places;
use crate::topologyfile::fields::{Fields, Reader};
use crate::topologyfile::queue_fields::Part;
use crate::topologyfile::shorthand;
use crate::topologyfile::tree::{Key, Node};

/// `partitions` or `keys`, and what a partition can be declared with.
pub(super) const KEYS: [&str; 10] = [
    "partitions",
    "keys",
    "max_age",
    "max_length_bytes",
    "max_segment_size",
    "filter_size",
    "leader_locator",
    "initial_cluster_size",
    "arguments",
    "description",
];

/// As many as brokers take where nobody raised it (`stream.max_super_stream_partitions`).
pub(super) const PARTITIONS: RangeInclusive<u64> = 1..=1000;

pub(super) fn read(node: &Node, reader: &mut Reader, topology: &mut Topology, places: &mut Places) {
    for (key, value) in reader.entries(node, "super_streams") {
        let Some(super_stream) = read_one(key, value, reader, places) else {
            continue;
        };
        let what = format!("super stream '{}'", super_stream.name);
        shorthand::add(super_stream.expand(), key, &what, reader, topology, places);
    }
}

fn read_one(
    key: &Key,
    node: &Node,
    reader: &mut Reader,
    places: &mut Places,
) -> Option<SuperStream> {
    let name = reader.key_name(key, ExchangeName::new)?;
    if name.is_empty() || name.is_reserved() {
        reader.report(
            Diagnostic::new(
                "MQ105",
                key.place.clone(),
                format!("a super stream cannot be named '{name}'"),
            )
            .label("names that are empty or begin with `amq.` are reserved")
            .help("give it a name of its own"),
        );
        return None;
    }
    let what = format!("super stream '{name}'");
    let fields = reader.fields(node, &what, &KEYS)?;
    let partition = Part {
        fields,
        what: &what,
        reader,
        places,
        default_type: Some(QueueType::Stream),
        of_worker: false,
    }
    .queue();
    let keys = keys(key, fields, &what, reader)?;
    Some(SuperStream {
        name,
        keys,
        partition,
    })
}

fn keys(
    place: &Key,
    fields: Fields<'_>,
    what: &str,
    reader: &mut Reader,
) -> Option<Vec<RoutingKey>> {
    match (fields.get("partitions"), fields.get("keys")) {
        (Some(node), None) => {
            let of = format!("`partitions` of {what}");
            let count = reader.integer(node, &of, PARTITIONS)?;
            (0..count)
                .map(|number| RoutingKey::new(number.to_string()).ok())
                .collect()
        }
        (None, Some(node)) => {
            let mut keys = Vec::new();
            let mut seen = BTreeSet::new();
            for item in reader.items(node, &format!("`keys` of {what}")) {
                let key = reader.name(item, &format!("a key of {what}"), RoutingKey::new)?;
                if !seen.insert(key.clone()) {
                    reader.report(
                        Diagnostic::new(
                            "MQ109",
                            item.place(),
                            format!("{what} has the key '{key}' twice"),
                        )
                        .help("each partition has a key of its own"),
                    );
                }
                keys.push(key);
            }
            if keys.is_empty() {
                reader.report(
                    Diagnostic::new("MQ107", node.start(), format!("{what} has no keys"))
                        .help("write `keys: [eu, us]`, or `partitions: 3`"),
                );
                return None;
            }
            Some(keys)
        }
        (both, _) => {
            let says = if both.is_some() {
                "has `partitions` and `keys`"
            } else {
                "has neither `partitions` nor `keys`"
            };
            reader.report(
                Diagnostic::new("MQ107", place.place.clone(), format!("{what} {says}"))
                    .help("write `partitions: 3` for the keys 0, 1 and 2, or `keys: [eu, us]`"),
            );
            None
        }
    }
}
