//! What is in a vhost and what its clients do there: for the checks of `mq doctor`.

use std::collections::BTreeMap;

use crate::broker::BrokerFacts;
use crate::doctor::{QueueCounts, QueueSeen, VhostContents};
use crate::error::Result;
use crate::field::table_from_json;
use crate::management::Management;
use crate::management::observe::{Detail, assemble};
use crate::management::queue::{kind_of, told_limit};
use crate::management::wire::WireQueue;
use crate::topology::{QueueName, VhostName};

impl Management {
    /// Exchanges, queues and bindings of a vhost with everything that the broker
    /// counts in its queues, in one request for each kind. Queues of single
    /// connections are left out.
    ///
    /// # Errors
    /// When the vhost cannot be read.
    pub async fn contents(&self, vhost: &VhostName, facts: &BrokerFacts) -> Result<VhostContents> {
        let (exchanges, queues, bindings) = self.ask(vhost, Detail::Worked).await?;
        let seen: BTreeMap<QueueName, QueueSeen> = queues
            .iter()
            .filter(|queue| !queue.exclusive)
            .map(|queue| Ok((QueueName::new(queue.name.clone())?, seen(queue, facts))))
            .collect::<Result<_>>()?;
        let topology = assemble(exchanges, &queues, bindings, facts, Detail::Worked)?;
        Ok(VhostContents::new(topology, seen, facts))
    }
}

fn seen(queue: &WireQueue, facts: &BrokerFacts) -> QueueSeen {
    let policy = queue.effective_policy_definition.as_ref();
    let named = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
    QueueSeen {
        kind: kind_of(queue),
        limit: told_limit(queue, facts),
        durable: queue.durable,
        auto_delete: queue.auto_delete,
        messages: queue.messages,
        consumers: queue.consumers,
        arguments: table_from_json(&queue.arguments),
        policy: policy.map(table_from_json),
        policy_name: named(&queue.policy),
        operator_policy_name: named(&queue.operator_policy),
        members: queue.members.len(),
        counts: counts(queue),
    }
}

fn counts(queue: &WireQueue) -> QueueCounts {
    let growth = queue.messages_details.rate;
    let Some(stats) = &queue.message_stats else {
        return QueueCounts {
            growth,
            ..QueueCounts::default()
        };
    };
    QueueCounts {
        published: stats.publish,
        publish_rate: stats.publish_details.rate,
        delivered: stats.deliver,
        deliver_rate: stats.deliver_details.rate,
        redelivered: stats.redeliver,
        redeliver_rate: stats.redeliver_details.rate,
        acked: stats.ack,
        ack_rate: stats.ack_details.rate,
        growth,
    }
}
