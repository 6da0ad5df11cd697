//! Pruning: only what the files own, only when told, never what is in use.

use serde_json::json;

use crate::vhost::Vhost;

const BEFORE: &str = "version: 1
owns: ['^o\\.']
exchanges: { o.in: { type: topic }, o.gone: { type: fanout } }
queues:
  o.work: { type: quorum, bind: [ { exchange: o.in, key: new }, { exchange: o.in, key: old }, { exchange: o.gone } ] }
  o.old: { type: quorum, bind: [ { exchange: o.in, key: x } ] }
  o.older: { type: classic, bind: [ { exchange: o.in, key: y } ] }
policies: { o.p: { pattern: '^o', definition: { max-length: 100000 } } }
";

const AFTER: &str = "version: 1
owns: ['^o\\.']
exchanges: { o.in: { type: topic } }
queues: { o.work: { type: quorum, bind: [ { exchange: o.in, key: new } ] } }
";

fn queues(vhost: &Vhost) -> Vec<String> {
    let queues = vhost.get(&["queues", &vhost.name]);
    let names = queues.as_array().into_iter().flatten();
    let mut names: Vec<String> = names.map(|queue| queue["name"].to_string()).collect();
    names.sort();
    names
}

#[test]
fn what_the_files_do_not_declare_any_more_goes() {
    let vhost = Vhost::new();
    vhost.topology(BEFORE, &["apply"]).run().code(0);
    vhost.apply("queues: { theirs: { bind: [ { exchange: amq.topic, key: x } ] } }");
    vhost
        .topology(AFTER, &["plan"])
        .run()
        .code(0)
        .shows(&["nothing to change"]);
    vhost
        .topology(AFTER, &["plan", "--check", "--prune"])
        .run()
        .code(1)
        .shows(&[
            "delete  binding   o.in -> o.work [old]",
            "delete  queue     o.old ",
            "delete  queue     o.older",
            "delete  exchange  o.gone",
            "delete  policy    o.p",
            "5 to delete",
        ]);
    vhost
        .topology(AFTER, &["apply", "--prune"])
        .run()
        .code(2)
        .says(&["--yes"])
        .shows(&["delete  queue     o.old "]);
    assert_eq!(queues(&vhost).len(), 4);
    vhost
        .topology(AFTER, &["apply", "--prune", "--yes"])
        .run()
        .code(0)
        .shows(&["deleted    queue     o.old", "5 deleted", "read back"]);
    assert_eq!(queues(&vhost), ["\"o.work\"", "\"theirs\""]);
    vhost
        .topology(AFTER, &["plan", "--check", "--prune"])
        .run()
        .code(0);
}

#[test]
fn a_queue_that_holds_messages_stops_it_before_anything_is_done() {
    let vhost = Vhost::new();
    vhost.topology(BEFORE, &["apply"]).run().code(0);
    vhost.publish("o.old", "x");
    let more = AFTER.replace(
        "o.in: { type: topic }",
        "o.in: { type: topic }, o.new: { type: fanout }",
    );
    vhost
        .topology(&more, &["apply", "--prune", "--yes"])
        .run()
        .code(2)
        .says(&["queue 'o.old': it holds 1 messages", "lose-messages"]);
    assert_eq!(queues(&vhost).len(), 3);
    let exchanges = vhost.get(&["exchanges", &vhost.name]).to_string();
    assert!(!exchanges.contains("o.new"), "{exchanges}");
    let report = vhost
        .topology(
            &more,
            &[
                "apply",
                "--prune",
                "--yes",
                "--allow",
                "lose-messages",
                "-o",
                "json",
            ],
        )
        .run()
        .code(0)
        .json();
    assert_eq!(report["changed"], json!(true));
    assert_eq!(queues(&vhost), ["\"o.work\""]);
}

#[test]
fn without_a_word_on_what_is_owned_there_is_nothing_to_prune() {
    let vhost = Vhost::new();
    vhost
        .topology("version: 1\n", &["apply", "--prune", "--yes"])
        .run()
        .code(64)
        .says(&["owns"]);
}
