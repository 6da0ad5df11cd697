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

/// The copy to publish in place of a nack where the broker would choke on the
/// message's own malformed `x-death` (3.10): the same message without it.
#[must_use]
pub fn sanitise(delivery: &Delivery, address: &DeadLetterAddress) -> Publication {
    let mut properties = without_broker_headers(&delivery.properties);
    properties.delivery_mode = Some(DeliveryMode::Persistent);
    Publication {
        exchange: address.exchange.clone(),
        routing_key: address.key.clone(),
        properties,
        body: delivery.body.clone(),
    }
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

/// Exchange and key of the first publish, before any dead-lettering.
fn original_route(delivery: &Delivery) -> (String, String) {
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
    fn a_sanitised_copy_has_no_record_at_all() {
        let copy = sanitise(&delivery(), &address());
        assert_eq!(copy.properties.headers.keys().collect::<Vec<_>>(), ["app"]);
        assert_eq!(copy.properties.expiration.as_deref(), Some("1000"));
    }
}
