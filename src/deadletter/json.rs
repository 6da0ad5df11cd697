//! One dead letter as JSON: what scripts read and filters are asked about.

use serde_json::{Map, Value as Json, json};

use crate::deadletter::Letter;
use crate::message::{Delivery, body_to_json, properties_to_json};

/// Where it came from and why, its deaths, properties, and at most `limit` bytes
/// of its body, which has `whole` bytes; `message` may hold fewer.
#[must_use]
pub fn letter_json(message: &Delivery, letter: &Letter, whole: usize, limit: usize) -> Json {
    let deaths: Vec<Json> = letter
        .deaths
        .deaths
        .iter()
        .map(|death| {
            json!({
                "queue": death.queue,
                "reason": death.reason,
                "count": death.count,
                "exchange": death.exchange,
                "routing_keys": death.routing_keys,
                "first_time": death.time,
            })
        })
        .collect();
    let mut object = Map::new();
    for (name, value) in [
        ("origin", json!(letter.origin)),
        ("reason", json!(letter.reason)),
        ("error", json!(letter.error)),
        ("error_of", json!(letter.tool)),
        ("attempts", json!(letter.attempts)),
        ("first_death", json!(letter.first_death)),
        ("last_death", json!(letter.last_death)),
        ("exchange", json!(letter.exchange)),
        ("routing_keys", json!(letter.routing_keys)),
        ("deaths", json!(deaths)),
        ("deaths_malformed", json!(letter.deaths.malformed)),
        ("redelivered", json!(message.redelivered)),
        ("properties", properties_to_json(&message.properties)),
    ] {
        object.insert(name.to_owned(), value);
    }
    object.extend(body_to_json(&message.body, whole, limit));
    Json::Object(object)
}
