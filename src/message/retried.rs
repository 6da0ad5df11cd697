//! The copy of a message that waits for its next attempt.

use crate::field::{FieldTable, FieldValue};
use crate::message::copied::{
    ATTEMPT, EXCHANGE, EXPIRATION, ROUTING_KEY, fit_a_frame, original_route, without_broker_headers,
};
use crate::message::{Delivery, DeliveryMode, Publication};
use crate::retry::Waiting;

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
