//! What should exist on a broker: names, exchanges, queues, bindings.
//!
//! Plain values. They do not know whether they were read from a file or from a
//! broker, and nothing here talks to one.

mod binding;
mod effective;
mod exchange;
mod name;
mod policy;
mod prefix;
mod queue;
mod retry_policy;

use std::collections::BTreeMap;

pub use binding::{Binding, Destination};
pub use exchange::{Exchange, ExchangeType};
pub use name::{
    ExchangeName, MAX_NAME_BYTES, Name, NameKind, PolicyName, QueueName, RoutingKey, VhostName,
};
pub use policy::{ApplyTo, Policy, PolicyKind};
pub use queue::{DeadLetterKey, DeadLettering, DeliveryLimit, Overflow, Queue, QueueType};
pub use retry_policy::{DEFAULT_MAX_ATTEMPTS, RetryPolicy, Strategy};

/// Exchanges, queues and bindings of one vhost.
///
/// Keyed maps: a duplicate cannot be spelled. A dangling reference can; who
/// builds a topology decides whether that is an error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The vhost the file asks for, if it asks.
    pub vhost: Option<VhostName>,
    /// Exchanges by name, without the ones every vhost has.
    pub exchanges: BTreeMap<ExchangeName, Exchange>,
    /// Queues by name.
    pub queues: BTreeMap<QueueName, Queue>,
    /// Bindings in the order of the file.
    pub bindings: Vec<Binding>,
    /// Policies of both kinds by name.
    pub policies: BTreeMap<(PolicyKind, PolicyName), Policy>,
}

impl Topology {
    /// The exchange of that name, the predeclared ones included.
    #[must_use]
    pub fn exchange(&self, name: &ExchangeName) -> Option<Exchange> {
        self.exchanges
            .get(name)
            .cloned()
            .or_else(|| Exchange::predeclared(name))
    }
}
