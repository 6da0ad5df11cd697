//! Throw-away topologies: made, and removed exactly.

use serde_json::json;

use crate::support::{Mq, TextFile};
use crate::vhost::Vhost;

const FILE: &str = "version: 1
exchanges: { e: { type: topic }, f: { type: fanout, alternate: e } }
queues:
  c: { type: classic, bind: [ { exchange: e, key: '#' }, { exchange: amq.topic, key: x } ] }
  q: { type: quorum, bind: [ { exchange: f } ] }
bindings: [ { source: f, destination: e, destination_type: exchange } ]
";

fn destroy(vhost: &Vhost, file: &TextFile, flags: &[&str]) -> Mq {
    let path = file.path();
    let mut args = vec!["topology", "destroy", &path];
    args.extend(flags);
    vhost.mq(args)
}

fn names(vhost: &Vhost, kind: &str) -> Vec<String> {
    vhost
        .get(&[kind, &vhost.name])
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|object| object["name"].as_str())
        .filter(|name| !name.is_empty() && !name.starts_with("amq."))
        .map(str::to_owned)
        .collect()
}

#[test]
fn exactly_what_the_file_declares_goes_and_only_when_told() {
    let vhost = Vhost::new();
    let file = TextFile::new("t.yaml", FILE);
    vhost.apply(FILE.trim_start_matches("version: 1\n"));
    vhost.apply("queues: { other: }\n");
    destroy(&vhost, &file, &[])
        .run()
        .code(2)
        .says(&["nothing was deleted", "--yes"])
        .shows(&["4 would be deleted; nothing was"]);
    assert_eq!(names(&vhost, "queues").len(), 3);
    destroy(&vhost, &file, &["--yes"])
        .run()
        .code(0)
        .shows(&["4 deleted, 0 were not there"]);
    assert_eq!(names(&vhost, "queues"), ["other"]);
    assert!(names(&vhost, "exchanges").is_empty());
    destroy(&vhost, &file, &["--yes"])
        .run()
        .code(0)
        .shows(&["0 deleted, 4 were not there"]);
}

#[test]
fn what_is_in_use_stops_it_before_anything_is_deleted() {
    let vhost = Vhost::new();
    let file = TextFile::new("t.yaml", FILE);
    vhost.apply(FILE.trim_start_matches("version: 1\n"));
    vhost.publish("q", "precious");
    vhost.apply("exchanges: { e: { type: topic } }\nqueues: { theirs: { bind: [ { exchange: e, key: k } ] } }\n");
    destroy(&vhost, &file, &["--yes"]).run().code(2).says(&[
        "nothing was deleted",
        "queue 'q': it holds 1 messages",
        "exchange 'e': it feeds what the file does not declare: queue 'theirs'",
        "--force",
    ]);
    assert_eq!(vhost.ready("q"), 1);
    assert_eq!(names(&vhost, "exchanges").len(), 2);
    let report = destroy(&vhost, &file, &["--yes", "--force", "-o", "json"])
        .run()
        .code(0)
        .json();
    assert_eq!(
        report["objects"][0],
        json!({"kind": "queue", "name": "c", "result": "deleted", "why": null})
    );
    assert_eq!(names(&vhost, "queues"), ["theirs"]);
}

#[test]
fn a_consumed_queue_is_in_use() {
    let vhost = Vhost::new();
    let file = TextFile::new("t.yaml", FILE);
    vhost.apply(FILE.trim_start_matches("version: 1\n"));
    let worker = vhost.mq(["consume", "c", "--print"]).spawn();
    crate::support::wait_until("the consumer", || {
        destroy(&vhost, &file, &[])
            .run()
            .stderr
            .contains("queue 'c': it has 1 consumers")
    });
    drop(worker);
}

#[test]
fn without_the_management_api_only_what_can_be_proved_empty_goes() {
    let vhost = Vhost::new();
    let file = TextFile::new("t.yaml", FILE);
    vhost.apply(FILE.trim_start_matches("version: 1\n"));
    vhost.apply("exchanges: { e: { type: topic } }\nqueues: { theirs: { bind: [ { exchange: e, key: k } ] } }\n");
    let blind = |file: &TextFile| {
        destroy(&vhost, file, &["--yes"])
            .env("MQ_MANAGEMENT_URL", "http://127.0.0.1:1")
            .run()
    };
    blind(&file)
        .code(2)
        .says(&["queue 'c': whether messages of it are out for delivery cannot be seen"]);
    let exchange = TextFile::new("t.yaml", "version: 1\nexchanges: { e: { type: topic } }\n");
    blind(&exchange)
        .code(3)
        .says(&["exchange 'e': something is still bound to it"]);
    assert_eq!(names(&vhost, "exchanges"), ["e", "f"]);
}

#[test]
fn a_prefix_makes_a_copy_that_meets_nobody() {
    let vhost = Vhost::new();
    let run = |verb: &str, flags: &[&str]| {
        let mut args = vec![
            "topology",
            verb,
            "topologies/orders.yaml",
            "--prefix",
            "ci 7.",
        ];
        args.extend(flags);
        vhost.mq(args).run()
    };
    vhost
        .mq(["topology", "apply", "topologies/orders.yaml"])
        .run()
        .code(0);
    run("apply", &[])
        .code(0)
        .shows(&["8 created", "ci 7.orders.queue"]);
    run("plan", &["--check"]).code(0);
    run("destroy", &["--yes"]).code(0).shows(&["5 deleted"]);
    vhost
        .mq(["topology", "plan", "--check", "topologies/orders.yaml"])
        .run()
        .code(0);
}

#[test]
fn a_vhost_is_made_on_request_and_existing_permissions_are_left() {
    let vhost = Vhost::new();
    let name = format!("{} made", vhost.name);
    let apply = |flags: &[&str]| {
        let mut args = vec![
            "topology",
            "apply",
            "topologies/orders.yaml",
            "--vhost",
            &name,
        ];
        args.extend(flags);
        vhost.mq(args).run()
    };
    apply(&[]).code(65).says(&["not found"]);
    apply(&["--create-vhost", "--wait", "10s"]).code(0);
    let narrow = json!({"configure": ".*", "write": ".*", "read": "orders.*|dlx.*"});
    vhost.api(
        reqwest::Method::PUT,
        &["permissions", &name, "guest"],
        &narrow,
    );
    apply(&["--create-vhost"])
        .code(0)
        .shows(&["nothing to change"]);
    let permissions = vhost.get(&["permissions", &name, "guest"]);
    assert_eq!(permissions["read"], "orders.*|dlx.*");
    vhost.api(reqwest::Method::DELETE, &["vhosts", &name], &json!({}));
}
