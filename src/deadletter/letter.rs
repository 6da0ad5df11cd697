//! One dead letter, read from its headers: parked by a worker, given up by another
//! tool, or dead-lettered by the broker.

use crate::deadletter::ToolTrace;
use crate::message::{Death, DeathHistory, ParkedHeaders, Properties};

/// What is known about one message of a dead-letter queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Letter {
    /// The queue it failed in, if anything tells.
    pub origin: Option<String>,
    /// `poison` or `exhausted` from a worker of ours, else the broker's reason,
    /// else another tool's.
    pub reason: Option<String>,
    /// The handler's words, if a worker of ours parked it, else another tool's.
    pub error: Option<String>,
    /// Who wrote the error: `mq`, or a tool of [`ToolTrace::tool`].
    pub tool: Option<&'static str>,
    /// Attempts that were made in the origin queue, as far as they were counted.
    pub attempts: Option<u64>,
    /// Seconds since 1970 of the first death.
    pub first_death: Option<u64>,
    /// Seconds since 1970 of the last death that has a time of its own:
    /// brokers write only the first time for each pair of queue and reason.
    pub last_death: Option<u64>,
    /// The exchange it was first published to; empty for the default one.
    pub exchange: Option<String>,
    /// The keys it was first published with.
    pub routing_keys: Vec<String>,
    /// Every death, newest first.
    pub deaths: DeathHistory,
}

impl Letter {
    /// Reads what the headers tell.
    #[must_use]
    pub fn read(properties: &Properties) -> Self {
        let headers = &properties.headers;
        let recorded = DeathHistory::from_headers(headers);
        match ParkedHeaders::from_headers(headers) {
            Some(mut parked) if recorded.deaths.is_empty() => {
                parked.deaths.malformed |= recorded.malformed;
                Self::of_parked(parked)
            }
            // A copy that died again after it was parked (expired in the
            // dead-letter queue, moved by hand) has a newer story to tell.
            Some(parked) => Self {
                tool: parked.error.as_ref().map(|_| "mq"),
                error: parked.error,
                ..Self::of_deaths(recorded)
            },
            None => match ToolTrace::read(headers) {
                Some(trace) => Self::of_deaths(recorded).told_by(trace),
                None => Self::of_deaths(recorded),
            },
        }
    }

    fn of_parked(parked: ParkedHeaders) -> Self {
        let first = first_time(&parked.deaths).or(parked.time);
        Self {
            origin: Some(parked.queue),
            reason: Some(parked.reason),
            tool: Some("mq"),
            error: parked.error,
            attempts: parked.attempts,
            first_death: first,
            last_death: parked.time.or_else(|| last_time(&parked.deaths)),
            exchange: parked.exchange,
            routing_keys: parked.routing_key.into_iter().collect(),
            deaths: parked.deaths,
        }
    }

    fn of_deaths(deaths: DeathHistory) -> Self {
        let oldest = deaths.oldest().cloned();
        let origin = oldest.as_ref().map(|death| death.queue.clone());
        let reason = deaths.newest().map(|death| death.reason.clone());
        let attempts = origin
            .as_deref()
            .map(|queue| deaths.rejected_from(queue))
            .filter(|attempts| *attempts > 0);
        Self {
            origin,
            reason,
            error: None,
            tool: None,
            attempts,
            first_death: first_time(&deaths),
            last_death: last_time(&deaths),
            exchange: oldest.as_ref().map(|death| death.exchange.clone()),
            routing_keys: oldest.map(|death| death.routing_keys).unwrap_or_default(),
            deaths,
        }
    }

    /// Adds what another tool says. It publishes what it gives up, so the
    /// broker's record may be of its delay queues: its own word on the origin
    /// goes first, unless the message died later.
    fn told_by(self, trace: ToolTrace) -> Self {
        let died_since = self.last_death > trace.time && trace.time.is_some();
        let (exchange, routing_keys) = match (trace.exchange, trace.routing_key) {
            (Some(exchange), Some(key)) if !died_since => (Some(exchange), vec![key]),
            _ => (self.exchange, self.routing_keys),
        };
        let origin = trace.origin.filter(|_| !died_since);
        Self {
            origin: origin.or(self.origin),
            reason: if died_since {
                self.reason.or(trace.reason)
            } else {
                trace.reason.or(self.reason)
            },
            error: trace.error,
            tool: Some(trace.tool),
            attempts: trace.attempts.or(self.attempts),
            first_death: self.first_death.or(trace.time),
            last_death: self.last_death.max(trace.time),
            exchange,
            routing_keys,
            deaths: self.deaths,
        }
    }
}

