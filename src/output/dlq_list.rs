//! The dead-letter queues of a broker, on screen and as JSON.

use serde_json::{Value as Json, json};

use crate::lint::Feed;
use crate::management::ObservedQueue;
use crate::output::{Table, one_line};

/// One dead-letter queue.
#[derive(Clone, Debug)]
pub struct ListedQueue {
    /// Its vhost.
    pub vhost: String,
    /// Its name.
    pub queue: String,
    /// What the broker says about it.
    pub observed: ObservedQueue,
    /// What a look can do, in one word.
    pub look: &'static str,
    /// Why a look is not safe.
    pub look_why: Option<String>,
    /// How many seconds ago its first message died, if that is known.
    pub oldest_seconds: Option<u64>,
    /// The queues whose dead letters it takes.
    pub fed_by: Vec<Feed>,
}

/// A table, with a column for the vhost where there are several.
#[must_use]
pub fn dlq_list_text(queues: &[ListedQueue], with_vhost: bool) -> String {
    if queues.is_empty() {
        return "no queue takes dead letters of another one".to_owned();
    }
    let mut header = vec![
        "QUEUE",
        "TYPE",
        "READY",
        "UNACKED",
        "BYTES",
        "OLDEST",
        "CONSUMERS",
        "LOOK",
        "FED BY",
    ];
    if with_vhost {
        header.insert(0, "VHOST");
    }
    let mut table = Table::new(&header);
    for queue in queues {
        let observed = &queue.observed;
        let mut cells = vec![
            one_line(&queue.queue, 60),
            one_line(&observed.kind.to_string(), 20),
            known_count(observed.ready),
            known_count(observed.unacknowledged),
            observed.message_bytes.map_or_else(|| "?".to_owned(), bytes),
            queue.oldest_seconds.map_or_else(|| "-".to_owned(), age),
            known_count(observed.consumers),
            queue.look.to_owned(),
            fed_by(&queue.fed_by),
        ];
        if with_vhost {
            cells.insert(0, one_line(&queue.vhost, 60));
        }
        table.row(cells);
    }
    table.render()
}

/// A count that may not be known: `?` then.
#[must_use]
pub fn known_count(number: Option<u64>) -> String {
    number.map_or_else(|| "?".to_owned(), |number| number.to_string())
}

/// Who feeds a dead-letter queue, and for which reasons.
#[must_use]
pub fn fed_by(feeds: &[Feed]) -> String {
    if feeds.is_empty() {
        return "workers that park here".to_owned();
    }
    let feeds: Vec<String> = feeds
        .iter()
        .map(|feed| {
            format!(
                "{} ({})",
                one_line(feed.queue.as_str(), 60),
                reasons(feed).join(", ")
            )
        })
        .collect();
    feeds.join(", ")
}

fn reasons(feed: &Feed) -> Vec<&'static str> {
    if feed.reasons.is_empty() {
        return vec!["parked"];
    }
    feed.reasons.iter().map(|death| death.reason()).collect()
}

/// `999 B`, `1.5 KiB`, …
fn bytes(bytes: u64) -> String {
    let mut unit = (1_u64, "B");
    for larger in [
        (1 << 10, "KiB"),
        (1 << 20, "MiB"),
        (1 << 30, "GiB"),
        (1 << 40, "TiB"),
    ] {
        if bytes >= larger.0 {
            unit = larger;
        }
    }
    let (size, name) = unit;
    let whole = bytes / size;
    if size == 1 || whole >= 100 {
        return format!("{whole} {name}");
    }
    format!("{whole}.{} {name}", bytes % size * 10 / size)
}

/// The two largest units: `3d 4h`, `5m 7s`, `0s`.
#[must_use]
pub fn age(seconds: u64) -> String {
    let units = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let first = units.iter().position(|(number, _)| *number > 0);
    let Some(first) = first else {
        return "0s".to_owned();
    };
    let shown: Vec<String> = units
        .iter()
        .skip(first)
        .take(2)
        .filter(|(number, _)| *number > 0)
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect();
    shown.join(" ")
}

/// An array of `{vhost, queue, type, ready, unacknowledged, bytes,
/// oldest_seconds, consumers, look, look_why, fed_by}`; what is not known is null.
#[must_use]
pub fn dlq_list_json(queues: &[ListedQueue]) -> Json {
    let queues = queues.iter().map(listed_json);
    Json::Array(queues.collect())
}

fn listed_json(queue: &ListedQueue) -> Json {
    let observed = &queue.observed;
    let feeds = queue
        .fed_by
        .iter()
        .map(|feed| json!({ "queue": feed.queue.as_str(), "reasons": reasons(feed) }));
    json!({
        "vhost": queue.vhost,
        "queue": queue.queue,
        "type": observed.kind.to_string(),
        "ready": observed.ready,
        "unacknowledged": observed.unacknowledged,
        "bytes": observed.message_bytes,
        "oldest_seconds": queue.oldest_seconds,
        "consumers": observed.consumers,
        "look": queue.look,
        "look_why": queue.look_why,
        "fed_by": feeds.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_ages_have_readable_units() {
        for (number, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (10 * 1024 * 1024, "10.0 MiB"),
            (u64::MAX, "16777215 TiB"),
        ] {
            assert_eq!(bytes(number), shown);
        }
        for (seconds, shown) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3_661, "1h 1m"),
            (86_400 * 3 + 7, "3d"),
            (86_400 * 3 + 3_600, "3d 1h"),
        ] {
            assert_eq!(age(seconds), shown);
        }
    }
}
