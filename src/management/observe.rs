//! What exists on the broker, as a [`Topology`] with policies taken into account.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::try_join3;
use serde_json::{Map, Value as Json};

use crate::broker::BrokerFacts;
use crate::deadletter::EffectiveLimit;
use crate::error::{Error, ErrorKind, Result};
use crate::field::{table_from_json, table_to_json};
use crate::management::queue::{integer, kind_of, likely_limit, observed_now};
use crate::management::wire::{WireBinding, WireExchange, WireQueue};
use crate::management::{Management, ObservedQueue};
use crate::topology::{
    Binding, DeadLetterKey, DeadLetterStrategy, DeadLettering, DelayedRetry, DelayedRetryType,
    DeliveryLimit, Destination, Exchange, ExchangeName, ExchangeType, Overflow, PolicyKind,
    PolicyName, Queue, QueueName, RoutingKey, Topology, VhostName,
};

/// A topology with what the broker says and counts of each queue.
#[derive(Clone, Debug)]
pub struct CountedTopology {
    /// What there is, policies in force.
    pub topology: Topology,
    /// Each queue that is not exclusive.
    pub queues: BTreeMap<QueueName, ObservedQueue>,
    /// How many of them are so new that the broker does not tell yet which
    /// policies are in force for them.
    pub untold: usize,
}

impl Management {
    /// Every exchange, queue and binding of a vhost. A queue's dead-lettering and
    /// TTL are the effective ones: its argument, else the policy. The broker's
    /// version in `facts` decides on limits that it does not tell itself.
    ///
    /// # Errors
    /// When the vhost cannot be read.
    pub async fn topology(&self, vhost: &VhostName, facts: &BrokerFacts) -> Result<Topology> {
        self.read(vhost, facts, Detail::Effective).await
    }

    /// The same as it was declared, without policies: what a plan compares.
    /// Ten times faster on a vhost of 10,000 queues, because brokers leave the
    /// statistics alone (`disable_stats`, measured on 3.10, 4.0 and 4.3), but
    /// before 4.3 they leave out then which policy is in force.
    ///
    /// # Errors
    /// When the vhost cannot be read.
    pub async fn declared(&self, vhost: &VhostName, facts: &BrokerFacts) -> Result<Topology> {
        self.read(vhost, facts, Detail::Declared).await
    }

    /// One request a kind, all at once. Pages would cost the broker more: each
    /// page of 500 takes a third to two thirds of the time of the whole list of
    /// 10,000, on every version.
    async fn read(
        &self,
        vhost: &VhostName,
        facts: &BrokerFacts,
        detail: Detail,
    ) -> Result<Topology> {
        let (exchanges, queues, bindings) = self.ask(vhost, detail).await?;
        assemble(exchanges, &queues, bindings, facts, detail)
    }

    /// A topology as [`Self::topology`] gives it, and what the broker says and
    /// counts of each queue. Exclusive queues are left out.
    ///
    /// # Errors
    /// When the vhost cannot be read.
    pub async fn counted(&self, vhost: &VhostName, facts: &BrokerFacts) -> Result<CountedTopology> {
        let (exchanges, queues, bindings) = self.ask(vhost, Detail::Counted).await?;
        let observed = queues.iter().filter(|queue| !queue.exclusive);
        let observed = observed
            .map(|queue| {
                Ok((
                    QueueName::new(queue.name.clone())?,
                    observed_now(queue, facts),
                ))
            })
            .collect::<Result<_>>()?;
        let untold = queues.iter().filter(|queue| !queue.exclusive);
        let untold = untold.filter(|queue| queue.effective_policy_definition.is_none());
        Ok(CountedTopology {
            untold: untold.count(),
            topology: assemble(exchanges, &queues, bindings, facts, Detail::Counted)?,
            queues: observed,
        })
    }

    pub(super) async fn ask(
        &self,
        vhost: &VhostName,
        detail: Detail,
    ) -> Result<(Vec<WireExchange>, Vec<WireQueue>, Vec<WireBinding>)> {
        let doing = format!("read the topology of vhost '{vhost}'");
        let name = vhost.as_str();
        let (mut exchanges, queues, bindings) = try_join3(
            self.list::<WireExchange>(&["exchanges", name], detail.exchanges(), &doing),
            self.list::<WireQueue>(&["queues", name], detail.queues(), &doing),
            self.list::<WireBinding>(&["bindings", name], BINDINGS, &doing),
        )
        .await?;
        if !matches!(detail, Detail::Declared) {
            self.tell_policies(vhost, &mut exchanges).await?;
        }
        Ok((exchanges, queues, bindings))
    }

