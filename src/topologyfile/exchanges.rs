//! The `exchanges:` of a file.

use crate::diagnostic::Diagnostic;
use crate::field::FieldTable;
use crate::lint::Subject;
use crate::topology::{Exchange, ExchangeName, ExchangeType, Topology};
use crate::topologyfile::check::Places;
use crate::topologyfile::closest;
use crate::topologyfile::fields::Reader;
use crate::topologyfile::tree::{Key, Node};

/// Every key an exchange can have.
pub(super) const KEYS: [&str; 6] = [
    "type",
    "durable",
    "auto_delete",
    "internal",
    "alternate",
    "arguments",
];

/// The types that need no plugin.
pub(super) const BUILT_IN: [&str; 4] = ["direct", "topic", "fanout", "headers"];

/// The raw argument that has a typed key of its own.
pub(super) const ALTERNATE: &str = "alternate-exchange";

pub(super) fn read(node: &Node, reader: &mut Reader, topology: &mut Topology, places: &mut Places) {
    for (key, value) in reader.entries(node, "exchanges") {
        let Some(name) = reader.key_name(key, ExchangeName::new) else {
            continue;
        };
        let Some(exchange) = read_one(key, value, reader, &name, places) else {
            continue;
        };
        if name.is_empty() || name.is_reserved() {
            reader.report(
                Diagnostic::new(
                    "MQ105",
                    key.place.clone(),
                    format!("exchange '{name}' belongs to the broker"),
                )
                .label("names that are empty or begin with `amq.` are reserved")
                .help("use another name; bindings may name amq.topic and the like without declaring them"),
            );
        } else if topology.exchanges.insert(name.clone(), exchange).is_some() {
            reader.declared_twice(key, &format!("exchange '{name}'"));
        }
    }
}

fn read_one(
    key: &Key,
    node: &Node,
    reader: &mut Reader,
    name: &ExchangeName,
    places: &mut Places,
) -> Option<Exchange> {
    let what = format!("exchange '{name}'");
    let fields = reader.fields(node, &what, &KEYS)?;
    let subject = Subject::Exchange(name.clone());
    places.spots.add(subject, key.place.clone(), Some(fields));
    let of = |field: &str| format!("`{field}` of {what}");
    let kind = match fields.get("type") {
        Some(node) => {
            let text = reader.text(node, &of("type"))?;
            let kind = ExchangeType::from_name(text);
            // Plugin types have names of their own; a near miss is a slip.
            if matches!(kind, ExchangeType::Plugin(_))
                && let Some(near) = closest(text, BUILT_IN.into_iter())
            {
                reader.report(
                    Diagnostic::new(
                        "MQ103",
                        node.place(),
                        format!("{} cannot be '{text}'", of("type")),
                    )
                    .label("neither a type of RabbitMQ nor like one of a plugin")
                    .help(format!("did you mean `{near}`?")),
                );
                return None;
            }
            kind
        }
        None => {
            reader.report(
                Diagnostic::new("MQ107", key.place.clone(), format!("{what} has no `type`"))
                    .help("write `type: direct`, topic, fanout, headers, or a plugin's type"),
            );
            return None;
        }
    };
    let mut flag = |field: &str, default: bool| {
        fields
            .get(field)
            .and_then(|node| reader.boolean(node, &of(field)))
            .unwrap_or(default)
    };
    let durable = flag("durable", true);
    let auto_delete = flag("auto_delete", false);
    let internal = flag("internal", false);
    let alternate = fields.get("alternate").and_then(|node| {
        let alternate = reader.name(node, &of("alternate"), ExchangeName::new)?;
        places.exchange(
            &alternate,
            node.place(),
            format!("{what} names it as `alternate`"),
        );
        Some(alternate)
    });
    let arguments = fields
        .get("arguments")
        .map_or_else(FieldTable::new, |node| {
            let arguments = reader.table(node, &of("arguments"));
            if arguments.contains_key(ALTERNATE) {
                reader.report(
                    Diagnostic::new(
                        "MQ110",
                        node.place(),
                        format!("{what} sets {ALTERNATE} as a raw argument"),
                    )
                    .help("write it as `alternate: NAME`, so that it can be checked"),
                );
            }
            arguments
        });
    Some(Exchange {
        kind,
        durable,
        auto_delete,
        internal,
        alternate,
        arguments,
    })
}
