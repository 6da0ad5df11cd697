//! Making the broker have what a file declares.

use serde_json::json;

use crate::support::{Mq, TextFile};
use crate::vhost::Vhost;

const EVERYTHING: &str = "version: 1
exchanges:
  d: { type: direct, alternate: f }
  t: { type: topic }
  f: { type: fanout, durable: false }
  h: { type: headers, internal: true }
queues:
  classic: { type: classic, max_priority: 5, bind: [ { exchange: t, key: 'a.*' }, { exchange: f } ] }
  quorum: { type: quorum, delivery_limit: 5, dead_letter: { exchange: d, key: dead } }
  free: { type: quorum, delivery_limit: unlimited, single_active_consumer: true }
  stream: { type: stream, max_age: 1h }
  plain: { max_length: 10, max_length_bytes: 1MiB, overflow: reject-publish, message_ttl: 1h, expires: 24h }
  dead: { bind: [ { exchange: d, key: dead }, { exchange: h, arguments: { x-match: any, n: 5, s: x } } ] }
bindings:
  - { source: t, destination: f, destination_type: exchange, key: '#' }
  - { source: t, destination: f, destination_type: exchange, key: '#', arguments: { note: second } }
";

fn result_of<'j>(report: &'j serde_json::Value, kind: &str, name: &str) -> &'j str {
    report["objects"]
        .as_array()
        .and_then(|objects| {
            objects
                .iter()
                .find(|object| object["kind"] == kind && object["name"] == name)
        })
        .and_then(|object| object["result"].as_str())
        .unwrap_or("not in the report")
}

#[test]
fn everything_is_created_and_the_second_run_changes_nothing() {
    let vhost = Vhost::new();
    let file = TextFile::new("t.yaml", EVERYTHING);
    let apply = || vhost.mq(["topology", "apply", &file.path()]).run().code(0);
    apply().shows(&["16 created", "read back: all as the file says"]);
    apply().shows(&["nothing to change: all 16 objects"]);
    let again = vhost
        .mq(["topology", "apply", &file.path(), "-o", "json"])
        .run()
        .code(0)
        .json();
    assert_eq!(again["changed"], false);

    let quorum = vhost.get(&["queues", &vhost.name, "quorum"]);
    assert_eq!(quorum["arguments"]["x-delivery-limit"], 5);
    assert_eq!(quorum["arguments"]["x-dead-letter-routing-key"], "dead");
    let free = vhost.get(&["queues", &vhost.name, "free"]);
    // -1 loses messages on 3.x, where leaving it out means unlimited.
    let unlimited = if vhost.version() >= (4, 0) {
        json!(-1)
    } else {
        json!(null)
    };
    assert_eq!(free["arguments"]["x-delivery-limit"], unlimited);
    let exchange = vhost.get(&["exchanges", &vhost.name, "h"]);
    assert_eq!(exchange["internal"], true);
    let plain = vhost.get(&["queues", &vhost.name, "plain"]);
    assert_eq!(plain["arguments"]["x-message-ttl"], 3_600_000);
    assert_eq!(plain["durable"], true);
}

#[test]
fn what_exists_otherwise_is_explained_and_nothing_is_created() {
    let vhost = Vhost::new();
    vhost.apply(
        "exchanges: { e: { type: direct } }
queues:
  a: { type: classic, message_ttl: 1h, max_length: 7 }
  b: { type: classic }
",
    );
    let file = TextFile::new(
        "t.yaml",
        "version: 1
exchanges: { e: { type: topic }, new.exchange: { type: direct } }
queues:
  a: { type: classic, message_ttl: 2h, max_length: 8 }
  b: { type: quorum }
  new.queue: { bind: [ { exchange: new.exchange, key: k } ] }
",
    );
    let ran = vhost
        .mq(["topology", "apply", &file.path()])
        .run()
        .code(2)
        .says(&[
            "nothing was changed",
            "queue 'a': x-message-ttl: the file says 7200000, the broker has 3600000",
            "exchange 'e': type: the file says topic, the broker has direct",
            "queue 'b': x-queue-type: the file says quorum, the broker has classic",
            // Every difference, where the broker's own words name only the first.
            "queue 'a': x-max-length: the file says 8, the broker has 7",
        ])
        .shows(&[
            "conflict   queue     a",
            "not tried  queue     new.queue",
            "set it by a policy",
            "delete 'a'",
        ]);
    assert!(!ran.stdout.contains("created"), "{}", ran.stdout);
    let json = vhost
        .mq(["topology", "apply", &file.path(), "-o", "json"])
        .run()
        .code(2)
        .json();
    assert_eq!(json["changed"], false);
    assert_eq!(result_of(&json, "queue", "new.queue"), "not_tried");
    let queues = vhost.get(&["queues", &vhost.name]);
    assert_eq!(queues.as_array().map(Vec::len), Some(2));
}

#[test]
fn a_failure_half_way_says_what_was_created_and_the_next_run_completes_it() {
    let mut vhost = Vhost::new();
    let file = TextFile::new(
        "t.yaml",
        "version: 1
exchanges: { mine.e: { type: direct } }
queues: { mine.q: { bind: [ { exchange: mine.e, key: k } ] }, other.q: {} }
",
    );
    let user = vhost.user("^mine", "^mine", "^mine", "management");
    let ran = Mq::new(["topology", "apply", &file.path(), "-o", "json"])
        .env("MQ_URL", vhost.url_of(&user, "pw"))
        .env("MQ_MANAGEMENT_URL", &vhost.management_url)
        .run();
    let ran = ran.code(3).says(&["half-way", "other.q"]);
    let report = ran.json();
    assert_eq!(result_of(&report, "exchange", "mine.e"), "created");
    assert_eq!(result_of(&report, "queue", "other.q"), "failed");
    assert_eq!(
        result_of(&report, "binding", "mine.e -> mine.q [k]"),
        "not_tried"
    );
    vhost.mq(["topology", "apply", &file.path()]).run().code(0);
    vhost
        .mq(["topology", "apply", &file.path()])
        .run()
        .code(0)
        .shows(&["nothing to change"]);
}

