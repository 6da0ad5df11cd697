//! `x-death`: what the broker wrote about a message's deaths.
//!
//! One entry for each pair of queue and reason, the newest first; the order
//! behind the head is not reliable on 3.10 (measured), so entries are found by
//! queue and reason, never by position. Decoding never fails: a client may have
//! put anything there (measured: a string passes on every version).

use crate::field::{FieldTable, FieldValue};

/// The header's name.
pub(crate) const X_DEATH: &str = "x-death";

/// Queue and reason of the first death: set once, on every version since 3.7.
const X_FIRST_DEATH: [&str; 2] = ["x-first-death-queue", "x-first-death-reason"];

/// All deaths of one queue for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// The queue it died in.
    pub queue: String,
    /// `rejected`, `expired`, `maxlen` or `delivery_limit`.
    pub reason: String,
    /// How often.
    pub count: u64,
    /// The exchange it had been published to before the first of these deaths.
    pub exchange: String,
    /// The keys it had been published with before the first of these deaths.
    pub routing_keys: Vec<String>,
    /// Seconds since 1970 of the *first* of these deaths; brokers never update it.
    pub time: Option<u64>,
}

/// The deaths of one message, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeathHistory {
    /// The entries that could be read.
    pub deaths: Vec<Death>,
    /// Whether something was there that no broker writes.
    pub malformed: bool,
    /// Queue and reason of the first death, if they are written down.
    first: Option<[String; 2]>,
}

impl DeathHistory {
    /// Reads the `x-death` header.
    #[must_use]
    pub fn from_headers(headers: &FieldTable) -> Self {
        let mut history = headers.get(X_DEATH).map_or_else(Self::default, Self::read);
        if let [Some(queue), Some(reason)] =
            X_FIRST_DEATH.map(|name| headers.get(name).and_then(FieldValue::as_text))
        {
            history.first = Some([queue.to_owned(), reason.to_owned()]);
        }
        history
    }

    /// Reads a value with the shape of `x-death`, wherever it is kept.
    #[must_use]
    pub fn read(value: &FieldValue) -> Self {
        let FieldValue::Array(entries) = value else {
            return Self {
                malformed: true,
                ..Self::default()
            };
        };
        let mut history = Self::default();
        for entry in entries {
            match read_death(entry) {
                Some(death) => history.deaths.push(death),
                None => history.malformed = true,
            }
        }
        history
    }

    /// How often the message was rejected from `queue`: its finished attempts
    /// under the `dlx` strategy, on every broker version.
    #[must_use]
    pub fn rejected_from(&self, queue: &str) -> u64 {
        self.deaths
            .iter()
            .filter(|death| death.queue == queue && death.reason == "rejected")
            .map(|death| death.count)
            .fold(0, u64::saturating_add)
    }

    /// How the message first came to `queue`: exchange and key before its first
    /// rejection there. After a retry loop the delivery itself shows the loop's
    /// exchange and key.
    #[must_use]
    pub fn first_route_to(&self, queue: &str) -> Option<(&str, &str)> {
        let first = self
            .deaths
            .iter()
            .find(|death| death.queue == queue && death.reason == "rejected")?;
        Some((&first.exchange, first.routing_keys.first()?))
    }

    /// The oldest death: where the message came from before it was ever dead-lettered.
    ///
    /// The one that `x-first-death-*` names; else by time, and by position from the
    /// end where times are equal or missing. Times are whole seconds, and on 3.10
    /// (measured) three deaths of one second stand as newest, oldest, middle: without
    /// these headers the origin would be told wrong.
    #[must_use]
    pub fn oldest(&self) -> Option<&Death> {
        let by_time = || {
            self.deaths
                .iter()
                .rev()
                .min_by_key(|death| death.time.unwrap_or(u64::MAX))
        };
        self.named_first().or_else(by_time)
    }

    fn named_first(&self) -> Option<&Death> {
        let [queue, reason] = self.first.as_ref()?;
        self.deaths
            .iter()
            .find(|death| death.queue == *queue && death.reason == *reason)
    }

    /// The deaths from the oldest to the newest, as far as it can be told: first
    /// the [`Self::oldest`], last the newest, between them by time.
    #[must_use]
    pub fn in_order(&self) -> Vec<&Death> {
        let (oldest, newest) = (self.oldest(), self.newest());
        let is_end = |death: &Death| {
            [oldest, newest]
                .into_iter()
                .flatten()
                .any(|end| std::ptr::eq(end, death))
        };
        let mut between: Vec<&Death> = self.deaths.iter().rev().filter(|d| !is_end(d)).collect();
        between.sort_by_key(|death| death.time.unwrap_or(u64::MAX));
        let last =
            newest.filter(|newest| oldest.is_some_and(|oldest| !std::ptr::eq(oldest, *newest)));
        oldest.into_iter().chain(between).chain(last).collect()
    }

    /// The newest death.
    #[must_use]
    pub fn newest(&self) -> Option<&Death> {
        self.deaths.first()
    }
}

