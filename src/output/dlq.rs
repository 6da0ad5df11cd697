//! A dead-letter queue on screen and as JSON.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use unicode_width::UnicodeWidthStr as _;

use crate::deadletter::{Group, Letter, Summary, letter_json, summarise};
use crate::management::{ObservedQueue, Peeked};
use crate::message::body_to_json;
use crate::output::dlq_full::full_letter;
use crate::output::letter::{fate, tries};
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
    /// The messages that were looked at and that the filter accepts.
    pub messages: Vec<(Peeked, Letter)>,
    /// Those that the filter does not accept; `None`: there is no filter.
    pub filtered_out: Option<usize>,
    /// Ready messages that were not looked at.
    pub not_shown: u64,
    /// Whether fewer were asked for than was wanted, because they are large.
    pub capped: bool,
    /// Messages that were replaced by a copy, because a return would have lost them.
    pub replaced: usize,
    /// Most bytes of a body to show.
    pub body_bytes: usize,
}

impl Inspection {
    fn looked_at(&self) -> usize {
        self.messages.len() + self.filtered_out.unwrap_or(0)
    }

    fn ready(&self) -> u64 {
        self.looked_at() as u64 + self.not_shown
    }

    fn summary(&self) -> Summary {
        summarise(self.messages.iter().map(|(_, letter)| letter))
    }
}

/// How much of each message is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// One line each, within so many columns, if there is a limit.
    Lines(Option<usize>),
    /// All that is known.
    Full,
}

/// Groups on top, then each message.
#[must_use]
pub fn inspection_text(inspection: &Inspection, detail: Detail) -> String {
    let mut text = format!(
        "{} in vhost '{}' ({}): {} ready",
        one_line(&inspection.queue, 255),
        one_line(&inspection.vhost, 255),
        inspection.observed.kind,
        inspection.ready()
    );
    if let Some(out) = inspection.observed.unacknowledged.filter(|out| *out > 0) {
        let _ = write!(text, ", {out} out for delivery and not shown");
    }
    let summary = inspection.summary();
    if !inspection.messages.is_empty() {
        text.push_str("\n\n");
        text.push_str(&groups(&summary));
        text.push_str("\n\n");
        text.push_str(&match detail {
            Detail::Lines(width) => letters(inspection, &summary, width),
            Detail::Full => full_letters(inspection),
        });
    }
    for note in notes(inspection) {
        text.push_str("\n\n");
        text.push_str(&note);
    }
    text
}

fn notes(inspection: &Inspection) -> Vec<String> {
    let mut notes = Vec::new();
    if inspection.filtered_out.is_some_and(|left_out| left_out > 0) {
        notes.push(format!(
            "The filter accepts {} of the {} messages that were looked at.",
            inspection.messages.len(),
            inspection.looked_at()
        ));
    }
    if inspection.not_shown > 0 {
        let more = if inspection.capped {
            "their bodies are too large to ask for more at once; `mq dlq export` has no such limit"
        } else {
            "ask for more with --limit"
        };
        notes.push(format!(
            "{} more are not shown; groups count only what is shown: {more}",
            inspection.not_shown
        ));
    }
    notes
}

/// Two lines for each group, then how often and when.
fn groups(summary: &Summary) -> String {
    let count = |group: &Group| format!("{}×", group.count);
    let widest = summary.groups.iter().map(|g| count(g).width()).max();
    let mut lines = Vec::new();
    for (at, group) in summary.groups.iter().enumerate() {
        let number = format!("group {}", at + 1);
        let count = count(group);
        let padding = " ".repeat(widest.unwrap_or(0).saturating_sub(count.width()));
        lines.push(format!(
            "{number}  {padding}{count}  {}{}, {}",
            fate(group.reason.as_deref(), group.origin.as_deref()),
            tries(group.attempts),
            span(group.first_death, group.last_death)
        ));
        if let Some(error) = &group.error {
            let indent = " ".repeat(number.len() + 4 + widest.unwrap_or(0));
            lines.push(format!("{indent}error: {}", one_line(error, 300)));
        }
    }
    lines.push(format!("attempts  {}", histogram(summary)));
    if summary.groups.len() > 1 {
        let died = span(summary.first_death, summary.last_death);
        lines.push(format!("died      {died}"));
    }
    lines.join("\n")
}

/// `1: 3×, 5: 12×, not counted: 1×`; the commonest ten.
fn histogram(summary: &Summary) -> String {
    const MOST: usize = 10;
    let mut counts: Vec<(Option<u64>, usize)> = summary
        .attempts
        .iter()
        .map(|(attempts, count)| (*attempts, *count))
        .collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let others: usize = counts.iter().skip(MOST).map(|(_, count)| count).sum();
    counts.truncate(MOST);
    counts.sort_by_key(|(attempts, _)| (attempts.is_none(), *attempts));
    let mut parts: Vec<String> = counts
        .into_iter()
        .map(|(attempts, count)| match attempts {
            None => format!("not counted: {count}×"),
            Some(attempts) => format!("{attempts}: {count}×"),
        })
        .collect();
    if others > 0 {
        parts.push(format!("others: {others}×"));
    }
    parts.join(", ")
}

