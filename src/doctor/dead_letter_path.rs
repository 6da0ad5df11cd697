//! Dead letters: that there is a way, that it holds and where it ends.

use crate::doctor::check::{
    CYCLES, DEPRECATED, DLX, EMPTY, HAS_PATH, LIMITS, PATH, PUT_BACK, SURVIVES,
};
use crate::doctor::source::set_policy;
use crate::doctor::{NotTold, QueueSeen, Report, Status, SubjectKind, VhostContents, VhostSeen};
use crate::lint::pauseless_loops;
use crate::lint::rule::{
    CYCLE_WITHOUT_REJECTION, DEAD_LETTERS_LOST, DEAD_LETTERS_PARTLY_LOST, ENDLESS_RETRY,
    NO_DEAD_LETTER_PATH, NOT_JUDGED, OTHER_DEATH_IN_RETRY,
};
use crate::topology::{Queue, QueueName, QueueType};

pub(super) fn check(vhost: &VhostSeen, contents: &VhostContents, report: &mut Report) {
    let with =
        contents.topology.queues.values().filter(|queue| {
            queue.dead_lettering.is_some() && queue.kind != Some(QueueType::Stream)
        });
    let with = with.count();
    for rule in [DLX, PATH, CYCLES] {
        report.judged(rule, with);
    }
    policies_not_told(vhost, contents, report);
    exchanges(vhost, contents, report);
    lost(vhost, contents, report);
    overridden(vhost, contents, report);
    no_path(vhost, contents, report);
    cycles(vhost, contents, report);
}

/// Queues so new that it is not known which policies are in force for them.
fn policies_not_told(vhost: &VhostSeen, contents: &VhostContents, report: &mut Report) {
    let untold = contents.queues.values();
    let untold = untold.filter(|queue| queue.policy.is_none()).count();
    if untold > 0 {
        let why = NotTold::yet(format!(
            "the broker does not tell yet which policies are in force for {untold} queues"
        ));
        // Without them it is not known either which queues are for dead letters.
        for rule in [
            DLX, PATH, HAS_PATH, CYCLES, SURVIVES, LIMITS, PUT_BACK, EMPTY, DEPRECATED,
        ] {
            report.find(rule, vhost.not_told(&why));
        }
    }
    if contents.resting.incomplete {
        let why = NotTold {
            why: "dead letters go through an exchange whose routing is not known here (a plugin's type), or on too many ways".to_owned(),
            fix: "send one through and see where it arrives: `mq topology test --live`".to_owned(),
        };
        report.find(PATH, vhost.not_told(&why));
    }
    if contents
        .lint
        .iter()
        .any(|found| found.code == NOT_JUDGED.code)
    {
        let why = NotTold {
            why: "there is too much to judge all dead-letter paths".to_owned(),
            fix: "check parts of it on their own with `mq topology validate`".to_owned(),
        };
        for rule in [PATH, CYCLES] {
            report.find(rule, vhost.not_told(&why));
        }
    }
}

fn exchanges(vhost: &VhostSeen, contents: &VhostContents, report: &mut Report) {
    for (name, queue) in &contents.topology.queues {
        let (Some(dead_lettering), Some(seen)) = (&queue.dead_lettering, contents.queues.get(name))
        else {
            continue;
        };
        let exchange = &dead_lettering.exchange;
        let source = seen.source("dead-letter-exchange");
        let found = contents.topology.exchange(exchange);
        let (evidence, fix) = match found {
            None => (
                format!(
                    "it dead-letters to exchange '{exchange}' ({source}), which does not exist: every dead letter is dropped"
                ),
                format!("declare exchange '{exchange}' durable and bind a dead-letter queue to it"),
            ),
            Some(found) if !found.durable => (
                format!(
                    "it dead-letters to exchange '{exchange}' ({source}), which is not durable: a restart of the broker deletes it, and dead letters are dropped from then on"
                ),
                format!(
                    "delete exchange '{exchange}', declare it again as durable and bind its queues again"
                ),
            ),
            Some(found) if found.auto_delete => (
                format!(
                    "it dead-letters to exchange '{exchange}' ({source}), which deletes itself with its last binding (auto_delete)"
                ),
                format!(
                    "delete exchange '{exchange}', declare it again without auto_delete and bind its queues again"
                ),
            ),
            Some(_) => continue,
        };
        // What is gone after a restart itself loses nothing more by it.
        let is_temporary = !queue.durable && contents.topology.exchange(exchange).is_some();
        let status = if is_temporary {
            Status::Warn
        } else {
            Status::Fail
        };
        report.find(
            DLX,
            vhost.finding(status, SubjectKind::Queue, name.as_str(), evidence, fix),
        );
    }
}

