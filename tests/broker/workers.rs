//! Workers written in short: applied, worked, and refused where that would lie.

use serde_json::json;

use crate::support::{Script, TextFile};
use crate::vhost::Vhost;

#[test]
fn the_shipped_workers_are_applied_and_plan_empty_also_as_a_copy() {
    let vhost = Vhost::new();
    for flags in [&[] as &[&str], &["--prefix", "ci-1."]] {
        let run = |verb: &str, more: &[&str]| {
            let args = ["topology", verb, "topologies/workers.yaml"];
            vhost.mq(args.iter().chain(flags).chain(more)).run()
        };
        run("apply", &[]).code(0).shows(&["read back"]);
        run("apply", &[]).code(0).shows(&["nothing to change"]);
        run("plan", &["--check"]).code(0);
    }
    let expanded = vhost
        .mq([
            "topology",
            "validate",
            "--expand",
            "topologies/workers.yaml",
        ])
        .run()
        .code(0);
    let file = TextFile::new("expanded.yaml", &expanded.stdout);
    vhost
        .mq(["topology", "plan", "--check", &file.path()])
        .run()
        .code(0);
    vhost
        .mq(["topology", "destroy", "--yes", "topologies/workers.yaml"])
        .run()
        .code(0);
}

#[test]
fn a_worker_retries_as_it_is_written() {
    let vhost = Vhost::new();
    let file = TextFile::new(
        "t.yaml",
        "version: 1
workers:
  slow: { retry: { strategy: dlx, delays: [300ms], max_attempts: 3 } }
  fast: { type: classic, retry: { strategy: immediate, max_attempts: 2 } }
",
    );
    vhost.mq(["topology", "apply", &file.path()]).run().code(0);
    for (queue, attempts) in [("slow", vec!["1", "2", "3"]), ("fast", vec!["1", "2"])] {
        vhost.publish(queue, "x");
        let handler = Script::new("echo $MQ_ATTEMPT >>$(dirname $0)/seen; exit 1");
        let args: Vec<std::ffi::OsString> = [
            "consume",
            queue,
            "--until-empty",
            "--topology",
            &file.path(),
            "--exec",
        ]
        .iter()
        .map(Into::into)
        .chain([handler.path()])
        .collect();
        vhost.mq(args).run().code(0);
        assert_eq!(handler.lines("seen"), attempts, "{queue}");
        vhost.wait_for_ready(&format!("{queue}.dlq"), 1);
    }
}

#[test]
fn a_strategy_that_is_not_worked_yet_is_never_replaced() {
    let vhost = Vhost::new();
    let file = "version: 1
workers: { w: { retry: { strategy: backoff, delays: [1s, 10s] } } }
";
    let file = TextFile::new("t.yaml", file);
    vhost.mq(["topology", "apply", &file.path()]).run().code(0);
    vhost.publish("w", "x");
    let consume = |more: &[&str]| {
        let path = file.path();
        let args = ["consume", "w", "--until-empty", "--topology", &path];
        vhost.mq(args.iter().chain(more)).run()
    };
    consume(&["--exec", "true"]).code(2).says(&[
        "the strategy `backoff` is not worked by this version yet",
        "`strategy: dlx` or `strategy: immediate`",
    ]);
    assert_eq!(vhost.ready("w"), 1);
    // Who says so works it otherwise.
    consume(&["--strategy", "immediate", "--exec", "true"]).code(0);
    assert_eq!(vhost.ready("w"), 0);
}

#[test]
fn native_retries_are_for_4_3() {
    let vhost = Vhost::new();
    let run = |verb: &str, flags: &[&str]| {
        let args = ["topology", verb, "topologies/4.3/native-retry.yaml"];
        vhost.mq(args.iter().chain(flags)).run()
    };
    if vhost.version() >= (4, 3) {
        run("apply", &[]).code(0);
        run("plan", &["--check"]).code(0);
        let args = [
            "consume",
            "reports",
            "--topology",
            "topologies/4.3/native-retry.yaml",
        ];
        vhost
            .mq(args.iter().chain(&["--exec", "true"]))
            .run()
            .code(2)
            .says(&["the strategy `native` is not worked by this version yet"]);
    } else {
        run("apply", &[]).code(2).says(&[
            "queue 'reports': `delayed_retry` is known since RabbitMQ 4.3",
            "retry through a wait queue",
        ]);
        assert_eq!(vhost.get(&["queues", &vhost.name]), json!([]));
    }
}

#[test]
fn a_copy_waits_in_its_step_and_comes_back() {
    let vhost = Vhost::new();
    vhost.apply(
        "workers: { w: { retry: { strategy: backoff, delays: [300ms, 1s] } } }
",
    );
    // What a worker of this strategy would do; the broker does the rest.
    vhost.publish("w.retry.300ms", "x");
    vhost.wait_for_ready("w", 1);
    assert_eq!(vhost.ready("w.retry.300ms"), 0);
    assert_eq!(vhost.ready("w.dlq"), 0);
}

#[test]
fn super_streams_are_applied_and_plan_empty() {
    let vhost = Vhost::new();
    let file = TextFile::new(
        "t.yaml",
        "version: 1
super_streams:
  events: { partitions: 3, max_age: 7d, max_segment_size: 100MB }
  orders: { keys: [ eu, us ] }
",
    );
    vhost
        .mq(["topology", "apply", &file.path()])
        .run()
        .code(0)
        .shows(&["12 created", "read back"]);
    vhost
        .mq(["topology", "plan", "--check", &file.path()])
        .run()
        .code(0);
    let exchange = vhost.get(&["exchanges", &vhost.name, "events"]);
    assert_eq!(exchange["arguments"], json!({"x-super-stream": true}));
    let bindings = vhost.get(&["exchanges", &vhost.name, "orders", "bindings", "source"]);
    let mut bindings: Vec<(String, String, i64)> = bindings
        .as_array()
        .into_iter()
        .flatten()
        .map(|binding| {
            (
                binding["routing_key"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                binding["destination"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                binding["arguments"]["x-stream-partition-order"]
                    .as_i64()
                    .unwrap_or(-1),
            )
        })
        .collect();
    bindings.sort();
    let expected = [("eu", "orders-eu", 0), ("us", "orders-us", 1)];
    assert_eq!(
        bindings,
        expected.map(|(key, queue, order)| (key.to_owned(), queue.to_owned(), order))
    );
    let exported = vhost.mq(["topology", "export"]).run().code(0);
    let file = TextFile::new("exported.yaml", &exported.stdout);
    vhost
        .mq(["topology", "plan", "--check", &file.path()])
        .run()
        .code(0);
}
