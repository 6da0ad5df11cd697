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
    /// `None`: the broker does not tell, for want of statistics.
    #[serde(deserialize_with = "told_object")]
    pub(super) effective_policy_definition: Option<Map<String, Json>>,
    /// The effective limit on 4.x: a number or `"unlimited"`.
    pub(super) delivery_limit: Option<Json>,
    pub(super) messages: Option<u64>,
    /// The nodes that have a replica of a quorum queue.
    pub(super) members: Vec<String>,
    pub(super) message_bytes: Option<u64>,
    pub(super) messages_ready: Option<u64>,
    pub(super) messages_unacknowledged: Option<u64>,
    pub(super) consumers: Option<u64>,
    /// The name of the policy in force.
    pub(super) policy: Option<String>,
    pub(super) operator_policy: Option<String>,
    pub(super) messages_details: WireRate,
    pub(super) message_stats: Option<WireMessageStats>,
}

/// How fast a count changes, per second.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireRate {
    pub(super) rate: f64,
}

/// What was counted in a queue or on a channel; each is missing before it happens.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireMessageStats {
    pub(super) publish: u64,
    pub(super) publish_details: WireRate,
    pub(super) deliver: u64,
    pub(super) deliver_details: WireRate,
    pub(super) redeliver: u64,
    pub(super) redeliver_details: WireRate,
    pub(super) ack: u64,
    pub(super) ack_details: WireRate,
    pub(super) deliver_no_ack: u64,
    pub(super) get_no_ack: u64,
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
    /// The name of the policy in force.
    pub(super) policy: Option<String>,
    /// What it says, for the alternate exchange; 3.10.8 and 4.0.5 do not tell.
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
    #[serde(deserialize_with = "priority")]
    pub(super) priority: i32,
    #[serde(deserialize_with = "object")]
    pub(super) definition: Map<String, Json>,
}

/// A vhost.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireVhost {
    pub(super) name: String,
    pub(super) description: String,
    #[serde(deserialize_with = "tags")]
    pub(super) tags: Vec<String>,
    pub(super) default_queue_type: Option<String>,
}

/// The limits of a vhost.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireVhostLimits {
    #[serde(deserialize_with = "object")]
    pub(super) value: Map<String, Json>,
}

/// A user.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct WireUser {
    pub(super) name: String,
    pub(super) password_hash: String,
    pub(super) hashing_algorithm: String,
    #[serde(deserialize_with = "tags")]
    pub(super) tags: Vec<String>,
}

/// What a user may do in a vhost.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WirePermissions {
    pub(super) user: String,
    pub(super) vhost: String,
    pub(super) configure: String,
    pub(super) write: String,
    pub(super) read: String,
}

/// The same on a topic exchange.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireTopicPermission {
    pub(super) user: String,
    pub(super) exchange: String,
    pub(super) write: String,
    pub(super) read: String,
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

/// The same, where it is there at all.
fn told_object<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Map<String, Json>>, D::Error> {
    object(deserializer).map(Some)
}

/// A policy's priority: brokers take any number, also broken and huge ones.
fn priority<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    let json = Json::deserialize(deserializer)?;
    let number = json.as_i64().or_else(|| {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a float becomes the nearest whole number"
        )]
        json.as_f64().map(|number| number as i64)
    });
    let number = number.unwrap_or(0);
    Ok(i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX }))
}

/// Tags: a list, or one text with commas (before 3.9 and from other clients).
fn tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(match Json::deserialize(deserializer)? {
        Json::Array(tags) => tags
            .iter()
            .filter_map(Json::as_str)
            .map(str::to_owned)
            .collect(),
        Json::String(text) => text
            .split(',')
            .filter(|tag| !tag.is_empty())
            .map(|tag| tag.trim().to_owned())
            .collect(),
        _ => Vec::new(),
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
        assert_eq!(queue.effective_policy_definition, Some(Map::new()));
        assert_eq!(queue.messages, None);
        let fresh: WireQueue = serde_json::from_str(r#"{"name":"q"}"#).expect("queue");
        assert_eq!(fresh.effective_policy_definition, None);
        let message: WireMessage =
            serde_json::from_str(r#"{"payload":"eA==","properties":[]}"#).expect("message");
        assert!(message.properties.is_empty());
    }
}
