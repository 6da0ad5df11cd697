//! What each queue and exchange loses by itself.

use crate::lint::rule::{
    DEAD_LETTER_QUEUE_EXPIRES, DEAD_LETTERS_REFUSED, LOOKING_DESTROYS, NO_DEAD_LETTER_PATH,
    NOT_DURABLE, OVERFLOW_IGNORED, SILENT_DROP, UNBOUNDED, WAIT_QUEUE_EXPIRES,
};
use crate::lint::survey::Survey;
use crate::lint::{Finding, Subject};
use crate::routing::{Death, waits};
use crate::topology::{
    DeadLetterStrategy, DeliveryLimit, Destination, Overflow, Queue, QueueName, QueueType,
};

pub(super) fn check(survey: &Survey<'_>, findings: &mut Vec<Finding>) {
    for (name, queue) in &survey.queues {
        if queue.kind == Some(QueueType::Stream) {
            continue;
        }
        findings.extend(looking_destroys(survey, name, queue));
        findings.extend(expires(survey, name, queue));
        findings.extend(no_dead_letter_path(survey, name, queue));
        findings.extend(overflow_ignored(survey, name, queue));
        findings.extend(dead_letters_refused(survey, name, queue));
        findings.extend(silent_drop(survey, name, queue));
        findings.extend(unbounded(survey, name, queue));
        let is_dead_letter_queue = survey.is_dead_letter_queue(name, queue);
        if !queue.durable && (!queue.auto_delete || is_dead_letter_queue) {
            findings.push(
                NOT_DURABLE
                    .finding(
                        Subject::Queue((*name).clone()),
                        format!("queue '{name}' is not durable"),
                    )
                    .at("durable")
                    .label("a restart of the broker deletes it and its messages")
                    .help("leave `durable` out, or write `auto_delete: true` if it is meant to go"),
            );
        }
    }
    for (name, exchange) in &survey.topology.exchanges {
        let is_temporary = exchange.auto_delete && !survey.dead_letter_exchanges.contains(name);
        if !exchange.durable && !is_temporary {
            findings.push(
                NOT_DURABLE
                    .finding(
                        Subject::Exchange(name.clone()),
                        format!("exchange '{name}' is not durable"),
                    )
                    .at("durable")
                    .label("a restart of the broker deletes it and its bindings")
                    .help("leave `durable` out, or write `auto_delete: true` if it is meant to go"),
            );
        }
    }
}

/// Whether the name says that it is for dead letters, where the topology does not.
fn sounds_dead(name: &QueueName) -> bool {
    let name = name.as_str().to_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_alphanumeric()).collect();
    let is_one = |word: &&str| {
        [
            "dlq",
            "dead",
            "deadletter",
            "deadletters",
            "poison",
            "parking",
            "parked",
        ]
        .contains(word)
    };
    let ends = [
        "error", "errors", "failed", "failures", "skipped", "unrouted",
    ];
    words.iter().any(is_one) || words.last().is_some_and(|last| ends.contains(last))
}

fn looking_destroys(survey: &Survey<'_>, name: &QueueName, queue: &Queue) -> Option<Finding> {
    if !survey.is_dead_letter_queue(name, queue) || !survey.dies(queue, Death::DeliveryLimit) {
        return None;
    }
    let (limit, looks) = match queue.delivery_limit {
        Some(DeliveryLimit::Finite(limit)) => (
            format!("a delivery limit of {limit}"),
            limit.saturating_add(2),
        ),
        Some(DeliveryLimit::Unlimited) | None => (
            "the delivery limit of quorum queues since RabbitMQ 4.0, which is 20".to_owned(),
            22,
        ),
    };
    let finding = LOOKING_DESTROYS.finding(
        Subject::Queue(name.clone()),
        format!("dead-letter queue '{name}' has {limit}"),
    );
    Some(
        finding
            .at("delivery_limit")
            .label(format!(
                "each look through the management API counts: the one number {looks} finds the message gone (on 4.3 the second, if it came there by a delivery limit)"
            ))
            .help("write `type: classic`, or `delivery_limit: unlimited` (RabbitMQ 4.0 and newer; mq leaves it out on older ones)"),
    )
}

fn expires(survey: &Survey<'_>, name: &QueueName, queue: &Queue) -> Option<Finding> {
    let subject = Subject::Queue(name.clone());
    if waits(queue) && queue.expires.is_some() {
        let finding = WAIT_QUEUE_EXPIRES.finding(
            subject,
            format!("wait queue '{name}' has `expires`: nobody uses it, so it deletes itself"),
        );
        return Some(
            finding
                .at("expires")
                .label("what waits in it then is deleted, not dead-lettered")
                .help("leave `expires` out"),
        );
    }
    let (field, when) = if queue.expires.is_some() {
        ("expires", "when nobody uses it")
    } else if queue.auto_delete {
        ("auto_delete", "when its last consumer goes")
    } else {
        return None;
    };
    survey.is_dead_letter_queue(name, queue).then(|| {
        DEAD_LETTER_QUEUE_EXPIRES
            .finding(
                subject,
                format!("dead-letter queue '{name}' deletes itself {when}"),
            )
            .at(field)
            .label("the dead letters in it are deleted with it")
            .help(format!(
                "leave `{field}` out; `message_ttl` bounds how long each dead letter is kept"
            ))
    })
}