/// From the first death to the last one, seconds since 1970.
#[must_use]
pub fn span(first: Option<u64>, last: Option<u64>) -> String {
    match (first, last) {
        (None, None) => "when is not known".to_owned(),
        (Some(first), Some(last)) if first != last => {
            format!("{} to {}", minute(Some(first)), minute(Some(last)))
        }
        (first, last) => minute(first.or(last)),
    }
}

/// When it died, how often it was tried, and its first routing key, of which at
/// most `most` characters are shown.
#[must_use]
pub fn letter_cells(letter: &Letter, most: usize) -> [String; 3] {
    let unknown = || "-".to_owned();
    [
        minute(letter.last_death),
        letter
            .attempts
            .map_or_else(unknown, |attempts| attempts.to_string()),
        letter
            .routing_keys
            .first()
            .map_or_else(unknown, |key| one_line(key, most)),
    ]
}

fn letters(inspection: &Inspection, summary: &Summary, width: Option<usize>) -> String {
    let rows: Vec<[String; 5]> = inspection
        .messages
        .iter()
        .zip(&summary.group_of)
        .enumerate()
        .map(|(at, ((_, letter), group))| {
            let [died, attempts, key] =
                letter_cells(letter, if width.is_some() { 20 } else { 255 });
            [
                (at + 1).to_string(),
                (group + 1).to_string(),
                died,
                attempts,
                key,
            ]
        })
        .collect();
    let header = ["#", "GROUP", "LAST DEATH", "TRIES", "KEY"];
    let used: usize = (0..header.len())
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.width()).max().unwrap_or(0);
            widest.max(header.get(column).map_or(0, |title| title.width())) + 2
        })
        .sum();
    let room = width.map(|width| width.saturating_sub(used).max(10));
    let mut table = Table::new(&["#", "GROUP", "LAST DEATH", "TRIES", "KEY", "BODY"]);
    for (row, (message, _)) in rows.into_iter().zip(&inspection.messages) {
        table.row(
            row.into_iter()
                .chain([body_line(message, inspection.body_bytes, room)]),
        );
    }
    table.render()
}

fn full_letters(inspection: &Inspection) -> String {
    let blocks: Vec<String> = inspection
        .messages
        .iter()
        .enumerate()
        .map(|(at, (message, letter))| {
            let limit = inspection.body_bytes;
            full_letter(at + 1, message, letter, limit, "more with --body-bytes")
        })
        .collect();
    blocks.join("\n\n")
}

/// A body on one line, within so many columns; its size stands in front where that is not
/// what one sees.
#[must_use]
pub fn body_line(message: &Peeked, limit: usize, room: Option<usize>) -> String {
    let json = body_to_json(&message.message.body, message.body_bytes, limit);
    let text = |name: &str| json.get(name).and_then(Json::as_str).unwrap_or_default();
    let is_binary = text("body_encoding") == "base64";
    let is_cut = json.get("body_truncated").and_then(Json::as_bool) == Some(true);
    let bytes = message.body_bytes;
    let front = match (bytes, is_binary, is_cut) {
        (0, _, _) => return "(empty)".to_owned(),
        (_, true, _) => format!("({bytes} bytes, base64) "),
        (_, false, true) => format!("({bytes} bytes) "),
        (_, false, false) => String::new(),
    };
    let room = room.map_or(usize::MAX, |room| room.saturating_sub(front.width() + 1));
    format!("{front}{}", one_line(text("body"), room.min(limit.max(1))))
}

/// A time without its seconds, for columns.
#[must_use]
fn minute(seconds: Option<u64>) -> String {
    let shown = when(seconds);
    match shown.get(..16) {
        Some(minute) if shown.ends_with('Z') => format!("{minute}Z"),
        _ => shown,
    }
}

/// The inspection as JSON: `queue`, `vhost`, `type`, counts, `groups`, `attempts`
/// and `messages`.
#[must_use]
pub fn inspection_json(inspection: &Inspection) -> Json {
    let summary = inspection.summary();
    let attempts = summary.attempts.iter();
    let attempts: Vec<Json> = attempts
        .map(|(attempts, count)| json!({ "attempts": attempts, "count": count }))
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
        "filtered_out": inspection.filtered_out,
        "not_shown": inspection.not_shown,
        "replaced": inspection.replaced,
        "first_death": summary.first_death,
        "last_death": summary.last_death,
        "attempts": attempts,
        "groups": summary.groups.iter().map(group_json).collect::<Vec<_>>(),
        "messages": messages,
    })
}

fn group_json(group: &Group) -> Json {
    json!({
        "origin": group.origin,
        "reason": group.reason,
        "error": group.error,
        "count": group.count,
        "attempts": group.attempts.map(|(least, most)| json!({"least": least, "most": most})),
        "first_death": group.first_death,
        "last_death": group.last_death,
    })
}
