//! A topology made fit to be tested on a broker within seconds: the same
//! routing, shorter waits, smaller limits.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::field::{FieldTable, FieldValue};
use crate::routing;
use crate::topology::{DeliveryLimit, Policy, Queue, QueueName, Topology, VhostSettings};

/// The longest wait in a wait queue.
pub const MOST_WAIT: Duration = Duration::from_millis(300);

/// The largest limit of a queue's length, and of deliveries.
pub const MOST_HELD: u32 = 5;

/// The longest time that a returned message is held back.
const MOST_DELAY: Duration = Duration::from_millis(10);

/// What must not end by itself while it is tested.
const FOR_EVER: Duration = Duration::from_hours(1);

/// The topology as it is declared for tests. Messages stay in the queues of
/// `keep`, where a test lets them die itself, and leave every other queue that
/// has a message TTL and dead letters after [`MOST_WAIT`] at most. Users and
/// whatever else is not of the vhost is left out.
#[must_use]
pub fn prepared(topology: &Topology, keep: &BTreeSet<QueueName>) -> Topology {
    let leaves: BTreeSet<&QueueName> = topology
        .queues
        .keys()
        .filter(|name| !keep.contains(*name) && waits(topology, name))
        .collect();
    let mut made = Topology {
        exchanges: topology.exchanges.clone(),
        queues: topology.queues.clone(),
        bindings: topology.bindings.clone(),
        policies: topology.policies.clone(),
        vhost_settings: default_type(topology),
        ..Topology::default()
    };
    let mut by_argument: BTreeSet<&QueueName> = BTreeSet::new();
    for policy in made.policies.values_mut() {
        let takes = |name: &QueueName, queue: &Queue| {
            policy.takes_queue(name.as_str(), queue.kind.as_ref())
        };
        let taken = topology
            .queues
            .iter()
            .filter(|(name, queue)| takes(name, queue));
        let (leaving, staying): (Vec<_>, Vec<_>) = taken
            .map(|(name, _)| name)
            .partition(|name| leaves.contains(name));
        // One TTL for several queues cannot be short for some of them only.
        let is_short = staying.is_empty();
        if !is_short && policy.definition.contains_key("message-ttl") {
            by_argument.extend(leaving);
        }
        prepare_policy(policy, is_short);
    }
    for (name, queue) in &mut made.queues {
        prepare_queue(queue, leaves.contains(name));
        if by_argument.contains(name) {
            queue.message_ttl = Some(queue.message_ttl.unwrap_or(MOST_WAIT).min(MOST_WAIT));
        }
    }
    made
}

/// Whether messages leave this queue by themselves for another one.
#[must_use]
pub fn waits(topology: &Topology, name: &QueueName) -> bool {
    topology
        .effective_queue(name)
        .is_some_and(|queue| routing::waits(&queue))
}

fn default_type(topology: &Topology) -> Option<VhostSettings> {
    let default_queue_type = topology.vhost_settings.clone()?.default_queue_type?;
    Some(VhostSettings {
        default_queue_type: Some(default_queue_type),
        ..VhostSettings::default()
    })
}

fn prepare_queue(queue: &mut Queue, leaves: bool) {
    queue.message_ttl = queue.message_ttl.map(|ttl| ttl_for(ttl, leaves));
    queue.expires = queue.expires.map(|expires| expires.max(FOR_EVER));
    queue.auto_delete = false;
    // A queue with it refuses basic.get.
    queue.single_active_consumer = false;
    if queue.max_length.is_some() || queue.max_length_bytes.is_some() {
        let most = u64::from(MOST_HELD);
        queue.max_length = Some(queue.max_length.unwrap_or(most).min(most));
    }
    if let Some(DeliveryLimit::Finite(limit)) = &mut queue.delivery_limit {
        *limit = (*limit).min(MOST_HELD);
    }
    if let Some(delayed) = &mut queue.delayed_retry {
        delayed.min = delayed.min.min(MOST_DELAY);
        delayed.max = delayed.max.map(|max| max.min(MOST_DELAY));
    }
}

fn ttl_for(ttl: Duration, leaves: bool) -> Duration {
    if leaves {
        ttl.min(MOST_WAIT)
    } else {
        ttl.max(FOR_EVER)
    }
}

