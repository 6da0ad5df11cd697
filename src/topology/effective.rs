//! What a queue really does: its arguments and the policies in force, together.

use std::time::Duration;

use crate::field::{FieldTable, FieldValue};
use crate::topology::{
    DeadLetterKey, DeadLetterStrategy, DeadLettering, DelayedRetry, DelayedRetryType,
    DeliveryLimit, ExchangeName, Overflow, Policy, PolicyKind, Queue, QueueName, QueueType,
    RoutingKey, Topology,
};

impl Topology {
    /// The queue with the policies of this topology in force: an argument wins
    /// over a user policy, of two numbers the smaller is in force, and an
    /// operator policy limits both (parameters.md, dlx.md).
    #[must_use]
    pub fn effective_queue(&self, name: &QueueName) -> Option<Queue> {
        let mut queue = self.queues.get(name)?.clone();
        let user = self.policy_of(PolicyKind::User, name, &queue);
        let operator = self.policy_of(PolicyKind::Operator, name, &queue);
        if let Some(policy) = user {
            let policy = &policy.definition;
            queue.dead_lettering = dead_lettering(queue.dead_lettering, policy);
            queue.overflow = queue.overflow.or_else(|| overflow(policy));
            queue.dead_letter_strategy = queue
                .dead_letter_strategy
                .or_else(|| DeadLetterStrategy::from_name(text(policy, "dead-letter-strategy")?));
            queue.delayed_retry = queue.delayed_retry.or_else(|| delayed_retry(policy));
        }
        for policy in [user, operator].into_iter().flatten() {
            let number = |name: &str| policy.definition.get(name).and_then(FieldValue::as_integer);
            let positive = |name: &str| number(name).and_then(|n| u64::try_from(n).ok());
            let ttl = positive("message-ttl").map(Duration::from_millis);
            queue.message_ttl = smaller(queue.message_ttl, ttl);
            let expires = positive("expires").map(Duration::from_millis);
            queue.expires = smaller(queue.expires, expires);
            queue.max_length = smaller(queue.max_length, positive("max-length"));
            queue.max_length_bytes = smaller(queue.max_length_bytes, positive("max-length-bytes"));
            queue.delivery_limit = match (queue.delivery_limit, number("delivery-limit")) {
                (limit, None) => limit,
                (Some(DeliveryLimit::Finite(limit)), Some(policy)) => {
                    Some(DeliveryLimit::Finite(match u32::try_from(policy) {
                        Ok(policy) => limit.min(policy),
                        Err(_) => limit,
                    }))
                }
                (None | Some(DeliveryLimit::Unlimited), Some(policy)) => {
                    Some(match u32::try_from(policy) {
                        Ok(policy) => DeliveryLimit::Finite(policy),
                        Err(_) => DeliveryLimit::Unlimited,
                    })
                }
            };
        }
        Some(queue)
    }

    /// Where messages go that no binding of the exchange takes: by its argument,
    /// else by the user policy in force for it.
    #[must_use]
    pub fn effective_alternate(&self, name: &ExchangeName) -> Option<ExchangeName> {
        if let Some(alternate) = &self.exchanges.get(name)?.alternate {
            return Some(alternate.clone());
        }
        let policy = self
            .policies
            .iter()
            .filter(|((kind, _), policy)| {
                *kind == PolicyKind::User && policy.takes_exchange(name.as_str())
            })
            .map(|(_, policy)| policy)
            .max_by_key(|policy| policy.priority)?;
        ExchangeName::new(text(&policy.definition, "alternate-exchange")?).ok()
    }

    /// What the policies of this topology set for a queue of that name and type.
    #[must_use]
    pub fn policy_settings(&self, name: &QueueName, kind: Option<&QueueType>) -> FieldTable {
        let queue = Queue {
            kind: kind.cloned(),
            ..Queue::default()
        };
        let user = self.policy_of(PolicyKind::User, name, &queue);
        let operator = self.policy_of(PolicyKind::Operator, name, &queue);
        [user, operator]
            .into_iter()
            .flatten()
            .flat_map(|policy| policy.definition.clone())
            .collect()
    }

    /// The policy of one kind that is in force: the highest priority that matches.
    fn policy_of(&self, kind: PolicyKind, name: &QueueName, queue: &Queue) -> Option<&Policy> {
        self.policies
            .iter()
            .filter(|((its_kind, _), policy)| {
                *its_kind == kind && policy.takes_queue(name.as_str(), queue.kind.as_ref())
            })
            .map(|(_, policy)| policy)
            .max_by_key(|policy| policy.priority)
    }
}

/// Exchange and key are looked for one by one, first in the arguments.
fn dead_lettering(own: Option<DeadLettering>, policy: &FieldTable) -> Option<DeadLettering> {
    let by_policy = || {
        let exchange = ExchangeName::new(text(policy, "dead-letter-exchange")?).ok()?;
        let key = DeadLetterKey::Kept;
        Some(DeadLettering { exchange, key })
    };
    let mut found = own.or_else(by_policy)?;
    if found.key == DeadLetterKey::Kept
        && let Some(key) = text(policy, "dead-letter-routing-key")
    {
        found.key = DeadLetterKey::Replaced(RoutingKey::new(key).ok()?);
    }
    Some(found)
}

