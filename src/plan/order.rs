//! The order in which a topology is declared: nothing is used before it exists,
//! and no message can enter a queue before its dead letters have a place to go.

use std::collections::BTreeSet;
use std::fmt;

use crate::topology::{
    Binding, Exchange, ExchangeName, Permissions, Policy, PolicyKind, PolicyName, Queue, QueueName,
    TopicPermission, TopicPermissionKey, Topology, User, UserName, VhostSettings,
};

/// One declaration. Each is idempotent: sent twice, it changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Declare an exchange.
    Exchange(ExchangeName, Exchange),
    /// Declare a queue.
    Queue(QueueName, Box<Queue>),
    /// Bind.
    Binding(Binding),
    /// Set a policy, through the management API as all that follow.
    Policy(PolicyKind, PolicyName, Policy),
    /// Set a vhost.
    Vhost(VhostSettings),
    /// Create or change a user.
    User(UserName, User),
    /// Set what a user may do.
    Permissions(UserName, Permissions),
    /// Set what a user may do with a topic exchange.
    TopicPermission(TopicPermissionKey, TopicPermission),
}

impl Step {
    /// The object the step is about.
    #[must_use]
    pub fn object(&self) -> Object {
        match self {
            Self::Exchange(name, _) => Object::Exchange(name.clone()),
            Self::Queue(name, _) => Object::Queue(name.clone()),
            Self::Binding(binding) => Object::Binding(binding.clone()),
            Self::Policy(kind, name, _) => Object::Policy(*kind, name.clone()),
            Self::Vhost(_) => Object::Vhost,
            Self::User(name, _) => Object::User(name.clone()),
            Self::Permissions(user, _) => Object::Permissions(user.clone()),
            Self::TopicPermission(key, _) => Object::TopicPermission(key.clone()),
        }
    }

    /// Steps of a lower rank come first; those of the same rank do not need each
    /// other, but exchanges their alternates.
    #[must_use]
    pub const fn rank(&self) -> u8 {
        match self {
            Self::Vhost(_) => 0,
            Self::Exchange(..) => 1,
            Self::Policy(..) => 2,
            Self::Queue(..) => 3,
            Self::Binding(_) => 4,
            Self::User(..) => 5,
            Self::Permissions(..) | Self::TopicPermission(..) => 6,
        }
    }

    /// Whether it goes through the management API; the others go over AMQP.
    #[must_use]
    pub const fn needs_management(&self) -> bool {
        match self {
            Self::Exchange(..) | Self::Queue(..) | Self::Binding(_) => false,
            Self::Policy(..)
            | Self::Vhost(_)
            | Self::User(..)
            | Self::Permissions(..)
            | Self::TopicPermission(..) => true,
        }
    }
}

/// An object by its identity.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// An exchange.
    Exchange(ExchangeName),
    /// A queue.
    Queue(QueueName),
    /// A binding.
    Binding(Binding),
    /// A policy.
    Policy(PolicyKind, PolicyName),
    /// The vhost itself.
    Vhost,
    /// A user.
    User(UserName),
    /// What a user may do in the vhost.
    Permissions(UserName),
    /// What a user may do with a topic exchange.
    TopicPermission(TopicPermissionKey),
}

impl Object {
    /// `exchange`, `queue`, `binding`, `policy`, `operator policy`, `vhost`, `user`,
    /// `permissions` or `topic permissions`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Exchange(_) => "exchange",
            Self::Queue(_) => "queue",
            Self::Binding(_) => "binding",
            Self::Policy(kind, _) => kind.word(),
            Self::Vhost => "vhost",
            Self::User(_) => "user",
            Self::Permissions(_) => "permissions",
            Self::TopicPermission(_) => "topic permissions",
        }
    }

    /// Its name, or for a binding both ends and the key.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Exchange(name) => name.as_str().to_owned(),
            Self::Queue(name) => name.as_str().to_owned(),
            Self::Policy(_, name) => name.as_str().to_owned(),
            Self::Vhost => "settings".to_owned(),
            Self::User(name) | Self::Permissions(name) => name.as_str().to_owned(),
            Self::TopicPermission((user, exchange)) => format!("{user} on {exchange}"),
            Self::Binding(binding) => {
                let to = match &binding.destination {
                    crate::topology::Destination::Queue(name) => name.as_str(),
                    crate::topology::Destination::Exchange(name) => name.as_str(),
                };
                format!("{} -> {to} [{}]", binding.source, binding.key)
            }
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binding(binding) => write!(f, "binding from {binding}"),
            Self::Vhost => f.write_str("the vhost"),
            _ => write!(f, "{} '{}'", self.kind(), self.name()),
        }
    }
}

