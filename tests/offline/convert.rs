//! Definitions and topology files: one into the other, and nothing lost in silence.

use serde_json::{Value as Json, json};

use crate::support::{Mq, TextFile};

const DEFINITIONS: &str = r#"{
  "rabbit_version": "4.0.5", "product_name": "RabbitMQ",
  "users": [
    { "name": "app", "password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR",
      "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ["monitoring"], "limits": {} },
    { "name": "old", "password_hash": "", "hashing_algorithm": "rabbit_password_hashing_sha256",
      "tags": "management,policymaker", "limits": { "max-channels": 3 } }
  ],
  "vhosts": [
    { "name": "shop", "metadata": { "description": "a shop", "tags": ["x"], "default_queue_type": "quorum" },
      "protected_from_deletion": true },
    { "name": "/", "limits": [] }
  ],
  "permissions": [ { "user": "app", "vhost": "shop", "configure": "", "write": "^o", "read": ".*" },
                   { "user": "app", "vhost": "/", "configure": "", "write": "", "read": "" } ],
  "topic_permissions": [ { "user": "app", "vhost": "shop", "exchange": "o x", "write": "^o", "read": ".*" } ],
  "parameters": [
    { "component": "vhost-limits", "name": "limits", "vhost": "shop", "value": { "max-queues": 9 } },
    { "component": "operator_policy", "name": "cap", "vhost": "shop",
      "value": { "pattern": "^o", "apply-to": "queues", "priority": 2, "definition": { "max-length": 5 } } },
    { "component": "shovel", "name": "mover", "vhost": "shop", "value": { "src-queue": "q" } }
  ],
  "global_parameters": [ { "name": "internal_cluster_id", "value": "id" }, { "name": "mqtt_port", "value": {} } ],
  "policies": [ { "vhost": "shop", "name": "p", "pattern": "^q", "apply-to": "all", "definition": { "dead-letter-exchange": "o x" }, "priority": 0 } ],
  "queues": [
    { "name": "q: #1", "vhost": "shop", "durable": true, "auto_delete": false,
      "arguments": { "x-queue-type": "quorum", "x-max-length": 7, "x-own": [1, { "a": true }] }, "new_field": 5 },
    { "name": "amq.gen-1", "vhost": "shop", "durable": false, "auto_delete": true, "arguments": {} }
  ],
  "exchanges": [ { "name": "o x", "vhost": "shop", "type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": {} } ],
  "bindings": [
    { "source": "o x", "vhost": "shop", "destination": "q: #1", "destination_type": "queue", "routing_key": "a.*", "arguments": { "n": 1 } },
    { "source": "o x", "vhost": "shop", "destination": "amq.gen-1", "destination_type": "queue", "routing_key": "", "arguments": {} }
  ],
  "new_list": [ 1 ]
}"#;

#[test]
fn what_a_file_cannot_say_is_told() {
    let file = TextFile::new("definitions.json", DEFINITIONS);
    let ran = Mq::new(["topology", "convert", &file.path(), "--vhost", "shop"])
        .run()
        .code(3);
    insta::assert_snapshot!("definitions_as_a_file", ran.stdout);
    insta::assert_snapshot!("what_was_left_out", file.normalise(&ran.stderr));
    let yaml = TextFile::new("shop.yaml", &ran.stdout);
    // It can be read; what the lint says of it was true of the broker too.
    let linted = Mq::new(["topology", "validate", &yaml.path()])
        .run()
        .code(1);
    assert!(linted.stderr.contains("MQ205"), "{}", linted.stderr);

    // And back: what the file could say is as it was.
    let back = Mq::new(["topology", "convert", &yaml.path()])
        .run()
        .code(0)
        .json();
    let there: Json = serde_json::from_str(DEFINITIONS).expect("json");
    for list in ["exchanges", "policies", "topic_permissions"] {
        assert_eq!(back[list], there[list], "{list}");
    }
    assert_eq!(back["bindings"], json!([there["bindings"][0]]));
    assert_eq!(back["permissions"], json!([there["permissions"][0]]));
    let mut queue = there["queues"][0].clone();
    queue.as_object_mut().expect("queue").remove("new_field");
    assert_eq!(back["queues"], json!([queue]));
    assert_eq!(
        back["users"][0]["password_hash"],
        there["users"][0]["password_hash"]
    );
    assert_eq!(
        back["vhosts"][0]["metadata"],
        there["vhosts"][0]["metadata"]
    );
    let mut parameters = back["parameters"].as_array().expect("list").clone();
    parameters.reverse();
    assert_eq!(
        json!(parameters),
        json!([there["parameters"][0], there["parameters"][1]])
    );
}

