//! A policy in the schema, with the settings that RabbitMQ itself knows.

use serde_json::{Map, Value as Json, json};

use super::values::{object, text, word};
use crate::topology::ApplyTo;
use crate::topologyfile::policies::{KNOWN, NUMBERS, WORDS};

pub(super) fn policy() -> Json {
    object(
        "Settings for every queue or exchange whose name fits.",
        json!({
            "pattern": text("The names it is for: a pattern in Perl's syntax, such as '^orders\\.'."),
            "apply_to": word(
                "What it is for; default all. Queue types: RabbitMQ 3.12 and newer.",
                &ApplyTo::ALL,
            ),
            "priority": {
                "description": "Of several policies that fit, the one with the highest priority counts; default 0.",
                "type": "integer",
                "minimum": i32::MIN,
                "maximum": i32::MAX,
                "default": 0,
            },
            "definition": {
                "description": "The settings, by the broker's own names; plugins bring more.",
                "type": ["object", "null"],
                "properties": settings(),
            },
            "description": text("What it is for; only mq reads it."),
        }),
        &["pattern", "definition"],
    )
}

fn settings() -> Json {
    let settings = KNOWN.iter().map(|name| {
        let description = meaning(name);
        let json = if let Some((_, words)) = WORDS.iter().find(|(word, _)| word == name) {
            word(description, words)
        } else if NUMBERS.contains(name) {
            json!({ "description": description, "type": "integer" })
        } else {
            json!({ "description": description })
        };
        ((*name).to_owned(), json)
    });
    Json::Object(settings.collect::<Map<String, Json>>())
}

/// Empty for what nobody described, which a test forbids.
fn meaning(setting: &str) -> &'static str {
    match setting {
        "alternate-exchange" => "The exchange that gets what an exchange can route nowhere.",
        "consumer-timeout" => "How long a consumer may hold a message, in milliseconds.",
        "dead-letter-exchange" => "Where dead letters go.",
        "dead-letter-routing-key" => "The routing key that dead letters get.",
        "dead-letter-strategy" => "How safely quorum queues dead-letter.",
        "delayed-retry-max" => "What the delay of returned messages grows to, in milliseconds.",
        "delayed-retry-min" => "How long returned messages are held back, in milliseconds.",
        "delayed-retry-type" => "Which returned messages quorum queues hold back.",
        "delivery-limit" => "How often quorum queues deliver a message.",
        "expires" => "How long a queue may be unused before it is deleted, in milliseconds.",
        "federation-upstream-set" => "The set of upstreams that it is federated with.",
        "max-age" => "How old what a stream keeps may become, in the broker's words: 7D, 12h.",
        "max-in-memory-bytes" => {
            "How many bytes quorum queues keep in memory; ignored by 3.10 and newer."
        }
        "max-in-memory-length" => {
            "How many messages quorum queues keep in memory; ignored by 3.10 and newer."
        }
        "max-length" => "How many messages a queue holds at most.",
        "max-length-bytes" => "How many bytes of bodies a queue holds at most.",
        "message-ttl" => "How long a message waits before it expires, in milliseconds.",
        "overflow" => {
            "What happens when a queue is full: drop-head, reject-publish or reject-publish-dlx."
        }
        "queue-leader-locator" => "Where leaders are placed: client-local or balanced.",
        "stream-filter-size-bytes" => "The size of a filter of a stream, 16 to 255 bytes.",
        "stream-max-segment-size-bytes" => "How large a file of a stream becomes, in bytes.",
        "target-group-size" => "How many replicas quorum queues should come to have.",
        _ => "",
    }
}
