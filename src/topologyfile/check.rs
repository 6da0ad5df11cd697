//! What can be said only once everything is read: references between objects.

use std::collections::BTreeSet;

use crate::diagnostic::{Diagnostic, Place};
use crate::retry;
use crate::routing::Router;
use crate::topology::{
    DeadLetterStrategy, ExchangeName, ExchangeType, Overflow, QueueName, QueueType, Topology,
};
use crate::topologyfile::closest;
use crate::topologyfile::fields::Reader;
use crate::topologyfile::spots::Spots;
use crate::topologyfile::tree::Node;

/// Every key of `elsewhere`.
pub(super) const ELSEWHERE_KEYS: [&str; 2] = ["exchanges", "queues"];

/// Where the file mentions names, remembered while it is read.
#[derive(Default)]
pub(super) struct Places {
    exchanges: Vec<(ExchangeName, Place, String)>,
    queues: Vec<(QueueName, Place, String)>,
    declared: Vec<(QueueName, Place)>,
    keyless: Vec<(ExchangeName, Place, String)>,
    elsewhere_exchanges: BTreeSet<String>,
    elsewhere_queues: BTreeSet<String>,
    pub(super) spots: Spots,
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
        let Some(fields) = reader.fields(node, "elsewhere", &ELSEWHERE_KEYS) else {
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

    /// All names declared elsewhere.
    pub(super) fn elsewhere(&self) -> impl Iterator<Item = &String> {
        self.elsewhere_exchanges
            .iter()
            .chain(&self.elsewhere_queues)
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
        at_least_once(topology, places, reader);
        retry_policies(topology, places, reader);
    }
}

/// At-least-once dead-lettering has conditions; where they are not met the
/// broker falls back to at-most-once and tells its log only. A queue that has
/// no dead-letter exchange has no dead letters to lose on the way.
fn at_least_once(topology: &Topology, places: &Places, reader: &mut Reader) {
    let by_policy = topology
        .policies
        .values()
        .any(|policy| policy.definition.contains_key("dead-letter-strategy"));
    for (name, place) in &places.declared {
        let own = topology.queues.get(name);
        if !by_policy && own.is_none_or(|own| own.dead_letter_strategy.is_none()) {
            continue;
        }
        let Some(queue) = topology.effective_queue(name) else {
            continue;
        };
        if queue.dead_letter_strategy != Some(DeadLetterStrategy::AtLeastOnce)
            || queue.dead_lettering.is_none()
        {
            continue;
        }
        let (lacks, help) = if queue.kind != Some(QueueType::Quorum) {
            ("`type: quorum`", "write `type: quorum`")
        } else if queue.overflow != Some(Overflow::RejectPublish) {
            (
                "`overflow: reject-publish`",
                "add `overflow: reject-publish`",
            )
        } else {
            continue;
        };
        reader.report(
            Diagnostic::new(
                "MQ113",
                place.clone(),
                format!("queue '{name}' asks for at-least-once dead-lettering without {lacks}"),
            )
            .label("the broker would dead-letter at most once, and not say so")
            .help(format!("{help}, or leave the strategy out")),
        );
    }
}

/// A `retry:` block must describe what the broker will really do.
fn retry_policies(topology: &Topology, places: &Places, reader: &mut Reader) {
    let router = Router::new(topology);
    for (name, place) in &places.declared {
        let Some(policy) = topology.queues.get(name).and_then(|q| q.retry.as_ref()) else {
            continue;
        };
        match retry::path(&router, name, policy) {
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
                            "`dlx` dead-letters into a wait queue that leads back here; the others dead-letter straight into the dead-letter queue",
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
