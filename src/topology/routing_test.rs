//! The `tests:` of a topology: messages, and where they should go.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::field::{FieldTable, FieldValue};
use crate::topology::{ExchangeName, QueueName, RoutingKey};

/// A message and what is expected of it. An expectation names exactly the
/// queues; none of them means nowhere.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingTest {
    /// What people call it.
    pub name: String,
    /// Where the message is published.
    pub exchange: ExchangeName,
    /// With which key.
    pub key: RoutingKey,
    /// Its headers.
    pub headers: FieldTable,
    /// The queues it reaches.
    pub reaches: Option<BTreeSet<QueueName>>,
    /// Where it rests once it was rejected in those.
    pub rejected: Option<BTreeSet<QueueName>>,
    /// Where it rests once it expired in those.
    pub expired: Option<BTreeSet<QueueName>>,
    /// Where it rests once it was pushed out of those.
    pub max_length: Option<BTreeSet<QueueName>>,
    /// Where it rests once it was returned too often to those.
    pub delivery_limit: Option<BTreeSet<QueueName>>,
    /// Where it stands.
    pub origin: TestOrigin,
}

/// Where a test stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestOrigin {
    /// The file.
    pub file: String,
    /// The line it begins on, from 1.
    pub line: usize,
}

impl RoutingTest {
    /// The name of a test that has none of its own.
    #[must_use]
    pub fn default_name(exchange: &ExchangeName, key: &RoutingKey) -> String {
        match (exchange.is_empty(), key.is_empty()) {
            (true, _) => format!("default exchange / {key}"),
            (false, true) => exchange.to_string(),
            (false, false) => format!("{exchange} / {key}"),
        }
    }

    /// Every expectation there is, under its key in the file.
    #[must_use]
    pub fn expectations(&self) -> [(&'static str, Option<&BTreeSet<QueueName>>); 5] {
        [
            ("reaches", self.reaches.as_ref()),
            ("rejected", self.rejected.as_ref()),
            ("expired", self.expired.as_ref()),
            ("max_length", self.max_length.as_ref()),
            ("delivery_limit", self.delivery_limit.as_ref()),
        ]
    }

    /// The same test of a topology under other names.
    pub(super) fn renamed(
        &self,
        exchange: impl Fn(&ExchangeName) -> Result<ExchangeName>,
        queue: impl Fn(&QueueName) -> Result<QueueName>,
        key: impl Fn(&ExchangeName, &RoutingKey) -> Result<RoutingKey>,
    ) -> Result<Self> {
        let queues = |names: &Option<BTreeSet<QueueName>>| {
            names
                .as_ref()
                .map(|names| names.iter().map(&queue).collect::<Result<BTreeSet<_>>>())
                .transpose()
        };
        let mut headers = self.headers.clone();
        for header in ["CC", "BCC"] {
            if let Some(FieldValue::Array(keys)) = headers.get_mut(header) {
                for value in keys {
                    if let Some(text) = value.as_text() {
                        let renamed = key(&self.exchange, &RoutingKey::new(text)?)?;
                        *value = FieldValue::text(renamed.as_str());
                    }
                }
            }
        }
        Ok(Self {
            name: self.name.clone(),
            exchange: exchange(&self.exchange)?,
            key: key(&self.exchange, &self.key)?,
            headers,
            reaches: queues(&self.reaches)?,
            rejected: queues(&self.rejected)?,
            expired: queues(&self.expired)?,
            max_length: queues(&self.max_length)?,
            delivery_limit: queues(&self.delivery_limit)?,
            origin: self.origin.clone(),
        })
    }
}
