//! One queue as it is now, and the delivery limit in force for it.

use serde_json::{Map, Value as Json};

use crate::broker::BrokerFacts;
use crate::deadletter::EffectiveLimit;
use crate::error::Result;
use crate::field::{FieldTable, table_from_json};
use crate::management::Management;
use crate::management::wire::WireQueue;
use crate::topology::{QueueName, QueueType, VhostName};

/// One queue as it is now.
#[derive(Clone, Debug)]
pub struct ObservedQueue {
    /// Its type; classic when the broker does not say.
    pub kind: QueueType,
    /// The delivery limit in force, as far as the broker tells it.
    pub limit: EffectiveLimit,
    /// All messages, if the broker counts them.
    pub messages: Option<u64>,
    /// Those ready for delivery.
    pub ready: Option<u64>,
    /// Those out for delivery.
    pub unacknowledged: Option<u64>,
    /// Its consumers.
    pub consumers: Option<u64>,
    /// Messages that were taken for good in all: acked, or delivered without acks.
    /// Counted since the node was started.
    pub taken: Option<u64>,
    /// The arguments it was declared with.
    pub arguments: FieldTable,
    /// The settings of all policies in force for it; empty also while the
    /// broker has no statistics of a queue that was just declared.
    pub policy: FieldTable,
    /// Bytes of all bodies, if the broker counts them.
    pub message_bytes: Option<u64>,
    /// Replicas of a quorum queue; 0 for the other types, and while the broker
    /// does not tell.
    pub members: usize,
    /// Whether it survives a restart.
    pub durable: bool,
    /// Whether it goes with its last consumer.
    pub auto_delete: bool,
    /// Whether it belongs to a connection.
    pub exclusive: bool,
}

impl ObservedQueue {
    /// Whether what is put back is held back for a while (`delayed-retry-*` of 4.3).
    #[must_use]
    pub fn holds_back_returns(&self) -> bool {
        self.arguments.contains_key("x-delayed-retry-type")
            || self.policy.contains_key("delayed-retry-type")
    }

    /// The delivery limit; where the broker does not tell it, the one that the
    /// arguments amount to.
    #[must_use]
    pub fn likely_limit(&self, facts: &BrokerFacts) -> EffectiveLimit {
        let number = |table: &FieldTable, name: &str| table.get(name)?.as_integer();
        match self.limit {
            EffectiveLimit::Unknown => EffectiveLimit::of(
                number(&self.arguments, "x-delivery-limit"),
                number(&self.policy, "delivery-limit"),
                facts,
            ),
            told => told,
        }
    }
}

impl Management {
    /// One queue: type, limit in force and counts.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it does not exist.
    pub async fn queue(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        facts: &BrokerFacts,
    ) -> Result<ObservedQueue> {
        let doing = format!("look at queue '{name}' in vhost '{vhost}'");
        let queue: WireQueue = self
            .get(&["queues", vhost.as_str(), name.as_str()], &doing)
            .await?;
        Ok(observed_now(&queue, facts))
    }

    /// The delivery limit and the policy settings of a quorum queue as they are
    /// now, where the broker tells them without statistics
    /// ([`BrokerFacts::tells_limits_without_statistics`]): those show a changed
    /// policy up to nine seconds late.
    ///
    /// # Errors
    /// When it does not exist.
    pub async fn limit_now(
        &self,
        vhost: &VhostName,
        name: &QueueName,
        facts: &BrokerFacts,
    ) -> Result<(EffectiveLimit, FieldTable)> {
        let doing = format!("look at queue '{name}' in vhost '{vhost}'");
        let path = ["queues", vhost.as_str(), name.as_str()];
        let without = [("disable_stats", "true")];
        let queue: WireQueue = self.get_with(&path, &without, &doing).await?;
        let policy = queue.effective_policy_definition.as_ref();
        Ok((
            told_limit(&queue, facts),
            policy.map(table_from_json).unwrap_or_default(),
        ))
    }
}

pub(super) fn kind_of(queue: &WireQueue) -> QueueType {
    let argument = queue.arguments.get("x-queue-type").and_then(Json::as_str);
    QueueType::from_name(queue.kind.as_deref().or(argument).unwrap_or("classic"))
}

