//! Copies that a worker publishes past the wait queue, and what they tell.
//!
//! A parked copy keeps the body byte for byte and every property that does not
//! make the broker act. The broker's own records (`x-death` and the like) move
//! under `mq-` names: readable for people and `mq dlq`, but counted by no tool
//! that later moves the message back (a copied `x-death` continues to count on
//! 3.x and is visible, stale, on every version: measured).

use crate::field::{FieldTable, FieldValue};
use crate::message::death::X_DEATH;
use crate::message::{DeathHistory, Delivery, DeliveryMode, Properties, Publication};
use crate::retry::{BuryReason, DeadLetterAddress, Trace, Waiting};
use crate::topology::QueueName;

const DEATHS: &str = "mq-deaths";
const KIND: &str = "mq-error-kind";
const REASON: &str = "mq-error-reason";
const LAYER: &str = "mq-error-layer";
const END: &str = "mq-error-exit";
const STDERR: &str = "mq-error-stderr";
const WORKER: &str = "mq-error-worker";
const TIME: &str = "mq-error-time";
const ATTEMPTS: &str = "mq-attempts";
const QUEUE: &str = "mq-queue";
const EXCHANGE: &str = "mq-exchange";
const ROUTING_KEY: &str = "mq-routing-key";
const EXPIRATION: &str = "mq-expiration";
const ATTEMPT: &str = "mq-attempt";

/// Headers of the broker that must not travel with a copy.
const BROKER_HEADERS: [&str; 11] = [
    X_DEATH,
    "x-first-death-queue",
    "x-first-death-reason",
    "x-first-death-exchange",
    "x-last-death-queue",
    "x-last-death-reason",
    "x-last-death-exchange",
    "x-delivery-count",
    "x-acquired-count",
    "CC",
    "BCC",
];

/// Properties that are larger than this do not fit a frame of 128 KiB: brokers
/// break the connection off (measured: 131,064 bytes).
const FIT_A_FRAME: usize = 131_000;

/// What is left out first of a copy that would not fit a frame.
const DISPENSABLE: [&str; 12] = [
    STDERR,
    DEATHS,
    WORKER,
    END,
    LAYER,
    TIME,
    EXCHANGE,
    ROUTING_KEY,
    REASON,
    ATTEMPTS,
    QUEUE,
    KIND,
];

/// The longest error text kept in a header, in bytes: headers share one frame.
const MAX_ERROR_BYTES: usize = 1024;

/// How much of the end of standard error is kept, in bytes.
const MAX_STDERR_BYTES: usize = 2048;

/// Why and from where a message is parked.
#[derive(Clone, Debug)]
pub struct Parking<'a> {
    /// The work queue.
    pub queue: &'a QueueName,
    /// Poison or exhausted, with the handler's words.
    pub reason: &'a BuryReason,
    /// How the handler ended.
    pub trace: &'a Trace,
    /// The attempt that was the last one.
    pub attempt: u32,
    /// Host and process of the worker.
    pub worker: &'a str,
    /// Seconds since 1970.
    pub now: u64,
}

/// The copy to publish to the dead-letter queue at `address`.
#[must_use]
pub fn park(
    delivery: &Delivery,
    address: &DeadLetterAddress,
    parking: &Parking<'_>,
) -> Publication {
    let mut properties = without_broker_headers(&delivery.properties);
    let headers = &mut properties.headers;
    if let Some(deaths @ FieldValue::Array(_)) = delivery.properties.headers.get(X_DEATH) {
        headers.insert(DEATHS.to_owned(), deaths.clone());
    }
    if let Some(expiration) = properties.expiration.take() {
        // Left in place it would delete the message from its resting place.
        headers.insert(EXPIRATION.to_owned(), FieldValue::text(expiration));
    }
    let (exchange, routing_key) = original_route(delivery);
    // Moved back by hand it shall have all its attempts again.
    headers.remove(ATTEMPT);
    for (name, value) in [
        (KIND, FieldValue::text(parking.reason.word())),
        (
            REASON,
            FieldValue::text(shorten(parking.reason.why(), MAX_ERROR_BYTES)),
        ),
        (LAYER, FieldValue::text(parking.reason.layer())),
        (WORKER, FieldValue::text(parking.worker)),
        (ATTEMPTS, FieldValue::I64(parking.attempt.into())),
        (QUEUE, FieldValue::text(parking.queue.as_str())),
        (EXCHANGE, FieldValue::text(exchange)),
        (ROUTING_KEY, FieldValue::text(routing_key)),
        (TIME, FieldValue::Timestamp(parking.now)),
    ] {
        headers.insert(name.to_owned(), value);
    }
    let trace = parking.trace;
    for (name, value) in [
        (END, trace.end.as_deref()),
        (
            STDERR,
            trace
                .stderr
                .as_deref()
                .map(|text| end_of(text, MAX_STDERR_BYTES)),
        ),
    ] {
        // What an earlier death left there is not of this one.
        headers.remove(name);
        if let Some(value) = value {
            headers.insert(name.to_owned(), FieldValue::text(value));
        }
    }
    properties.delivery_mode = Some(DeliveryMode::Persistent);
    fit_a_frame(&mut properties);
    Publication {
        exchange: address.exchange.clone(),
        routing_key: address.key.clone(),
        properties,
        body: delivery.body.clone(),
    }
}