#[test]
fn several_vhosts_need_a_choice() {
    let definitions = r#"{"vhosts": [{"name": "a"}, {"name": "b"}], "queues": [
        {"name": "q", "vhost": "a", "arguments": {}}, {"name": "q", "vhost": "b", "arguments": {}}]}"#;
    Mq::new(["topology", "convert", "-"])
        .stdin(definitions)
        .run()
        .code(65)
        .says(&["several vhosts", "--vhost: 'a', 'b'"]);
    Mq::new(["topology", "convert", "-", "--vhost", "c"])
        .stdin(definitions)
        .run()
        .code(65)
        .says(&["does not hold vhost 'c'"]);
    let of_nothing_else = r#"{"users": [{"name": "a"}], "permissions": [
        {"user": "a", "vhost": "/", "configure": "", "write": "", "read": ".*"}]}"#;
    Mq::new(["topology", "convert", "-"])
        .stdin(of_nothing_else)
        .run()
        .code(0)
        .shows(&["permissions:", "read: .*"]);
    Mq::new(["topology", "convert", "-", "--vhost", "b"])
        .stdin(definitions)
        .run()
        .code(0)
        .says(&["not asked for: a"]);
}

#[test]
fn what_is_no_definitions_file_is_refused_with_its_place() {
    for (text, said) in [
        (r#"{"queues": 5}"#, "`queues` should be a list, not 5"),
        (r#"{"queues": [5]}"#, "queues[0] should be an object"),
        (
            r#"{"queues": [{"name": "q", "durable": "yes"}]}"#,
            "queue 'q': `durable` should be true or false",
        ),
        (r#"{"exchanges": [{"name": "e"}]}"#, "there is no `type`"),
        (
            r#"{"policies": [{"name": "p", "pattern": "(", "definition": {}}]}"#,
            "'(' is no pattern",
        ),
        (
            r#"{"policies": [{"name": "p", "pattern": "a", "priority": 1.5, "definition": {}}]}"#,
            "`priority` should be a whole number",
        ),
        (
            r#"{"queues": [{"name": "q", "arguments": {}}, {"name": "q", "arguments": {"a": 1}}]}"#,
            "queue 'q' is in the file twice",
        ),
        (
            r#"{"queues": [{"name": "q", "arguments": {"a": [18446744073709551615]}}]}"#,
            "numbers of at most 64 bits",
        ),
    ] {
        Mq::new(["topology", "convert", "-"])
            .stdin(text)
            .run()
            .code(65)
            .says(&["<stdin>", said]);
    }
}

#[test]
fn users_need_a_vhost_and_a_hash_on_the_way_back() {
    let file = "version: 1\nusers: { a: { password: { env: A } } }\npermissions: { a: { configure: '', write: '', read: '' } }\n";
    Mq::new(["topology", "convert", "-"])
        .stdin(file)
        .run()
        .code(3)
        .says(&["left out: users", "left out: permissions", "--vhost"]);
    Mq::new(["topology", "convert", "-", "--vhost", "v"])
        .stdin(file)
        .run()
        .code(3)
        .says(&["user 'a' and its permissions: definitions hold the hash"]);
}

#[test]
fn an_unlimited_queue_is_written_for_the_version_asked_for() {
    let file = "version: 1\nqueues: { q: { type: quorum, delivery_limit: unlimited } }\n";
    let arguments = |version: &str| {
        Mq::new(["topology", "convert", "-", "--for", version])
            .stdin(file)
            .run()
            .code(0)
            .json()["queues"][0]["arguments"]
            .clone()
    };
    assert_eq!(arguments("4.0")["x-delivery-limit"], -1);
    assert_eq!(arguments("3.10")["x-delivery-limit"], Json::Null);
}
