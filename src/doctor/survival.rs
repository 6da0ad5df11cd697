//! What a restart, a lost node or a delivery limit would take away.

use crate::broker::BrokerFacts;
use crate::deadletter::{EffectiveLimit, PeekRisk, peek_risk};
use crate::doctor::check::{LIMITS, SURVIVES};
use crate::doctor::source::set_policy;
use crate::doctor::{
    BrokerSeen, Fix, NotTold, QueueSeen, Report, Status, SubjectKind, VhostContents, VhostSeen,
};
use crate::lint::rule::DEAD_LETTER_QUEUE_EXPIRES;
use crate::topology::{QueueName, QueueType};

pub(super) fn check(
    vhost: &VhostSeen,
    contents: &VhostContents,
    broker: &BrokerSeen,
    report: &mut Report,
) {
    let mut copies = Copies::default();
    let mut not_counted = 0;
    for (name, seen) in &contents.queues {
        let is_dead_letter_queue = contents.is_dead_letter_queue(name);
        if must_survive(contents, name, seen) {
            report.judged(SURVIVES, 1);
            if seen.durable {
                copies.judge(vhost, name, seen, broker, report);
            } else {
                not_durable(vhost, name, is_dead_letter_queue, report);
            }
        }
        if !seen.durable && seen.is_in_use().is_none() {
            not_counted += 1;
        }
        if seen.kind == QueueType::Quorum {
            report.judged(LIMITS, 1);
            if is_dead_letter_queue {
                looking(vhost, name, seen, &broker.facts, report);
            } else {
                dropped(vhost, contents, name, seen, &broker.facts, report);
            }
        }
    }
    copies.tell(vhost, broker, report);
    if not_counted > 0 {
        let why = NotTold::yet(format!(
            "the broker does not tell yet whether {not_counted} queues that are not durable are in use"
        ));
        report.find(SURVIVES, vhost.not_told(&why));
    }
    for (name, found) in contents.linted(DEAD_LETTER_QUEUE_EXPIRES.code) {
        report.find(
            SURVIVES,
            vhost.finding(
                Status::Fail,
                SubjectKind::Queue,
                name.as_str(),
                format!("{}: {}", found.message, found.label),
                found.help.clone(),
            ),
        );
    }
}

/// Dead-letter queues, and queues that are worked or were made to give up nothing.
fn must_survive(contents: &VhostContents, name: &QueueName, seen: &QueueSeen) -> bool {
    if contents.is_dead_letter_queue(name) {
        return true;
    }
    let queue = contents.topology.queues.get(name);
    let is_dead_lettered = queue.is_some_and(|queue| queue.dead_lettering.is_some());
    let is_temporary = seen.auto_delete
        || name.as_str().starts_with("amq.gen-")
        || queue.is_some_and(|queue| queue.expires.is_some());
    !is_temporary && (is_dead_lettered || seen.is_in_use() == Some(true))
}

fn not_durable(
    vhost: &VhostSeen,
    name: &QueueName,
    is_dead_letter_queue: bool,
    report: &mut Report,
) {
    let what = if is_dead_letter_queue {
        "dead-letter queue"
    } else {
        "work queue"
    };
    report.find(
        SURVIVES,
        vhost.finding(
            Status::Fail,
            SubjectKind::Queue,
            name.as_str(),
            format!("{what} '{name}' has durable: false: a restart of the broker deletes it with all its messages"),
            format!("`mq topology migrate` it to a durable queue; or declare a durable one, move the messages, and delete '{name}'"),
        ),
    );
}

impl QueueSeen {
    fn is_mirrored(&self) -> bool {
        let policy = self.policy.as_ref();
        policy.is_some_and(|policy| policy.contains_key("ha-mode"))
    }
}

/// Classic queues that cannot be judged, because the nodes are not told.
#[derive(Default)]
struct Copies {
    unknown: usize,
}

impl Copies {
    fn judge(
        &mut self,
        vhost: &VhostSeen,
        name: &QueueName,
        seen: &QueueSeen,
        broker: &BrokerSeen,
        report: &mut Report,
    ) {
        let Ok(nodes) = &broker.nodes else {
            self.unknown += usize::from(seen.kind == QueueType::Classic);
            return;
        };
        let nodes = nodes.len();
        let (evidence, fix) = match seen.kind {
            // Mirrors are copies too, where there still are any.
            QueueType::Classic if nodes > 1 && !seen.is_mirrored() => (
                format!(
                    "classic queue '{name}' has its messages on one of {nodes} nodes: while that node is down they are out of reach, and gone if its disk is"
                ),
                format!(
                    "`mq topology migrate` it to `type: quorum`, which keeps a copy on most nodes ('{name}' stays the name)"
                ),
            ),
            QueueType::Quorum if nodes > 2 && (1..3).contains(&seen.members) => (
                format!(
                    "quorum queue '{name}' has {} replicas on a cluster of {nodes} nodes: it does not survive the loss of one",
                    seen.members
                ),
                "rabbitmq-queues grow NODE all, for each node that has none of its replicas"
                    .to_owned(),
            ),
            _ => return,
        };
        report.find(
            SURVIVES,
            vhost.finding(
                Status::Warn,
                SubjectKind::Queue,
                name.as_str(),
                evidence,
                fix,
            ),
        );
    }

