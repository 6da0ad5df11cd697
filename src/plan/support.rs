//! What a file asks for that this version of the broker does not do.
//!
//! Brokers store arguments that they do not know and never say so: a delay or
//! a guarantee would be believed in and not be there. So it is asked before
//! anything is changed.

use std::fmt;

use crate::broker::BrokerFacts;
use crate::field::FieldValue;
use crate::plan::Object;
use crate::topology::{
    ApplyTo, Binding, DeadLetterStrategy, ExchangeType, Policy, PolicyKind, PolicyName, Queue,
    QueueName, QueueType, Topology,
};

/// One thing that the broker would refuse or silently leave out.
#[derive(Clone, Debug, PartialEq)]
pub struct Unsupported {
    /// Whose it is.
    pub object: Object,
    /// The key of the file, or the setting of a policy.
    pub what: String,
    /// From which version on it works, or no longer does.
    pub when: &'static str,
    /// What to do instead.
    pub way_out: &'static str,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}` {}", self.object, self.what, self.when)
    }
}

/// Everything of a topology that a broker like `facts` does not do.
#[must_use]
pub fn unsupported(topology: &Topology, facts: &BrokerFacts) -> Vec<Unsupported> {
    let queues = topology
        .queues
        .iter()
        .flat_map(|(name, queue)| of_queue(name, queue, facts));
    let policies = topology
        .policies
        .iter()
        .flat_map(|((kind, name), policy)| of_policy(*kind, name, policy, facts));
    let asks_for_type = topology
        .vhost_settings
        .as_ref()
        .is_some_and(|settings| settings.default_queue_type.is_some());
    let vhost = (asks_for_type && !facts.has_default_queue_type()).then(|| Unsupported {
        object: Object::Vhost,
        what: "default_queue_type".to_owned(),
        when: "is known since RabbitMQ 3.12",
        way_out: "leave it out, and write the `type` of each queue",
    });
    let bindings = topology
        .bindings
        .iter()
        .filter_map(|binding| of_binding(topology, binding, facts));
    vhost
        .into_iter()
        .chain(queues)
        .chain(policies)
        .chain(bindings)
        .collect()
}

const SINCE_TIMEOUT: &str = "is known since RabbitMQ 3.12";
const NODE_TIMEOUT: &str = "leave it out; before 3.12 the timeout is a setting of the node";
const SINCE_DELAY: &str = "is known since RabbitMQ 4.3";
const NO_DELAY: &str =
    "leave it out, and retry through a wait queue: `workers:` with `retry: { strategy: dlx }`";
const SINCE_STRATEGY: &str = "is known since RabbitMQ 3.10";
const NO_STRATEGY: &str = "leave it out: older brokers dead-letter at most once";
const SINCE_FILTER: &str = "is known since RabbitMQ 3.13";
const NO_FILTER: &str = "leave it out: older brokers do not filter streams";

fn of_binding(topology: &Topology, binding: &Binding, facts: &BrokerFacts) -> Option<Unsupported> {
    let most = facts.most_hashes_in_a_topic_key()?;
    let hashes = binding.key.as_str().split('.').filter(|word| *word == "#");
    let is_topic = topology
        .exchange(&binding.source)
        .is_some_and(|exchange| exchange.kind == ExchangeType::Topic);
    (is_topic && hashes.count() > most).then(|| Unsupported {
        object: Object::Binding(binding.clone()),
        what: "key".to_owned(),
        when: "has more than two `#`, which RabbitMQ 4.3 refuses",
        way_out: "`#` takes any number of words; two bindings can say what three of them did",
    })
}

fn of_queue(name: &QueueName, queue: &Queue, facts: &BrokerFacts) -> Vec<Unsupported> {
    let is_quorum = queue.kind == Some(QueueType::Quorum);
    let asks_for_strategy = queue.dead_letter_strategy == Some(DeadLetterStrategy::AtLeastOnce);
    let timeout = queue.consumer_timeout.is_some();
    [
        (
            queue.delayed_retry.is_some() && !facts.delays_retries(),
            "delayed_retry",
            SINCE_DELAY,
            NO_DELAY,
        ),
        (
            timeout && !facts.has_consumer_timeout_per_queue(),
            "consumer_timeout",
            SINCE_TIMEOUT,
            NODE_TIMEOUT,
        ),
        (
            timeout && !is_quorum && facts.consumer_timeout_is_for_quorum_queues_only(),
            "consumer_timeout",
            "is for quorum queues only since RabbitMQ 4.3",
            "leave it out, or write `type: quorum`",
        ),
        (
            asks_for_strategy && !facts.dead_letters_at_least_once(),
            "strategy: at-least-once",
            SINCE_STRATEGY,
            NO_STRATEGY,
        ),
        (
            queue.filter_size.is_some() && !facts.filters_streams(),
            "filter_size",
            SINCE_FILTER,
            NO_FILTER,
        ),
        (
            !is_quorum
                && queue.arguments.get("x-queue-version") == Some(&FieldValue::I64(1))
                && facts.refuses_classic_version_1(),
            "x-queue-version: 1",
            "is refused since RabbitMQ 4.3",
            "leave it out: every queue has version 2 there",
        ),
    ]
    .into_iter()
    .filter(|(lacking, ..)| *lacking)
    .map(|(_, what, when, way_out)| Unsupported {
        object: Object::Queue(name.clone()),
        what: what.to_owned(),
        when,
        way_out,
    })
    .collect()
}

