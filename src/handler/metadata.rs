//! What a handler learns about its message besides the body: names and values.
//!
//! The names are those of environment variables; HTTP headers have `-` for `_`.

use crate::field::table_to_json;
use crate::handler::Job;
use crate::message::{DeliveryMode, first_route};

/// Names that depend on what the publisher set.
pub(super) const OPTIONAL: [&str; 17] = [
    "MQ_MESSAGE_ID",
    "MQ_CORRELATION_ID",
    "MQ_REPLY_TO",
    "MQ_CONTENT_TYPE",
    "MQ_CONTENT_ENCODING",
    "MQ_TYPE",
    "MQ_APP_ID",
    "MQ_USER_ID",
    "MQ_EXPIRATION",
    "MQ_PRIORITY",
    "MQ_TIMESTAMP",
    "MQ_DELIVERY_MODE",
    "MQ_HEADERS",
    "MQ_HEADERS_OMITTED",
    "MQ_HEADERS_FILE",
    "MQ_RETRY_AFTER",
    "MQ_STREAM_OFFSET",
];

/// Names that every message has, but not what works many of them.
pub(super) const OF_A_MESSAGE: [&str; 6] = [
    "MQ_EXCHANGE",
    "MQ_ROUTING_KEY",
    "MQ_REDELIVERED",
    "MQ_ATTEMPT",
    "MQ_MAX_ATTEMPTS",
    "MQ_BODY_BYTES",
];

/// Everything but the headers of the message; what the publisher did not set is
/// not there.
pub(super) fn metadata(job: &Job) -> Vec<(&'static str, String)> {
    let delivery = &job.delivery;
    let properties = &delivery.properties;
    // The same on every attempt: a handler that switches on the key must not
    // see the key of the retry loop.
    let (exchange, routing_key) = first_route(delivery, job.queue.as_str());
    let mut metadata = vec![
        ("MQ_QUEUE", job.queue.as_str().to_owned()),
        ("MQ_EXCHANGE", exchange),
        ("MQ_ROUTING_KEY", routing_key),
        ("MQ_REDELIVERED", delivery.redelivered.to_string()),
        ("MQ_ATTEMPT", job.attempt.to_string()),
        ("MQ_MAX_ATTEMPTS", job.max_attempts.to_string()),
        ("MQ_BODY_BYTES", delivery.body.len().to_string()),
    ];
    let mut optional = |name: &'static str, value: Option<String>| {
        if let Some(value) = value {
            metadata.push((name, value));
        }
    };
    optional("MQ_MESSAGE_ID", properties.message_id.clone());
    optional("MQ_CORRELATION_ID", properties.correlation_id.clone());
    optional("MQ_REPLY_TO", properties.reply_to.clone());
    optional("MQ_CONTENT_TYPE", properties.content_type.clone());
    optional("MQ_CONTENT_ENCODING", properties.content_encoding.clone());
    optional("MQ_TYPE", properties.kind.clone());
    optional("MQ_APP_ID", properties.app_id.clone());
    optional("MQ_USER_ID", properties.user_id.clone());
    optional("MQ_EXPIRATION", properties.expiration.clone());
    optional(
        "MQ_STREAM_OFFSET",
        delivery.stream_offset().map(|n| n.to_string()),
    );
    optional("MQ_PRIORITY", properties.priority.map(|n| n.to_string()));
    optional("MQ_TIMESTAMP", properties.timestamp.map(|n| n.to_string()));
    optional(
        "MQ_DELIVERY_MODE",
        properties.delivery_mode.map(|mode| {
            match mode {
                DeliveryMode::Transient => "1",
                DeliveryMode::Persistent => "2",
            }
            .to_owned()
        }),
    );
    metadata
}

/// The headers of the message as JSON.
pub(super) fn headers_json(job: &Job) -> String {
    table_to_json(&job.delivery.properties.headers).to_string()
}

/// The headers under their name, or, if they are longer than `most` bytes, their
/// length under the name that says so.
pub(super) fn bounded_headers(json: String, most: usize) -> (&'static str, String) {
    if json.len() <= most {
        ("MQ_HEADERS", json)
    } else {
        ("MQ_HEADERS_OMITTED", json.len().to_string())
    }
}
