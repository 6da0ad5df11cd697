//! The receipt of one published message.

use serde_json::{Value as Json, json};

use crate::amqp::Receipt;
use crate::message::Publication;
use crate::output::one_line;

/// One line for people.
#[must_use]
pub fn receipt_text(message: &Publication, receipt: &Receipt) -> String {
    let place = if message.exchange.is_empty() {
        format!("queue '{}'", one_line(message.routing_key.as_str(), 255))
    } else {
        format!(
            "exchange '{}' with key '{}'",
            one_line(message.exchange.as_str(), 255),
            one_line(message.routing_key.as_str(), 255)
        )
    };
    let bytes = match message.body.len() {
        1 => "1 byte".to_owned(),
        bytes => format!("{bytes} bytes"),
    };
    format!("{}: {bytes} to {place}", word(receipt))
}

/// The receipt as JSON: `receipt` (`routed`, `unroutable`, `refused`,
/// `unknown`), `exchange`, `routing_key`, `body_bytes` and `message_id`.
#[must_use]
pub fn receipt_json(message: &Publication, receipt: &Receipt) -> Json {
    json!({
        "receipt": word(receipt),
        "exchange": message.exchange.as_str(),
        "routing_key": message.routing_key.as_str(),
        "body_bytes": message.body.len(),
        "message_id": message.properties.message_id,
    })
}

const fn word(receipt: &Receipt) -> &'static str {
    match receipt {
        Receipt::Routed => "routed",
        Receipt::Unroutable(_) => "unroutable",
        Receipt::Refused => "refused",
        Receipt::Unknown(_) => "unknown",
    }
}
