//! What is written in short becomes plain objects here, before anybody else
//! sees the topology. Mistakes of theirs point at the place of the short form.

use std::collections::btree_map::Entry;

use crate::diagnostic::Diagnostic;
use crate::error::Result as MqResult;
use crate::lint::Subject;
use crate::topology::Topology;
use crate::topologyfile::check::Places;
use crate::topologyfile::fields::Reader;
use crate::topologyfile::tree::Key;

/// Adds the expansion of `what`, written at `key`; nothing declared is replaced.
pub(super) fn add(
    expanded: MqResult<Topology>,
    key: &Key,
    what: &str,
    reader: &mut Reader,
    topology: &mut Topology,
    places: &mut Places,
) {
    let expanded = match expanded {
        Ok(expanded) => expanded,
        Err(error) => {
            let message = format!("{what}: {}", error.message());
            reader.report(
                Diagnostic::new("MQ104", key.place.clone(), message)
                    .help("its parts have longer names than it has; shorten it"),
            );
            return;
        }
    };
    let mut taken = |object: String| {
        reader.report(
            Diagnostic::new(
                "MQ109",
                key.place.clone(),
                format!("{what} makes {object}, which is declared already"),
            )
            .help("rename one of the two"),
        );
    };
    for (name, exchange) in expanded.exchanges {
        match topology.exchanges.entry(name) {
            Entry::Occupied(there) => taken(format!("exchange '{}'", there.key())),
            Entry::Vacant(free) => {
                let subject = Subject::Exchange(free.key().clone());
                places.spots.add(subject, key.place.clone(), None);
                free.insert(exchange);
            }
        }
    }
    for (name, queue) in expanded.queues {
        match topology.queues.entry(name) {
            Entry::Occupied(there) => taken(format!("queue '{}'", there.key())),
            Entry::Vacant(free) => {
                places.declared(free.key(), key.place.clone());
                let subject = Subject::Queue(free.key().clone());
                places.spots.add(subject, key.place.clone(), None);
                free.insert(queue);
            }
        }
    }
    for binding in expanded.bindings {
        let subject = Subject::Binding(topology.bindings.len());
        places.spots.add(subject, key.place.clone(), None);
        topology.bindings.push(binding);
    }
}