fn lost(vhost: &VhostSeen, contents: &VhostContents, report: &mut Report) {
    for (rule, status) in [
        (DEAD_LETTERS_LOST, Status::Fail),
        (DEAD_LETTERS_PARTLY_LOST, Status::Warn),
    ] {
        for (name, found) in contents.linted(rule.code) {
            let Some((queue, seen)) = queue(contents, name) else {
                continue;
            };
            let exchange = queue.dead_lettering.as_ref().map(|it| it.exchange.as_str());
            let exchange = exchange.unwrap_or_default();
            let evidence = format!("{}: {}. Set {}", found.message, found.label, sources(seen));
            let fix = way_out(seen, name, exchange);
            report.find(
                PATH,
                vhost.finding(status, SubjectKind::Queue, name.as_str(), evidence, fix),
            );
        }
    }
}

/// Where exchange and key come from.
fn sources(seen: &QueueSeen) -> String {
    let exchange = seen.source("dead-letter-exchange");
    let has_key = seen.is_by_argument("dead-letter-routing-key")
        || seen
            .policy
            .as_ref()
            .is_some_and(|policy| policy.contains_key("dead-letter-routing-key"));
    if has_key {
        let key = seen.source("dead-letter-routing-key");
        format!("{exchange}, the key {key}")
    } else {
        format!("{exchange}; no dead-letter-routing-key is set, so messages keep their key")
    }
}

fn way_out(seen: &QueueSeen, name: &QueueName, exchange: &str) -> String {
    let set = if seen.is_by_argument("dead-letter-routing-key")
        || seen.is_by_argument("dead-letter-exchange")
    {
        format!(
            "arguments of a queue cannot be changed: bind with that key, or `mq topology migrate` queue '{name}'"
        )
    } else {
        "or change dead-letter-routing-key in the policy".to_owned()
    };
    if exchange.is_empty() {
        return format!("declare a queue named like the key; {set}");
    }
    format!(
        "bind the dead-letter queue to exchange '{exchange}' with the key that dead letters have; {set}"
    )
}

/// Arguments win over policies, which looks as if the policy were in force.
fn overridden(vhost: &VhostSeen, contents: &VhostContents, report: &mut Report) {
    for (name, seen) in &contents.queues {
        for setting in ["dead-letter-exchange", "dead-letter-routing-key"] {
            let Some((argument, policy)) = seen.overridden(setting) else {
                continue;
            };
            let by = seen.policy_name.as_deref().unwrap_or("?");
            report.find(
                PATH,
                vhost.finding(
                    Status::Warn,
                    SubjectKind::Queue,
                    name.as_str(),
                    format!("the policy '{by}' sets {setting} to '{policy}', but the argument x-{setting} '{argument}' wins: the policy does nothing here"),
                    format!("if the policy is meant, `mq topology migrate` queue '{name}' to one without x-{setting}; else leave the queue out of the policy's pattern"),
                ),
            );
        }
    }
}

