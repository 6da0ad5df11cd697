//! One message as one line of JSON, and back, with nothing lost: what
//! `mq dlq export` writes and `mq publish --jsonl` reads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize as _;
use serde_json::{Map, Value as Json, json};

use crate::error::{Error, ErrorKind, Result};
use crate::message::json::set_properties;
use crate::message::typed::{DEEPEST, table_from_typed, table_to_typed};
use crate::message::{Delivery, DeliveryMode, Properties, Publication, json_nesting};
use crate::printable::one_line;
use crate::topology::{ExchangeName, QueueName, RoutingKey, VhostName};

/// Everything that a line may say.
const KEYS: [&str; 7] = [
    "exchange",
    "routing_key",
    "properties",
    "body",
    "body_encoding",
    "redelivered",
    "source",
];

/// Levels of JSON for each level of a table, and those around the headers.
const DEEPEST_LINE: usize = 2 * DEEPEST + 8;

/// Headers that a quorum queue adds when it hands a message out.
const OF_THE_QUEUE: [(&str, &str); 2] = [
    ("x-delivery-count", "delivery_count"),
    ("x-acquired-count", "acquired_count"),
];

/// Where a message was taken from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The vhost.
    pub vhost: &'a VhostName,
    /// The queue.
    pub queue: &'a QueueName,
    /// Whether the queue counts deliveries in headers that are not the
    /// message's own; they stand beside the message then.
    pub counts_deliveries: bool,
}

/// The message as the JSON of its line: `exchange`, `routing_key`,
/// `redelivered`, `properties`, `body`, `body_encoding` and `source`.
///
/// # Errors
/// When its headers are nested too deep to be read back.
pub fn message_line(delivery: &Delivery, source: Option<Source<'_>>) -> Result<Json> {
    let mut properties = Map::new();
    set_properties(&mut properties, &delivery.properties);
    let mut line = Map::new();
    let mut told = Map::new();
    if let Some(source) = source {
        told.insert("vhost".to_owned(), json!(source.vhost.as_str()));
        told.insert("queue".to_owned(), json!(source.queue.as_str()));
    }
    let headers = &delivery.properties.headers;
    if !headers.is_empty() {
        let mut typed = table_to_typed(headers)?;
        if let (Some(object), Some(true)) = (
            typed.as_object_mut(),
            source.map(|source| source.counts_deliveries),
        ) {
            for (header, name) in OF_THE_QUEUE {
                if let Some(count) = object.shift_remove(header) {
                    told.insert(name.to_owned(), count);
                }
            }
        }
        if typed.as_object().is_some_and(|object| !object.is_empty()) {
            properties.insert("headers".to_owned(), typed);
        }
    }
    let (body, encoding) = match std::str::from_utf8(&delivery.body) {
        Ok(text) => (json!(text), "text"),
        Err(_) => (json!(BASE64.encode(&delivery.body)), "base64"),
    };
    for (name, value) in [
        ("exchange", json!(delivery.exchange)),
        ("routing_key", json!(delivery.routing_key)),
        ("redelivered", json!(delivery.redelivered)),
        ("properties", Json::Object(properties)),
        ("body", body),
        ("body_encoding", json!(encoding)),
    ] {
        line.insert(name.to_owned(), value);
    }
    if !told.is_empty() {
        line.insert("source".to_owned(), Json::Object(told));
    }
    Ok(Json::Object(line))
}

/// The message that a line tells. Left out, `exchange`, `routing_key` and
/// `properties` are empty; `body` must be there. `source` and `redelivered` are for
/// people and passed over; any other key is an error, for it may be misspelled.
///
/// # Errors
/// [`ErrorKind::InvalidInput`], with what is wrong where in the line.
pub fn read_message_line(text: &str) -> Result<Publication> {
    let mut line = object(text)?;
    if line.get("body_truncated") == Some(&Json::Bool(true)) {
        return Err(wrong("the body is cut off (body_truncated)")
            .hint("mq dlq inspect shows parts of messages; mq dlq export writes whole ones"));
    }
    if let Some(odd) = line.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(wrong(&format!(
            "'{}' is none of the keys of a message",
            one_line(odd, 60)
        ))
        .hint("they are exchange, routing_key, properties, body, body_encoding, redelivered and source"));
    }
    let exchange = text_of(&mut line, "exchange")?.unwrap_or_default();
    let routing_key = text_of(&mut line, "routing_key")?.unwrap_or_default();
    let properties = match line.remove("properties") {
        None | Some(Json::Null) => Properties::default(),
        Some(Json::Object(object)) => read_properties(object)?,
        Some(other) => return Err(no_such("properties", "object", &other)),
    };
    let encoding = text_of(&mut line, "body_encoding")?;
    let Some(body) = text_of(&mut line, "body")? else {
        return Err(wrong("it has no body").hint("\"body\": \"\" is an empty one"));
    };
    let body = match encoding.as_deref() {
        None | Some("text") => body.into_bytes(),
        Some("base64") => BASE64
            .decode(&body)
            .map_err(|error| wrong(&format!("body: it is not base64: {error}")))?,
        Some(other) => {
            return Err(wrong(&format!(
                "body_encoding '{}' is not known",
                one_line(other, 30)
            ))
            .hint("text and base64 are"));
        }
    };
    Ok(Publication {
        exchange: ExchangeName::new(exchange)?,
        routing_key: RoutingKey::new(routing_key)?,
        properties,
        body,
    })
}

