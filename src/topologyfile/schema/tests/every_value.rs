//! Whatever the reader takes, the schema takes: each key with each kind of value,
//! and random durations, ages and sizes.

use std::sync::LazyLock;

use jsonschema::Validator;
use proptest::prelude::{prop_assert, proptest};
use serde_json::json;

use super::{VALIDATOR, as_json, complaints, is_read};
use crate::topologyfile::schema::values::{age, duration, size};
use crate::topologyfile::{
    KEYS, bindings, check, exchanges, policies, queue_fields, queues, retry_fields, schema_fields,
    super_streams, tree, units, users, vhost, workers,
};

/// Every kind of value that a key could meet.
const VALUES: [&str; 39] = [
    "",
    "true",
    "0",
    "1",
    "3",
    "256",
    "-1",
    "1.5",
    "5000000000",
    "word",
    "''",
    "10m",
    "1M",
    "16B",
    "64KiB",
    "unlimited",
    "quorum",
    "stream",
    "topic",
    "reject-publish",
    "balanced",
    "exchange",
    "'${X:-10m}'",
    "'${X:-quorum}'",
    "'${X:-unlimited}'",
    "'${X:-3}'",
    "'$${X}'",
    "[]",
    "[ a, '${X:-b}' ]",
    "[ 1s ]",
    "[ a, 1 ]",
    "{}",
    "{ a: 1, b: [ x, { c: } ] }",
    "[ { exchange: e, key: k, arguments: { x: 1 } } ]",
    "{ exchange: e, key: k, strategy: at-most-once }",
    "{ type: all, min: 1s }",
    "25%",
    "none",
    "{ first: 1s, factor: 1.5, max: '${X:-1m}' }",
];

/// Keys of an object, what stands before it, what else it needs, and what follows.
type Shape = (
    &'static [&'static str],
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// Every object of a file.
const SHAPES: [Shape; 33] = [
    (&KEYS, "", &[], ""),
    (&vhost::KEYS, "vhost: ", &[], ""),
    (&vhost::LIMITS, "vhost: { limits: ", &[], " }"),
    (
        &exchanges::KEYS,
        "exchanges: { f: ",
        &[("type", "topic")],
        " }",
    ),
    (
        &exchanges::KEYS,
        "exchanges: { '${X:-f}': ",
        &[("type", "topic")],
        " }",
    ),
    (
        &queue_fields::KEYS,
        "queues: { q: ",
        &[("type", "quorum")],
        " }",
    ),
    (
        &queue_fields::KEYS,
        "queues: { q: ",
        &[("type", "stream")],
        " }",
    ),
    (
        &queue_fields::DEAD_LETTER_KEYS,
        "queues: { q: { dead_letter: ",
        &[("exchange", "e")],
        " } }",
    ),
    (
        &queue_fields::DELAYED_RETRY_KEYS,
        "queues: { q: { type: quorum, delayed_retry: ",
        &[("type", "all"), ("min", "1s")],
        " } }",
    ),
    (
        &retry_fields::KEYS,
        "queues: { d: , q: { dead_letter: { exchange: '', key: d }, retry: ",
        &[],
        " } }",
    ),
    (
        &schema_fields::KEYS,
        "workers: { w: { retry: { delays: [ 1s ] }, schema: [ ",
        &[("file", "f")],
        " ] } }",
    ),
    (
        &queues::BIND_KEYS,
        "queues: { q: { bind: [ ",
        &[("exchange", "e")],
        " ] } }",
    ),
    (
        &bindings::KEYS,
        "queues: { word: , quorum: }\nbindings: [ ",
        &[("source", "e"), ("destination", "word")],
        " ]",
    ),
    (
        &workers::KEYS,
        "workers: { w: ",
        &[("retry", "{ delays: [ 1s ] }")],
        " }",
    ),
    (
        &retry_fields::WORKER_KEYS,
        "workers: { w: { retry: ",
        &[("strategy", "dlx"), ("delays", "[ 1s ]")],
        " } }",
    ),
    (
        &retry_fields::WORKER_KEYS,
        "workers: { w: { retry: ",
        &[("strategy", "backoff"), ("delays", "[ 1s ]")],
        " } }",
    ),
    (
        &retry_fields::WORKER_KEYS,
        "workers: { w: { retry: ",
        &[("strategy", "immediate")],
        " } }",
    ),
    (
        &retry_fields::WORKER_KEYS,
        "workers: { w: { retry: ",
        &[("strategy", "native"), ("delays", "[ 1s ]")],
        " } }",
    ),
    (
        &retry_fields::DELAYS_KEYS,
        "workers: { w: { retry: { strategy: backoff, delays: ",
        &[("first", "10ms")],
        " } } }",
    ),
    (
        &retry_fields::DELAYS_KEYS,
        "workers: { w: { retry: { strategy: backoff, delays: ",
        &[("first", "10ms"), ("factor", "1.1"), ("max", "100000h")],
        " } } }",
    ),
    (
        &super_streams::KEYS,
        "super_streams: { s: ",
        &[("keys", "[ a ]")],
        " }",
    ),
    (&super_streams::KEYS, "super_streams: { s: ", &[], " }"),
    (
        &policies::KEYS,
        "policies: { p: ",
        &[("pattern", "'^a'"), ("definition", "{ max-length: 5 }")],
        " }",
    ),
    (
        &policies::KNOWN,
        "operator_policies: { p: { pattern: a, definition: ",
        &[],
        " } }",
    ),
    (&users::USER_KEYS, "users: { u: ", &[], " }"),
    (
        &users::PASSWORD_KEYS,
        "users: { u: { password: ",
        &[],
        " } }",
    ),
    (
        &users::PASSWORD_KEYS,
        "users: { u: { password: ",
        &[("hash", "x")],
        " } }",
    ),
    (
        &users::PERMISSION_KEYS,
        "permissions: { u: ",
        &[("configure", "''"), ("write", "''"), ("read", "''")],
        " }",
    ),
    (
        &users::TOPIC_KEYS,
        "permissions: { u: { configure: '', write: '', read: '', topics: { e: ",
        &[("write", "''"), ("read", "''")],
        " } } }",
    ),
    (&check::ELSEWHERE_KEYS, "elsewhere: ", &[], ""),
    (&["q", "amq.q", "'${X:-q}'", "''"], "queues: ", &[], ""),
    (&["e", "amq.e", "'${X:-e}'", "''"], "exchanges: ", &[], ""),
    (&["p", "amq.p", "'${X:-p}'", "''"], "policies: ", &[], ""),
];

