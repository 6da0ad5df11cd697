//! What should exist on a broker: names, exchanges, queues, bindings.
//!
//! Plain values. They do not know whether they were read from a file or from a
//! broker, and nothing here talks to one.

mod binding;
mod dead_lettering;
mod effective;
mod exchange;
mod max_age;
mod message_schema;
mod name;
mod pattern;
mod policy;
mod prefix;
mod queue;
mod retry_policy;
mod routing_test;
mod super_stream;
mod user;
mod vhost;
mod worker;

use std::collections::{BTreeMap, BTreeSet};

use crate::broker::BrokerFacts;

pub use binding::{Binding, BindingIdentity, Destination};
pub use dead_lettering::{
    DeadLetterKey, DeadLetterStrategy, DeadLettering, DelayedRetry, DelayedRetryType,
};
pub use exchange::{Exchange, ExchangeType};
pub use max_age::MaxAge;
pub use message_schema::{MessageSchemas, SchemaRule};
pub use name::{
    ExchangeName, MAX_NAME_BYTES, Name, NameKind, PolicyName, QueueName, RoutingKey, UserName,
    VhostName,
};
pub use pattern::Pattern;
pub use policy::{ApplyTo, Policy, PolicyKind};
pub use queue::{DeliveryLimit, LeaderLocator, Overflow, Queue, QueueType};
pub use retry_policy::{DEFAULT_MAX_ATTEMPTS, Jitter, RetryPolicy, Strategy};
pub use routing_test::{RoutingTest, TestOrigin};
pub use super_stream::SuperStream;
pub use user::{Password, Permissions, TopicPermission, TopicPermissionKey, User};
pub use vhost::{VhostLimit, VhostSettings};
pub use worker::Worker;

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
    /// Settings of the vhost itself.
    pub vhost_settings: Option<VhostSettings>,
    /// Users; they belong to the whole cluster.
    pub users: BTreeMap<UserName, User>,
    /// What users may do in the vhost.
    pub permissions: BTreeMap<UserName, Permissions>,
    /// What users may do with topic exchanges of the vhost.
    pub topic_permissions: BTreeMap<TopicPermissionKey, TopicPermission>,
    /// Names of queues, exchanges and policies that nobody else declares: what
    /// has such a name and is not in the file may be pruned.
    pub owns: Vec<Pattern>,
    /// Exchanges and queues that are named here and declared by others, by name.
    pub elsewhere: BTreeSet<String>,
    /// Messages, and where they should go.
    pub tests: Vec<RoutingTest>,
}

impl Topology {
    /// Whether something in it can be set through the management API only.
    #[must_use]
    pub fn needs_management(&self) -> bool {
        !self.policies.is_empty()
            || self.vhost_settings.is_some()
            || !self.users.is_empty()
            || !self.permissions.is_empty()
            || !self.topic_permissions.is_empty()
    }

    /// The bindings by what makes them the same ones for a broker.
    #[must_use]
    pub fn binding_identities(&self) -> BTreeSet<BindingIdentity> {
        self.bindings.iter().map(Binding::identity).collect()
    }

    /// The exchange of that name, the predeclared ones included.
    #[must_use]
    pub fn exchange(&self, name: &ExchangeName) -> Option<Exchange> {
        self.exchanges
            .get(name)
            .cloned()
            .or_else(|| Exchange::predeclared(name))
    }

    /// The same with raw arguments only, as a broker like `facts` shows it once
    /// it was applied there.
    #[must_use]
    pub fn as_declared(&self, facts: &BrokerFacts) -> Self {
        let mut there = self.clone();
        for queue in there.queues.values_mut() {
            queue.arguments = queue.declared_arguments(facts);
        }
        for exchange in there.exchanges.values_mut() {
            exchange.arguments = exchange.declared_arguments();
        }
        there
    }
}