    /// What the policies of exchanges say, where the broker gives only their names
    /// (3.10.8 and 4.0.5). Who may not read policies does not see alternate exchanges
    /// that they set.
    async fn tell_policies(&self, vhost: &VhostName, exchanges: &mut [WireExchange]) -> Result<()> {
        let is_untold = |exchange: &&mut WireExchange| {
            exchange.policy.is_some() && exchange.effective_policy_definition.is_empty()
        };
        if !exchanges.iter_mut().any(|exchange| is_untold(&exchange)) {
            return Ok(());
        }
        let policies = match self.policies(vhost).await {
            Ok(policies) => policies,
            Err(error) if error.kind() == ErrorKind::AccessRefused => return Ok(()),
            Err(error) => return Err(error),
        };
        for exchange in exchanges.iter_mut().filter(is_untold) {
            let name = exchange.policy.clone().unwrap_or_default();
            let key = (PolicyKind::User, PolicyName::new(name)?);
            if let Some(Json::Object(definition)) = policies
                .get(&key)
                .map(|policy| table_to_json(&policy.definition))
            {
                exchange.effective_policy_definition = definition;
            }
        }
        Ok(())
    }
}

/// What was read, as a topology.
pub(super) fn assemble(
    exchanges: Vec<WireExchange>,
    queues: &[WireQueue],
    bindings: Vec<WireBinding>,
    facts: &BrokerFacts,
    detail: Detail,
) -> Result<Topology> {
    let mut topology = Topology::default();
    for exchange in exchanges {
        // The broker's own exchanges are everywhere and need no entry.
        let name = ExchangeName::new(exchange.name.clone())?;
        if !name.is_empty() && Exchange::predeclared(&name).is_none() {
            topology
                .exchanges
                .insert(name, observed_exchange(&exchange)?);
        }
    }
    // An exclusive queue belongs to a connection and goes with it.
    for queue in queues.iter().filter(|queue| !queue.exclusive) {
        let name = QueueName::new(queue.name.clone())?;
        topology.queues.insert(name, observed_queue(queue, facts)?);
    }
    for binding in bindings {
        let binding = observed_binding(binding)?;
        let to_nobody = match &binding.destination {
            Destination::Queue(queue) => !topology.queues.contains_key(queue),
            Destination::Exchange(_) => false,
        };
        // Whoever deletes must see what feeds a queue of a single connection.
        let to_nobody = to_nobody && !matches!(detail, Detail::Declared);
        // The default exchange's implicit bindings are not bindings of ours.
        if !binding.source.is_empty() && !to_nobody {
            topology.bindings.push(binding);
        }
    }
    Ok(topology)
}

/// How much is to be known of queues and exchanges.
#[derive(Clone, Copy)]
pub(super) enum Detail {
    /// As they were declared.
    Declared,
    /// With the policies in force.
    Effective,
    /// The same, and with what the broker counts.
    Counted,
    /// The same, and with what clients do there.
    Worked,
}

impl Detail {
    const fn queues(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Declared => &[
                ("disable_stats", "true"),
                (
                    "columns",
                    "name,durable,auto_delete,exclusive,type,arguments",
                ),
            ],
            Self::Effective => &[(
                "columns",
                "name,durable,auto_delete,exclusive,type,arguments,effective_policy_definition,delivery_limit",
            )],
            Self::Counted => &[(
                "columns",
                "name,durable,auto_delete,exclusive,type,arguments,effective_policy_definition,delivery_limit,messages,messages_ready,messages_unacknowledged,message_bytes,consumers,message_stats.ack,message_stats.deliver_no_ack,message_stats.get_no_ack",
            )],
            Self::Worked => &[(
                "columns",
                "name,durable,auto_delete,exclusive,type,arguments,effective_policy_definition,policy,operator_policy,delivery_limit,messages,messages_details.rate,consumers,members,message_stats.publish,message_stats.publish_details.rate,message_stats.deliver,message_stats.deliver_details.rate,message_stats.redeliver,message_stats.redeliver_details.rate,message_stats.ack,message_stats.ack_details.rate",
            )],
        }
    }

    const fn exchanges(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Declared => &[
                ("disable_stats", "true"),
                (
                    "columns",
                    "name,type,durable,auto_delete,internal,arguments",
                ),
            ],
            Self::Effective | Self::Counted | Self::Worked => &[(
                "columns",
                "name,type,durable,auto_delete,internal,arguments,policy,effective_policy_definition",
            )],
        }
    }
}

const BINDINGS: &[(&str, &str)] = &[(
    "columns",
    "source,destination,destination_type,routing_key,arguments",
)];

fn observed_exchange(wire: &WireExchange) -> Result<Exchange> {
    let alternate = wire
        .arguments
        .get("alternate-exchange")
        .or_else(|| wire.effective_policy_definition.get("alternate-exchange"))
        .and_then(Json::as_str)
        .map(ExchangeName::new)
        .transpose()?;
    Ok(Exchange {
        kind: ExchangeType::from_name(&wire.kind),
        durable: wire.durable,
        auto_delete: wire.auto_delete,
        internal: wire.internal,
        alternate,
        arguments: table_from_json(&wire.arguments),
    })
}