/// A file for each object and each of its keys, with this value under the key.
fn files(value: &str) -> Vec<String> {
    let mut files = Vec::new();
    for (keys, before, needed, after) in SHAPES {
        for key in keys {
            let mut entries: Vec<String> = needed
                .iter()
                .filter(|(other, _)| other != key)
                .map(|(other, value)| format!("{other}: {value}"))
                .collect();
            entries.push(format!("{key}: {value}"));
            let object = match before {
                "" => entries.join("\n"),
                _ => format!("{{ {} }}", entries.join(", ")),
            };
            let rest = format!("{before}{object}{after}\n");
            let mut file = String::new();
            if !rest.starts_with("version") {
                file.push_str("version: 1\n");
            }
            if !rest.starts_with("exchanges") {
                file.push_str("exchanges: { e: { type: topic } }\n");
            }
            files.push(file + &rest);
        }
    }
    files
}

#[test]
fn what_is_read_is_taken() {
    let (mut read, mut refused_by_both) = (0, 0);
    for file in VALUES.into_iter().flat_map(files) {
        let Ok(root) = tree::parse(0, &file) else {
            continue;
        };
        let taken = VALIDATOR.is_valid(&as_json(&root));
        if is_read(&file) {
            assert!(taken, "{file}{:?}", complaints(&file));
            read += 1;
        } else if !taken {
            refused_by_both += 1;
        }
    }
    assert!(read > 800, "only {read} files are valid");
    assert!(refused_by_both > 2000, "only {refused_by_both} are refused");
}

fn with_unit(kind: &str, text: &str) -> bool {
    static KINDS: LazyLock<[(&str, Validator); 3]> = LazyLock::new(|| {
        [
            ("duration", duration("")),
            ("age", age("")),
            ("size", size("")),
        ]
        .map(|(kind, schema)| (kind, jsonschema::draft7::new(&schema).expect("schema")))
    });
    let (_, validator) = KINDS
        .iter()
        .find(|(known, _)| *known == kind)
        .expect("kind");
    validator.is_valid(&json!(text))
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(2000))]
    #[test]
    fn no_unit_that_is_read_is_refused(
        text in "( ?[0-9]{1,3} ?(\\.[05] ?)?(ns|us|µs|msec|ms|s|sec|m|mins?|h|hrs?|d|days|w|wks?|M|months?|y|yrs?|Y|D|x|B|kB|KB|KiB|MB|MiB|GB|GiB| )? ?){1,3}"
    ) {
        prop_assert!(units::duration(&text).is_err() || with_unit("duration", &text), "{text:?}");
        prop_assert!(units::max_age(&text).is_err() || with_unit("age", &text), "{text:?}");
        prop_assert!(units::size(&text).is_err() || with_unit("size", &text), "{text:?}");
    }
}