fn delayed_retry(policy: &FieldTable) -> Option<DelayedRetry> {
    let duration = |setting: &str| {
        let milliseconds = policy.get(setting)?.as_integer()?;
        u64::try_from(milliseconds).ok().map(Duration::from_millis)
    };
    Some(DelayedRetry {
        kind: DelayedRetryType::from_name(text(policy, "delayed-retry-type")?)?,
        min: duration("delayed-retry-min")?,
        max: duration("delayed-retry-max"),
    })
}

fn overflow(policy: &FieldTable) -> Option<Overflow> {
    Overflow::from_name(text(policy, "overflow")?)
}

fn text<'p>(policy: &'p FieldTable, setting: &str) -> Option<&'p str> {
    policy.get(setting)?.as_text()
}

fn smaller<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Source;

    fn effective(queue: &str, policies: &str) -> Queue {
        let source = Source {
            name: "t.yaml".to_owned(),
            text: format!(
                "version: 1\nexchanges: {{ a: {{ type: fanout }}, b: {{ type: fanout }} }}\nqueues: {{ q: {{ {queue} }} }}\n{policies}"
            ),
        };
        let topology = crate::topologyfile::parse(std::slice::from_ref(&source), &|_| None)
            .unwrap_or_else(|found| panic!("{}", crate::diagnostic::render(&found, &[source])));
        topology
            .effective_queue(&QueueName::new("q").expect("name"))
            .expect("queue")
    }

    #[test]
    fn the_highest_priority_counts_and_arguments_win() {
        let policies = "policies:
  low: { pattern: '.*', definition: { dead-letter-exchange: a, message-ttl: 100 } }
  high: { pattern: '^q$', priority: 5, definition: { dead-letter-exchange: b, dead-letter-routing-key: k, max-length: 9 } }
  others: { pattern: '^x', priority: 9, definition: { max-length: 1 } }
operator_policies:
  cap: { pattern: '.*', definition: { max-length: 7, message-ttl: 50 } }
";
        let queue = effective("max_length: 8", policies);
        let dead_lettering = queue.dead_lettering.expect("dead-lettering");
        assert_eq!(dead_lettering.exchange.as_str(), "b");
        assert_eq!(queue.max_length, Some(7));
        assert_eq!(queue.message_ttl, Some(Duration::from_millis(50)));

        let own = effective("dead_letter: { exchange: a, key: own }", policies);
        assert_eq!(own.dead_lettering.expect("own").exchange.as_str(), "a");

        // The broker looks for each setting by itself.
        let mixed = effective("dead_letter: { exchange: a }", policies);
        let dead_lettering = mixed.dead_lettering.expect("mixed");
        assert_eq!(dead_lettering.exchange.as_str(), "a");
        assert_eq!(
            dead_lettering.key,
            DeadLetterKey::Replaced(RoutingKey::new("k").expect("key"))
        );
    }

    #[test]
    fn an_alternate_exchange_can_come_from_a_policy() {
        let mut topology = Topology::default();
        let definition =
            FieldTable::from([("alternate-exchange".to_owned(), FieldValue::text("rest"))]);
        let policy = Policy {
            pattern: crate::topology::Pattern::new("^in").expect("pattern"),
            apply_to: crate::topology::ApplyTo::Exchanges,
            priority: 0,
            definition,
            description: None,
        };
        let name = crate::topology::PolicyName::new("p").expect("name");
        topology.policies.insert((PolicyKind::User, name), policy);
        let mut alternate = |name: &str, own: Option<&str>| {
            let mut exchange =
                crate::topology::Exchange::durable(crate::topology::ExchangeType::Topic);
            exchange.alternate = own.map(|own| ExchangeName::new(own).expect("name"));
            let name = ExchangeName::new(name).expect("name");
            topology.exchanges.insert(name.clone(), exchange);
            let found = topology.effective_alternate(&name);
            found.map(|name| name.to_string())
        };
        assert_eq!(alternate("in", None).as_deref(), Some("rest"));
        assert_eq!(alternate("in", Some("own")).as_deref(), Some("own"));
        assert_eq!(alternate("out", None), None);
    }

    #[test]
    fn delayed_retries_and_the_dead_letter_strategy_can_come_from_a_policy() {
        let queue = effective(
            "type: quorum, overflow: reject-publish",
            "policies: { p: { pattern: q, definition: { delayed-retry-type: all, delayed-retry-min: 100, dead-letter-strategy: at-least-once } } }\n",
        );
        let delayed = queue.delayed_retry.expect("delayed");
        assert_eq!(
            (delayed.min, delayed.max),
            (Duration::from_millis(100), None)
        );
        assert_eq!(
            queue.dead_letter_strategy,
            Some(DeadLetterStrategy::AtLeastOnce)
        );
    }

    #[test]
    fn delivery_limits_of_argument_and_policy_meet() {
        let with = |argument: &str, policy: i64| {
            effective(
                &format!("type: quorum{argument}"),
                &format!("policies: {{ p: {{ pattern: q, definition: {{ delivery-limit: {policy} }} }} }}\n"),
            )
            .delivery_limit
        };
        let finite = |limit| Some(DeliveryLimit::Finite(limit));
        assert_eq!(with(", delivery_limit: unlimited", 5), finite(5));
        assert_eq!(with(", delivery_limit: 9", 5), finite(5));
        assert_eq!(with(", delivery_limit: 3", 5), finite(3));
        assert_eq!(with("", -1), Some(DeliveryLimit::Unlimited));
    }
}
