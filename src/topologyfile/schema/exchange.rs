//! An exchange in the schema.

use serde_json::{Value as Json, json};

use super::values::{arguments, flag, object, text};
use crate::topologyfile::exchanges::{ALTERNATE, BUILT_IN};

pub(super) fn exchange() -> Json {
    object(
        "An exchange.",
        json!({
            "type": {
                "description": "direct, topic, fanout, headers, or the type of a plugin.",
                "type": "string",
                "anyOf": [{ "enum": BUILT_IN }, {}],
            },
            "durable": flag("Whether it outlives a restart of the broker; default true.", true),
            "auto_delete": flag(
                "Whether it is deleted with the last thing bound to it; default false.",
                false,
            ),
            "internal": flag(
                "Whether only other exchanges can publish to it; default false.",
                false,
            ),
            "alternate": text("The exchange that gets what this one can route nowhere."),
            "arguments": arguments(
                "Arguments that have no key of their own, typed by YAML.",
                [ALTERNATE],
            ),
        }),
        &["type"],
    )
}
