//! The topology file: YAML text to a checked [`Topology`].
//!
//! Text becomes a tree with places, the tree becomes typed values, and only
//! then are references checked. Each step collects everything that is wrong;
//! none stops at the first mistake. Files and the environment are read by the
//! caller.

mod bindings;
mod check;
mod exchanges;
mod fields;
mod queues;
mod tree;
mod units;
mod variables;

use crate::diagnostic::{Diagnostic, Source};
use crate::topology::{Topology, VhostName};

use fields::Reader;
use tree::Node;

/// Looks up an environment variable.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

const KEYS: [&str; 5] = ["version", "vhost", "exchanges", "queues", "bindings"];

/// Reads several files as one topology.
///
/// # Errors
/// Every mistake of every file, with its place.
pub fn parse(
    sources: &[Source],
    environment: Environment<'_>,
) -> Result<Topology, Vec<Diagnostic>> {
    let mut reader = Reader::default();
    let mut topology = Topology::default();
    let mut places = check::Places::default();
    for (index, source) in sources.iter().enumerate() {
        match tree::parse(index, &source.text) {
            Err(diagnostic) => reader.report(*diagnostic),
            Ok(mut root) => {
                variables::substitute(&mut root, environment, &mut reader);
                read_file(&root, &mut reader, &mut topology, &mut places);
            }
        }
    }
    // References are checked only in what could be read: one misspelled key
    // must not produce a second complaint about everything that needs it.
    if reader.is_clean() {
        check::references(&topology, &places, &mut reader);
    }
    reader.finish(topology)
}

fn read_file(
    root: &Node,
    reader: &mut Reader,
    topology: &mut Topology,
    places: &mut check::Places,
) {
    let Some(fields) = reader.fields(root, "the file", &KEYS) else {
        return;
    };
    read_version(root, fields.get("version"), reader);
    if let Some(node) = fields.get("vhost")
        && let Some(name) = reader.name::<VhostName, _>(node, "vhost", VhostName::new)
    {
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
    if let Some(node) = fields.get("exchanges") {
        exchanges::read(node, reader, topology, places);
    }
    if let Some(node) = fields.get("queues") {
        queues::read(node, reader, topology, places);
    }
    if let Some(node) = fields.get("bindings") {
        bindings::read(node, reader, topology, places);
    }
}

fn read_version(root: &Node, version: Option<&Node>, reader: &mut Reader) {
    match version {
        None => reader.report(
            Diagnostic::new("MQ107", root.start(), "the file has no `version`")
                .help("begin it with `version: 1`"),
        ),
        Some(node) => {
            if reader.integer(node, "version", 0..=u64::MAX) != Some(1) && reader.is_clean() {
                reader.report(
                    Diagnostic::new("MQ103", node.place(), "unknown version of the file format")
                        .label("only 1 is known")
                        .help("write `version: 1`, or use a newer mq"),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
