//! Dead letters that were sent back, for people and for scripts.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use crate::deadletter::{Aim, ComingBack, Letter, ReplayReport, Stay};
use crate::message::{Delivery, body_to_json};
use crate::output::letter::what_happened;
use crate::output::route::names;
use crate::output::{Table, one_line};
use crate::topology::{QueueName, VhostName};

/// The longest line, in characters.
const LINE: usize = 2_000;

/// Bytes of a body that a question shows.
const BODY: usize = 1_000;

/// Aims shown at most.
const MOST_AIMS: usize = 20;

/// How messages in a queue would come back.
type Back<'a> = &'a dyn Fn(&QueueName) -> ComingBack;

/// What was done, where to, and what stays why.
#[must_use]
pub fn replay_text(
    queue: &QueueName,
    report: &ReplayReport,
    dry_run: bool,
    back: Back<'_>,
) -> String {
    let done = if dry_run {
        "would be sent back"
    } else {
        "sent back"
    };
    let mut text = one_line(
        &format!(
            "{queue}: {} of {} {done}",
            report.moved,
            count(report.ready, "message")
        ),
        LINE,
    );
    if !report.aims.is_empty() {
        text.push('\n');
        text.push_str(&aims(report, back));
    }
    if report.other_aims > 0 {
        let _ = write!(text, "\n{} more to other places", report.other_aims);
    }
    let told = report.stays.values();
    for (number, stay) in told.filter(|(_, stay)| *stay != Stay::Unmarked) {
        let line = format!("{number} stay: {}", stay.why());
        let _ = write!(text, "\n{}", one_line(&line, LINE));
    }
    if report.replaced > 0 {
        let _ = write!(
            text,
            "\n{} of those that stay were replaced by a copy at the end of the queue: going back would have lost them",
            report.replaced
        );
    }
    if report.open > 0 {
        let _ = write!(
            text,
            "\n{} may be both here and where they were sent: their outcome is not known",
            report.open
        );
    }
    if report.met_its_own {
        text.push_str(
            "\nstopped: a message that this run had sent back is here again; it fails at once",
        );
    }
    if report.interrupted {
        text.push_str("\nstopped on request; run it again to go on");
    }
    text
}

fn aims(report: &ReplayReport, back: Back<'_>) -> String {
    let mut table = Table::new(&[
        "COUNT",
        "FAILED IN",
        "EXCHANGE",
        "KEY",
        "LANDS IN",
        "COMES BACK",
    ]);
    let mut aims: Vec<(&Aim, &u64)> = report.aims.iter().collect();
    aims.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (aim, count) in aims.iter().take(MOST_AIMS) {
        table.row([
            count.to_string(),
            aim.origin.as_ref().map_or_else(|| "-".to_owned(), cell),
            if aim.exchange.is_empty() {
                "(default)".to_owned()
            } else {
                cell(&aim.exchange)
            },
            cell(&aim.key),
            lands(aim),
            comes_back(aim, back).to_owned(),
        ]);
    }
    let mut text = table.render();
    if aims.len() > MOST_AIMS {
        let _ = write!(
            text,
            "\n{} more places are not shown",
            aims.len() - MOST_AIMS
        );
    }
    text
}

fn lands(aim: &Aim) -> String {
    let mut places: Vec<String> = aim.lands.iter().map(cell).collect();
    let unknown = aim.unknown.iter();
    places.extend(unknown.map(|exchange| format!("? behind {}", cell(exchange))));
    if places.is_empty() {
        "no queue".to_owned()
    } else {
        places.join(", ")
    }
}

fn comes_back(aim: &Aim, back: Back<'_>) -> &'static str {
    match aim.lands.iter().map(back).min() {
        Some(ComingBack::Unconsumed) => "unless consumed",
        Some(ComingBack::Failed) => "if it fails",
        Some(ComingBack::Not) => "no",
        None => "-",
    }
}

fn cell(text: &impl ToString) -> String {
    one_line(&text.to_string(), 60)
}

fn count(number: u64, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}

/// The same as JSON: `queue`, `vhost`, `dry_run`, `ready`, `looked_at`, `moved`,
/// `moved_to` (`count`, `origin`, `exchange`, `routing_key`, `queues`,
/// `unknown_exchanges`, `comes_back`), `moved_elsewhere`, `stayed` (a count for
/// each reason), `replaced`, `open`, `met_its_own` and `interrupted`.
#[must_use]
pub fn replay_json(
    vhost: &VhostName,
    queue: &QueueName,
    report: &ReplayReport,
    dry_run: bool,
    back: Back<'_>,
) -> Json {
    let aims = report.aims.iter().map(|(aim, count)| {
        let comes_back = aim.lands.iter().map(back).min();
        json!({
            "count": count,
            "origin": aim.origin.as_ref().map(QueueName::as_str),
            "exchange": aim.exchange.as_str(),
            "routing_key": aim.key.as_str(),
            "queues": aim.lands.iter().map(QueueName::as_str).collect::<Vec<_>>(),
            "unknown_exchanges": names(aim.unknown.iter().map(|name| name.as_str().to_owned())),
            "comes_back": comes_back.map(ComingBack::word),
        })
    });
    let stayed = report.stays.iter();
    let stayed = stayed.map(|(word, (count, _))| ((*word).to_owned(), json!(count)));
    json!({
        "queue": queue.as_str(),
        "vhost": vhost.as_str(),
        "dry_run": dry_run,
        "ready": report.ready,
        "looked_at": report.looked_at,
        "moved": report.moved,
        "moved_to": aims.collect::<Vec<_>>(),
        "moved_elsewhere": report.other_aims,
        "stayed": stayed.collect::<serde_json::Map<_, _>>(),
        "replaced": report.replaced,
        "open": report.open,
        "met_its_own": report.met_its_own,
        "interrupted": report.interrupted,
    })
}

/// A message that a person is asked about.
#[must_use]
pub fn question_text(
    number: u64,
    delivery: &Delivery,
    letter: &Letter,
    aim: &Aim,
    body: &[u8],
) -> String {
    let mut lines = vec![format!("#{number} {}", what_happened(letter))];
    if let Some(error) = &letter.error {
        lines.push(format!("error: {error}"));
    }
    if let Some(id) = &delivery.properties.message_id {
        lines.push(format!("message id: {id}"));
    }
    let shown = body_to_json(body, body.len(), BODY);
    let text = shown.get("body").and_then(Json::as_str).unwrap_or_default();
    lines.push(format!("body ({} bytes): {text}", body.len()));
    let exchange = if aim.exchange.is_empty() {
        "the default exchange".to_owned()
    } else {
        format!("exchange '{}'", aim.exchange)
    };
    lines.push(format!(
        "goes to {exchange} with key '{}': {}",
        aim.key,
        lands(aim)
    ));
    let lines = lines.iter().map(|line| one_line(line, LINE));
    lines.collect::<Vec<_>>().join("\n   ")
}
