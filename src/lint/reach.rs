//! Queues that no exchange leads to, and exchanges that lead to no queue.

use std::collections::{BTreeMap, BTreeSet};

use crate::lint::rule::{LEADS_NOWHERE, UNREACHABLE_QUEUE};
use crate::lint::survey::Survey;
use crate::lint::{Finding, Subject};
use crate::routing::waits;
use crate::topology::{Destination, ExchangeName, ExchangeType, QueueName, QueueType};

pub(super) fn check(survey: &Survey<'_>, findings: &mut Vec<Finding>) {
    leads_nowhere(survey, findings);
    unreachable(survey, findings);
}

/// A dead-letter exchange without a way out is told by its queues.
fn leads_nowhere(survey: &Survey<'_>, findings: &mut Vec<Finding>) {
    let leading = leading(survey);
    for (name, exchange) in &survey.topology.exchanges {
        let is_plugin = matches!(exchange.kind, ExchangeType::Plugin(_));
        if is_plugin || leading.contains(name) || survey.dead_letter_exchanges.contains(name) {
            continue;
        }
        findings.push(
            LEADS_NOWHERE
                .finding(
                    Subject::Exchange(name.clone()),
                    format!("exchange '{name}' leads to no queue"),
                )
                .label("what is published to it is dropped, unless others bind queues to it")
                .help("bind a queue to it; if its consumers bind their own, say so with `# mq: allow MQ221`"),
        );
    }
}

/// The exchanges from which some binding or alternate exchange leads to a queue,
/// or to something that is not known here.
fn leading<'t>(survey: &'t Survey<'_>) -> BTreeSet<&'t ExchangeName> {
    let mut before: BTreeMap<&ExchangeName, Vec<&ExchangeName>> = BTreeMap::new();
    let mut found: BTreeSet<&ExchangeName> = BTreeSet::new();
    let mut ahead: Vec<&ExchangeName> = Vec::new();
    for binding in &survey.topology.bindings {
        match &binding.destination {
            Destination::Queue(_) => ahead.push(&binding.source),
            Destination::Exchange(to) => {
                before.entry(to).or_default().push(&binding.source);
                if is_unknown(survey, to) {
                    ahead.push(to);
                }
            }
        }
    }
    for name in survey.topology.exchanges.keys() {
        if let Some(alternate) = survey.router.alternate(name) {
            before.entry(alternate).or_default().push(name);
            if is_unknown(survey, alternate) {
                ahead.push(alternate);
            }
        }
    }
    while let Some(name) = ahead.pop() {
        if found.insert(name) {
            ahead.extend(before.get(name).into_iter().flatten());
        }
    }
    found
}

fn is_unknown(survey: &Survey<'_>, name: &ExchangeName) -> bool {
    survey
        .topology
        .exchange(name)
        .is_none_or(|exchange| matches!(exchange.kind, ExchangeType::Plugin(_)))
}

fn unreachable(survey: &Survey<'_>, findings: &mut Vec<Finding>) {
    let entered = entered(survey);
    // Where publishers have no exchange they name the queue itself.
    let has_entrance = survey
        .topology
        .exchanges
        .keys()
        .any(|name| !survey.dead_letter_exchanges.contains(name));
    for (name, queue) in &survey.queues {
        let bindings = survey
            .router
            .bindings_to(&Destination::Queue((*name).clone()));
        let is_bound = !bindings.is_empty();
        // Workers publish straight to wait queues; exclusive consumers to their own.
        let is_private = waits(queue)
            || survey.is_sent_dead_letters(name)
            || queue.auto_delete
            || queue.kind == Some(QueueType::Stream);
        let is_reached = bindings
            .iter()
            .any(|binding| entered.contains(&binding.source));
        if is_reached || (!is_bound && (is_private || !has_entrance)) {
            continue;
        }
        let why = if is_bound {
            "only internal exchanges that nothing leads into are bound to it"
        } else {
            "nothing is bound to it"
        };
        findings.push(unreachable_queue(name, why));
    }
}

fn unreachable_queue(name: &QueueName, why: &str) -> Finding {
    UNREACHABLE_QUEUE
        .finding(
            Subject::Queue(name.clone()),
            format!("no exchange leads to queue '{name}': {why}"),
        )
        .label("only who names it through the default exchange reaches it")
        .help("add `bind: [{ exchange: NAME, key: KEY }]`")
}

/// The exchanges that messages can come into: those that are not internal, and
/// what is behind them.
fn entered<'t>(survey: &'t Survey<'_>) -> BTreeSet<&'t ExchangeName> {
    let mut found = BTreeSet::new();
    let sources = survey.topology.bindings.iter().map(|b| &b.source);
    let mut ahead: Vec<&ExchangeName> = survey
        .topology
        .exchanges
        .keys()
        .chain(sources)
        .filter(|name| {
            survey
                .topology
                .exchanges
                .get(*name)
                .is_none_or(|exchange| !exchange.internal)
        })
        .chain(&survey.dead_letter_exchanges)
        .collect();
    while let Some(name) = ahead.pop() {
        if !found.insert(name) {
            continue;
        }
        for binding in survey.router.bindings_from(name) {
            if let Destination::Exchange(next) = &binding.destination {
                ahead.push(next);
            }
        }
        ahead.extend(survey.router.alternate(name));
    }
    found
}
