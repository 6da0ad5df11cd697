//! The `schema:` of a queue: which JSON Schema its messages must fit.

use std::path::{Path, PathBuf};

use crate::topology::RoutingKey;

/// Which schema a message of a queue must fit; of the rules the first that is
/// about it counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageSchemas {
    /// The rules in their order.
    pub rules: Vec<SchemaRule>,
    /// The topology file they stand in: the paths of schemas begin in its folder.
    pub beside: String,
}

/// A schema and the messages it is for; without key and type it is for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaRule {
    /// The pattern of their routing key, as topic exchanges have it.
    pub key: Option<RoutingKey>,
    /// Their `type` property.
    pub kind: Option<String>,
    /// The path of the schema as it is written.
    pub file: String,
}

impl SchemaRule {
    /// Whether it is for every message.
    #[must_use]
    pub const fn is_for_all(&self) -> bool {
        self.key.is_none() && self.kind.is_none()
    }
}

impl MessageSchemas {
    /// Where the schema of a rule is.
    #[must_use]
    pub fn path(&self, rule: &SchemaRule) -> PathBuf {
        let folder = Path::new(&self.beside).parent();
        folder.unwrap_or(Path::new("")).join(&rule.file)
    }
}