#[test]
fn no_permission_at_all_is_77_before_anything_is_created() {
    let mut vhost = Vhost::new();
    let user = vhost.user("^$", "^$", "^$", "");
    let file = TextFile::new("t.yaml", "version: 1\nqueues: { q: }\n");
    Mq::new(["topology", "apply", &file.path()])
        .env("MQ_URL", vhost.url_of(&user, "pw"))
        .run()
        .code(77)
        .says(&["queue 'q'", "set_permissions"]);
}

#[test]
fn it_works_with_the_management_plugin_off() {
    let vhost = Vhost::new();
    let file = TextFile::new("t.yaml", EVERYTHING);
    let apply = || {
        vhost
            .mq(["topology", "apply", &file.path(), "-o", "json"])
            .env("MQ_MANAGEMENT_URL", "http://127.0.0.1:1")
            .run()
            .code(0)
            .json()
    };
    apply();
    let again = apply();
    assert_eq!(again["changed"], false);
    assert_eq!(result_of(&again, "queue", "quorum"), "unchanged");
    assert_eq!(
        result_of(&again, "binding", "t -> classic [a.*]"),
        "ensured"
    );
    assert_eq!(again["read_back"], "not_needed");
}

#[test]
fn a_plugin_type_that_is_not_there_is_named() {
    let vhost = Vhost::new();
    let file = TextFile::new(
        "t.yaml",
        "version: 1\nexchanges: { e: { type: x-no-such-plugin } }\n",
    );
    vhost
        .mq(["topology", "apply", &file.path()])
        .run()
        .code(65)
        .says(&["exchange 'e'", "x-no-such-plugin"]);
}

#[test]
fn an_argument_the_queue_type_refuses_is_named() {
    let vhost = Vhost::new();
    let file = TextFile::new(
        "t.yaml",
        "version: 1\nqueues: { q: { type: quorum, arguments: { x-queue-mode: lazy } } }\n",
    );
    vhost
        .mq(["topology", "apply", "--no-lint", &file.path()])
        .run()
        .code(65)
        .says(&["queue 'q'", "x-queue-mode"]);
}

#[test]
fn a_wrong_vhost_and_a_wrong_password_are_told_apart() {
    let vhost = Vhost::new();
    let file = TextFile::new("t.yaml", "version: 1\nqueues: { q: }\n");
    vhost
        .mq([
            "topology",
            "apply",
            &file.path(),
            "--vhost",
            "no such vhost",
        ])
        .run()
        .code(65)
        .says(&["no such vhost", "not found", "add_vhost"]);
    let ran = Mq::new(["topology", "apply", &file.path()])
        .env("MQ_URL", vhost.url_of("guest", "sesame"))
        .run()
        .code(77)
        .says(&["Login was refused", "check user and password"]);
    assert!(!ran.stderr.contains("sesame"));
}

#[test]
fn the_files_vhost_is_used_unless_a_flag_names_another() {
    let vhost = Vhost::new();
    let text = format!("version: 1\nvhost: {:?}\nqueues: {{ q: }}\n", vhost.name);
    let file = TextFile::new("t.yaml", &text);
    let root = vhost
        .url()
        .replace(&mq::endpoint::path_segment(&vhost.name), "%2f");
    let apply = |args: &[&str]| {
        let path = file.path();
        let mut all = vec!["topology", "apply", &path, "-o", "json"];
        all.extend(args);
        vhost.mq(all).env("MQ_URL", &root).run()
    };
    assert_eq!(apply(&[]).code(0).json()["vhost"], vhost.name.as_str());
    apply(&["--vhost", "no such vhost"]).code(65);
}

#[test]
fn a_neighbours_management_api_is_not_believed() {
    let vhost = Vhost::new();
    let file = TextFile::new("t.yaml", "version: 1\nqueues: { q: }\n");
    // A stranger that claims to have everything already.
    let neighbour = crate::proxy::management_of_another_cluster();
    let with = |verb: &str| {
        vhost
            .mq(["topology", verb, &file.path()])
            .env("MQ_MANAGEMENT_URL", &neighbour)
            .run()
    };
    with("apply")
        .code(0)
        .says(&["belongs to the cluster 'somebody-elses'"])
        .shows(&["1 created"]);
    assert_eq!(vhost.ready("q"), 0);
}

#[test]
fn thousands_of_objects_without_the_management_api() {
    let vhost = Vhost::new();
    let mut text = "version: 1\nqueues:\n".to_owned();
    for n in 0..2200 {
        text.push_str(&format!("  q{n}: {{ type: classic }}\n"));
    }
    let file = TextFile::new("t.yaml", &text);
    let apply = |url: &str| {
        vhost
            .mq(["topology", "apply", &file.path()])
            .env("MQ_MANAGEMENT_URL", url)
            .run()
            .code(0)
    };
    // Each missing one costs a channel: more than there are.
    apply("http://127.0.0.1:1").shows(&["2200 created"]);
    apply(&vhost.management_url).shows(&["nothing to change: all 2200"]);
}