/// The copy to publish in place of a nack that could lose the message: the same
/// message without the broker's records, and with the number of the attempt
/// that failed, which those records can no longer tell. `changed` is its body
/// from now on, where the handler gave one.
#[must_use]
pub fn retry_copy(
    delivery: &Delivery,
    waiting: &Waiting,
    attempt: u32,
    changed: Option<Vec<u8>>,
) -> Publication {
    let mut properties = without_broker_headers(&delivery.properties);
    let headers = &mut properties.headers;
    // As when the broker dead-letters it: it waits as long as the wait queue says.
    if let Some(expiration) = properties.expiration.take() {
        headers.insert(EXPIRATION.to_owned(), FieldValue::text(expiration));
    }
    properties.expiration = waiting
        .expiration
        .map(|expiration| expiration.as_millis().to_string());
    let headers = &mut properties.headers;
    let (exchange, routing_key) = original_route(delivery);
    for (name, value) in [
        (ATTEMPT, FieldValue::I64(attempt.into())),
        (EXCHANGE, FieldValue::text(exchange)),
        (ROUTING_KEY, FieldValue::text(routing_key)),
    ] {
        headers.insert(name.to_owned(), value);
    }
    properties.delivery_mode = Some(DeliveryMode::Persistent);
    fit_a_frame(&mut properties);
    Publication {
        exchange: waiting.address.exchange.clone(),
        routing_key: waiting.address.key.clone(),
        properties,
        body: changed.unwrap_or_else(|| delivery.body.clone()),
    }
}

/// Attempts that a retry copy says were made.
#[must_use]
pub fn copied_attempts(headers: &FieldTable) -> u64 {
    headers
        .get(ATTEMPT)
        .and_then(FieldValue::as_integer)
        .and_then(|attempt| u64::try_from(attempt).ok())
        .unwrap_or(0)
}

/// Exchange and key by which a message first came to `queue`, however it was
/// retried since: the same on every attempt.
#[must_use]
pub fn first_route(delivery: &Delivery, queue: &str) -> (String, String) {
    let deaths = delivery.deaths();
    if let Some((exchange, key)) = deaths.first_route_to(queue) {
        return (exchange.to_owned(), key.to_owned());
    }
    original_route(delivery)
}

/// What a parked copy says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedHeaders {
    /// The work queue it failed in.
    pub queue: String,
    /// `poison`, `exhausted` or `returned`.
    pub reason: String,
    /// The handler's words.
    pub error: Option<String>,
    /// Attempts that were made.
    pub attempts: Option<u64>,
    /// The exchange it was first published to.
    pub exchange: Option<String>,
    /// The key it was first published with.
    pub routing_key: Option<String>,
    /// When it was parked, seconds since 1970.
    pub time: Option<u64>,
    /// The broker's record up to then.
    pub deaths: DeathHistory,
}

