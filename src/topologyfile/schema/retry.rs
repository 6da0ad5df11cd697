//! The `retry` of queues and workers in the schema.

use serde_json::{Value as Json, json};

use super::values::{duration, list_of, object, reference, text, whole, word};
use crate::topology::{DEFAULT_MAX_ATTEMPTS, Strategy};
use crate::topologyfile::retry_fields::{ATTEMPTS, DEFAULT_FACTOR};

pub(super) fn of_queue() -> Json {
    let mut keys = keys("left out: what the dead letters of the queue make it.");
    if let Json::Object(keys) = &mut keys {
        let resting = text("Where messages rest that no attempt could help.");
        keys.insert("dead_letter_queue".to_owned(), resting);
    }
    object(
        "How `mq consume` tries a message again; it is checked that the dead letters of the queue really do it.",
        keys,
        &[],
    )
}

pub(super) fn of_worker() -> Json {
    object(
        "How a message is tried again. Needs `delays`, unless the strategy is `immediate`.",
        keys("default dlx."),
        &[],
    )
}

/// What the retries of queues and workers have in common.
fn keys(left_out: &str) -> Json {
    json!({
        "strategy": word(
            &format!("`dlx` waits in a wait queue, `backoff` in several, `immediate` tries at once, `native` has RabbitMQ 4.3 hold it back; {left_out}"),
            &Strategy::ALL,
        ),
        "delays": {
            "description": "How long a message waits after each failed attempt, such as [1s, 10s] or { first: 1s, max: 10m }; the last delay repeats.",
            "anyOf": [
                list_of(
                    "How long a message waits after each failed attempt.",
                    duration("How long, such as 10s."),
                ),
                growing(),
            ],
        },
        "jitter": {
            "description": "By how much less a message may wait, so that those that failed together do not come back together: `full` (by any part of the delay), `none`, or a percentage such as 25%; default none. `backoff` only.",
            "anyOf": [
                { "enum": ["full", "none"] },
                {
                    "type": "string",
                    "pattern": "^[1-9][0-9]?%$",
                    "patternErrorMessage": "expected full, none or a percentage such as 25%",
                },
                reference("variable"),
            ],
        },
        "max_attempts": whole(
            &format!("After how many attempts it rests in the dead-letter queue; default {DEFAULT_MAX_ATTEMPTS}."),
            &ATTEMPTS,
        ),
    })
}

/// Nothing at all is no map, but a list.
fn growing() -> Json {
    object(
        "Delays that grow by a factor, as many as there are retries.",
        json!({
            "first": duration("The first delay, such as 1s."),
            "factor": {
                "description": format!("What each further delay is of the one before it; from 1 up, default {DEFAULT_FACTOR}."),
                "type": "number",
                "minimum": 1,
                "default": DEFAULT_FACTOR,
            },
            "max": duration("No delay is longer, such as 10m; left out: ten years, the most that queues take."),
        }),
        &["first"],
    )
}
