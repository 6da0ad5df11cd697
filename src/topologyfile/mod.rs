//! The topology file: YAML text to a checked [`Topology`].
//!
//! Text becomes a tree with places, the tree becomes typed values, and only
//! then are references checked. Each step collects everything that is wrong;
//! none stops at the first mistake. Files and the environment are read by the
//! caller.

mod allow;
mod bindings;
mod check;
mod closest;
mod exchanges;
mod export;
mod fields;
mod file;
mod policies;
mod queue_fields;
mod queue_types;
mod queues;
mod retry_fields;
mod routing_tests;
mod schema;
mod schema_fields;
mod secrets;
mod shorthand;
mod spots;
mod super_streams;
mod tree;
mod units;
mod users;
mod variables;
mod vhost;
mod workers;

use crate::diagnostic::{Diagnostic, Source};
use crate::lint::Subject;
use crate::topology::{PolicyKind, Topology};

pub(crate) use closest::closest;
pub use export::{Exported, expanded, export};
pub use file::File;
pub use schema::schema;

use fields::Reader;
use tree::Node;

/// Looks up an environment variable.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

const KEYS: [&str; 14] = [
    "version",
    "vhost",
    "exchanges",
    "queues",
    "workers",
    "super_streams",
    "bindings",
    "policies",
    "operator_policies",
    "users",
    "permissions",
    "owns",
    "elsewhere",
    "tests",
];

/// Reads several files as one topology.
///
/// # Errors
/// Every mistake of every file, with its place.
pub fn parse(
    sources: &[Source],
    environment: Environment<'_>,
) -> Result<Topology, Vec<Diagnostic>> {
    read(sources, environment).map(|file| file.topology)
}

/// The same, with the places of what is in it.
///
/// # Errors
/// Every mistake of every file, with its place.
pub fn read(sources: &[Source], environment: Environment<'_>) -> Result<File, Vec<Diagnostic>> {
    let mut reader = Reader::default();
    let mut topology = Topology::default();
    let mut places = check::Places::default();
    let mut roots = Vec::new();
    let mut texts = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        match tree::parse(index, &source.text) {
            Err(diagnostic) => reader.report(*diagnostic),
            Ok(mut root) => {
                // What stands in the file, not what becomes of its variables.
                root.texts_with('#', &mut texts);
                variables::substitute(&mut root, environment, &mut reader);
                read_file(&root, &mut reader, &mut topology, &mut places);
                roots.push(root);
            }
        }
    }
    // Short forms come last: they give way to what any file declares itself.
    for root in &roots {
        if let Some(node) = root.entry("workers") {
            workers::read(node, &mut reader, &mut topology, &mut places);
        }
        if let Some(node) = root.entry("super_streams") {
            super_streams::read(node, &mut reader, &mut topology, &mut places);
        }
        if let Some(node) = root.entry("tests") {
            routing_tests::read(node, sources, &mut reader, &mut topology, &mut places);
        }
    }
    for (name, queue) in &mut topology.queues {
        if let Some(schemas) = &mut queue.schemas
            && let Some(place) = places.spots.object(&Subject::Queue(name.clone()))
            && let Some(source) = sources.get(place.source)
        {
            schemas.beside.clone_from(&source.name);
        }
    }
    // References are checked only in what could be read: one misspelled key
    // must not produce a second complaint about everything that needs it.
    if reader.is_clean() {
        check::references(&topology, &places, &mut reader);
    }
    let secrets = reader.finish(sources)?;
    Ok(File {
        topology,
        spots: places.spots,
        texts,
        secrets,
        sources: sources.to_vec(),
    })
}

