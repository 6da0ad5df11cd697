//! A queue in the schema.

use serde_json::{Value as Json, json};

use super::retry;
use super::values::{
    age, arguments, duration, flag, limit, list_of, object, reference, size, text, whole, word,
};
use crate::topology::{DeadLetterStrategy, DelayedRetryType, LeaderLocator, Overflow};
use crate::topologyfile::queue_fields::{DELIVERY_LIMITS, PRIORITIES, REPLICAS, TYPED, TYPES};

pub(super) fn queue() -> Json {
    object("A queue.", properties(), &[])
}

/// The keys of a queue; short forms have some of them.
pub(super) fn properties() -> Json {
    json!({
        "type": word("quorum, classic or stream; left out: the default of the vhost.", &TYPES),
        "durable": flag(
            "Whether it outlives a restart of the broker; default true. Quorum queues and streams always do.",
            true,
        ),
        "auto_delete": flag(
            "Whether it is deleted with its last consumer; default false. Classic queues only.",
            false,
        ),
        "bind": list_of("The bindings of this queue.", reference("queue_binding")),
        "dead_letter": dead_letter(),
        "delivery_limit": limit(
            "How often a message is delivered before it is dead-lettered, or `unlimited`. Left out: the broker's default, 20 since 4.0. Quorum queues only.",
            &DELIVERY_LIMITS,
        ),
        "message_ttl": duration("How long a message waits before it expires, such as 30s or 24h."),
        "expires": duration("How long the queue may be unused before it is deleted, such as 24h."),
        "max_length": whole("How many messages it holds at most.", &(0..=u64::MAX)),
        "max_length_bytes": size("How many bytes of bodies it holds at most, such as 10MiB."),
        "overflow": word(
            "What happens when it is full; default drop-head. `reject-publish-dlx`: classic queues only.",
            &Overflow::ALL,
        ),
        "single_active_consumer": flag(
            "Whether only one of its consumers gets messages at a time; default false.",
            false,
        ),
        "max_priority": whole(
            "The highest priority of messages, 1 to 255. Classic queues only.",
            &PRIORITIES,
        ),
        "delayed_retry": delayed_retry(),
        "consumer_timeout": duration(
            "How long a consumer may hold a message without acknowledging it, such as 30m; RabbitMQ 3.12 and newer.",
        ),
        "leader_locator": word(
            "Where its leader is placed; default client-local.",
            &LeaderLocator::ALL,
        ),
        "initial_cluster_size": whole(
            "How many replicas it begins with, 1 to 1000. Quorum queues and streams only.",
            &REPLICAS,
        ),
        "max_age": age("How old what a stream keeps may become, such as 7d or 12h. Streams only."),
        "max_segment_size": size(
            "How large a file of the stream becomes, up to 3000000000B; such as 500MB. Streams only.",
        ),
        "filter_size": size(
            "The size of a filter of the stream, 16B to 255B; RabbitMQ 3.13 and newer. Streams only.",
        ),
        "arguments": raw_arguments(),
        "retry": retry::of_queue(),
        "schema": schema(),
        "description": text("What it is for; only mq reads it."),
    })
}

fn schema() -> Json {
    let file =
        |description: &str| json!({ "description": description, "type": "string", "minLength": 1 });
    let rule = object(
        "A schema and the messages it is for; without `key` and `type` for all.",
        json!({
            "key": text("The routing key they came to the queue with, as a topic pattern such as order.*."),
            "type": text("Their `type` property."),
            "file": file("The path of a JSON Schema from this file."),
        }),
        &["file"],
    );
    json!({
        "description": "What `mq consume` holds the bodies of messages against before they are worked: the path of a JSON Schema (2020-12 or draft-07) from this file, or rules of which the first that is about a message counts.",
        "anyOf": [
            file("The path of a JSON Schema from this file."),
            { "type": "array", "items": rule, "minItems": 1 },
        ],
    })
}

/// Arguments of a queue that have no key of their own.
fn raw_arguments() -> Json {
    arguments(
        "Arguments that have no key of their own, typed by YAML.",
        TYPED.map(|(raw, _)| raw),
    )
}

fn dead_letter() -> Json {
    object(
        "Where messages go that are rejected, expire, are too many, or were delivered too often.",
        json!({
            "exchange": text("The dead-letter exchange; `\"\"` is the default exchange, which takes `key` as the name of a queue."),
            "key": text("The routing key they get; left out: the ones they came with."),
            "strategy": word(
                "How safely; default at-most-once. `at-least-once` needs `type: quorum` and `overflow: reject-publish`.",
                &DeadLetterStrategy::ALL,
            ),
        }),
        &["exchange"],
    )
}

fn delayed_retry() -> Json {
    object(
        "How long messages are held back that were returned to the queue. Quorum queues of RabbitMQ 4.3 and newer.",
        json!({
            "type": word(
                "Which of them: `failed` (rejected, or lost with their consumer), `returned` (nacked), or all.",
                &DelayedRetryType::ALL,
            ),
            "min": duration("How long after the first time, such as 1s."),
            "max": duration("What the delay grows to, such as 1m; left out: it does not grow."),
        }),
        &["type", "min"],
    )
}
