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
use crate::retry::{BuryReason, DeadLetterAddress};
use crate::topology::QueueName;

const DEATHS: &str = "mq-deaths";
const REASON: &str = "mq-reason";
const ERROR: &str = "mq-error";
const ATTEMPTS: &str = "mq-attempts";
const QUEUE: &str = "mq-queue";
const EXCHANGE: &str = "mq-exchange";
const ROUTING_KEY: &str = "mq-routing-key";
const TIME: &str = "mq-time";
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

/// The longest error text kept in a header, in bytes: headers share one frame.
const MAX_ERROR_BYTES: usize = 1024;

/// Why and from where a message is parked.
#[derive(Clone, Debug)]
pub struct Parking<'a> {
    /// The work queue.
    pub queue: &'a QueueName,
    /// Poison or exhausted, with the handler's words.
    pub reason: &'a BuryReason,
    /// The attempt that was the last one.
    pub attempt: u32,
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
        (REASON, FieldValue::text(parking.reason.word())),
        (
            ERROR,
            FieldValue::text(shorten(parking.reason.why(), MAX_ERROR_BYTES)),
        ),
        (ATTEMPTS, FieldValue::I64(parking.attempt.into())),
        (QUEUE, FieldValue::text(parking.queue.as_str())),
        (EXCHANGE, FieldValue::text(exchange)),
        (ROUTING_KEY, FieldValue::text(routing_key)),
        (TIME, FieldValue::Timestamp(parking.now)),
    ] {
        headers.insert(name.to_owned(), value);
    }
    properties.delivery_mode = Some(DeliveryMode::Persistent);
    Publication {
        exchange: address.exchange.clone(),
        routing_key: address.key.clone(),
        properties,
        body: delivery.body.clone(),
    }
}

/// The copy to publish in place of a nack that could lose the message: the same
/// message without the broker's records, and with the number of the attempt
/// that failed, which those records can no longer tell.
#[must_use]
pub fn retry_copy(delivery: &Delivery, address: &DeadLetterAddress, attempt: u32) -> Publication {
    let mut properties = without_broker_headers(&delivery.properties);
    let headers = &mut properties.headers;
    // As when the broker dead-letters it: it waits as long as the wait queue says.
    if let Some(expiration) = properties.expiration.take() {
        headers.insert(EXPIRATION.to_owned(), FieldValue::text(expiration));
    }
    let (exchange, routing_key) = original_route(delivery);
    for (name, value) in [
        (ATTEMPT, FieldValue::I64(attempt.into())),
        (EXCHANGE, FieldValue::text(exchange)),
        (ROUTING_KEY, FieldValue::text(routing_key)),
    ] {
        headers.insert(name.to_owned(), value);
    }
    properties.delivery_mode = Some(DeliveryMode::Persistent);
    Publication {
        exchange: address.exchange.clone(),
        routing_key: address.key.clone(),
        properties,
        body: delivery.body.clone(),
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
    /// `poison` or `exhausted`.
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
            reason: text(REASON)?,
            error: text(ERROR),
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

fn without_broker_headers(properties: &Properties) -> Properties {
    let mut properties = properties.clone();
    properties
        .headers
        .retain(|name, _| !BROKER_HEADERS.contains(&name.as_str()));
    // The broker refuses a user id that is not the publishing user's own.
    properties.user_id = None;
    properties
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
                attempt: 2,
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
    }

    #[test]
    fn a_retry_copy_carries_its_attempts_and_its_first_route() {
        let copy = retry_copy(&delivery(), &address(), 2);
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
            attempt: 3,
            now: 7,
        };
        let buried = park(&again, &address(), &parking);
        assert_eq!(copied_attempts(&buried.properties.headers), 0);
    }
}