    fn tell(&self, vhost: &VhostSeen, broker: &BrokerSeen, report: &mut Report) {
        if let (Err(why), true) = (&broker.nodes, self.unknown > 0) {
            let why = NotTold {
                why: format!(
                    "whether {} classic queues are on the only node is not known: {}",
                    self.unknown, why.why
                ),
                fix: why.fix.clone(),
            };
            report.find(SURVIVES, vhost.not_told(&why));
        }
    }
}

/// A look at a dead-letter queue must not lose what is in it.
fn looking(
    vhost: &VhostSeen,
    name: &QueueName,
    seen: &QueueSeen,
    facts: &BrokerFacts,
    report: &mut Report,
) {
    let set = limit_source(seen);
    let (status, evidence) = match peek_risk(&seen.kind, seen.limit, facts) {
        PeekRisk::Safe | PeekRisk::Impossible => return,
        PeekRisk::UnknownLimit | PeekRisk::Unknown(_) => {
            let why = NotTold::yet(format!(
                "the broker does not tell the delivery limit of dead-letter queue '{name}' (yet)"
            ));
            report.find(LIMITS, vhost.not_told(&why));
            return;
        }
        PeekRisk::Counts { limit, looks } => (
            Status::Warn,
            format!(
                "dead-letter queue '{name}' has a delivery limit of {limit} ({set}): every look through the management API counts, and after {looks} looks the next one drops the message"
            ),
        ),
        PeekRisk::CarriedCount { limit } => (
            Status::Warn,
            format!(
                "dead-letter queue '{name}' has a delivery limit of {limit} ({set}): a message that came with a higher count is dropped when it is looked at, and every crash of a consumer counts"
            ),
        ),
        PeekRisk::LosesAtOnce { limit } => (
            Status::Fail,
            format!(
                "dead-letter queue '{name}' has a delivery limit of {limit} ({set}), which is no limit only since 4.0: here the first look or return drops the message"
            ),
        ),
    };
    let fix = no_limit(vhost, name, seen, facts, "");
    report.find(
        LIMITS,
        vhost.finding(status, SubjectKind::Queue, name.as_str(), evidence, fix),
    );
}

/// What is returned too often must go somewhere.
fn dropped(
    vhost: &VhostSeen,
    contents: &VhostContents,
    name: &QueueName,
    seen: &QueueSeen,
    facts: &BrokerFacts,
    report: &mut Report,
) {
    let queue = contents.topology.queues.get(name);
    if seen.auto_delete || queue.is_none_or(|queue| queue.dead_lettering.is_some()) {
        return;
    }
    match seen.limit {
        EffectiveLimit::None => {}
        EffectiveLimit::Unknown => {
            let why = NotTold::yet(format!(
                "the broker does not tell the delivery limit of queue '{name}' (yet), which has no dead-letter exchange"
            ));
            report.find(LIMITS, vhost.not_told(&why));
        }
        EffectiveLimit::Finite(limit) => report.find(
            LIMITS,
            vhost.finding(
                Status::Fail,
                SubjectKind::Queue,
                name.as_str(),
                format!(
                    "quorum queue '{name}' has a delivery limit of {limit} ({}) and no dead-letter exchange: what is returned more often is deleted, and nobody is told",
                    limit_source(seen)
                ),
                no_limit(vhost, name, seen, facts, "give it a dead-letter exchange; or "),
            ),
        ),
    }
}

/// How the limit goes; the smaller of argument and policy is in force.
fn no_limit(
    vhost: &VhostSeen,
    name: &QueueName,
    seen: &QueueSeen,
    facts: &BrokerFacts,
    before: &str,
) -> Fix {
    let can_be_unlimited = facts.unlimited_delivery_limit().is_some();
    if seen.is_by_argument("delivery-limit") {
        let to = if can_be_unlimited {
            "`delivery_limit: unlimited`"
        } else {
            "a queue without a delivery limit"
        };
        return Fix::from(format!(
            "{before}`mq topology migrate` '{name}' to {to}: its argument x-delivery-limit cannot be changed"
        ));
    }
    if let Some(operators) = &seen.operator_policy_name {
        return Fix::from(format!(
            "{before}take the limit out of the policies in force: the operator policy '{operators}' is one of them, and the smaller limit counts"
        ));
    }
    if !can_be_unlimited {
        return Fix::from(format!(
            "{before}take delivery-limit out of the policy '{}' and leave its other settings: here -1 is no way to say unlimited",
            seen.policy_name.as_deref().unwrap_or("?")
        ));
    }
    let before = format!("{before}to lift the limit");
    set_policy(
        vhost,
        name,
        seen,
        (&before, "unlimited", "\"delivery-limit\":-1"),
    )
}

/// Who set the limit: an argument, a policy, or nobody.
fn limit_source(seen: &QueueSeen) -> String {
    let by_policy = seen
        .policy
        .as_ref()
        .is_some_and(|policy| policy.contains_key("delivery-limit"));
    if by_policy || seen.is_by_argument("delivery-limit") {
        seen.source("delivery-limit")
    } else {
        "the default since 4.0, nobody set it".to_owned()
    }
}
