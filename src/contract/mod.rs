//! Contracts: what the bodies of messages must be, as JSON Schemas, and in which
//! words a message is told that breaks one.
//!
//! Pure: schemas come as text, and a schema that leads out of its own text is a
//! mistake, never a request.

mod schema;
mod words;

use std::sync::Arc;

use crate::message::{Delivery, first_route};
use crate::routing::topic_matches;
use crate::topology::{QueueName, SchemaRule};

pub use schema::{InvalidSchema, Schema};

/// The schemas of a queue and the messages that each is for.
#[derive(Clone, Debug, Default)]
pub struct Contracts {
    rules: Vec<(SchemaRule, Arc<Schema>)>,
}

impl Contracts {
    /// One schema for every message.
    #[must_use]
    pub fn of_all(schema: Schema) -> Self {
        let mut contracts = Self::default();
        contracts.add(SchemaRule::default(), Arc::new(schema));
        contracts
    }

    /// Adds a rule, which counts after those that are there.
    pub fn add(&mut self, rule: SchemaRule, schema: Arc<Schema>) {
        self.rules.push((rule, schema));
    }

    /// Why a message of `queue` breaks its contract, in at most 1000 bytes on one
    /// line; `None` if it keeps it, or if no rule is about it. The key that counts
    /// is the one by which it first came to the queue: a retry may change it.
    #[must_use]
    pub fn broken_by(&self, queue: &QueueName, delivery: &Delivery) -> Option<String> {
        let needs_key = self.rules.iter().any(|(rule, _)| rule.key.is_some());
        let key = needs_key.then(|| first_route(delivery, queue.as_str()).1);
        let kind = delivery.properties.kind.as_deref();
        let (_, schema) = self
            .rules
            .iter()
            .find(|(rule, _)| is_about(rule, key.as_deref(), kind))?;
        let encoding = delivery.properties.content_encoding.as_deref();
        schema.broken_by(&delivery.body, encoding)
    }
}

fn is_about(rule: &SchemaRule, key: Option<&str>, kind: Option<&str>) -> bool {
    let key_fits = rule
        .key
        .as_ref()
        .is_none_or(|pattern| key.is_some_and(|key| topic_matches(pattern.as_str(), key)));
    let kind_fits = rule
        .kind
        .as_deref()
        .is_none_or(|wanted| kind == Some(wanted));
    key_fits && kind_fits
}

#[cfg(test)]
mod tests;