/// Every step of a topology in a safe order: the vhost, exchanges (alternates first),
/// policies (those with a TTL first, or messages would sit in a wait queue
/// without one), queues, bindings of dead-letter exchanges, then the others; last
/// users and what they may do.
#[must_use]
pub fn steps(topology: &Topology) -> Vec<Step> {
    let mut steps: Vec<Step> = topology
        .vhost_settings
        .iter()
        .map(|settings| Step::Vhost(settings.clone()))
        .collect();
    steps.extend(
        exchanges_in_order(topology)
            .into_iter()
            .map(|(name, exchange)| Step::Exchange(name, exchange)),
    );
    let (with_ttl, others): (Vec<_>, Vec<_>) = topology
        .policies
        .iter()
        .partition(|(_, policy)| policy.definition.contains_key("message-ttl"));
    steps.extend(
        with_ttl
            .into_iter()
            .chain(others)
            .map(|((kind, name), policy)| Step::Policy(*kind, name.clone(), policy.clone())),
    );
    steps.extend(
        topology
            .queues
            .iter()
            .map(|(name, queue)| Step::Queue(name.clone(), Box::new(queue.clone()))),
    );
    let dead_letter_exchanges: BTreeSet<ExchangeName> = topology
        .queues
        .keys()
        .filter_map(|name| topology.effective_queue(name)?.dead_lettering)
        .map(|dead_lettering| dead_lettering.exchange)
        .collect();
    let (dead_letter, other): (Vec<&Binding>, Vec<&Binding>) = topology
        .bindings
        .iter()
        .partition(|binding| dead_letter_exchanges.contains(&binding.source));
    steps.extend(
        dead_letter
            .into_iter()
            .chain(other)
            .map(|binding| Step::Binding(binding.clone())),
    );
    let users = topology.users.iter();
    steps.extend(users.map(|(name, user)| Step::User(name.clone(), user.clone())));
    let permissions = topology.permissions.iter();
    steps.extend(
        permissions.map(|(user, allowed)| Step::Permissions(user.clone(), allowed.clone())),
    );
    let topics = topology.topic_permissions.iter();
    steps.extend(topics.map(|(key, allowed)| Step::TopicPermission(key.clone(), allowed.clone())));
    steps
}

/// Alternates before the exchanges that name them; a cycle is cut where it was entered.
fn exchanges_in_order(topology: &Topology) -> Vec<(ExchangeName, Exchange)> {
    let mut ordered = Vec::new();
    let mut seen = BTreeSet::new();
    for name in topology.exchanges.keys() {
        let mut chain = Vec::new();
        let mut next = Some(name);
        while let Some(name) = next
            && let Some(exchange) = topology.exchanges.get(name)
            && seen.insert(name)
        {
            chain.push((name.clone(), exchange.clone()));
            next = exchange.alternate.as_ref();
        }
        ordered.extend(chain.into_iter().rev());
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(yaml: &str) -> Vec<String> {
        steps(&crate::topologyfile::parsed(yaml))
            .iter()
            .map(|step| step.object().name())
            .collect()
    }

    #[test]
    fn what_is_needed_comes_first() {
        assert_eq!(
            order_of(
                "
exchanges:
  a: { type: topic, alternate: z }
  dlx: { type: direct }
  z: { type: fanout, alternate: loop }
  loop: { type: fanout, alternate: z }
queues:
  work: { dead_letter: { exchange: dlx, key: dead }, bind: [ { exchange: a, key: k } ] }
  dead: { bind: [ { exchange: dlx, key: dead } ] }
"
            ),
            [
                "loop",
                "z",
                "a",
                "dlx",
                "dead",
                "work",
                "dlx -> dead [dead]",
                "a -> work [k]"
            ]
        );
    }
}
