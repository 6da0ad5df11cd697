//! Bindings in the schema.

use serde_json::{Value as Json, json};

use super::values::{arguments, object, text, word};
use crate::topologyfile::bindings::DESTINATIONS;

const KEY: &str =
    "The binding key; exchanges of type direct and topic need one, `\"\"` is the empty one.";
const ARGUMENTS: &str =
    "Arguments of the binding, typed by YAML; a headers exchange matches by them.";

/// A binding that stands under its queue.
pub(super) fn of_queue() -> Json {
    object(
        "A binding of this queue.",
        json!({
            "exchange": text("The exchange that messages come from."),
            "key": text(KEY),
            "arguments": arguments(ARGUMENTS, []),
        }),
        &["exchange"],
    )
}

pub(super) fn binding() -> Json {
    object(
        "A binding.",
        json!({
            "source": text("The exchange that messages come from."),
            "destination": text("The queue or exchange that messages go to."),
            "destination_type": word("What the destination is; default queue.", &DESTINATIONS),
            "key": text(KEY),
            "arguments": arguments(ARGUMENTS, []),
        }),
        &["source", "destination"],
    )
}
