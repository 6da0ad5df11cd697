//! The plan: what applying a topology to a broker would do, object by object.
//!
//! A plan is a value. It is empty exactly when nothing differs; making it
//! changes nothing.

use std::collections::BTreeSet;

use crate::broker::BrokerFacts;
use crate::plan::difference::{
    Difference, exchange_differences, permission_differences, policy_differences,
    queue_differences, topic_permission_differences, user_differences, vhost_differences,
};
use crate::plan::{Object, Step, steps};
use crate::topology::{BindingIdentity, Topology, VhostName, VhostSettings};

/// What is to be done about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It is missing.
    Create,
    /// It is as the file says.
    Keep,
    /// It is there otherwise, and can be changed in place: all that the
    /// management API sets.
    Change(Vec<Difference>),
    /// It is there otherwise, and RabbitMQ cannot change it in place.
    Blocked(Vec<Difference>),
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The declaration.
    pub step: Step,
    /// What it would do.
    pub verb: Verb,
}

/// Everything applying would do, in the order in which it would be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The vhost it is for.
    pub vhost: VhostName,
    /// Every object of the file.
    pub steps: Vec<Planned>,
    /// What would be deleted, if that was asked for.
    pub prune: Vec<Object>,
}

impl Plan {
    /// Whether the broker has everything already.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.prune.is_empty() && self.steps.iter().all(|planned| planned.verb == Verb::Keep)
    }

    /// How many steps have that verb.
    #[must_use]
    pub fn count(&self, is: impl Fn(&Verb) -> bool) -> usize {
        self.steps
            .iter()
            .filter(|planned| is(&planned.verb))
            .count()
    }
}

/// Compares what is wanted with what is there.
#[must_use]
pub fn plan(vhost: VhostName, wanted: &Topology, there: &Topology, facts: &BrokerFacts) -> Plan {
    let bindings = there.binding_identities();
    let steps = steps(wanted)
        .into_iter()
        .map(|step| {
            let verb = verb(&step, there, &bindings, facts);
            let step = completed(step, there);
            Planned { step, verb }
        })
        .collect();
    Plan {
        vhost,
        steps,
        prune: Vec::new(),
    }
}

fn verb(
    step: &Step,
    there: &Topology,
    bindings: &BTreeSet<BindingIdentity>,
    facts: &BrokerFacts,
) -> Verb {
    let differences = match step {
        Step::Exchange(name, wanted) => there
            .exchanges
            .get(name)
            .map(|there| exchange_differences(wanted, there)),
        Step::Queue(name, wanted) => there.queues.get(name).map(|there| {
            queue_differences(
                wanted,
                &wanted.declared_arguments(facts),
                there,
                &there.arguments,
            )
        }),
        Step::Policy(kind, name, wanted) => there
            .policies
            .get(&(*kind, name.clone()))
            .map(|there| policy_differences(wanted, there)),
        Step::Vhost(wanted) => Some(vhost_differences(
            wanted,
            there.vhost_settings.as_ref().unwrap_or(&NOTHING_SET),
        )),
        Step::User(name, wanted) => there
            .users
            .get(name)
            .map(|there| user_differences(wanted, there)),
        Step::Permissions(user, wanted) => there
            .permissions
            .get(user)
            .map(|there| permission_differences(wanted, there)),
        Step::TopicPermission(key, wanted) => there
            .topic_permissions
            .get(key)
            .map(|there| topic_permission_differences(wanted, there)),
        Step::Binding(wanted) => bindings.contains(&wanted.identity()).then(Vec::new),
    };
    match differences {
        None => Verb::Create,
        Some(differences) if differences.is_empty() => Verb::Keep,
        // What goes through the management API can be set anew at any time.
        Some(differences) if step.needs_management() => Verb::Change(differences),
        Some(differences) => Verb::Blocked(differences),
    }
}

const NOTHING_SET: VhostSettings = VhostSettings {
    description: None,
    tags: None,
    default_queue_type: None,
    max_connections: None,
    max_queues: None,
};

/// What the file leaves open stays as it is: some requests must carry it all the same.
fn completed(step: Step, there: &Topology) -> Step {
    match step {
        Step::Vhost(wanted) => Step::Vhost(match &there.vhost_settings {
            Some(there) => wanted.over(there),
            None => wanted,
        }),
        Step::User(name, mut user) => {
            let there = there.users.get(&name);
            if user.password.is_none() {
                user.password = there.and_then(|there| there.password.clone());
            }
            Step::User(name, user)
        }
        step @ (Step::Exchange(..)
        | Step::Queue(..)
        | Step::Binding(_)
        | Step::Policy(..)
        | Step::Permissions(..)
        | Step::TopicPermission(..)) => step,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topologyfile::parsed as topology;

    const WANTED: &str = "
exchanges:
  e: { type: topic, alternate: f }
  f: { type: fanout }
queues:
  work: { type: quorum, delivery_limit: unlimited, dead_letter: { exchange: f, key: k }, message_ttl: 5s, bind: [ { exchange: e, key: 'a.*', arguments: { n: 1 } } ] }
  plain: { max_length: 7, arguments: { x-anything: [ 1, { a: b } ] } }
bindings: [ { source: e, destination: f, destination_type: exchange, key: '#' } ]
";

    #[test]
    fn applying_a_plan_leaves_nothing_to_plan_on_every_version() {
        let wanted = topology(WANTED);
        let vhost = || VhostName::new("/").expect("vhost");
        for version in ["3.10.8", "4.0.5", "4.3.6"] {
            let facts = BrokerFacts::new("RabbitMQ", version);
            let fresh = plan(vhost(), &wanted, &Topology::default(), &facts);
            assert_eq!(fresh.count(|verb| *verb == Verb::Create), 6);
            let again = plan(vhost(), &wanted, &wanted.as_declared(&facts), &facts);
            assert!(again.is_empty(), "{version}: {again:?}");
        }
    }

    #[test]
    fn every_difference_of_an_object_is_named() {
        let wanted = topology(WANTED);
        let facts = BrokerFacts::new("RabbitMQ", "4.0.5");
        let there = topology(
                "queues: { work: { type: classic, durable: false, message_ttl: 6s }, plain: { max_length: 7, arguments: { x-anything: 2 } } }",
        )
        .as_declared(&facts);
        let plan = plan(VhostName::new("/").expect("vhost"), &wanted, &there, &facts);
        let differing = |name: &str| -> Vec<String> {
            plan.steps
                .iter()
                .find(|planned| planned.step.object().name() == name)
                .and_then(|planned| match &planned.verb {
                    Verb::Blocked(differences) => Some(
                        differences
                            .iter()
                            .map(|difference| difference.argument.clone())
                            .collect(),
                    ),
                    Verb::Create | Verb::Keep | Verb::Change(_) => None,
                })
                .unwrap_or_default()
        };
        assert_eq!(
            differing("work"),
            [
                "durable",
                "x-queue-type",
                "x-dead-letter-exchange",
                "x-dead-letter-routing-key",
                "x-delivery-limit",
                "x-message-ttl"
            ]
        );
        assert_eq!(differing("plain"), ["x-anything"]);
    }
}
