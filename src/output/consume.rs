//! Messages as they are printed, and the worker's last word.

use serde_json::{Map, Value as Json, json};

use crate::message::{Delivery, body_to_json, properties_to_json};
use crate::worker::{Counts, StopReason};

/// A printed message: `exchange`, `routing_key`, `redelivered`, `properties`
/// and the whole body (see [`body_to_json`]).
#[must_use]
pub fn delivery_json(delivery: &Delivery) -> Json {
    let mut object = Map::new();
    object.insert("exchange".to_owned(), json!(delivery.exchange));
    object.insert("routing_key".to_owned(), json!(delivery.routing_key));
    object.insert("redelivered".to_owned(), json!(delivery.redelivered));
    object.insert(
        "properties".to_owned(),
        properties_to_json(&delivery.properties),
    );
    let bytes = delivery.body.len();
    object.extend(body_to_json(&delivery.body, bytes, bytes));
    Json::Object(object)
}

/// The worker's last word for people.
#[must_use]
pub fn summary_text(queue: &str, counts: &Counts, stopped: Option<&StopReason>) -> String {
    let dead = counts.dead_lettered();
    let mut text = format!(
        "{queue}: {} acked, {} retried, {dead} dead-lettered",
        counts.acked, counts.retried
    );
    if dead > 0 {
        let reasons: Vec<String> = [
            (counts.poison, "poison"),
            (counts.exhausted, "exhausted"),
            (counts.returned, "returned"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, reason)| format!("{count} {reason}"))
        .collect();
        text.push_str(&format!(" ({})", reasons.join(", ")));
    }
    if counts.deduplicated > 0 {
        text.push_str(&format!(", {} done before", counts.deduplicated));
    }
    text.push_str(&format!(", {} given back", counts.released));
    if counts.unsettled > 0 {
        text.push_str(&format!(
            ", {} unsettled when the connection broke",
            counts.unsettled
        ));
    }
    text.push_str(&format!("; stopped: {}", stop_text(stopped)));
    text
}

/// The worker's last word as JSON: `queue`, every count, and `stopped`.
#[must_use]
pub fn summary_json(queue: &str, counts: &Counts, stopped: Option<&StopReason>) -> Json {
    json!({
        "queue": queue,
        "received": counts.received,
        "acked": counts.acked,
        "retried": counts.retried,
        "dead_lettered": {
            "poison": counts.poison,
            "exhausted": counts.exhausted,
            "returned": counts.returned,
        },
        "deduplicated": counts.deduplicated,
        "released": counts.released,
        "unsettled": counts.unsettled,
        "stopped": stop_word(stopped),
    })
}

fn stop_text(stopped: Option<&StopReason>) -> &'static str {
    match stopped {
        None => "the connection was lost",
        Some(StopReason::Signal) => "a signal asked for it",
        Some(StopReason::MaxMessages) => "--max-messages reached",
        Some(StopReason::Empty) => "the queue is empty",
        Some(StopReason::Idle) => "nothing came for --idle-timeout",
        Some(StopReason::ReaderGone) => "the reader of our output went away",
        Some(StopReason::Output(_)) => "our output could not be written",
        Some(StopReason::Handler { .. }) => "the handler cannot work",
        Some(StopReason::NotParked(_)) => "a dead letter was not taken",
        Some(StopReason::NotDeduplicated(_)) => "the dedupe store cannot be used",
        Some(StopReason::QueueGone) => "the queue was deleted",
        Some(StopReason::NoDeadLetterQueue { .. }) => "a message has no dead-letter queue",
        Some(StopReason::NotKept) => "the position could not be kept",
    }
}

const fn stop_word(stopped: Option<&StopReason>) -> &'static str {
    match stopped {
        None => "connection_lost",
        Some(StopReason::Signal) => "signal",
        Some(StopReason::MaxMessages) => "max_messages",
        Some(StopReason::Empty) => "empty",
        Some(StopReason::Idle) => "idle",
        Some(StopReason::ReaderGone) => "reader_gone",
        Some(StopReason::Output(_)) => "output",
        Some(StopReason::Handler { .. }) => "handler",
        Some(StopReason::NotParked(_)) => "not_parked",
        Some(StopReason::NotDeduplicated(_)) => "not_deduplicated",
        Some(StopReason::QueueGone) => "queue_gone",
        Some(StopReason::NoDeadLetterQueue { .. }) => "no_dead_letter_queue",
        Some(StopReason::NotKept) => "not_kept",
    }
}
