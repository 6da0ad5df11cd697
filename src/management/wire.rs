//! The JSON of the management API, as far as it is needed.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value as Json};

/// A queue as `GET /api/queues/…` gives it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireQueue {
    pub(super) name: String,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    pub(super) exclusive: bool,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "object")]
    pub(super) arguments: Map<String, Json>,
    #[serde(deserialize_with = "object")]
    pub(super) effective_policy_definition: Map<String, Json>,
    /// The effective limit on 4.x: a number or `"unlimited"`.
    pub(super) delivery_limit: Option<Json>,
    pub(super) messages: Option<u64>,
    /// The nodes that have a replica of a quorum queue.
    pub(super) members: Vec<String>,
    pub(super) message_bytes: Option<u64>,
    pub(super) messages_ready: Option<u64>,
    pub(super) messages_unacknowledged: Option<u64>,
    pub(super) consumers: Option<u64>,
}

/// An exchange.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireExchange {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    pub(super) internal: bool,
    #[serde(deserialize_with = "object")]
    pub(super) arguments: Map<String, Json>,
    /// The policy in force, for the alternate exchange.
    #[serde(deserialize_with = "object")]
    pub(super) effective_policy_definition: Map<String, Json>,
}

/// A binding.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireBinding {
    pub(super) source: String,
    pub(super) destination: String,
    pub(super) destination_type: String,
    pub(super) routing_key: String,
    /// Key and a hash of the typed arguments.
    pub(super) properties_key: String,
    #[serde(deserialize_with = "object")]
    pub(super) arguments: Map<String, Json>,
}

/// A policy of either kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WirePolicy {
    pub(super) name: String,
    pub(super) pattern: String,
    #[serde(rename = "apply-to")]
    pub(super) apply_to: String,
    pub(super) priority: i64,
    #[serde(deserialize_with = "object")]
    pub(super) definition: Map<String, Json>,
}

/// A message from `POST /api/queues/…/get`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireMessage {
    pub(super) payload: String,
    pub(super) payload_bytes: u64,
    pub(super) redelivered: bool,
    pub(super) exchange: String,
    pub(super) routing_key: String,
    pub(super) message_count: u64,
    #[serde(deserialize_with = "object")]
    pub(super) properties: Map<String, Json>,
}

/// An object; the API writes `[]` (and sometimes null or `""`) for an empty one.
fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Json>, D::Error> {
    Ok(match Json::deserialize(deserializer)? {
        Json::Object(object) => object,
        _ => Map::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_the_api_really_sends() {
        let queue: WireQueue = serde_json::from_str(
            r#"{"name":"q","durable":true,"arguments":[],"effective_policy_definition":null,
                "delivery_limit":"unlimited","something":"new"}"#,
        )
        .expect("queue");
        assert!(queue.arguments.is_empty());
        assert_eq!(queue.messages, None);
        let message: WireMessage =
            serde_json::from_str(r#"{"payload":"eA==","properties":[]}"#).expect("message");
        assert!(message.properties.is_empty());
    }
}