fn read_death(entry: &FieldValue) -> Option<Death> {
    let FieldValue::Table(table) = entry else {
        return None;
    };
    let text = |name: &str| match table.get(name) {
        Some(FieldValue::LongStr(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    };
    let routing_keys = match table.get("routing-keys") {
        Some(FieldValue::Array(keys)) => keys
            .iter()
            .filter_map(|key| key.as_text().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    };
    let time = match table.get("time") {
        Some(FieldValue::Timestamp(seconds)) => Some(*seconds),
        // A message republished through the management API has a plain number.
        Some(other) => other.as_integer().and_then(|n| u64::try_from(n).ok()),
        None => None,
    };
    Some(Death {
        queue: text("queue")?,
        reason: text("reason")?,
        count: u64::try_from(table.get("count")?.as_integer()?).ok()?,
        exchange: text("exchange").unwrap_or_default(),
        routing_keys,
        time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn history(json: &serde_json::Value) -> DeathHistory {
        DeathHistory::read(&FieldValue::from_json(json))
    }

    #[test]
    fn counts_only_rejections_of_the_work_queue() {
        let history = history(&json!([
            {"queue": "wait", "reason": "expired", "count": 2, "time": 20},
            {"queue": "work", "reason": "rejected", "count": 2, "time": 10,
             "exchange": "orders", "routing-keys": ["order.created"]},
            {"queue": "other", "reason": "rejected", "count": 7, "time": 30},
            {"queue": "work", "reason": "delivery_limit", "count": 9, "time": 40},
        ]));
        assert_eq!(history.rejected_from("work"), 2);
        assert!(!history.malformed);
        assert_eq!(
            history.first_route_to("work"),
            Some(("orders", "order.created"))
        );
        assert_eq!(history.first_route_to("wait"), None);
        let oldest = history.oldest().expect("oldest");
        assert_eq!(oldest.exchange, "orders");
        assert_eq!(oldest.routing_keys, ["order.created"]);
        assert_eq!(history.newest().expect("newest").queue, "wait");
    }

    #[test]
    fn the_last_entry_is_the_oldest_when_times_are_equal() {
        let history = history(&json!([
            {"queue": "wait", "reason": "expired", "count": 1, "time": 10},
            {"queue": "work", "reason": "rejected", "count": 1, "time": 10},
        ]));
        assert_eq!(history.oldest().expect("oldest").queue, "work");
    }

    #[test]
    fn the_first_death_is_the_one_that_its_headers_name() {
        let entry =
            |queue: &str| json!({"queue": queue, "reason": "rejected", "count": 1, "time": 10});
        for (first, oldest) in [
            (json!("work"), "work"),
            // A client may have written anything.
            (json!("forged"), "late"),
            (json!(7), "late"),
        ] {
            let headers = json!({
                "x-death": [entry("full"), entry("work"), entry("late")],
                "x-first-death-queue": first,
                "x-first-death-reason": "rejected",
            });
            let headers = crate::field::table_from_json(headers.as_object().expect("object"));
            let history = DeathHistory::from_headers(&headers);
            assert_eq!(history.oldest().expect("oldest").queue, oldest, "{first}");
        }
    }

    #[test]
    fn deaths_are_told_from_the_oldest_to_the_newest() {
        let entry = |queue: &str, time: u64| json!({"queue": queue, "reason": "expired", "count": 1, "time": time});
        for (entries, expected) in [
            (vec![], vec![]),
            (vec![entry("a", 1)], vec!["a"]),
            (vec![entry("b", 2), entry("a", 1)], vec!["a", "b"]),
            // The pair that died last died first too.
            (vec![entry("a", 1), entry("b", 1)], vec!["b", "a"]),
            (vec![entry("a", 1), entry("b", 2)], vec!["a", "b"]),
            // As 3.10.8 turns the rest around.
            (
                vec![entry("d", 9), entry("b", 3), entry("c", 5), entry("a", 1)],
                vec!["a", "b", "c", "d"],
            ),
        ] {
            let history = history(&json!(entries));
            let queues: Vec<&str> = history
                .in_order()
                .iter()
                .map(|d| d.queue.as_str())
                .collect();
            assert_eq!(queues, expected);
        }
    }

    #[test]
    fn what_no_broker_writes_is_reported_and_does_no_harm() {
        for (json, readable) in [
            (json!("dead"), 0),
            (json!([1, 2]), 0),
            (
                json!([{"queue": "q", "reason": "rejected", "count": "NaN"}]),
                0,
            ),
            (
                json!([{"queue": "q", "reason": "rejected", "count": -1}]),
                0,
            ),
            (
                json!([{"queue": "q", "reason": "rejected", "count": 1}, null]),
                1,
            ),
        ] {
            let history = history(&json);
            assert!(history.malformed, "{json}");
            assert_eq!(history.deaths.len(), readable, "{json}");
        }
        assert_eq!(
            DeathHistory::from_headers(&FieldTable::new()),
            DeathHistory::default()
        );
    }
}