fn observed_queue(wire: &WireQueue, facts: &BrokerFacts) -> Result<Queue> {
    let arguments = &wire.arguments;
    let no_policy = Map::new();
    let policy = wire
        .effective_policy_definition
        .as_ref()
        .unwrap_or(&no_policy);
    let text = |argument: &str, key: &str| {
        arguments
            .get(argument)
            .or_else(|| policy.get(key))
            .and_then(Json::as_str)
            .map(str::to_owned)
    };
    let dead_lettering = match text("x-dead-letter-exchange", "dead-letter-exchange") {
        None => None,
        Some(exchange) => Some(DeadLettering {
            exchange: ExchangeName::new(exchange)?,
            key: match text("x-dead-letter-routing-key", "dead-letter-routing-key") {
                None => DeadLetterKey::Kept,
                Some(key) => DeadLetterKey::Replaced(RoutingKey::new(key)?),
            },
        }),
    };
    // For numbers the smaller of argument and policy is in force.
    let smaller = |argument: &str, key: &str| {
        [integer(arguments, argument), integer(policy, key)]
            .into_iter()
            .flatten()
            .min()
            .and_then(|number| u64::try_from(number).ok())
    };
    Ok(Queue {
        kind: Some(kind_of(wire)),
        delivery_limit: match likely_limit(wire, facts) {
            EffectiveLimit::None => Some(DeliveryLimit::Unlimited),
            EffectiveLimit::Unknown => None,
            EffectiveLimit::Finite(limit) => {
                Some(DeliveryLimit::Finite(u32::try_from(limit).unwrap_or(0)))
            }
        },
        max_length: smaller("x-max-length", "max-length"),
        max_length_bytes: smaller("x-max-length-bytes", "max-length-bytes"),
        overflow: text("x-overflow", "overflow")
            .as_deref()
            .and_then(Overflow::from_name),
        durable: wire.durable,
        auto_delete: wire.auto_delete,
        dead_lettering,
        dead_letter_strategy: text("x-dead-letter-strategy", "dead-letter-strategy")
            .as_deref()
            .and_then(DeadLetterStrategy::from_name),
        message_ttl: smaller("x-message-ttl", "message-ttl").map(Duration::from_millis),
        expires: smaller("x-expires", "expires").map(Duration::from_millis),
        delayed_retry: delayed_retry(arguments, policy),
        single_active_consumer: arguments.get("x-single-active-consumer")
            == Some(&Json::Bool(true)),
        arguments: table_from_json(arguments),
        ..Queue::default()
    })
}

/// Which returns the queue holds back. A policy decides the kind, of two delays
/// the smaller is in force (source of rabbit_quorum_queue, v4.3.0).
fn delayed_retry(
    arguments: &Map<String, Json>,
    policy: &Map<String, Json>,
) -> Option<DelayedRetry> {
    let kind = policy
        .get("delayed-retry-type")
        .or_else(|| arguments.get("x-delayed-retry-type"))?
        .as_str()?;
    let delay = |name: &str| {
        [
            integer(arguments, &format!("x-{name}")),
            integer(policy, name),
        ]
        .into_iter()
        .flatten()
        .min()
        .and_then(|number| u64::try_from(number).ok())
        .map(Duration::from_millis)
    };
    Some(DelayedRetry {
        kind: DelayedRetryType::from_name(kind)?,
        min: delay("delayed-retry-min")?,
        max: delay("delayed-retry-max"),
    })
}

pub(super) fn observed_binding(wire: WireBinding) -> Result<Binding> {
    let destination = match wire.destination_type.as_str() {
        "queue" => Destination::Queue(QueueName::new(wire.destination)?),
        "exchange" => Destination::Exchange(ExchangeName::new(wire.destination)?),
        other => {
            return Err(Error::new(
                ErrorKind::Protocol,
                format!("the management API shows a binding to a '{other}'"),
            ));
        }
    };
    Ok(Binding {
        source: ExchangeName::new(wire.source)?,
        destination,
        key: RoutingKey::new(wire.routing_key)?,
        arguments: table_from_json(&wire.arguments),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn queue(json: Json) -> Queue {
        let facts = BrokerFacts::new("RabbitMQ", "4.0.5");
        observed_queue(&serde_json::from_value(json).expect("wire"), &facts).expect("queue")
    }

    #[test]
    fn an_argument_wins_over_the_policy_and_the_smaller_ttl_over_the_larger() {
        let queue = queue(json!({
            "name": "q", "durable": true,
            "arguments": {"x-dead-letter-exchange": "a", "x-message-ttl": 500},
            "effective_policy_definition":
                {"dead-letter-exchange": "b", "dead-letter-routing-key": "k", "message-ttl": 100},
        }));
        let dead_lettering = queue.dead_lettering.expect("dead-lettering");
        assert_eq!(dead_lettering.exchange.as_str(), "a");
        assert_eq!(queue.message_ttl, Some(Duration::from_millis(100)));
    }

    #[test]
    fn dead_lettering_by_policy_alone_is_seen() {
        let queue = queue(json!({
            "name": "q", "arguments": {},
            "effective_policy_definition": {"dead-letter-exchange": "b"},
        }));
        assert_eq!(
            queue.dead_lettering,
            Some(DeadLettering {
                exchange: ExchangeName::new("b").expect("name"),
                key: DeadLetterKey::Kept,
            })
        );
    }
}