fn times(deaths: &DeathHistory) -> impl Iterator<Item = u64> {
    deaths.deaths.iter().filter_map(|death: &Death| death.time)
}

fn first_time(deaths: &DeathHistory) -> Option<u64> {
    times(deaths).min()
}

fn last_time(deaths: &DeathHistory) -> Option<u64> {
    times(deaths).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::table_from_json;
    use serde_json::{Value as Json, json};

    fn letter(headers: &Json) -> Letter {
        Letter::read(&Properties {
            headers: table_from_json(headers.as_object().expect("object")),
            ..Properties::default()
        })
    }

    #[test]
    fn reads_what_the_broker_wrote() {
        let letter = letter(&json!({"x-death": [
            {"queue": "work", "reason": "rejected", "count": 3, "time": 10,
             "exchange": "orders", "routing-keys": ["a", "b"]}
        ]}));
        assert_eq!(letter.origin.as_deref(), Some("work"));
        assert_eq!(letter.reason.as_deref(), Some("rejected"));
        assert_eq!(letter.attempts, Some(3));
        assert_eq!(letter.exchange.as_deref(), Some("orders"));
        assert_eq!(letter.routing_keys, ["a", "b"]);
        assert_eq!(
            (letter.first_death, letter.last_death),
            (Some(10), Some(10))
        );
    }

    #[test]
    fn reads_what_a_worker_wrote() {
        let parked = json!({
            "mq-queue": "work", "mq-error-kind": "exhausted", "mq-error-reason": "exit 1",
            "mq-attempts": 3, "mq-exchange": "orders", "mq-routing-key": "k", "mq-error-time": 50,
            "mq-deaths": [{"queue": "work", "reason": "rejected", "count": 2, "time": 10}],
        });
        let read = letter(&parked);
        assert_eq!(read.reason.as_deref(), Some("exhausted"));
        assert_eq!(read.attempts, Some(3));
        assert_eq!((read.first_death, read.last_death), (Some(10), Some(50)));

        let mut died_again = parked;
        died_again["x-death"] =
            json!([{"queue": "dlq", "reason": "expired", "count": 1, "time": 60}]);
        let read = letter(&died_again);
        assert_eq!(read.origin.as_deref(), Some("dlq"));
        assert_eq!(read.reason.as_deref(), Some("expired"));
    }

    #[test]
    fn knows_nothing_about_a_message_without_history() {
        let letter = letter(&json!({"x-death": "nonsense"}));
        assert_eq!(letter.origin, None);
        assert!(letter.deaths.malformed);
    }

    #[test]
    fn another_tools_word_is_taken_unless_the_message_died_since() {
        let mut headers = json!({
            "NServiceBus.FailedQ": "Sales", "NServiceBus.ExceptionInfo.Message": "boom",
            "NServiceBus.TimeOfFailure": "2014-11-11 02:26:58:000462 Z",
            "x-death": [{"queue": "nsb.delay-level-00", "reason": "expired", "count": 1, "time": 5,
                         "exchange": "nsb.delay-level-00"}],
        });
        let read = letter(&headers);
        assert_eq!(read.origin.as_deref(), Some("Sales"));
        assert_eq!(read.error.as_deref(), Some("boom"));
        assert_eq!(read.last_death, Some(1_415_672_818));
        headers["x-death"][0]["queue"] = json!("error");
        headers["x-death"][0]["time"] = json!(1_500_000_000);
        let read = letter(&headers);
        assert_eq!(read.origin.as_deref(), Some("error"));
        assert_eq!(read.error.as_deref(), Some("boom"));
        assert_eq!(read.tool, Some("nservicebus"));
    }
}