/// Dead letters are published without anybody to be told of a refusal, unless
/// they are dead-lettered at least once (measured on 3.10.8, 4.0.5 and 4.3.6).
fn dead_letters_refused(survey: &Survey<'_>, name: &QueueName, queue: &Queue) -> Option<Finding> {
    let refuses = matches!(
        queue.overflow,
        Some(Overflow::RejectPublish | Overflow::RejectPublishDlx)
    ) && (queue.max_length.is_some() || queue.max_length_bytes.is_some());
    let sender = survey.senders.get(name)?.iter().find(|sender| {
        let sender = survey.queues.get(**sender);
        sender.is_some_and(|sender| {
            sender.dead_letter_strategy != Some(DeadLetterStrategy::AtLeastOnce)
        })
    })?;
    refuses.then(|| {
        DEAD_LETTERS_REFUSED
            .finding(
                Subject::Queue(name.clone()),
                format!("queue '{name}' refuses what it has no room for, also the dead letters of queue '{sender}'"),
            )
            .at("overflow")
            .label("a dead letter that is refused is dropped, and nobody is told")
            .help(format!(
                "leave the length limit of '{name}' out, or let '{sender}' dead-letter with `strategy: at-least-once`"
            ))
    })
}

fn no_dead_letter_path(survey: &Survey<'_>, name: &QueueName, queue: &Queue) -> Option<Finding> {
    let is_work = queue.dead_lettering.is_none()
        && !queue.auto_delete
        && queue.expires.is_none()
        && !survey.is_dead_letter_queue(name, queue)
        && !sounds_dead(name)
        && !collects_unrouted(survey, name);
    is_work.then(|| {
        let also = if survey.dies(queue, Death::DeliveryLimit) {
            "what is rejected, or returned too often, is deleted"
        } else {
            "what is rejected is deleted"
        };
        NO_DEAD_LETTER_PATH
            .finding(
                Subject::Queue(name.clone()),
                format!("queue '{name}' has no dead-letter exchange"),
            )
            .label(also)
            .help("add `dead_letter: { exchange: NAME, key: KEY }` and a queue for dead letters, or write it as one of the `workers`")
    })
}

/// Whether everything that comes there was unroutable: the queue of an
/// alternate exchange is a resting place of its own.
fn collects_unrouted(survey: &Survey<'_>, name: &QueueName) -> bool {
    let bindings = survey.router.bindings_to(&Destination::Queue(name.clone()));
    !bindings.is_empty()
        && bindings
            .iter()
            .all(|binding| survey.alternates.contains(&binding.source))
}

fn overflow_ignored(survey: &Survey<'_>, name: &QueueName, queue: &Queue) -> Option<Finding> {
    let ignored = queue.kind == Some(QueueType::Quorum)
        && queue.overflow == Some(Overflow::RejectPublishDlx)
        && survey.topology.queues.contains_key(name);
    ignored.then(|| {
        OVERFLOW_IGNORED
            .finding(
                Subject::Queue(name.clone()),
                format!("queue '{name}' gets `reject-publish-dlx` from a policy, which quorum queues do not know"),
            )
            .at("overflow")
            .label("the broker takes it, and then drops the oldest message instead")
            .help("write `overflow: reject-publish` in the policy, or let it apply to classic queues only")
    })
}

fn silent_drop(survey: &Survey<'_>, name: &QueueName, queue: &Queue) -> Option<Finding> {
    if queue.dead_lettering.is_some() || queue.auto_delete {
        return None;
    }
    let is_dead_letter_queue = survey.is_dead_letter_queue(name, queue);
    let finite_limit = matches!(queue.delivery_limit, Some(DeliveryLimit::Finite(_)));
    let (field, what) = if survey.dies(queue, Death::Expired) {
        // How long unrouted messages are kept is a decision.
        if collects_unrouted(survey, name) {
            return None;
        }
        ("message_ttl", "messages that expire")
    } else if survey.dies(queue, Death::MaxLength) {
        let field = if queue.max_length.is_some() {
            "max_length"
        } else {
            "max_length_bytes"
        };
        (field, "the oldest messages of the full queue")
    } else if finite_limit && survey.dies(queue, Death::DeliveryLimit) {
        // On a dead-letter queue it is the looking that counts.
        if is_dead_letter_queue {
            return None;
        }
        ("delivery_limit", "messages that are returned too often")
    } else {
        return None;
    };
    let help = match field {
        "message_ttl" | "delivery_limit" => {
            "add `dead_letter: { exchange: NAME, key: KEY }`, or leave the limit out"
        }
        _ if is_dead_letter_queue || survey.senders.contains_key(name) => {
            "leave the length limit out: refusing dead letters would drop them as well"
        }
        _ => "add `overflow: reject-publish`, so that publishers are told, or `dead_letter`",
    };
    let finding = SILENT_DROP.finding(
        Subject::Queue(name.clone()),
        format!("queue '{name}' drops {what}, because it has no dead-letter exchange"),
    );
    Some(
        finding
            .at(field)
            .label("they are deleted, and no broker says so")
            .help(help),
    )
}

fn unbounded(survey: &Survey<'_>, name: &QueueName, queue: &Queue) -> Option<Finding> {
    let is_bounded = queue.max_length.is_some() || queue.max_length_bytes.is_some();
    let is_work = !waits(queue) && !survey.is_dead_letter_queue(name, queue);
    (is_work && !is_bounded).then(|| {
        UNBOUNDED
            .finding(
                Subject::Queue(name.clone()),
                format!("queue '{name}' has no length limit"),
            )
            .label("without consumers it grows until the broker stops all publishers")
            .help("add `max_length` or `max_length_bytes` with `overflow: reject-publish`")
    })
}