fn prepare_policy(policy: &mut Policy, is_short: bool) {
    let definition = &mut policy.definition;
    let most_held = i64::from(MOST_HELD);
    change(definition, "message-ttl", |ttl| {
        let ttl = Duration::from_millis(u64::try_from(ttl).unwrap_or(0));
        milliseconds(ttl_for(ttl, is_short))
    });
    change(definition, "expires", |expires| {
        expires.max(milliseconds(FOR_EVER))
    });
    change(definition, "delivery-limit", |limit| limit.min(most_held));
    for name in ["delayed-retry-min", "delayed-retry-max"] {
        change(definition, name, |delay| {
            delay.min(milliseconds(MOST_DELAY))
        });
    }
    if definition.contains_key("max-length-bytes") && !definition.contains_key("max-length") {
        definition.insert("max-length".to_owned(), FieldValue::I64(most_held));
    }
    change(definition, "max-length", |length| length.min(most_held));
}

fn change(definition: &mut FieldTable, name: &str, to: impl Fn(i64) -> i64) {
    if let Some(value) = definition.get_mut(name)
        && let Some(number) = value.as_integer()
    {
        *value = FieldValue::I64(to(number));
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topologyfile::parsed as topology;

    fn name(name: &str) -> QueueName {
        QueueName::new(name).expect("name")
    }

    #[test]
    fn waits_become_short_and_what_is_stayed_in_stays() {
        let topology = topology(
            "
queues:
  wait: { message_ttl: 30s, dead_letter: { exchange: '', key: work } }
  quick: { message_ttl: 20ms, dead_letter: { exchange: '', key: work } }
  work: { message_ttl: 1m, dead_letter: { exchange: '', key: end } }
  end: { message_ttl: 5s, expires: 1m, max_length_bytes: 1MiB }
  many: { type: quorum, delivery_limit: 1000, max_length: 2, single_active_consumer: true }
",
        );
        let made = prepared(&topology, &BTreeSet::from([name("work")]));
        let ttl = |queue: &str| made.queues[&name(queue)].message_ttl;
        assert_eq!(ttl("wait"), Some(MOST_WAIT));
        assert_eq!(ttl("quick"), Some(Duration::from_millis(20)));
        assert_eq!(ttl("work"), Some(FOR_EVER));
        assert_eq!(ttl("end"), Some(FOR_EVER));
        let end = &made.queues[&name("end")];
        assert_eq!((end.expires, end.max_length), (Some(FOR_EVER), Some(5)));
        let many = &made.queues[&name("many")];
        assert_eq!(many.delivery_limit, Some(DeliveryLimit::Finite(MOST_HELD)));
        assert_eq!(
            (many.max_length, many.single_active_consumer),
            (Some(2), false)
        );
    }

    #[test]
    fn policies_are_changed_in_the_same_way() {
        let topology = topology(
            "
exchanges: { dlx: { type: fanout } }
queues:
  wait.1: { dead_letter: { exchange: dlx } }
  wait.2: { dead_letter: { exchange: dlx } }
  mixed.1: { dead_letter: { exchange: dlx } }
  mixed.2: {}
policies:
  short: { pattern: '^wait', definition: { message-ttl: 60000, max-length-bytes: 1000 } }
  mixed: { pattern: '^mixed', definition: { message-ttl: 60000, delivery-limit: -1 } }
",
        );
        let made = prepared(&topology, &BTreeSet::new());
        let setting = |policy: &str, setting: &str| {
            let found = made
                .policies
                .iter()
                .find(|((_, name), _)| name.as_str() == policy);
            found.and_then(|(_, policy)| policy.definition.get(setting)?.as_integer())
        };
        assert_eq!(setting("short", "message-ttl"), Some(300));
        assert_eq!(setting("short", "max-length"), Some(5));
        assert_eq!(setting("mixed", "message-ttl"), Some(3_600_000));
        assert_eq!(setting("mixed", "delivery-limit"), Some(-1));
        let ttl = |queue: &str| made.queues[&name(queue)].message_ttl;
        assert_eq!(ttl("wait.1"), None);
        assert_eq!(ttl("mixed.1"), Some(MOST_WAIT));
        assert_eq!(ttl("mixed.2"), None);
        // With one of them kept, the policy can be short for none.
        let made = prepared(&topology, &BTreeSet::from([name("wait.1")]));
        assert_eq!(made.queues[&name("wait.2")].message_ttl, Some(MOST_WAIT));
        assert_eq!(made.queues[&name("wait.1")].message_ttl, None);
    }
}
