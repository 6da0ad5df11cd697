use std::collections::BTreeSet;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Map, Value as Json, json};

use super::schema;
use crate::diagnostic::Source;
use crate::topologyfile::tree::{self, Node, Value};
use crate::topologyfile::{
    KEYS, bindings, check, exchanges, policies, queue_fields, queues, retry_fields, schema_fields,
    super_streams, users, vhost, workers,
};

mod every_value;

static VALIDATOR: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::draft7::new(&schema()).expect("schema"));

/// What the schema says against a file; a file that is no YAML has no place here.
pub(in crate::topologyfile) fn complaints(text: &str) -> Vec<String> {
    let file = as_json(&tree::parse(0, text).expect("YAML"));
    VALIDATOR
        .iter_errors(&file)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

fn as_json(node: &Node) -> Json {
    match &node.value {
        Value::Null | Value::Unreadable => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Integer(value) => json!(value),
        Value::Float(value) => json!(value),
        Value::Text(text) => json!(text),
        Value::List(items) => items.iter().map(as_json).collect(),
        Value::Map(entries) => Json::Object(
            entries
                .iter()
                .map(|(key, value)| (key.text.clone(), as_json(value)))
                .collect::<Map<String, Json>>(),
        ),
    }
}

fn is_read(text: &str) -> bool {
    let source = Source {
        name: "t.yaml".to_owned(),
        text: text.to_owned(),
    };
    crate::topologyfile::parse(&[source], &|_| None).is_ok()
}

#[test]
fn it_is_a_schema_of_its_draft() {
    let schema = schema();
    assert!(jsonschema::draft7::meta::is_valid(&schema));
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
}

/// The keys of each object are the ones that its reader knows.
#[test]
fn it_has_the_keys_that_are_read() {
    let schema = schema();
    let queue = "/definitions/queue/properties";
    let user = "/definitions/user/properties";
    let permissions = "/definitions/permissions/properties";
    let of = |place: &str, key: &str| format!("{place}/{key}/properties");
    let mut file = KEYS.to_vec();
    file.push("tests");
    for (place, keys) in [
        ("/properties".to_owned(), file.as_slice()),
        (
            "/properties/vhost/anyOf/1/properties".to_owned(),
            &vhost::KEYS,
        ),
        (
            "/properties/vhost/anyOf/1/properties/limits/properties".to_owned(),
            &vhost::LIMITS,
        ),
        (of("/properties", "elsewhere"), &check::ELSEWHERE_KEYS),
        (
            "/definitions/exchange/properties".to_owned(),
            &exchanges::KEYS,
        ),
        (queue.to_owned(), &queue_fields::KEYS),
        (of(queue, "dead_letter"), &queue_fields::DEAD_LETTER_KEYS),
        (
            of(queue, "delayed_retry"),
            &queue_fields::DELAYED_RETRY_KEYS,
        ),
        (of(queue, "retry"), &retry_fields::KEYS),
        (
            format!("{queue}/retry/properties/delays/anyOf/1/properties"),
            &retry_fields::DELAYS_KEYS,
        ),
        (
            format!("{queue}/schema/anyOf/1/items/properties"),
            &schema_fields::KEYS,
        ),
        (
            "/definitions/queue_binding/properties".to_owned(),
            &queues::BIND_KEYS,
        ),
        (
            "/definitions/binding/properties".to_owned(),
            &bindings::KEYS,
        ),
        ("/definitions/worker/properties".to_owned(), &workers::KEYS),
        (
            of("/definitions/worker/properties", "retry"),
            &retry_fields::WORKER_KEYS,
        ),
        (
            "/definitions/super_stream/properties".to_owned(),
            &super_streams::KEYS,
        ),
        ("/definitions/policy/properties".to_owned(), &policies::KEYS),
        (
            of("/definitions/policy/properties", "definition"),
            &policies::KNOWN,
        ),
        (user.to_owned(), &users::USER_KEYS),
        (of(user, "password"), &users::PASSWORD_KEYS),
        (permissions.to_owned(), &users::PERMISSION_KEYS),
        (
            format!("{permissions}/topics/additionalProperties/properties"),
            &users::TOPIC_KEYS,
        ),
    ] {
        let properties = schema.pointer(&place).and_then(Json::as_object);
        let properties = properties.unwrap_or_else(|| panic!("{place} is no map"));
        let described: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        let read: BTreeSet<&str> = keys.iter().copied().collect();
        assert_eq!(described, read, "{place}");
    }
}

/// Every key says what it means, and every map refuses keys it does not know.
#[test]
fn every_key_is_described_and_every_map_is_closed() {
    fn walk(place: &str, json: &Json, seen: &mut usize) {
        match json {
            Json::Object(object) => {
                if let Some(Json::Object(properties)) = object.get("properties") {
                    let open = place.ends_with("policy/properties/definition");
                    assert_eq!(
                        object.contains_key("additionalProperties"),
                        !open,
                        "{place}"
                    );
                    for (key, property) in properties {
                        let text = property["description"].as_str().unwrap_or_default();
                        assert!(text.ends_with('.'), "{place}/{key}: {text:?}");
                        *seen += 1;
                    }
                }
                for (key, inner) in object {
                    walk(&format!("{place}/{key}"), inner, seen);
                }
            }
            Json::Array(items) => items.iter().for_each(|item| walk(place, item, seen)),
            _ => {}
        }
    }
    let mut seen = 0;
    let schema = schema();
    walk("", &schema, &mut seen);
    assert!(seen > 100, "only {seen} keys");
    for (name, definition) in schema["definitions"].as_object().expect("map") {
        let described = definition["description"].is_string();
        assert_eq!(described, name != "variable", "{name}");
    }
}

/// What no reader takes, and where the schema says so.
const WRONG: [(&str, &str); 51] = [
    ("queue: {}", ""),
    ("queues: { q: { typ: quorum } }", "/queues/q"),
    ("queues: { q: { type: quorom } }", "/queues/q/type"),
    ("queues: { q: { durable: 'yes' } }", "/queues/q/durable"),
    (
        "queues: { q: { message_ttl: 500 } }",
        "/queues/q/message_ttl",
    ),
    (
        "queues: { q: { message_ttl: '500' } }",
        "/queues/q/message_ttl",
    ),
    (
        "queues: { q: { message_ttl: ten minutes } }",
        "/queues/q/message_ttl",
    ),
    ("queues: { q: { max_length: -5 } }", "/queues/q/max_length"),
    (
        "queues: { q: { max_length: '${X:-5}' } }",
        "/queues/q/max_length",
    ),
    (
        "queues: { q: { max_length_bytes: 1.5MB } }",
        "/queues/q/max_length_bytes",
    ),
    (
        "queues: { q: { max_priority: 256 } }",
        "/queues/q/max_priority",
    ),
    (
        "queues: { q: { delivery_limit: -1 } }",
        "/queues/q/delivery_limit",
    ),
    ("queues: { q: { max_age: 1 month } }", "/queues/q/max_age"),
    (
        "queues: { q: { arguments: { x-message-ttl: 5 } } }",
        "/queues/q/arguments",
    ),
    (
        "queues: { q: { bind: [ { key: k } ] } }",
        "/queues/q/bind/0",
    ),
    (
        "queues: { q: { dead_letter: { key: k } } }",
        "/queues/q/dead_letter",
    ),
    (
        "queues: { q: { retry: { max_attempts: 0 } } }",
        "/queues/q/retry/max_attempts",
    ),
    (
        "queues: { q: { retry: { jitter: 25 } } }",
        "/queues/q/retry/jitter",
    ),
    (
        "queues: { q: { retry: { strategy: backoff, delays: [ 1s ], jitter: 100% } } }",
        "/queues/q/retry/jitter",
    ),
    (
        "workers: { w: { retry: { strategy: backoff, delays: { factor: 2 } } } }",
        "/workers/w/retry/delays",
    ),
    (
        "workers: { w: { retry: { strategy: backoff, delays: { first: 1s, factor: 0.5 } } } }",
        "/workers/w/retry/delays",
    ),
    (
        "workers: { w: { retry: { strategy: backoff, delays: { first: 1s, most: 1m } } } }",
        "/workers/w/retry/delays",
    ),
    ("queues: { q: { schema: } }", "/queues/q/schema"),
    ("queues: { q: { schema: [] } }", "/queues/q/schema"),
    (
        "queues: { q: { schema: [ { key: k } ] } }",
        "/queues/q/schema",
    ),
    (
        "queues: { q: { schema: [ { file: '' } ] } }",
        "/queues/q/schema",
    ),
    ("queues: { amq.q: {} }", "/queues"),
    ("queues: [ q ]", "/queues"),
    ("exchanges: { e: {} }", "/exchanges/e"),
    ("exchanges: { e: }", "/exchanges/e"),
    (
        "exchanges: { e: { type: topic, arguments: { alternate-exchange: x } } }",
        "/exchanges/e/arguments",
    ),
    ("bindings: [ { source: e } ]", "/bindings/0"),
    (
        "bindings: [ { source: e, destination: q, destination_type: stream } ]",
        "/bindings/0/destination_type",
    ),
    ("workers: { w: {} }", "/workers/w"),
    (
        "workers: { w: { retry: { dead_letter_queue: q } } }",
        "/workers/w/retry",
    ),
    ("super_streams: { s: {} }", "/super_streams/s"),
    (
        "super_streams: { s: { partitions: 2, keys: [ a ] } }",
        "/super_streams/s",
    ),
    (
        "super_streams: { s: { partitions: 1001 } }",
        "/super_streams/s/partitions",
    ),
    (
        "super_streams: { s: { keys: [ a, a ] } }",
        "/super_streams/s/keys",
    ),
    ("policies: { p: { pattern: a } }", "/policies/p"),
    (
        "policies: { p: { pattern: a, definition: { message-ttl: 10m } } }",
        "/policies/p/definition/message-ttl",
    ),
    (
        "policies: { p: { pattern: a, apply_to: queue, definition: {} } }",
        "/policies/p/apply_to",
    ),
    ("users: { u: { password: hunter2 } }", "/users/u/password"),
    (
        "users: { u: { password: { env: A, file: B } } }",
        "/users/u/password",
    ),
    ("users: { u: { tags: [ 'a,b' ] } }", "/users/u/tags/0"),
    (
        "permissions: { u: { configure: '', write: '' } }",
        "/permissions/u",
    ),
    ("owns: '^a'", "/owns"),
    ("elsewhere: { queue: [ a ] }", "/elsewhere"),
    ("vhost: { limits: { max_queues: -1 } }", "/vhost"),
    ("vhost: ", "/vhost"),
    ("version: 2", "/version"),
];

#[test]
fn what_is_wrong_in_itself_is_refused() {
    for (wrong, place) in WRONG {
        let text = if wrong.starts_with("version") {
            wrong.to_owned()
        } else {
            format!("version: 1\n{wrong}\n")
        };
        assert!(!is_read(&text), "{wrong}");
        let complaints = complaints(&text);
        assert!(
            complaints
                .iter()
                .any(|said| said.starts_with(&format!("{place}: "))),
            "{wrong}: {complaints:?}"
        );
    }
    assert_ne!(
        complaints("queues: {}\n"),
        Vec::<String>::new(),
        "no version"
    );
}

/// They are the reader's own business; the schema only knows their shape.
#[test]
fn tests_of_a_topology_have_a_shape() {
    let with = |test: &str| complaints(&format!("version: 1\ntests: [ {test} ]\n"));
    for fine in [
        "{ name: n, publish: { exchange: e, key: k, headers: { h: 1 } }, reaches: [ q ], rejected: [], expired: [ q ], max_length: [ q ], delivery_limit: [ q ] }",
        "{ publish: { key: q }, reaches: [] }",
    ] {
        assert_eq!(with(fine), Vec::<String>::new(), "{fine}");
    }
    for wrong in [
        "{ reaches: [ q ] }",
        "{ publish: { exchange: e, body: x } }",
        "{ publish: { key: k }, reaches: q }",
        "{ publish: { key: k }, reach: [ q ] }",
    ] {
        assert_ne!(with(wrong), Vec::<String>::new(), "{wrong}");
    }
}
