//! What became of many messages that were published.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::output::one_line;

/// Most lines that are named one by one.
const NAMED: usize = 20;

/// Messages by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// What numbers count: lines, files or messages.
    pub counts: &'static str,
    /// Sent.
    pub sent: u64,
    /// The number of the last that was sent.
    pub last_sent: Option<u64>,
    /// Confirmed and in a queue.
    pub routed: u64,
    /// Confirmed, and no queue took them.
    pub unroutable: Lines,
    /// The same of earlier runs that could not tell it at their end.
    pub unroutable_before: Lines,
    /// Refused by the broker (nack, or too large).
    pub refused: Lines,
    /// No answer came: the broker may or may not have them.
    pub unknown: Lines,
    /// Sent without the `user_id` of somebody else.
    pub user_ids_dropped: u64,
    /// Sent with `CC` and `BCC` under another name.
    pub copies_dropped: u64,
    /// The signal that ended it early.
    pub stopped_by: Option<u8>,
    /// Whether it ended at a message that reached no queue, as was asked for.
    pub stopped_at_unroutable: bool,
    /// Whether it ended because the broker went on refusing a message.
    pub stopped_at_refused: bool,
}

/// Numbers of messages: all are counted, the first ones remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// How many.
    pub count: u64,
    /// The first ones.
    pub first: Vec<u64>,
}

impl Lines {
    /// One more.
    pub fn add(&mut self, number: u64) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(number);
        }
    }

    /// `line 7`, or `lines 7, 9 and 3 more`, where `counts` is `line`.
    #[must_use]
    pub fn told(&self, counts: &str) -> String {
        let named: Vec<String> = self.first.iter().map(u64::to_string).collect();
        let more = self.count - self.first.len() as u64;
        let plural = if self.count == 1 { "" } else { "s" };
        let rest = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        format!("{counts}{plural} {}{rest}", named.join(", "))
    }

    fn json(&self) -> Json {
        json!({ "count": self.count, "first_lines": self.first })
    }
}

/// One line for people; the lines that did not arrive are told as an error.
#[must_use]
pub fn published_text(file: &str, published: &Published) -> String {
    let mut text = format!(
        "routed {} of {} messages of {}",
        published.routed,
        published.sent,
        one_line(file, 300)
    );
    if published.user_ids_dropped > 0 {
        text.push_str(&format!(
            "; {} without the user_id of somebody else",
            published.user_ids_dropped
        ));
    }
    if published.copies_dropped > 0 {
        text.push_str(&format!(
            "; {} with CC and BCC renamed to mq-cc and mq-bcc, or they would have gone elsewhere too",
            published.copies_dropped
        ));
    }
    if published.stopped_by.is_some() {
        text.push_str("; stopped by a signal");
    }
    if published.stopped_at_unroutable {
        text.push_str("; stopped at the first that reached no queue");
    }
    if published.stopped_at_refused {
        text.push_str("; stopped because the broker went on refusing");
    }
    text
}

/// The same as JSON: `file`, `sent`, `last_sent` (its number), `routed`, `unroutable`, `unroutable_before`
/// (in a run before, with --resume), `refused` and `unknown` (each `count` and `first_lines`), `stopped`.
#[must_use]
pub fn published_json(file: &str, published: &Published) -> Json {
    json!({
        "file": file,
        "sent": published.sent,
        "last_sent": published.last_sent,
        "routed": published.routed,
        "unroutable": published.unroutable.json(),
        "unroutable_before": published.unroutable_before.json(),
        "refused": published.refused.json(),
        "unknown": published.unknown.json(),
        "user_ids_dropped": published.user_ids_dropped,
        "copies_dropped": published.copies_dropped,
        "stopped": published.stopped_by.is_some()
            || published.stopped_at_unroutable
            || published.stopped_at_refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_named_as_far_as_anybody_reads() {
        let mut lines = Lines::default();
        lines.add(7);
        assert_eq!(lines.told("line"), "line 7");
        lines.add(9);
        assert_eq!(lines.told("line"), "lines 7, 9");
        (10..40).for_each(|line| lines.add(line));
        assert!(
            lines.told("line").ends_with("27 and 12 more"),
            "{}",
            lines.told("line")
        );
    }
}