impl ParkedHeaders {
    /// Reads them; `None` if the message is no parked copy.
    #[must_use]
    pub fn from_headers(headers: &FieldTable) -> Option<Self> {
        let text = |name: &str| {
            headers
                .get(name)
                .and_then(FieldValue::as_text)
                .map(str::to_owned)
        };
        let number = |name: &str| match headers.get(name) {
            Some(FieldValue::Timestamp(seconds)) => Some(*seconds),
            Some(value) => value.as_integer().and_then(|n| u64::try_from(n).ok()),
            None => None,
        };
        Some(Self {
            queue: text(QUEUE)?,
            reason: text(KIND)?,
            error: text(REASON),
            attempts: number(ATTEMPTS),
            exchange: text(EXCHANGE),
            routing_key: text(ROUTING_KEY),
            time: number(TIME),
            deaths: headers
                .get(DEATHS)
                .map(DeathHistory::read)
                .unwrap_or_default(),
        })
    }
}

/// Exchange and key of the first publish, before any dead-lettering or copy.
fn original_route(delivery: &Delivery) -> (String, String) {
    let headers = &delivery.properties.headers;
    let text = |name: &str| headers.get(name).and_then(FieldValue::as_text);
    if let (true, Some(exchange), Some(key)) = (
        headers.contains_key(ATTEMPT),
        text(EXCHANGE),
        text(ROUTING_KEY),
    ) {
        return (exchange.to_owned(), key.to_owned());
    }
    match delivery.deaths().oldest() {
        Some(death) => (
            death.exchange.clone(),
            death
                .routing_keys
                .first()
                .cloned()
                .unwrap_or_else(|| delivery.routing_key.clone()),
        ),
        None => (delivery.exchange.clone(), delivery.routing_key.clone()),
    }
}

/// Leaves out as little as possible of what mq added.
fn fit_a_frame(properties: &mut Properties) {
    for name in DISPENSABLE {
        if properties.encoded_bytes() <= FIT_A_FRAME {
            return;
        }
        properties.headers.remove(name);
    }
}

fn without_broker_headers(properties: &Properties) -> Properties {
    let mut properties = properties.clone();
    properties
        .headers
        .retain(|name, _| !BROKER_HEADERS.contains(&name.as_str()));
    // The broker refuses a user id that is not the publishing user's own.
    properties.user_id = None;
    properties
}

/// The last lines that fit, or the end of the last one.
fn end_of(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let end = text.get(start..).unwrap_or_default();
    match end.split_once('\n') {
        Some((_, lines)) if start > 0 && !lines.is_empty() => lines,
        _ => end,
    }
}