fn of_policy(
    kind: PolicyKind,
    name: &PolicyName,
    policy: &Policy,
    facts: &BrokerFacts,
) -> Vec<Unsupported> {
    let mut found = Vec::new();
    let mut lacks = |what: String, when, way_out| {
        found.push(Unsupported {
            object: Object::Policy(kind, name.clone()),
            what,
            when,
            way_out,
        });
    };
    match policy.apply_to {
        ApplyTo::All | ApplyTo::Queues | ApplyTo::Exchanges => {}
        by_type @ (ApplyTo::ClassicQueues | ApplyTo::QuorumQueues | ApplyTo::Streams) => {
            if !facts.has_policies_by_queue_type() {
                lacks(
                    format!("apply_to: {by_type}"),
                    "is known since RabbitMQ 3.12",
                    "write `apply_to: queues` and a pattern that matches these queues only",
                );
            }
        }
    }
    for setting in policy.definition.keys() {
        let (lacking, when, way_out) = match setting.as_str() {
            "delayed-retry-type" | "delayed-retry-min" | "delayed-retry-max" => (
                !facts.delays_retries_by_policy(),
                "is known in policies since RabbitMQ 4.3.1",
                NO_DELAY,
            ),
            "consumer-timeout" => (
                !facts.has_consumer_timeout_per_queue(),
                SINCE_TIMEOUT,
                NODE_TIMEOUT,
            ),
            "dead-letter-strategy" => (
                !facts.dead_letters_at_least_once(),
                SINCE_STRATEGY,
                NO_STRATEGY,
            ),
            "stream-filter-size-bytes" => (!facts.filters_streams(), SINCE_FILTER, NO_FILTER),
            _ => continue,
        };
        if lacking {
            lacks(setting.clone(), when, way_out);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(yaml: &str, version: &str) -> Vec<String> {
        let topology = crate::topologyfile::parsed(yaml);
        unsupported(&topology, &BrokerFacts::new("RabbitMQ", version))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn each_version_does_more_than_the_one_before() {
        let yaml = "
vhost: { default_queue_type: quorum }
queues:
  classic: { type: classic, consumer_timeout: 10m }
  late: { type: quorum, delayed_retry: { type: all, min: 1s } }
  safe: { type: quorum, overflow: reject-publish, dead_letter: { exchange: '', key: late, strategy: at-least-once } }
  stream: { type: stream, filter_size: 32B }
policies:
  p: { pattern: '^x', apply_to: quorum_queues, definition: { delayed-retry-min: 1, consumer-timeout: 60000 } }
";
        let quorum_only =
            "queue 'classic': `consumer_timeout` is for quorum queues only since RabbitMQ 4.3";
        let delay = "queue 'late': `delayed_retry` is known since RabbitMQ 4.3";
        let by_policy = "policy 'p': `delayed-retry-min` is known in policies since RabbitMQ 4.3.1";
        let old = [
            "the vhost: `default_queue_type` is known since RabbitMQ 3.12",
            "queue 'classic': `consumer_timeout` is known since RabbitMQ 3.12",
            delay,
            "queue 'stream': `filter_size` is known since RabbitMQ 3.13",
            "policy 'p': `apply_to: quorum_queues` is known since RabbitMQ 3.12",
            "policy 'p': `consumer-timeout` is known since RabbitMQ 3.12",
            by_policy,
        ];
        let refused = "
exchanges: { t: { type: topic }, d: { type: direct } }
queues: { q: { type: classic, arguments: { x-queue-version: 1 } } }
bindings: [{ source: t, destination: q, key: '#.a.#.b.#' }, { source: d, destination: q, key: '#.#.#' }]
";
        assert_eq!(
            found(refused, "4.3.6"),
            [
                "queue 'q': `x-queue-version: 1` is refused since RabbitMQ 4.3",
                "binding from 't' to queue 'q' with key '#.a.#.b.#': `key` has more than two `#`, which RabbitMQ 4.3 refuses",
            ]
        );
        assert!(found(refused, "4.0.5").is_empty());
        assert_eq!(found(yaml, "3.10.8"), old);
        assert_eq!(found(yaml, "3.9.1").len(), old.len() + 1);
        assert_eq!(found(yaml, "4.0.5"), [delay, by_policy]);
        assert_eq!(found(yaml, "4.3.0"), [quorum_only, by_policy]);
        assert_eq!(found(yaml, "4.3.6"), [quorum_only]);
    }
}
