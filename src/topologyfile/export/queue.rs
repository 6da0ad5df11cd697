//! The part of an exported file that is about queues: raw arguments become the
//! keys that are made for them.

use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::{flag, insert, take_text};
use crate::field::{FieldTable, FieldValue, table_to_json};
use crate::topology::{
    DeadLetterStrategy, DelayedRetryType, Jitter, LeaderLocator, MaxAge, MessageSchemas, Overflow,
    Queue, QueueName, QueueType, RetryPolicy, SchemaRule, Topology,
};

pub(super) fn queue_json(
    topology: &Topology,
    bind: Vec<Json>,
    name: &QueueName,
    queue: &Queue,
    left_out: &mut Vec<String>,
) -> Json {
    let mut json = Map::new();
    let mut arguments = queue.arguments.clone();
    if let Some(kind) = take_text(&mut arguments, "x-queue-type") {
        json.insert("type".to_owned(), json!(kind));
    }
    flag(&mut json, "durable", queue.durable, true);
    flag(&mut json, "auto_delete", queue.auto_delete, false);
    insert(&mut json, "bind", Json::Array(bind));
    // What a type takes and ignores would be a mistake in a file.
    let kind = json.get("type").and_then(Json::as_str);
    let kind = kind.map(QueueType::from_name);
    let overflow = || {
        let own = queue.arguments.get("x-overflow");
        own.and_then(FieldValue::as_text)
            .and_then(Overflow::from_name)
            .or_else(|| topology.effective_queue(name)?.overflow)
    };
    let (mut sayable, unsayable): (FieldTable, FieldTable) = arguments
        .into_iter()
        .partition(|(argument, value)| is_in_force(kind.as_ref(), &overflow, argument, value));
    typed(&mut json, &mut sayable);
    let mut arguments = sayable;
    arguments.extend(unsayable);
    // What is left under a name that has a typed key has a value the key cannot say.
    arguments.retain(|argument, value| {
        let unsaid = crate::topologyfile::queue_fields::typed_key(argument).is_some();
        if unsaid {
            left_out.push(format!(
                "queue '{name}': {argument} is {}, which the file format cannot say",
                value.to_json()
            ));
        }
        !unsaid
    });
    insert(&mut json, "arguments", table_to_json(&arguments));
    if let Some(retry) = &queue.retry {
        json.insert("retry".to_owned(), retry_json(retry));
    }
    if let Some(schemas) = &queue.schemas {
        json.insert("schema".to_owned(), schemas_json(schemas));
    }
    if let Some(description) = &queue.description {
        json.insert("description".to_owned(), json!(description));
    }
    Json::Object(json)
}

/// Only a file has it; a broker knows nothing of it.
fn retry_json(retry: &RetryPolicy) -> Json {
    let mut json = Map::new();
    if let Some(strategy) = retry.strategy {
        json.insert("strategy".to_owned(), json!(strategy.to_string()));
    }
    let delays: Vec<Json> = retry
        .delays
        .iter()
        .map(|delay| json!(humantime::format_duration(*delay).to_string()))
        .collect();
    insert(&mut json, "delays", Json::Array(delays));
    if retry.jitter != Jitter::None {
        json.insert("jitter".to_owned(), json!(retry.jitter.to_string()));
    }
    if let Some(attempts) = retry.max_attempts {
        json.insert("max_attempts".to_owned(), json!(attempts));
    }
    if let Some(queue) = &retry.dead_letter_queue {
        json.insert("dead_letter_queue".to_owned(), json!(queue.as_str()));
    }
    Json::Object(json)
}

/// Only a file has it, and its paths stay as they are written there.
fn schemas_json(schemas: &MessageSchemas) -> Json {
    if let [rule] = schemas.rules.as_slice()
        && rule.is_for_all()
    {
        return json!(rule.file);
    }
    let rule_json = |rule: &SchemaRule| {
        let mut json = Map::new();
        if let Some(key) = &rule.key {
            json.insert("key".to_owned(), json!(key.as_str()));
        }
        if let Some(kind) = &rule.kind {
            json.insert("type".to_owned(), json!(kind));
        }
        json.insert("file".to_owned(), json!(rule.file));
        Json::Object(json)
    };
    schemas.rules.iter().map(rule_json).collect()
}

/// Whether the broker does what the argument says: not where the type has no
/// such thing, and not where a condition of it is missing.
fn is_in_force(
    kind: Option<&QueueType>,
    overflow: &dyn Fn() -> Option<Overflow>,
    argument: &str,
    value: &FieldValue,
) -> bool {
    let is_quorum = kind == Some(&QueueType::Quorum);
    match (argument, value.as_text()) {
        ("x-overflow", Some("reject-publish-dlx")) => !is_quorum,
        ("x-dead-letter-strategy", Some("at-least-once")) => {
            is_quorum && overflow() == Some(Overflow::RejectPublish)
        }
        _ => crate::topologyfile::queue_fields::typed_key(argument)
            .is_none_or(|key| crate::topologyfile::queue_types::takes(kind, key)),
    }
}