fn shorten(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{ExchangeName, RoutingKey};
    use serde_json::json;

    fn delivery() -> Delivery {
        let headers = json!({
            "app": "kept",
            "x-death": [
                {"queue": "wait", "reason": "expired", "count": 1, "time": 9, "exchange": "dlx", "routing-keys": ["retry"]},
                {"queue": "work", "reason": "rejected", "count": 1, "time": 8, "exchange": "orders", "routing-keys": ["order.created"]}
            ],
            "x-first-death-queue": "work",
            "x-delivery-count": 4,
            "CC": ["elsewhere"],
        });
        Delivery {
            exchange: String::new(),
            routing_key: "work".to_owned(),
            redelivered: false,
            properties: Properties {
                headers: crate::field::table_from_json(headers.as_object().expect("object")),
                user_id: Some("somebody".to_owned()),
                expiration: Some("1000".to_owned()),
                message_id: Some("m1".to_owned()),
                ..Properties::default()
            },
            body: vec![0, 255, 7],
        }
    }

    fn address() -> DeadLetterAddress {
        DeadLetterAddress {
            exchange: ExchangeName::new("dlx").expect("exchange"),
            key: RoutingKey::new("dead").expect("key"),
        }
    }

    #[test]
    fn a_parked_copy_tells_its_story_and_counts_for_nobody() {
        let queue = QueueName::new("work").expect("queue");
        let reason = BuryReason::Exhausted {
            why: format!("é{}", "x".repeat(2000)),
        };
        let copy = park(
            &delivery(),
            &address(),
            &Parking {
                queue: &queue,
                reason: &reason,
                trace: &Trace {
                    end: Some("exit 1".to_owned()),
                    stderr: Some(format!("{}\nlast words", "é".repeat(2000))),
                },
                attempt: 2,
                worker: "host:7",
                now: 77,
            },
        );
        assert_eq!(copy.body, [0, 255, 7]);
        assert_eq!(copy.properties.message_id.as_deref(), Some("m1"));
        assert_eq!(copy.properties.user_id, None);
        assert_eq!(copy.properties.expiration, None);
        let headers = &copy.properties.headers;
        assert!(
            headers.keys().all(|name| !name.starts_with("x-")),
            "{headers:?}"
        );
        assert!(!headers.contains_key("CC"));
        assert_eq!(headers.get("app"), Some(&FieldValue::text("kept")));
        assert_eq!(
            headers.get("mq-expiration"),
            Some(&FieldValue::text("1000"))
        );
        let told = ParkedHeaders::from_headers(headers).expect("parked");
        assert_eq!(told.reason, "exhausted");
        assert_eq!(told.attempts, Some(2));
        assert_eq!(told.exchange.as_deref(), Some("orders"));
        assert_eq!(told.routing_key.as_deref(), Some("order.created"));
        assert_eq!(told.time, Some(77));
        assert_eq!(told.deaths.rejected_from("work"), 1);
        assert!(told.error.expect("error").len() <= 1024);
        let text = |name: &str| headers.get(name).and_then(FieldValue::as_text);
        assert_eq!(text("mq-error-stderr"), Some("last words"));
        assert_eq!(text("mq-error-exit"), Some("exit 1"));
        assert_eq!(text("mq-error-layer"), Some("downstream"));
        assert_eq!(text("mq-error-worker"), Some("host:7"));
    }

    #[test]
    fn a_copy_that_would_not_fit_a_frame_tells_less() {
        let mut large = delivery();
        large.properties.headers.remove("x-death");
        let filler = "x".repeat(130_500);
        large
            .properties
            .headers
            .insert("large".to_owned(), FieldValue::text(filler));
        let queue = QueueName::new("work").expect("queue");
        let reason = BuryReason::Poison {
            why: "w".repeat(1000),
        };
        let trace = Trace {
            end: Some("exit 65".to_owned()),
            stderr: Some("e".repeat(2000)),
        };
        let parking = Parking {
            queue: &queue,
            reason: &reason,
            trace: &trace,
            attempt: 1,
            worker: "host:7",
            now: 7,
        };
        let copy = park(&large, &address(), &parking);
        assert!(copy.properties.encoded_bytes() <= FIT_A_FRAME);
        assert!(!copy.properties.headers.contains_key("mq-error-stderr"));
        let told = ParkedHeaders::from_headers(&copy.properties.headers).expect("parked");
        assert_eq!((told.reason.as_str(), told.attempts), ("poison", Some(1)));
        let waiting = Waiting {
            address: address(),
            expiration: None,
        };
        let again = retry_copy(&large, &waiting, 1, None);
        assert!(again.properties.encoded_bytes() <= FIT_A_FRAME);
        assert_eq!(copied_attempts(&again.properties.headers), 1);
    }

    #[test]
    fn a_retry_copy_carries_its_attempts_and_its_first_route() {
        let waiting = Waiting {
            address: address(),
            expiration: None,
        };
        let copy = retry_copy(&delivery(), &waiting, 2, None);
        assert_eq!(copy.body, delivery().body);
        let sooner = Waiting {
            expiration: Some(std::time::Duration::from_millis(1500)),
            ..waiting
        };
        let changed = retry_copy(&delivery(), &sooner, 2, Some(b"mended".to_vec()));
        assert_eq!(changed.body, b"mended");
        assert_eq!(changed.properties.expiration.as_deref(), Some("1500"));
        let headers = &copy.properties.headers;
        assert!(!headers.contains_key("x-death"), "{headers:?}");
        assert_eq!(copied_attempts(headers), 2);
        assert_eq!(copy.properties.expiration, None);
        // Come back from the wait queue, it still knows where it came from.
        let again = Delivery {
            properties: copy.properties,
            ..delivery()
        };
        assert_eq!(
            first_route(&again, "work"),
            ("orders".to_owned(), "order.created".to_owned())
        );
        // And buried it forgets the count, so that a move by hand starts afresh.
        let queue = QueueName::new("work").expect("queue");
        let reason = BuryReason::Poison { why: "w".into() };
        let parking = Parking {
            queue: &queue,
            reason: &reason,
            trace: &Trace::default(),
            attempt: 3,
            worker: "host:7",
            now: 7,
        };
        let buried = park(&again, &address(), &parking);
        assert_eq!(copied_attempts(&buried.properties.headers), 0);
    }
}
