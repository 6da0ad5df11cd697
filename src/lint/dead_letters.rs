//! Dead letters that reach no queue.

use crate::lint::keys::Keys;
use crate::lint::rule::{DEAD_LETTERS_LOST, DEAD_LETTERS_PARTLY_LOST, DLX_MISSING};
use crate::lint::survey::{DeadLetters, Survey};
use crate::lint::{Finding, Subject};
use crate::routing::waits;
use crate::topology::{
    DeadLetterKey, DeadLetterStrategy, DeadLettering, ExchangeName, ExchangeType, Queue, QueueName,
};

/// More keys than these are not listed.
const MOST_LISTED: usize = 5;

pub(super) fn check(survey: &Survey<'_>, findings: &mut Vec<Finding>) {
    for (name, found) in &survey.dead_letters {
        let Some((queue, dead_lettering)) = survey
            .queues
            .get(name)
            .and_then(|queue| Some((queue, queue.dead_lettering.as_ref()?)))
        else {
            continue;
        };
        if let Some(finding) = missing_exchange(survey, name, &dead_lettering.exchange) {
            findings.push(finding);
        } else if !found.unknown {
            findings.extend(lost(survey, name, queue, dead_lettering, found));
        }
    }
}

fn missing_exchange(
    survey: &Survey<'_>,
    name: &QueueName,
    exchange: &ExchangeName,
) -> Option<Finding> {
    let is_there = survey.topology.exchange(exchange).is_some()
        || survey.topology.elsewhere.contains(exchange.as_str());
    (!is_there).then(|| {
        DLX_MISSING
            .finding(
                Subject::Queue(name.clone()),
                format!(
                    "queue '{name}' dead-letters to exchange '{exchange}', which does not exist"
                ),
            )
            .at("dead_letter")
            .label("every dead letter is dropped, and no broker says so")
            .help("declare the exchange, and bind a dead-letter queue to it")
    })
}

fn lost(
    survey: &Survey<'_>,
    name: &QueueName,
    queue: &Queue,
    dead_lettering: &DeadLettering,
    found: &DeadLetters,
) -> Option<Finding> {
    if found.lost.is_empty() && found.doubtful.is_empty() {
        return None;
    }
    let exchange = &dead_lettering.exchange;
    let kept = dead_lettering.key == DeadLetterKey::Kept;
    let bound = keys_bound(survey, exchange);
    let help = way_out(kept, exchange, &bound);
    let all_are_lost = found.targets.is_empty() && found.doubtful.is_empty();
    // A wait queue that keeps keys may be meant for messages with a CC header,
    // whose other keys lead on.
    let may_have_others = kept && waits(queue) && !bound.is_empty();
    let why = why_lost(kept, exchange, found, all_are_lost);
    let finding = match why {
        Some(why) if !may_have_others => {
            let label = if queue.dead_letter_strategy == Some(DeadLetterStrategy::AtLeastOnce) {
                "those dead letters are kept in the queue for ever, unseen"
            } else {
                "those dead letters are dropped, and no broker says so"
            };
            DEAD_LETTERS_LOST
                .finding(
                    Subject::Queue(name.clone()),
                    format!("dead letters of queue '{name}' reach no queue: {why}"),
                )
                .label(label)
        }
        Some(_) | None => partly_lost(name, kept, exchange, found),
    };
    Some(finding.at("dead_letter").help(help))
}

/// Why dead letters are lost for certain: all of them, or all that came back
/// from a queue of the file with a key of their own.
fn why_lost(
    kept: bool,
    exchange: &ExchangeName,
    found: &DeadLetters,
    all_are_lost: bool,
) -> Option<String> {
    let back = found.lost.iter().find_map(|(keys, sender)| match keys {
        Keys::Exact(_) => Some((keys, sender.as_ref()?)),
        Keys::Pattern(_) | Keys::Any => None,
    });
    if let (Some((keys, sender)), true) = (back, kept) {
        let key = keys.describe();
        return Some(format!(
            "what comes back from queue '{sender}' has the key {key}, keeps it, and {}",
            led_nowhere(exchange, &key)
        ));
    }
    let (keys, _) = found.lost.first().filter(|_| all_are_lost)?;
    let key = keys.describe();
    let nowhere = led_nowhere(exchange, &key);
    Some(if kept {
        format!("they keep their key ({key}), and {nowhere}")
    } else {
        nowhere
    })
}

fn led_nowhere(exchange: &ExchangeName, key: &str) -> String {
    if exchange.is_empty() {
        format!(
            "the default exchange leads to the queue named like the key, and there is no queue {key}"
        )
    } else {
        format!("exchange '{exchange}' leads {key} to no queue")
    }
}

fn partly_lost(
    name: &QueueName,
    kept: bool,
    exchange: &ExchangeName,
    found: &DeadLetters,
) -> Finding {
    let affected: Vec<String> = found
        .lost
        .iter()
        .map(|(keys, _)| keys)
        .chain(&found.doubtful)
        .map(Keys::describe)
        .collect();
    let where_to = if exchange.is_empty() {
        "the default exchange leads only to queues named like them".to_owned()
    } else {
        format!("exchange '{exchange}' leads not all of them to a queue")
    };
    let they = if kept {
        format!("they keep their keys ({}), and", listed(&affected))
    } else {
        format!("their key is {}, and", listed(&affected))
    };
    DEAD_LETTERS_PARTLY_LOST
        .finding(
            Subject::Queue(name.clone()),
            format!("some dead letters of queue '{name}' may reach no queue: {they} {where_to}"),
        )
        .label("what is not led on is dropped, and no broker says so")
}

/// The keys that lead out of an exchange that goes by keys.
fn keys_bound(survey: &Survey<'_>, exchange: &ExchangeName) -> Vec<String> {
    let goes_by_key = survey.topology.exchange(exchange).is_some_and(|exchange| {
        matches!(exchange.kind, ExchangeType::Direct | ExchangeType::Topic)
    });
    if !goes_by_key {
        return Vec::new();
    }
    let mut keys: Vec<String> = survey
        .router
        .bindings_from(exchange)
        .iter()
        .map(|binding| binding.key.to_string())
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

fn way_out(kept: bool, exchange: &ExchangeName, bound: &[String]) -> String {
    if exchange.is_empty() {
        return "add `key: NAME` of the dead-letter queue to `dead_letter`".to_owned();
    }
    match bound {
        [] => "bind a dead-letter queue to the exchange".to_owned(),
        [only] if kept => format!("add `key: {only}` to `dead_letter`"),
        keys => {
            let quoted: Vec<String> = keys.iter().map(|key| format!("'{key}'")).collect();
            let what = if kept { "add" } else { "change" };
            format!(
                "{what} the `key` of `dead_letter`, or bind the dead-letter queue with what it has; bound there: {}",
                listed(&quoted)
            )
        }
    }
}

/// The first few.
fn listed(items: &[String]) -> String {
    let more = items.len().saturating_sub(MOST_LISTED);
    let mut text = items
        .iter()
        .take(MOST_LISTED)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
