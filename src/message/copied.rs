//! What every copy of a worker's has in common: the broker's own headers stay
//! behind, its first route comes along, and it fits a frame.

use crate::field::FieldValue;
use crate::message::death::X_DEATH;
use crate::message::{Delivery, Properties};

pub(super) const DEATHS: &str = "mq-deaths";
pub(super) const KIND: &str = "mq-error-kind";
pub(super) const REASON: &str = "mq-error-reason";
pub(super) const LAYER: &str = "mq-error-layer";
pub(super) const END: &str = "mq-error-exit";
pub(super) const STDERR: &str = "mq-error-stderr";
pub(super) const WORKER: &str = "mq-error-worker";
pub(super) const TIME: &str = "mq-error-time";
pub(super) const ATTEMPTS: &str = "mq-attempts";
pub(super) const QUEUE: &str = "mq-queue";
pub(super) const EXCHANGE: &str = "mq-exchange";
pub(super) const ROUTING_KEY: &str = "mq-routing-key";
pub(super) const EXPIRATION: &str = "mq-expiration";
pub(super) const ATTEMPT: &str = "mq-attempt";
pub(super) const CARBON_COPIES: &str = "mq-cc";
pub(super) const BLIND_COPIES: &str = "mq-bcc";

/// What copies of ours tell about a failure or carry from one place to another.
pub(super) const OF_A_COPY: [&str; 15] = [
    DEATHS,
    KIND,
    REASON,
    LAYER,
    END,
    STDERR,
    WORKER,
    TIME,
    ATTEMPTS,
    QUEUE,
    EXCHANGE,
    ROUTING_KEY,
    EXPIRATION,
    ATTEMPT,
    CARBON_COPIES,
];

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
pub(super) const FIT_A_FRAME: usize = 131_000;

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

/// Exchange and key of the first publish, before any dead-lettering or copy.
pub(super) fn original_route(delivery: &Delivery) -> (String, String) {
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
pub(super) fn fit_a_frame(properties: &mut Properties) {
    for name in DISPENSABLE {
        if properties.encoded_bytes() <= FIT_A_FRAME {
            return;
        }
        properties.headers.remove(name);
    }
}

pub(super) fn without_broker_headers(properties: &Properties) -> Properties {
    let mut properties = properties.clone();
    properties
        .headers
        .retain(|name, _| !BROKER_HEADERS.contains(&name.as_str()));
    // The broker refuses a user id that is not the publishing user's own.
    properties.user_id = None;
    properties
}
