//! One of the `tests:` in the schema: a message and where it must end.

use serde_json::{Value as Json, json};

use super::values::{arguments, object, text, texts};

pub(super) fn test_case() -> Json {
    let publish = object(
        "The message.",
        json!({
            "exchange": text("Where it is published; `\"\"` is the default exchange."),
            "key": text("Its routing key."),
            "headers": arguments("Its headers, typed by YAML.", []),
        }),
        &[],
    );
    object(
        "A message, and where it must end; `[]` says that it is lost.",
        json!({
            "name": text("What the test says."),
            "publish": publish,
            "reaches": texts("The queues that must get it."),
            "rejected": texts("The queues that must get it after it is rejected there."),
            "expired": texts("The queues that must get it after it expires there."),
            "max_length": texts("The queues that must get it when it is dropped from a full queue."),
            "delivery_limit": texts("The queues that must get it after too many deliveries."),
        }),
        &["publish"],
    )
}
