//! What queues of each type cannot have. Brokers refuse most of it, but only
//! when the queue is declared, and take some of it without doing it.
//!
//! Measured on 3.10.8, 4.0.5 and 4.3.6: only what all of them refuse or ignore.

use crate::diagnostic::Diagnostic;
use crate::topology::{Overflow, Queue, QueueType};
use crate::topologyfile::fields::{Fields, Reader};
use crate::topologyfile::tree::Node;

/// Keys that only queues of these types have.
const ONLY: [(&str, &[QueueType]); 14] = [
    ("delivery_limit", &[QueueType::Quorum]),
    ("delayed_retry", &[QueueType::Quorum]),
    ("max_priority", &[QueueType::Classic]),
    ("max_age", &[QueueType::Stream]),
    ("max_segment_size", &[QueueType::Stream]),
    ("filter_size", &[QueueType::Stream]),
    (
        "initial_cluster_size",
        &[QueueType::Quorum, QueueType::Stream],
    ),
    ("dead_letter", &NO_STREAM),
    ("message_ttl", &NO_STREAM),
    ("expires", &NO_STREAM),
    ("max_length", &NO_STREAM),
    ("overflow", &NO_STREAM),
    ("single_active_consumer", &NO_STREAM),
    ("retry", &NO_STREAM),
];

const NO_STREAM: [QueueType; 2] = [QueueType::Classic, QueueType::Quorum];

/// Keys without a meaning of their own when the type is left to the vhost.
const NEED_A_TYPE: [&str; 5] = [
    "delayed_retry",
    "initial_cluster_size",
    "max_age",
    "max_segment_size",
    "filter_size",
];

/// Whether a queue of that type can have that key in a file.
pub(super) fn takes(kind: Option<&QueueType>, key: &str) -> bool {
    let Some((_, types)) = ONLY.iter().find(|(only, _)| *only == key) else {
        return true;
    };
    match kind {
        Some(QueueType::Other(_)) => true,
        Some(kind) => types.contains(kind),
        None => !NEED_A_TYPE.contains(&key),
    }
}

/// Reports every key of the queue that its type cannot have.
pub(super) fn check(queue: &Queue, fields: Fields<'_>, what: &str, reader: &mut Reader) {
    for (key, types) in ONLY {
        let Some(node) = fields.get(key) else {
            continue;
        };
        // What is false is not sent.
        if key == "single_active_consumer" && !queue.single_active_consumer {
            continue;
        }
        if takes(queue.kind.as_ref(), key) {
            continue;
        }
        reader.report(match &queue.kind {
            Some(kind) => mistake(node, what, kind, &format!("has no `{key}`"))
                .help(format!("leave it out, or write {}", one_of(types))),
            None => Diagnostic::new(
                "MQ114",
                node.place(),
                format!("{what} has `{key}` and no `type`, which the vhost then chooses"),
            )
            .help(format!("write {}", one_of(types))),
        });
    }
    let Some(kind) = &queue.kind else {
        return;
    };
    if *kind != QueueType::Classic {
        for (key, refused, why) in [
            ("durable", !queue.durable, "is always durable"),
            (
                "auto_delete",
                queue.auto_delete,
                "is never deleted by itself",
            ),
        ] {
            if let (true, Some(node)) = (refused, fields.get(key)) {
                reader.report(
                    mistake(node, what, kind, why).help("leave it out, or write `type: classic`"),
                );
            }
        }
    }
    if *kind == QueueType::Quorum
        && queue.overflow == Some(Overflow::RejectPublishDlx)
        && let Some(node) = fields.get("overflow")
    {
        reader.report(
            mistake(node, what, kind, "does not know `reject-publish-dlx`")
                .label("the broker takes it, and then drops the oldest message instead")
                .help("write `overflow: reject-publish`, or `type: classic`"),
        );
    }
    if *kind == QueueType::Classic
        && queue.dead_letter_strategy.is_some()
        && let Some(node) = fields.get("dead_letter")
    {
        reader.report(
            mistake(node, what, kind, "has no `strategy` of dead-lettering")
                .help("leave it out, or write `type: quorum`"),
        );
    }
}

fn mistake(node: &Node, what: &str, kind: &QueueType, says: &str) -> Diagnostic {
    let noun = match kind {
        QueueType::Stream => "a stream".to_owned(),
        QueueType::Classic | QueueType::Quorum | QueueType::Other(_) => format!("a {kind} queue"),
    };
    Diagnostic::new(
        "MQ114",
        node.place(),
        format!("{what} is {noun}, which {says}"),
    )
}

fn one_of(types: &[QueueType]) -> String {
    let types: Vec<String> = types.iter().map(|kind| format!("`type: {kind}`")).collect();
    types.join(" or ")
}

#[cfg(test)]
mod tests {
    use crate::diagnostic::Source;

    /// The codes of everything that is wrong with a queue.
    fn codes(queue: &str) -> Vec<&'static str> {
        let source = Source {
            name: "t.yaml".to_owned(),
            text: format!(
                "version: 1\nexchanges: {{ x: {{ type: fanout }} }}\nqueues: {{ q: {{ {queue} }} }}\n"
            ),
        };
        match crate::topologyfile::parse(&[source], &|_| None) {
            Ok(_) => Vec::new(),
            Err(found) => found.iter().map(|diagnostic| diagnostic.code).collect(),
        }
    }

    #[test]
    fn each_type_has_keys_of_its_own() {
        for (queue, mistakes) in [
            ("type: classic, delivery_limit: 3", 1),
            ("type: classic, max_age: 7d", 1),
            ("type: classic, initial_cluster_size: 3", 1),
            (
                "type: classic, dead_letter: { exchange: x, strategy: at-most-once }",
                1,
            ),
            (
                "type: classic, max_priority: 3, overflow: reject-publish-dlx, durable: false, auto_delete: true",
                0,
            ),
            ("type: quorum, max_priority: 3", 1),
            ("type: quorum, overflow: reject-publish-dlx", 1),
            ("type: quorum, durable: false, auto_delete: true", 2),
            (
                "type: quorum, durable: true, auto_delete: false, initial_cluster_size: 3, leader_locator: balanced",
                0,
            ),
            (
                "type: quorum, delayed_retry: { type: all, min: 1s, max: 1m }, consumer_timeout: 10m",
                0,
            ),
            (
                "type: stream, message_ttl: 1s, max_length: 5, expires: 1h, overflow: drop-head, single_active_consumer: true, delivery_limit: 2",
                6,
            ),
            ("type: stream, dead_letter: { exchange: x }", 1),
            (
                "type: stream, single_active_consumer: false, max_length_bytes: 1GB, max_age: 7d, max_segment_size: 500MB, filter_size: 16B, initial_cluster_size: 1",
                0,
            ),
            ("delayed_retry: { type: all, min: 1s }", 1),
            ("initial_cluster_size: 1", 1),
            ("delivery_limit: 3, max_priority: 3", 0),
        ] {
            assert_eq!(codes(queue), vec!["MQ114"; mistakes], "{queue}");
        }
    }
}