/// The delivery limit in force: none on classic queues and streams; what 4.x
/// says itself, or what argument and policy amount to on 3.x. Nothing is assumed
/// of what the broker does not tell.
pub(super) fn told_limit(queue: &WireQueue, facts: &BrokerFacts) -> EffectiveLimit {
    if kind_of(queue) != QueueType::Quorum {
        return EffectiveLimit::None;
    }
    match (&queue.delivery_limit, &queue.effective_policy_definition) {
        (Some(Json::String(text)), _) if text == "unlimited" => EffectiveLimit::None,
        (Some(Json::Number(number)), _) if number.is_i64() => {
            EffectiveLimit::of(number.as_i64(), None, facts)
        }
        (None, Some(policy)) if !facts.tells_delivery_limits() => {
            let argument = integer(&queue.arguments, "x-delivery-limit");
            EffectiveLimit::of(argument, integer(policy, "delivery-limit"), facts)
        }
        _ => EffectiveLimit::Unknown,
    }
}

/// The same for a topology, where a limit that is not told is the one that was asked for.
pub(super) fn likely_limit(queue: &WireQueue, facts: &BrokerFacts) -> EffectiveLimit {
    let policy = queue.effective_policy_definition.as_ref();
    match told_limit(queue, facts) {
        EffectiveLimit::Unknown => EffectiveLimit::of(
            integer(&queue.arguments, "x-delivery-limit"),
            policy.and_then(|policy| integer(policy, "delivery-limit")),
            facts,
        ),
        told => told,
    }
}

/// What the broker says of it.
pub(super) fn observed_now(queue: &WireQueue, facts: &BrokerFacts) -> ObservedQueue {
    ObservedQueue {
        kind: kind_of(queue),
        limit: told_limit(queue, facts),
        messages: queue.messages,
        ready: queue.messages_ready,
        unacknowledged: queue.messages_unacknowledged,
        consumers: queue.consumers,
        taken: queue.messages.map(|_| {
            let stats = queue.message_stats.as_ref();
            stats.map_or(0, |stats| {
                stats.ack + stats.deliver_no_ack + stats.get_no_ack
            })
        }),
        arguments: table_from_json(&queue.arguments),
        policy: queue
            .effective_policy_definition
            .as_ref()
            .map(table_from_json)
            .unwrap_or_default(),
        message_bytes: queue.message_bytes,
        members: queue.members.len(),
        durable: queue.durable,
        auto_delete: queue.auto_delete,
        exclusive: queue.exclusive,
    }
}

pub(super) fn integer(object: &Map<String, Json>, name: &str) -> Option<i64> {
    object.get(name).and_then(Json::as_i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_limit_is_what_the_broker_tells_and_nothing_else() {
        for (version, json, expected) in [
            (
                "4.0.5",
                json!({"delivery_limit": 20}),
                EffectiveLimit::Finite(20),
            ),
            (
                "4.0.5",
                json!({"delivery_limit": "unlimited"}),
                EffectiveLimit::None,
            ),
            // Without statistics 4.3 gives the number that was set.
            ("4.3.6", json!({"delivery_limit": -1}), EffectiveLimit::None),
            (
                "4.0.5",
                json!({"delivery_limit": null}),
                EffectiveLimit::Unknown,
            ),
            ("4.0.5", json!({}), EffectiveLimit::Unknown),
            (
                "4.3.6",
                json!({"arguments": {"x-delivery-limit": -1}, "effective_policy_definition": {}}),
                EffectiveLimit::Unknown,
            ),
            ("3.10.8", json!({}), EffectiveLimit::Unknown),
            (
                "3.10.8",
                json!({"effective_policy_definition": []}),
                EffectiveLimit::None,
            ),
            (
                "3.10.8",
                json!({"arguments": {"x-delivery-limit": 9}, "effective_policy_definition": {"delivery-limit": 5}}),
                EffectiveLimit::Finite(5),
            ),
        ] {
            let mut json = json;
            json["type"] = json!("quorum");
            let facts = BrokerFacts::new("RabbitMQ", version);
            let queue = serde_json::from_value(json.clone()).expect("wire");
            assert_eq!(told_limit(&queue, &facts), expected, "{version} {json}");
        }
    }
}
