//! Bindings: from an exchange to a queue or to another exchange.

use std::fmt;

use crate::field::{FieldTable, table_to_json};
use crate::topology::{ExchangeName, QueueName, RoutingKey};

/// Where a binding leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Destination {
    /// To a queue.
    Queue(QueueName),
    /// To another exchange.
    Exchange(ExchangeName),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(name) => write!(f, "queue '{name}'"),
            Self::Exchange(name) => write!(f, "exchange '{name}'"),
        }
    }
}

/// One binding. The same source, destination, key and arguments are the same binding.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The exchange messages come from.
    pub source: ExchangeName,
    /// Where they go.
    pub destination: Destination,
    /// Key, or pattern on a topic exchange.
    pub key: RoutingKey,
    /// `x-match` and header values on a headers exchange.
    pub arguments: FieldTable,
}

/// What makes two bindings the same one for a broker. Arguments compare through
/// JSON, because the management API forgets the width of numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BindingIdentity {
    source: ExchangeName,
    destination: Destination,
    key: RoutingKey,
    arguments: String,
}

impl Binding {
    /// Its identity.
    #[must_use]
    pub fn identity(&self) -> BindingIdentity {
        BindingIdentity {
            source: self.source.clone(),
            destination: self.destination.clone(),
            key: self.key.clone(),
            arguments: table_to_json(&self.arguments).to_string(),
        }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' to {} with key '{}'",
            self.source, self.destination, self.key
        )
    }
}
