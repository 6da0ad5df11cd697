//! The vhost in the schema: a name, or a map.

use serde_json::{Value as Json, json};

use super::values::{limit, object, tags, text, word};
use crate::topologyfile::queue_fields::TYPES;

pub(super) fn vhost() -> Json {
    let mut settings = object(
        "A vhost and its settings; what is left out stays as it is.",
        json!({
            "name": text("Its name; `--vhost` says otherwise."),
            "description": text("What it is for, as the broker shows it."),
            "tags": tags("Its tags."),
            "default_queue_type": word(
                "The type of queues that are declared without one; RabbitMQ 3.12 and newer.",
                &TYPES,
            ),
            "limits": object(
                "What it may hold.",
                json!({
                    "max_connections": limit("How many connections, or `unlimited`.", &(0..=u64::MAX)),
                    "max_queues": limit("How many queues, or `unlimited`.", &(0..=u64::MAX)),
                }),
                &[],
            ),
        }),
        &[],
    );
    // Nothing at all is no name.
    if let Json::Object(settings) = &mut settings {
        settings.insert("type".to_owned(), json!("object"));
    }
    json!({
        "description": "The vhost: its name, or a map with its settings; left out: the one of `--vhost` or the URL.",
        "anyOf": [text("The name of the vhost."), settings],
    })
}
