//! Definitions as a broker exports them, made comparable.

use serde_json::{Value as Json, json};

/// The same value whatever the order of its fields.
fn canonical(json: &Json) -> String {
    match json {
        Json::Object(fields) => {
            let mut fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{name}={}", canonical(value)))
                .collect();
            fields.sort();
            format!("{{{}}}", fields.join(" "))
        }
        other => other.to_string(),
    }
}

/// The lists of definitions that are about this vhost, in an order of their own.
pub(crate) fn of_vhost(definitions: &Json, vhost: &str) -> Vec<String> {
    let mut objects = Vec::new();
    for list in [
        "permissions",
        "parameters",
        "policies",
        "queues",
        "exchanges",
        "bindings",
    ] {
        for object in definitions[list].as_array().into_iter().flatten() {
            if object["vhost"] == vhost {
                let Json::Object(mut fields) = object.clone() else {
                    continue;
                };
                // 4.3 says the type of a queue twice and leaves `internal` out
                // where it is false.
                if list == "queues" {
                    fields.remove("type");
                }
                fields.remove("vhost");
                if list == "exchanges" {
                    fields.entry("internal").or_insert(json!(false));
                }
                objects.push(format!("{list} {}", canonical(&Json::Object(fields))));
            }
        }
    }
    objects.sort();
    objects
}
