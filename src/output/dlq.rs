//! A dead-letter queue on screen and as JSON.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use crate::deadletter::{Letter, letter_json, summarise};
use crate::management::{ObservedQueue, Peeked};
use crate::message::body_to_json;
use crate::output::{Table, one_line, when};

/// Everything one look at a queue told.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The queue's name.
    pub queue: String,
    /// Its vhost.
    pub vhost: String,
    /// What the broker says about it.
    pub observed: ObservedQueue,
    /// What a look can do, in one word.
    pub look: &'static str,
    /// The messages that were looked at.
    pub messages: Vec<(Peeked, Letter)>,
    /// Ready messages that were not.
    pub not_shown: u64,
    /// Most bytes of a body to show.
    pub body_bytes: usize,
}

impl Inspection {
    fn ready(&self) -> u64 {
        self.messages.len() as u64 + self.not_shown
    }
}

/// Groups on top, then one line for each message.
#[must_use]
pub fn inspection_text(inspection: &Inspection) -> String {
    let mut text = format!(
        "{} in vhost '{}' ({}): {} ready",
        inspection.queue,
        inspection.vhost,
        inspection.observed.kind,
        inspection.ready()
    );
    if let Some(out) = inspection.observed.unacknowledged.filter(|out| *out > 0) {
        let _ = write!(text, ", {out} out for delivery and not shown");
    }
    if inspection.messages.is_empty() {
        return text;
    }
    text.push_str("\n\n");
    text.push_str(&groups(inspection));
    text.push_str("\n\n");
    text.push_str(&letters(inspection));
    if inspection.not_shown > 0 {
        let _ = write!(
            text,
            "\n\n{} more are not shown; groups count only what is shown. Ask for more with --limit",
            inspection.not_shown
        );
    }
    text
}

fn groups(inspection: &Inspection) -> String {
    let mut table = Table::new(&[
        "ORIGIN",
        "REASON",
        "COUNT",
        "ATTEMPTS",
        "FIRST DEATH",
        "LAST DEATH",
    ]);
    for group in summarise(inspection.messages.iter().map(|(_, letter)| letter)) {
        table.row([
            cell(group.origin.as_deref()),
            cell(group.reason.as_deref()),
            group.count.to_string(),
            match group.attempts {
                None => "-".to_owned(),
                Some((least, most)) if least == most => least.to_string(),
                Some((least, most)) => format!("{least}–{most}"),
            },
            minute(group.first_death),
            minute(group.last_death),
        ]);
    }
    table.render()
}

/// A few lines for each message: they fit a terminal of 80 columns, which a
/// table of nine columns does not.
fn letters(inspection: &Inspection) -> String {
    let blocks: Vec<String> = inspection
        .messages
        .iter()
        .enumerate()
        .map(|(at, (message, letter))| {
            let mut lines = vec![format!("#{} {}", at + 1, what_happened(letter))];
            lines.push(came_by(letter));
            if let Some(error) = &letter.error {
                lines.push(format!("error: {}", one_line(error, 300)));
            }
            lines.push(body(message, inspection.body_bytes));
            lines.join("\n   ")
        })
        .collect();
    blocks.join("\n")
}

fn what_happened(letter: &Letter) -> String {
    let attempts = match letter.attempts {
        None => String::new(),
        Some(1) => " after 1 attempt".to_owned(),
        Some(attempts) => format!(" after {attempts} attempts"),
    };
    format!(
        "{} in {}{attempts}, {}",
        letter.reason.as_deref().map_or_else(
            || "dead for no known reason".to_owned(),
            |reason| one_line(reason, 60)
        ),
        cell(letter.origin.as_deref()),
        when(letter.last_death)
    )
}

fn came_by(letter: &Letter) -> String {
    let exchange = match letter.exchange.as_deref() {
        Some("") => "the default exchange".to_owned(),
        exchange => format!("exchange {}", cell(exchange)),
    };
    let keys: Vec<String> = letter
        .routing_keys
        .iter()
        .map(|key| one_line(key, 120))
        .collect();
    format!("published to {exchange} with key {}", keys.join(", "))
}

fn body(message: &Peeked, limit: usize) -> String {
    let json = body_to_json(&message.message.body, message.body_bytes, limit);
    let text = |name: &str| json.get(name).and_then(Json::as_str).unwrap_or_default();
    let encoding = match text("body_encoding") {
        "base64" => ", base64",
        _ => "",
    };
    let shown = one_line(text("body"), limit.max(1));
    format!("body ({} bytes{encoding}): {shown}", message.body_bytes)
}

/// A time without its seconds, for columns.
fn minute(seconds: Option<u64>) -> String {
    let shown = when(seconds);
    match shown.get(..16) {
        Some(minute) if shown.ends_with('Z') => format!("{minute}Z"),
        _ => shown,
    }
}

fn cell(text: Option<&str>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| one_line(text, 60))
}

/// The inspection as JSON: `queue`, `vhost`, `type`, counts, `groups` and `messages`.
#[must_use]
pub fn inspection_json(inspection: &Inspection) -> Json {
    let groups: Vec<Json> = summarise(inspection.messages.iter().map(|(_, letter)| letter))
        .into_iter()
        .map(|group| {
            json!({
                "origin": group.origin,
                "reason": group.reason,
                "count": group.count,
                "attempts": group.attempts.map(|(least, most)| json!({"least": least, "most": most})),
                "first_death": group.first_death,
                "last_death": group.last_death,
            })
        })
        .collect();
    let messages: Vec<Json> = inspection
        .messages
        .iter()
        .map(|(message, letter)| {
            letter_json(
                &message.message,
                letter,
                message.body_bytes,
                inspection.body_bytes,
            )
        })
        .collect();
    json!({
        "queue": inspection.queue,
        "vhost": inspection.vhost,
        "type": inspection.observed.kind.to_string(),
        "look": inspection.look,
        "ready": inspection.ready(),
        "unacknowledged": inspection.observed.unacknowledged,
        "shown": inspection.messages.len(),
        "not_shown": inspection.not_shown,
        "groups": groups,
        "messages": messages,
    })
}
