//! Copies that a worker publishes past the wait queue, and what they tell.
//!
//! A parked copy keeps the body byte for byte and every property that does not
//! make the broker act. The broker's own records (`x-death` and the like) move
//! under `mq-` names: readable for people and `mq dlq`, but counted by no tool
//! that later moves the message back (a copied `x-death` continues to count on
//! 3.x and is visible, stale, on every version: measured).

use crate::field::{FieldTable, FieldValue};
use crate::message::copied::{
    ATTEMPT, ATTEMPTS, DEATHS, END, EXCHANGE, EXPIRATION, KIND, LAYER, QUEUE, REASON, ROUTING_KEY,
    STDERR, TIME, WORKER, fit_a_frame, original_route, without_broker_headers,
};
use crate::message::death::X_DEATH;
use crate::message::{DeathHistory, Delivery, DeliveryMode, Publication};
use crate::retry::{BuryReason, DeadLetterAddress, Trace};
use crate::topology::QueueName;

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
mod tests;
