//! What a queue really does: its arguments and the policies in force, together.

use std::time::Duration;

use crate::field::{FieldTable, FieldValue};
use crate::topology::{
    DeadLetterKey, DeadLettering, DeliveryLimit, ExchangeName, Overflow, Policy, PolicyKind, Queue,
    QueueName, QueueType, RoutingKey, Topology,
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
        if let (None, Some(policy)) = (&queue.dead_lettering, user) {
            queue.dead_lettering = dead_lettering(&policy.definition);
        }
        if let (None, Some(policy)) = (queue.overflow, user) {
            queue.overflow = overflow(&policy.definition);
        }
        for policy in [user, operator].into_iter().flatten() {
            let number = |name: &str| policy.definition.get(name).and_then(FieldValue::as_integer);
            let positive = |name: &str| number(name).and_then(|n| u64::try_from(n).ok());
            let ttl = positive("message-ttl").map(Duration::from_millis);
            queue.message_ttl = smaller(queue.message_ttl, ttl);
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

fn dead_lettering(definition: &FieldTable) -> Option<DeadLettering> {
    let text = |name: &str| definition.get(name).and_then(FieldValue::as_text);
    let exchange = ExchangeName::new(text("dead-letter-exchange")?).ok()?;
    let key = match text("dead-letter-routing-key") {
        None => DeadLetterKey::Kept,
        Some(key) => DeadLetterKey::Replaced(RoutingKey::new(key).ok()?),
    };
    Some(DeadLettering { exchange, key })
}

fn overflow(definition: &FieldTable) -> Option<Overflow> {
    Overflow::from_name(definition.get("overflow")?.as_text()?)
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