fn object(text: &str) -> Result<Map<String, Json>> {
    if json_nesting(text.as_bytes()) > DEEPEST_LINE {
        return Err(wrong(&format!(
            "it is nested too deep; {DEEPEST} tables and lists in one another are the most"
        )));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    // What follows any depth has just been told how deep it is.
    reader.disable_recursion_limit();
    let json = Json::deserialize(&mut reader).and_then(|json| reader.end().map(|()| json));
    match json {
        Ok(Json::Object(object)) => Ok(object),
        Ok(_) => Err(wrong("it is no JSON object")),
        Err(error) if error.is_eof() => Err(wrong("it ends in the middle of a JSON object").hint(
            "whoever wrote it was interrupted; mq dlq export takes no message out of its queue before its line is whole and on disk",
        )),
        Err(error) => Err(wrong(&format!("it is not JSON: {error}"))),
    }
}

fn read_properties(mut object: Map<String, Json>) -> Result<Properties> {
    let headers = match object.remove("headers") {
        None | Some(Json::Null) => crate::field::FieldTable::new(),
        Some(Json::Object(headers)) => table_from_typed(headers, "headers")?,
        Some(other) => return Err(no_such("properties.headers", "object", &other)),
    };
    let mut text = |name: &str| -> Result<Option<String>> {
        let text = text_of(&mut object, name)?;
        match text {
            Some(text) if text.len() > 255 => Err(wrong(&format!(
                "{name} has {} bytes; AMQP allows 255",
                text.len()
            ))),
            other => Ok(other),
        }
    };
    let mut properties = Properties {
        content_type: text("content_type")?,
        content_encoding: text("content_encoding")?,
        headers,
        correlation_id: text("correlation_id")?,
        reply_to: text("reply_to")?,
        expiration: text("expiration")?,
        message_id: text("message_id")?,
        kind: text("type")?,
        user_id: text("user_id")?,
        app_id: text("app_id")?,
        cluster_id: text("cluster_id")?,
        delivery_mode: None,
        priority: None,
        timestamp: None,
    };
    properties.delivery_mode = match number(&mut object, "delivery_mode")? {
        None => None,
        Some(1) => Some(DeliveryMode::Transient),
        Some(2) => Some(DeliveryMode::Persistent),
        Some(other) => return Err(wrong(&format!("delivery_mode {other} is neither 1 nor 2"))),
    };
    properties.priority = match number(&mut object, "priority")? {
        None => None,
        Some(number) => Some(
            u8::try_from(number).map_err(|_| wrong(&format!("priority {number} is over 255")))?,
        ),
    };
    properties.timestamp = number(&mut object, "timestamp")?;
    match object.keys().next() {
        None => Ok(properties),
        Some(unknown) => Err(wrong(&format!(
            "properties.{}: AMQP has no such property",
            one_line(unknown, 60)
        ))
        .hint("what is your own goes into properties.headers")),
    }
}

fn text_of(object: &mut Map<String, Json>, name: &str) -> Result<Option<String>> {
    match object.remove(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(other) => Err(no_such(name, "text", &other)),
    }
}

fn number(object: &mut Map<String, Json>, name: &str) -> Result<Option<u64>> {
    match object.remove(name) {
        None | Some(Json::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(no_such(name, "whole number", &value)),
        },
    }
}

fn no_such(name: &str, what: &str, found: &Json) -> Error {
    wrong(&format!(
        "{name}: {} is no {what}",
        one_line(&found.to_string(), 60)
    ))
}

fn wrong(what: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests;
