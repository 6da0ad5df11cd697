//! The `schema:` of a queue: what its messages must look like.

use crate::diagnostic::Diagnostic;
use crate::topology::{MessageSchemas, RoutingKey, SchemaRule};
use crate::topologyfile::queue_fields::Part;
use crate::topologyfile::tree::{Node, Value};

/// Every key of a rule.
pub(super) const KEYS: [&str; 3] = ["key", "type", "file"];

impl Part<'_, '_> {
    pub(super) fn schemas(&mut self) -> Option<MessageSchemas> {
        let node = self.fields.get("schema")?;
        let what = format!("`schema` of {}", self.what);
        let rules = match &node.value {
            Value::Text(_) => vec![SchemaRule {
                file: self.path(node, &what)?,
                ..SchemaRule::default()
            }],
            Value::List(items) => self.rules(node, items, &what)?,
            _ => {
                let expected = "the path of a JSON Schema, or a list of { key, type, file }";
                self.reader.expected(node, &what, expected);
                return None;
            }
        };
        Some(MessageSchemas {
            rules,
            beside: String::new(),
        })
    }

    fn rules(&mut self, node: &Node, items: &[Node], what: &str) -> Option<Vec<SchemaRule>> {
        if items.is_empty() {
            self.reader.report(
                Diagnostic::new("MQ107", node.place(), format!("{what} has no rule"))
                    .help("add `{ key: PATTERN, file: PATH }`, or leave `schema` out"),
            );
            return None;
        }
        let of_rule = format!("a rule in {what}");
        let mut rules: Vec<SchemaRule> = Vec::new();
        for item in items {
            let rule = self.rule(item, &of_rule)?;
            if rules.iter().any(SchemaRule::is_for_all) {
                self.reader.report(
                    Diagnostic::new(
                        "MQ103",
                        item.start(),
                        format!("{of_rule} comes after one that is for every message"),
                    )
                    .label("the first rule that is about a message counts")
                    .help("move the rule without `key` and `type` to the end"),
                );
            }
            rules.push(rule);
        }
        Some(rules)
    }

    fn rule(&mut self, node: &Node, what: &str) -> Option<SchemaRule> {
        let fields = self.reader.fields(node, what, &KEYS)?;
        let Some(file) = fields.get("file") else {
            self.reader.report(
                Diagnostic::new("MQ107", node.start(), format!("{what} has no `file`"))
                    .help("add `file: PATH`, the path of a JSON Schema from this file"),
            );
            return None;
        };
        let file = self.path(file, &format!("`file` of {what}"));
        let mut key = None;
        if let Some(node) = fields.get("key") {
            let of = format!("`key` of {what}");
            key = Some(self.reader.name(node, &of, RoutingKey::new)?);
        }
        let mut kind = None;
        if let Some(node) = fields.get("type") {
            let of = format!("`type` of {what}");
            kind = Some(self.reader.text(node, &of)?.to_owned());
        }
        Some(SchemaRule {
            key,
            kind,
            file: file?,
        })
    }

    fn path(&mut self, node: &Node, what: &str) -> Option<String> {
        let path = self.reader.text(node, what)?;
        if path.is_empty() {
            self.reader.report(
                Diagnostic::new("MQ103", node.place(), format!("{what} is empty"))
                    .help("write the path of a JSON Schema from this file"),
            );
            return None;
        }
        Some(path.to_owned())
    }
}
