//! What only newer brokers do: done there, and refused elsewhere before anything changes.

use serde_json::json;

use crate::support::TextFile;
use crate::vhost::Vhost;

const DELAYED: &str = "version: 1
exchanges: { e: { type: direct } }
queues:
  late: { type: quorum, delayed_retry: { type: all, min: 1s, max: 1m }, bind: [ { exchange: e, key: k } ] }
";

fn policy(vhost: &Vhost) -> serde_json::Value {
    vhost.get(&["policies", &vhost.name])
}

#[test]
fn delayed_retries_are_declared_on_4_3_and_refused_before() {
    let vhost = Vhost::new();
    let file = TextFile::new("t.yaml", DELAYED);
    let path = file.path();
    let run = |verb: &str, flags: &[&str]| {
        let args = ["topology", verb, &path];
        vhost.mq(args.iter().chain(flags)).run()
    };
    if vhost.version() >= (4, 3) {
        run("apply", &[]).code(0).shows(&["read back"]);
        run("plan", &["--check"]).code(0);
        let queue = vhost.get(&["queues", &vhost.name, "late"]);
        assert_eq!(queue["arguments"]["x-delayed-retry-min"], 1000);
        let exported = vhost.mq(["topology", "export"]).run().code(0).stdout;
        assert!(exported.contains("delayed_retry:"), "{exported}");
        return;
    }
    let told = [
        "nothing was changed",
        "queue 'late': `delayed_retry` is known since RabbitMQ 4.3",
        "retry through a wait queue",
    ];
    run("plan", &[]).code(2).says(&told);
    run("apply", &["--dry-run"]).code(2).says(&told);
    run("apply", &[]).code(2).says(&told);
    assert_eq!(vhost.get(&["queues", &vhost.name]), json!([]));
    // Not even the vhost is made.
    let name = format!("{} not made", vhost.name);
    run("apply", &["--create-vhost", "--vhost", &name])
        .code(2)
        .says(&told);
    let vhosts = vhost.get(&["vhosts"]);
    let made = vhosts
        .as_array()
        .is_some_and(|all| all.iter().any(|one| one["name"] == *name));
    assert!(!made, "the vhost was made");
}

#[test]
fn policies_by_queue_type_are_set_or_refused() {
    let vhost = Vhost::new();
    let file = TextFile::new(
        "t.yaml",
        "version: 1
queues: { q: { type: quorum } }
policies:
  p: { pattern: '^q$', apply_to: quorum_queues, definition: { consumer-timeout: 600000 } }
",
    );
    let ran = vhost.mq(["topology", "apply", &file.path()]).run();
    if vhost.version() >= (3, 12) {
        ran.code(0);
        vhost
            .mq(["topology", "plan", "--check", &file.path()])
            .run()
            .code(0);
    } else {
        ran.code(2).says(&[
            "policy 'p': `apply_to: quorum_queues` is known since RabbitMQ 3.12",
            "policy 'p': `consumer-timeout` is known since RabbitMQ 3.12",
        ]);
        assert_eq!(policy(&vhost), json!([]));
        assert_eq!(vhost.get(&["queues", &vhost.name]), json!([]));
    }
}

#[test]
fn typed_keys_of_replicated_queues_are_applied_and_plan_empty() {
    let vhost = Vhost::new();
    vhost.apply(
        "exchanges: { dlx: { type: fanout } }
queues:
  safe: { type: quorum, overflow: reject-publish, leader_locator: balanced, initial_cluster_size: 1, dead_letter: { exchange: dlx, strategy: at-least-once } }
  log: { type: stream, max_age: 7d, max_segment_size: 500MB, leader_locator: client-local, initial_cluster_size: 1 }
  dead: { type: quorum, bind: [ { exchange: dlx } ] }
",
    );
    let exported = vhost.mq(["topology", "export"]).run().code(0).stdout;
    for key in [
        "strategy: at-least-once",
        "initial_cluster_size: 1",
        "max_age: 7D",
        "max_segment_size: 500000000B",
    ] {
        assert!(exported.contains(key), "{key} in\n{exported}");
    }
    let file = TextFile::new("exported.yaml", &exported);
    vhost
        .mq(["topology", "plan", "--check", &file.path()])
        .run()
        .code(0);
}
