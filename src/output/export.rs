//! What an export or a purge did.

use std::path::Path;

use serde_json::{Value as Json, json};

use crate::exit::Exit;
use crate::output::one_line;
use crate::topology::QueueName;

/// How many messages met which end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// Met on the way.
    pub looked_at: u64,
    /// Written out.
    pub written: u64,
    /// Taken out of the queue.
    pub removed: u64,
    /// Left in the queue because the filter said no.
    pub left_by_filter: u64,
    /// Left in the queue because they were not marked.
    pub unmarked: u64,
    /// Left in the queue because no line can hold them.
    pub unwritable: u64,
    /// Replaced by a copy at the end of the queue, because they would not have
    /// survived being put back.
    pub replaced: u64,
    /// The signal that ended it early.
    pub stopped_by: Option<u8>,
}

impl Took {
    /// Whether all that was asked for was done.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        if self.stopped_by.is_some() || self.unwritable > 0 {
            Exit::Partial
        } else {
            Exit::Done
        }
    }

    fn rest(&self) -> String {
        let mut text = String::new();
        if self.left_by_filter > 0 {
            text.push_str(&format!("; {} left by the filter", self.left_by_filter));
        }
        if self.unwritable > 0 {
            text.push_str(&format!("; {} left that no line can hold", self.unwritable));
        }
        if self.replaced > 0 {
            text.push_str(&format!(
                "; {} replaced by copies at the end of the queue, which going back would have lost",
                self.replaced
            ));
        }
        if self.stopped_by.is_some() {
            text.push_str("; stopped by a signal, the rest is in the queue as before");
        }
        text
    }
}

fn messages(count: u64) -> String {
    match count {
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    }
}

fn place(path: Option<&Path>) -> String {
    path.map_or_else(
        || "standard output".to_owned(),
        |path| one_line(&path.display().to_string(), 300),
    )
}

/// One line about an export.
#[must_use]
pub fn export_text(queue: &QueueName, took: &Took, path: Option<&Path>) -> String {
    let removed = match took.removed {
        0 => String::new(),
        count => format!(", {count} removed"),
    };
    format!(
        "mq: exported {} of queue '{}' to {}{removed}{}",
        messages(took.written),
        one_line(queue.as_str(), 255),
        place(path),
        took.rest()
    )
}

/// The same as JSON: `queue`, `exported`, `removed`, `left_by_filter`,
/// `unwritable`, `stopped`, `file`.
#[must_use]
pub fn export_json(queue: &QueueName, took: &Took, path: Option<&Path>) -> Json {
    json!({
        "queue": queue.as_str(),
        "exported": took.written,
        "removed": took.removed,
        "left_by_filter": took.left_by_filter,
        "unwritable": took.unwritable,
        "replaced": took.replaced,
        "stopped": took.stopped_by.is_some(),
        "file": path.map(|path| path.display().to_string()),
    })
}

/// One line about a purge, and how to undo it.
#[must_use]
pub fn purge_text(queue: &QueueName, took: &Took, path: Option<&Path>) -> String {
    let backup = match path {
        Some(path) => format!("; they are in {}", place(Some(path))),
        None => String::new(),
    };
    format!(
        "purged {} of queue '{}'{backup}{}",
        messages(took.removed),
        one_line(queue.as_str(), 255),
        took.rest()
    )
}

/// The same as JSON: `queue`, `purged`, `left_by_filter`, `unwritable`,
/// `stopped`, `backup`.
#[must_use]
pub fn purge_json(queue: &QueueName, took: &Took, path: Option<&Path>) -> Json {
    json!({
        "queue": queue.as_str(),
        "purged": took.removed,
        "left_by_filter": took.left_by_filter,
        "unwritable": took.unwritable,
        "stopped": took.stopped_by.is_some(),
        "backup": path.map(|path| path.display().to_string()),
    })
}