fn no_path(vhost: &VhostSeen, contents: &VhostContents, report: &mut Report) {
    let mut in_use = 0;
    for (name, seen) in &contents.queues {
        if !is_work(contents, name, seen) {
            continue;
        }
        in_use += usize::from(seen.is_in_use() == Some(true));
    }
    report.judged(HAS_PATH, in_use);
    let mut not_counted = 0;
    for (name, found) in contents.linted(NO_DEAD_LETTER_PATH.code) {
        let Some(seen) = contents.queues.get(name) else {
            continue;
        };
        if !is_work(contents, name, seen) {
            continue;
        }
        match seen.is_in_use() {
            Some(false) => {}
            None => not_counted += 1,
            Some(true) => report.find(
                HAS_PATH,
                vhost.finding(
                    Status::Fail,
                    SubjectKind::Queue,
                    name.as_str(),
                    format!(
                        "no dead-letter exchange, neither by argument nor by policy, and in use ({} consumers, {} messages published since the broker counts, {} in it): {}",
                        seen.consumers.unwrap_or(0),
                        seen.counts.published,
                        seen.messages.unwrap_or(0),
                        found.label
                    ),
                    set_policy(vhost, name, seen, (
                        "declare a queue for dead letters, then (with its name for DEAD_LETTER_QUEUE)",
                        "dead-letters",
                        "\"dead-letter-exchange\":\"\",\"dead-letter-routing-key\":\"DEAD_LETTER_QUEUE\"",
                    )),
                ),
            ),
        }
    }
    if not_counted > 0 {
        let why = NotTold::yet(format!(
            "the broker does not tell yet whether {not_counted} queues without a dead-letter path are in use"
        ));
        report.find(HAS_PATH, vhost.not_told(&why));
    }
}

/// Whether messages are worked there that somebody would miss.
fn is_work(contents: &VhostContents, name: &QueueName, seen: &QueueSeen) -> bool {
    seen.kind != QueueType::Stream
        && !seen.auto_delete
        && !name.as_str().starts_with("amq.gen-")
        && !contents.is_dead_letter_queue(name)
}

fn cycles(vhost: &VhostSeen, contents: &VhostContents, report: &mut Report) {
    for rule in [CYCLE_WITHOUT_REJECTION, OTHER_DEATH_IN_RETRY] {
        for (name, found) in contents.linted(rule.code) {
            let source = contents
                .queues
                .get(name)
                .map(|seen| seen.source("dead-letter-exchange"));
            report.find(
                CYCLES,
                vhost.finding(
                    Status::Fail,
                    SubjectKind::Queue,
                    name.as_str(),
                    format!(
                        "{}: {}. It dead-letters {}",
                        found.message,
                        found.label,
                        source.unwrap_or_default()
                    ),
                    found.help.clone(),
                ),
            );
        }
    }
    if contents.linted(ENDLESS_RETRY.code).next().is_none() {
        return;
    }
    // A loop with a pause is a retry: its workers may well count.
    for name in pauseless_loops(&contents.topology) {
        report.find(
            CYCLES,
            vhost.finding(
                Status::Warn,
                SubjectKind::Queue,
                name.as_str(),
                format!("a message that queue '{name}' rejects comes back to it at once: one that always fails goes round for ever, as fast as it can"),
                "let dead letters end in a queue that dead-letters nowhere; retry with a pause (`mq consume --retry-strategy`)",
            ),
        );
    }
}

fn queue<'c>(contents: &'c VhostContents, name: &QueueName) -> Option<(&'c Queue, &'c QueueSeen)> {
    Some((
        contents.topology.queues.get(name)?,
        contents.queues.get(name)?,
    ))
}

impl QueueSeen {
    /// Whether somebody consumes or published there, or messages wait there, which
    /// is all that a restart of the broker leaves of it; `None`: not told yet.
    pub(super) fn is_in_use(&self) -> Option<bool> {
        if self.counts.published > 0 || self.consumers > Some(0) || self.messages > Some(0) {
            return Some(true);
        }
        (self.consumers.is_some() && self.messages.is_some()).then_some(false)
    }
}
