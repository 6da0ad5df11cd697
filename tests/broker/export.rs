//! Exporting: a file that plans empty against the broker it came from.

use serde_json::json;

use crate::support::TextFile;
use crate::vhost::Vhost;

#[test]
fn what_is_exported_plans_empty_there_and_can_be_applied_elsewhere() {
    let vhost = Vhost::new();
    vhost.apply(
        "exchanges:
  t: { type: topic, alternate: f }
  f: { type: fanout, durable: false, internal: true, auto_delete: true }
  'odd {name}: #1': { type: headers, arguments: { x-note: [ 1, true ] } }
queues:
  quorum: { type: quorum, delivery_limit: unlimited, dead_letter: { exchange: t, key: dead }, max_length: 9, overflow: reject-publish }
  classic: { type: classic, max_priority: 3, message_ttl: 90s, expires: 24h, single_active_consumer: true, dead_letter: { exchange: '' } }
  stream: { type: stream, max_length_bytes: 1GiB, max_age: 1h }
  plain: { bind: [ { exchange: amq.topic, key: 'x.#' }, { exchange: 'odd {name}: #1', arguments: { x-match: any, n: 5, s: '5' } } ] }
bindings: [ { source: t, destination: f, destination_type: exchange, key: 'a.*' } ]
",
    );
    let exported = vhost.mq(["topology", "export"]).run().code(0);
    assert!(exported.stderr.is_empty(), "{}", exported.stderr);
    assert!(
        !exported.stdout.contains("amq.direct"),
        "{}",
        exported.stdout
    );
    let file = TextFile::new("exported.yaml", &exported.stdout);
    let check = |vhost: &Vhost| {
        vhost
            .mq(["topology", "plan", "--no-lint", "--check", &file.path()])
            .run()
    };
    check(&vhost).code(0);

    let other = Vhost::new();
    check(&other).code(1);
    other
        .mq(["topology", "apply", "--no-lint", &file.path()])
        .run()
        .code(0);
    check(&other).code(0);
    // Not /api/definitions: 4.0.5 answers 500 for a vhost name with an é.
    let definitions = |vhost: &Vhost| -> Vec<Vec<String>> {
        ["queues", "exchanges", "bindings"]
            .map(|kind| {
                let objects = vhost.get(&[kind, &vhost.name]);
                let mut objects: Vec<String> = objects
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|object| {
                        let keys = [
                            "name",
                            "type",
                            "durable",
                            "auto_delete",
                            "internal",
                            "arguments",
                            "source",
                            "destination",
                            "destination_type",
                            "routing_key",
                        ];
                        keys.map(|key| object[key].to_string()).join(" ")
                    })
                    .collect();
                objects.sort();
                objects
            })
            .to_vec()
    };
    assert_eq!(definitions(&vhost), definitions(&other));
}

#[test]
fn dead_letters_that_lead_nowhere_are_exported_as_they_are() {
    let vhost = Vhost::new();
    let queue = json!({"durable": true, "arguments": {"x-dead-letter-exchange": "gone"}});
    vhost.api(
        reqwest::Method::PUT,
        &["queues", &vhost.name, "${HOME} $${x"],
        &queue,
    );
    let exported = vhost.mq(["topology", "export"]).run().code(0);
    let file = TextFile::new("exported.yaml", &exported.stdout);
    vhost
        .mq(["topology", "plan", "--no-lint", "--check", &file.path()])
        .run()
        .code(0);
}

#[test]
fn what_cannot_be_said_is_told_and_is_exit_3() {
    let vhost = Vhost::new();
    let body =
        json!({"durable": true, "arguments": {"x-queue-type": "quorum", "x-delivery-limit": "3"}});
    vhost.api(reqwest::Method::PUT, &["queues", &vhost.name, "q"], &body);
    let policy = json!({"pattern": ".*", "definition": {"max-length": 5}});
    vhost.api(
        reqwest::Method::PUT,
        &["policies", &vhost.name, "my-policy"],
        &policy,
    );
    vhost
        .mq(["topology", "export"])
        .run()
        .code(3)
        .says(&["x-delivery-limit"]);
}