/// What a test writes as YAML, without the line of the version.
#[cfg(test)]
pub(crate) fn parsed(yaml: &str) -> Topology {
    let source = Source {
        name: "t.yaml".to_owned(),
        text: format!("version: 1\n{yaml}"),
    };
    parse(std::slice::from_ref(&source), &|_| None)
        .unwrap_or_else(|found| panic!("{}", crate::diagnostic::render(&found, &[source])))
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
    if let Some(node) = fields.get("vhost") {
        vhost::read(node, reader, topology);
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
    for (key, kind) in PolicyKind::ALL {
        if let Some(node) = fields.get(key) {
            policies::read(kind, node, reader, topology, places);
        }
    }
    if let Some(node) = fields.get("users") {
        users::read_users(node, reader, topology);
    }
    if let Some(node) = fields.get("permissions") {
        users::read_permissions(node, reader, topology, places);
    }
    users::read_owns(fields, reader, topology);
    if let Some(node) = fields.get("elsewhere") {
        places.read_elsewhere(node, reader);
        topology.elsewhere.extend(places.elsewhere().cloned());
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
mod tests {
    use super::*;
    use crate::topology::{DeadLetterKey, DeliveryLimit, Destination, QueueName, QueueType};

    /// Whatever is read here, the schema takes too.
    fn parsed(text: &str) -> Topology {
        assert_eq!(schema::tests::complaints(text), Vec::<String>::new());
        let source = Source {
            name: "t.yaml".to_owned(),
            text: text.to_owned(),
        };
        parse(&[source], &|_| None).expect("topology")
    }

    #[test]
    fn reads_every_key_into_its_type() {
        let topology = parsed(
            "
version: 1
vhost: shop
exchanges:
  in: { type: topic, durable: false, alternate: rest }
  rest: { type: fanout, internal: true }
  plug: { type: x-random, arguments: { x-n: 1, x-on: on, x-t: true } }
queues:
  q:
    type: quorum
    delivery_limit: 7
    message_ttl: 10m
    max_length_bytes: 1MiB
    bind: [ { exchange: in, key: 'a.#', arguments: { h: [ 1, x ] } } ]
    dead_letter: { exchange: '', key: dead }
  dead:
bindings:
  - { source: in, destination: rest, destination_type: exchange, key: '#' }
",
        );
        assert_eq!(
            topology.vhost.map(|v| v.to_string()).as_deref(),
            Some("shop")
        );
        let queue = topology
            .queues
            .get(&QueueName::new("q").expect("name"))
            .expect("queue");
        assert_eq!(queue.kind, Some(QueueType::Quorum));
        assert_eq!(queue.delivery_limit, Some(DeliveryLimit::Finite(7)));
        assert_eq!(queue.max_length_bytes, Some(1 << 20));
        let dead_lettering = queue.dead_lettering.clone().expect("dead-lettering");
        assert!(dead_lettering.exchange.is_empty());
        assert!(matches!(dead_lettering.key, DeadLetterKey::Replaced(_)));
        assert_eq!(topology.bindings.len(), 2);
        assert!(
            topology
                .bindings
                .iter()
                .any(|binding| matches!(binding.destination, Destination::Exchange(_)))
        );
        // YAML 1.2: `on` is text, only true and false are booleans.
        let plug = topology
            .exchanges
            .values()
            .find(|exchange| !exchange.arguments.is_empty())
            .expect("plug");
        assert_eq!(
            crate::field::table_to_json(&plug.arguments),
            serde_json::json!({"x-n": 1, "x-on": "on", "x-t": true})
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[ -~\n\t]{0,200}") {
            let source = Source { name: "t.yaml".to_owned(), text: format!("version: 1\n{text}") };
            if let Err(diagnostics) = parse(std::slice::from_ref(&source), &|_| None) {
                proptest::prop_assert!(!crate::diagnostic::render(&diagnostics, &[source]).is_empty());
            }
        }

        #[test]
        fn names_and_keys_of_any_letters_come_back_as_they_were(name in "[a-zé日 :#'\"/*-]{1,40}") {
            let yaml = serde_yaml::to_string(&serde_json::json!({
                "version": 1, "queues": { name.clone(): { "max_length": 5 } },
            })).expect("yaml");
            let topology = parsed(&yaml);
            let read: Vec<&str> = topology.queues.keys().map(QueueName::as_str).collect();
            proptest::prop_assert_eq!(read, vec![name.as_str()]);
        }
    }
}
