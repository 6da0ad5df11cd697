//! What can be said only once everything is read: references between objects.

use std::collections::BTreeSet;

use crate::diagnostic::{Diagnostic, Place};
use crate::retry;
use crate::topology::{ExchangeName, ExchangeType, QueueName, Topology};
use crate::topologyfile::fields::{Reader, closest};
use crate::topologyfile::tree::Node;

/// Where the file mentions names, remembered while it is read.
#[derive(Default)]
pub(super) struct Places {
    exchanges: Vec<(ExchangeName, Place, String)>,
    queues: Vec<(QueueName, Place, String)>,
    declared: Vec<(QueueName, Place)>,
    keyless: Vec<(ExchangeName, Place, String)>,
    elsewhere_exchanges: BTreeSet<String>,
    elsewhere_queues: BTreeSet<String>,
}

impl Places {
    /// A mention of an exchange; `why` says which part of the file needs it.
    pub(super) fn exchange(&mut self, name: &ExchangeName, place: Place, why: String) {
        self.exchanges.push((name.clone(), place, why));
    }

    /// A mention of a queue.
    pub(super) fn queue(&mut self, name: &QueueName, place: Place, why: String) {
        self.queues.push((name.clone(), place, why));
    }

    /// The declaration of a queue.
    pub(super) fn declared(&mut self, name: &QueueName, place: Place) {
        self.declared.push((name.clone(), place));
    }

    /// The `elsewhere:` of a file: names that are used here and declared by others.
    pub(super) fn read_elsewhere(&mut self, node: &Node, reader: &mut Reader) {
        let Some(fields) = reader.fields(node, "elsewhere", &["exchanges", "queues"]) else {
            return;
        };
        if let Some(node) = fields.get("exchanges") {
            let names = reader.texts(node, "`exchanges` of elsewhere");
            self.elsewhere_exchanges.extend(names);
        }
        if let Some(node) = fields.get("queues") {
            let names = reader.texts(node, "`queues` of elsewhere");
            self.elsewhere_queues.extend(names);
        }
    }

    /// A binding without `key`.
    pub(super) fn keyless(&mut self, source: &ExchangeName, place: Place, what: &str) {
        self.keyless.push((source.clone(), place, what.to_owned()));
    }
}

/// Every name that is mentioned must be declared in the same files.
pub(super) fn references(topology: &Topology, places: &Places, reader: &mut Reader) {
    for (name, place, why) in &places.exchanges {
        if topology.exchange(name).is_none() && !places.elsewhere_exchanges.contains(name.as_str())
        {
            let declared = topology.exchanges.keys().map(ExchangeName::as_str);
            reader.report(undeclared(
                "exchange",
                name.as_str(),
                place,
                why,
                closest(name.as_str(), declared),
            ));
        }
    }
    for (name, place, why) in &places.queues {
        if !topology.queues.contains_key(name) && !places.elsewhere_queues.contains(name.as_str()) {
            let declared = topology.queues.keys().map(QueueName::as_str);
            reader.report(undeclared(
                "queue",
                name.as_str(),
                place,
                why,
                closest(name.as_str(), declared),
            ));
        }
    }
    for (source, place, what) in &places.keyless {
        let needs_key = topology.exchange(source).is_some_and(|exchange| {
            matches!(exchange.kind, ExchangeType::Direct | ExchangeType::Topic)
        });
        if needs_key {
            reader.report(
                Diagnostic::new(
                    "MQ107",
                    place.clone(),
                    format!("{what} has no `key`, and exchange '{source}' routes by key"),
                )
                .help("add `key: NAME`; the empty key is written as `key: \"\"`"),
            );
        }
    }
    if reader.is_clean() {
        retry_policies(topology, places, reader);
    }
}

/// A `retry:` block must describe what the broker will really do.
fn retry_policies(topology: &Topology, places: &Places, reader: &mut Reader) {
    for (name, place) in &places.declared {
        let Some(policy) = topology.queues.get(name).and_then(|q| q.retry.as_ref()) else {
            continue;
        };
        match retry::path(topology, name, policy.dead_letter_queue.as_ref()) {
            Err(problem) => reader.report(
                Diagnostic::new(
                    "MQ112",
                    place.clone(),
                    format!("queue '{name}' has a `retry` that cannot work: {problem}"),
                )
                .help(problem.way_out()),
            ),
            Ok(path) => {
                if let Some(wanted) = policy.strategy
                    && wanted != path.strategy
                {
                    reader.report(
                        Diagnostic::new(
                            "MQ112",
                            place.clone(),
                            format!(
                                "queue '{name}' asks for the strategy `{wanted}`, but its dead letters make it `{}`",
                                path.strategy
                            ),
                        )
                        .help(
                            "`dlx` dead-letters into a wait queue that leads back here; `immediate` dead-letters straight into the dead-letter queue",
                        ),
                    );
                }
            }
        }
    }
}

fn undeclared(kind: &str, name: &str, place: &Place, why: &str, near: Option<&str>) -> Diagnostic {
    Diagnostic::new(
        "MQ106",
        place.clone(),
        format!("{kind} '{name}' is not declared: {why}"),
    )
    .label("not declared")
    .help(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "declare it in this file, pass the file that declares the {kind} too, or list it under `elsewhere: {{ {kind}s: [NAME] }}` if others declare it"
        ),
    })
}
