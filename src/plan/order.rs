//! The order in which a topology is declared: nothing is used before it exists,
//! and no message can enter a queue before its dead letters have a place to go.

use std::collections::BTreeSet;
use std::fmt;

use crate::topology::{
    Binding, Exchange, ExchangeName, Policy, PolicyKind, PolicyName, Queue, QueueName, Topology,
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
    /// Set a policy, through the management API.
    Policy(PolicyKind, PolicyName, Policy),
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
}

impl Object {
    /// `exchange`, `queue`, `binding`, `policy` or `operator policy`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Exchange(_) => "exchange",
            Self::Queue(_) => "queue",
            Self::Binding(_) => "binding",
            Self::Policy(kind, _) => kind.word(),
        }
    }

    /// Its name, or for a binding both ends and the key.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Exchange(name) => name.as_str().to_owned(),
            Self::Queue(name) => name.as_str().to_owned(),
            Self::Policy(_, name) => name.as_str().to_owned(),
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
            _ => write!(f, "{} '{}'", self.kind(), self.name()),
        }
    }
}

/// Every step of a topology in a safe order: exchanges (alternates first),
/// policies (those with a TTL first, or messages would sit in a wait queue
/// without one), queues, bindings of dead-letter exchanges, then the others.
#[must_use]
pub fn steps(topology: &Topology) -> Vec<Step> {
    let mut steps: Vec<Step> = exchanges_in_order(topology)
        .into_iter()
        .map(|(name, exchange)| Step::Exchange(name, exchange))
        .collect();
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
    use crate::diagnostic::Source;

    fn order_of(yaml: &str) -> Vec<String> {
        let source = Source {
            name: "t.yaml".to_owned(),
            text: format!("version: 1\n{yaml}"),
        };
        let topology = crate::topologyfile::parse(&[source], &|_| None).expect("topology");
        steps(&topology)
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
