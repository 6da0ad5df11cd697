//! Looking at messages without taking them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value as Json, json};

use crate::error::{Error, ErrorKind, Result};
use crate::field::table_from_json;
use crate::management::Management;
use crate::management::wire::WireMessage;
use crate::message::{Delivery, DeliveryMode, Properties};
use crate::topology::{QueueName, VhostName};

/// A message that was looked at and put back.
#[derive(Clone, Debug)]
pub struct Peeked {
    /// The message; of its body the beginning, as much as was asked for, and of
    /// its headers' types what JSON keeps apart.
    pub message: Delivery,
    /// Bytes of the whole body.
    pub body_bytes: usize,
}

/// What one look showed.
#[derive(Clone, Debug)]
pub struct Look {
    /// The messages, oldest first.
    pub messages: Vec<Peeked>,
    /// How many more were ready behind them.
    pub not_shown: u64,
}

impl Management {
    /// Looks at up to `count` messages in one request and puts them back
    /// (`ack_requeue_true`: a nack with requeue, the only mode that never counts
    /// on 4.3). Whoever calls this has made sure that a look is safe.
    ///
    /// One request, never a loop of single ones: a quorum queue rotates.
    ///
    /// # Errors
    /// When the queue does not exist, is a stream, or may not be read.
    pub async fn look(
        &self,
        vhost: &VhostName,
        queue: &QueueName,
        count: u32,
        body_bytes: usize,
    ) -> Result<Look> {
        let doing = format!("look into queue '{queue}' in vhost '{vhost}'");
        let wire: Vec<WireMessage> = self
            .post(
                &["queues", vhost.as_str(), queue.as_str(), "get"],
                &json!({
                    "count": count,
                    "ackmode": "ack_requeue_true",
                    // Text would be guessed by the broker; bytes are told apart here.
                    "encoding": "base64",
                    "truncate": body_bytes,
                }),
                &doing,
            )
            .await
            .map_err(|error| {
                // Measured on 4.0.5: the API itself breaks on such a message.
                if error.message().contains("500 Internal Server Error") {
                    error.hint("a message with a key, a header name or a property that is not UTF-8 makes the API fail; look at it on the broker's machine with `rabbitmq-queues peek`, or read the queue with another client")
                } else if error.message().contains("recursion limit") {
                    error.hint("a message has headers that are nested more than 120 deep: read the queue with mq dlq export, which does not go through the management API")
                } else {
                    error
                }
            })?;
        let not_shown = wire.last().map_or(0, |message| message.message_count);
        let messages = wire
            .into_iter()
            .map(|message| peeked(message, &doing))
            .collect::<Result<Vec<_>>>()?;
        Ok(Look {
            messages,
            not_shown,
        })
    }
}

fn peeked(wire: WireMessage, doing: &str) -> Result<Peeked> {
    let body = BASE64.decode(&wire.payload).map_err(|_| {
        Error::new(
            ErrorKind::Protocol,
            format!("{doing}: the management API gave a body that is not base64"),
        )
    })?;
    Ok(Peeked {
        message: Delivery {
            exchange: wire.exchange,
            routing_key: wire.routing_key,
            redelivered: wire.redelivered,
            properties: properties(&wire.properties),
            body,
        },
        body_bytes: usize::try_from(wire.payload_bytes).unwrap_or(usize::MAX),
    })
}

fn properties(json: &Map<String, Json>) -> Properties {
    let text = |name: &str| json.get(name).and_then(Json::as_str).map(str::to_owned);
    let number = |name: &str| json.get(name).and_then(Json::as_u64);
    Properties {
        content_type: text("content_type"),
        content_encoding: text("content_encoding"),
        headers: json
            .get("headers")
            .and_then(Json::as_object)
            .map(table_from_json)
            .unwrap_or_default(),
        delivery_mode: number("delivery_mode").map(|mode| match mode {
            2 => DeliveryMode::Persistent,
            _ => DeliveryMode::Transient,
        }),
        priority: number("priority").and_then(|n| u8::try_from(n).ok()),
        correlation_id: text("correlation_id"),
        reply_to: text("reply_to"),
        expiration: text("expiration"),
        message_id: text("message_id"),
        timestamp: number("timestamp"),
        kind: text("type"),
        user_id: text("user_id"),
        app_id: text("app_id"),
        cluster_id: text("cluster_id"),
    }
}
