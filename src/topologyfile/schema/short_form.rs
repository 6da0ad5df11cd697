//! Workers and super streams in the schema: some keys of a queue, and their own.

use serde_json::{Map, Value as Json, json};

use super::values::{object, one_of, text, whole, word};
use super::{queue, retry};
use crate::topologyfile::queue_fields::TYPES;
use crate::topologyfile::{super_streams, workers};

pub(super) fn worker() -> Json {
    let kind = word("quorum or classic; default quorum.", &TYPES);
    object(
        "A work queue with its retries and its dead-letter queue.",
        with_keys_of_a_queue(
            &workers::KEYS,
            &json!({ "retry": retry::of_worker(), "type": kind }),
        ),
        &["retry"],
    )
}

pub(super) fn super_stream() -> Json {
    let own = json!({
        "partitions": whole(
            "How many partitions it has, with the keys 0, 1, 2, …; instead of `keys`.",
            &super_streams::PARTITIONS,
        ),
        "keys": {
            "description": "The routing key of each partition, such as [eu, us]; instead of `partitions`.",
            "type": "array",
            "items": text("The routing key of a partition."),
            "minItems": 1,
            "uniqueItems": true,
        },
    });
    one_of(
        "A direct exchange and the streams bound to it.",
        with_keys_of_a_queue(&super_streams::KEYS, &own),
        &["partitions", "keys"],
    )
}

/// The keys in their order: its own ones, else as a queue has them.
fn with_keys_of_a_queue(keys: &[&str], own: &Json) -> Json {
    let queue = queue::properties();
    let found = keys.iter().filter_map(|key| {
        let value = own.get(key).or_else(|| queue.get(key))?;
        Some(((*key).to_owned(), value.clone()))
    });
    Json::Object(found.collect::<Map<String, Json>>())
}
