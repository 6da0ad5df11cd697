//! Exchanges and their types.

use std::fmt;

use crate::field::{FieldTable, FieldValue};
use crate::topology::ExchangeName;

/// How an exchange routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangeType {
    /// By the exact routing key.
    Direct,
    /// By a pattern of words.
    Topic,
    /// To everything bound.
    Fanout,
    /// By header values.
    Headers,
    /// A plugin's type, by its name.
    Plugin(String),
}

impl ExchangeType {
    /// The type of that name; any unknown name is a plugin's.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "direct" => Self::Direct,
            "topic" => Self::Topic,
            "fanout" => Self::Fanout,
            "headers" => Self::Headers,
            plugin => Self::Plugin(plugin.to_owned()),
        }
    }
}

impl fmt::Display for ExchangeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Topic => "topic",
            Self::Fanout => "fanout",
            Self::Headers => "headers",
            Self::Plugin(name) => name,
        })
    }
}

/// One exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// How it routes.
    pub kind: ExchangeType,
    /// Whether it survives a broker restart.
    pub durable: bool,
    /// Whether it goes away with its last binding.
    pub auto_delete: bool,
    /// Whether only other exchanges may publish to it.
    pub internal: bool,
    /// Where messages go that no binding takes.
    pub alternate: Option<ExchangeName>,
    /// Further `x-` arguments.
    pub arguments: FieldTable,
}

impl Exchange {
    /// A durable exchange of that type with nothing else set.
    #[must_use]
    pub fn durable(kind: ExchangeType) -> Self {
        Self {
            kind,
            durable: true,
            auto_delete: false,
            internal: false,
            alternate: None,
            arguments: FieldTable::new(),
        }
    }

    /// The exchange every vhost has under that name, if it is one of them.
    #[must_use]
    pub fn predeclared(name: &ExchangeName) -> Option<Self> {
        let kind = match name.as_str() {
            "" | "amq.direct" => ExchangeType::Direct,
            "amq.topic" => ExchangeType::Topic,
            "amq.fanout" => ExchangeType::Fanout,
            "amq.headers" | "amq.match" => ExchangeType::Headers,
            _ => return None,
        };
        Some(Self::durable(kind))
    }

    /// Everything the declaration sends as arguments.
    #[must_use]
    pub fn declared_arguments(&self) -> FieldTable {
        let mut arguments = self.arguments.clone();
        if let Some(alternate) = &self.alternate {
            arguments.insert(
                "alternate-exchange".to_owned(),
                FieldValue::text(alternate.as_str()),
            );
        }
        arguments
    }
}
