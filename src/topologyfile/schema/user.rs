//! Users and what they may do, in the schema.

use serde_json::{Value as Json, json};

use super::values::{object, one_of, tags, text};
use crate::secret::SHA_256;

pub(super) fn user() -> Json {
    let password = one_of(
        "Where the password comes from; it never stands in the file itself.",
        json!({
            "env": text("The variable of the environment that holds it."),
            "file": text("The file whose first line it is."),
            "hash": text("Its salted hash, as the broker keeps it."),
            "algorithm": {
                "description": format!("The algorithm of the hash; default {SHA_256}."),
                "type": "string",
                "default": SHA_256,
            },
        }),
        &["env", "file", "hash"],
    );
    object(
        "A user.",
        json!({
            "password": password,
            "tags": tags("What the user may do in the management API: administrator, monitoring, policymaker, management."),
            "description": text("Who it is; only mq reads it."),
        }),
        &[],
    )
}

pub(super) fn permissions() -> Json {
    let of_topic = object(
        "What the user may do on one exchange of type topic.",
        json!({
            "write": text("The routing keys it may publish with: a pattern."),
            "read": text("The binding keys it may bind with: a pattern."),
        }),
        &["write", "read"],
    );
    object(
        "What a user may do; patterns are matched against names, `''` fits none.",
        json!({
            "configure": text("What it may declare and delete: a pattern."),
            "write": text("Where it may publish: a pattern."),
            "read": text("What it may consume: a pattern."),
            "topics": {
                "description": "What it may do on exchanges of type topic, by exchange.",
                "type": ["object", "null"],
                "additionalProperties": of_topic,
            },
        }),
        &["configure", "write", "read"],
    )
}