/// Moves arguments into the keys that are made for them.
fn typed(json: &mut Map<String, Json>, arguments: &mut FieldTable) {
    if let Some(exchange) = take_text(arguments, "x-dead-letter-exchange") {
        let mut dead_letter = Map::new();
        dead_letter.insert("exchange".to_owned(), json!(exchange));
        if let Some(key) = take_text(arguments, "x-dead-letter-routing-key") {
            dead_letter.insert("key".to_owned(), json!(key));
        }
        let known = |word: &str| DeadLetterStrategy::from_name(word).is_some();
        if let Some(strategy) = take_word(arguments, "x-dead-letter-strategy", known) {
            dead_letter.insert("strategy".to_owned(), strategy);
        }
        json.insert("dead_letter".to_owned(), Json::Object(dead_letter));
    }
    if let Some(delayed) = delayed_retry(arguments) {
        json.insert("delayed_retry".to_owned(), delayed);
    }
    let limit = take(arguments, "x-delivery-limit", |value| {
        match value.as_integer()? {
            limit if limit < 0 => Some(json!("unlimited")),
            limit => u32::try_from(limit).ok().map(|limit| json!(limit)),
        }
    });
    let number = |value: &FieldValue| Some(json!(u64::try_from(value.as_integer()?).ok()?));
    let size = |value: &FieldValue| {
        let bytes = u64::try_from(value.as_integer()?).ok()?;
        Some(json!(format!("{bytes}B")))
    };
    let small = |range: std::ops::RangeInclusive<i64>| {
        move |value: &FieldValue| {
            let number = value.as_integer().filter(|number| range.contains(number))?;
            Some(json!(number))
        }
    };
    let filter = |value: &FieldValue| {
        let bytes = value.as_integer().filter(|n| (16..=255).contains(n))?;
        Some(json!(format!("{bytes}B")))
    };
    let age = |value: &FieldValue| {
        let text = value.as_text()?;
        MaxAge::from_broker(text).map(|_| json!(text))
    };
    let locator = |word: &str| LeaderLocator::ALL.iter().any(|(known, _)| *known == word);
    let yes = |value: &FieldValue| (*value == FieldValue::Bool(true)).then(|| json!(true));
    let values = [
        ("delivery_limit", limit),
        ("message_ttl", take(arguments, "x-message-ttl", duration)),
        ("expires", take(arguments, "x-expires", duration)),
        ("max_length", take(arguments, "x-max-length", number)),
        (
            "max_length_bytes",
            take(arguments, "x-max-length-bytes", size),
        ),
        (
            "overflow",
            take_word(arguments, "x-overflow", |word| {
                Overflow::from_name(word).is_some()
            }),
        ),
        (
            "single_active_consumer",
            take(arguments, "x-single-active-consumer", yes),
        ),
        (
            "max_priority",
            take(arguments, "x-max-priority", small(1..=255)),
        ),
        (
            "consumer_timeout",
            take(arguments, "x-consumer-timeout", duration),
        ),
        (
            "leader_locator",
            take_word(arguments, "x-queue-leader-locator", locator),
        ),
        (
            "initial_cluster_size",
            take(arguments, "x-quorum-initial-group-size", small(1..=1000)),
        ),
        (
            "initial_cluster_size",
            take(arguments, "x-initial-cluster-size", small(1..=1000)),
        ),
        ("max_age", take(arguments, "x-max-age", age)),
        (
            "max_segment_size",
            take(arguments, "x-stream-max-segment-size-bytes", size),
        ),
        (
            "filter_size",
            take(arguments, "x-stream-filter-size-bytes", filter),
        ),
    ];
    for (key, value) in values {
        if let Some(value) = value {
            json.insert(key.to_owned(), value);
        }
    }
}

fn duration(value: &FieldValue) -> Option<Json> {
    let milliseconds = u64::try_from(value.as_integer()?).ok()?;
    let text = humantime::format_duration(Duration::from_millis(milliseconds)).to_string();
    // Only what reads back as the same number.
    crate::topologyfile::units::duration(&text).ok()?;
    Some(json!(text))
}

/// All three arguments together, or none: alone they say something else.
fn delayed_retry(arguments: &mut FieldTable) -> Option<Json> {
    let word = arguments.get("x-delayed-retry-type")?.as_text()?;
    let kind = DelayedRetryType::from_name(word)?;
    let shortest = arguments.get("x-delayed-retry-min")?;
    let longest = arguments.get("x-delayed-retry-max");
    let in_order = longest.is_none_or(|longest| longest.as_integer() >= shortest.as_integer());
    if shortest.as_integer() == Some(0) || !in_order {
        return None;
    }
    let mut json = Map::new();
    json.insert("type".to_owned(), json!(kind.to_string()));
    json.insert("min".to_owned(), duration(shortest)?);
    if let Some(longest) = longest {
        json.insert("max".to_owned(), duration(longest)?);
    }
    arguments.retain(|argument, _| !argument.starts_with("x-delayed-retry-"));
    Some(Json::Object(json))
}

/// Takes one of the words out that the file has too.
fn take_word(
    arguments: &mut FieldTable,
    name: &str,
    is_known: impl Fn(&str) -> bool,
) -> Option<Json> {
    take(arguments, name, |value| {
        let word = value.as_text().filter(|word| is_known(word))?;
        Some(json!(word))
    })
}

/// Takes an argument out if its value can be said.
fn take(
    arguments: &mut FieldTable,
    name: &str,
    say: impl Fn(&FieldValue) -> Option<Json>,
) -> Option<Json> {
    let said = say(arguments.get(name)?)?;
    arguments.remove(name);
    Some(said)
}
