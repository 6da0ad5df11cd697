//! Workers written in short: applied, worked, and refused where that would lie.

use std::ffi::OsString;

use serde_json::json;

use crate::support::{Mq, Script, TextFile, wait_until};
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

/// A worker of the strategy `backoff` with its file.
fn backoff(vhost: &Vhost, kind: &str) -> TextFile {
    let text = format!(
        "version: 1
exchanges: {{ in: {{ type: topic }} }}
workers: {{ w: {{ type: {kind}, bind: [{{ exchange: in, key: 'a.*' }}], retry: {{ strategy: backoff, delays: [150ms, 400ms], max_attempts: 4 }} }} }}
"
    );
    let file = TextFile::new("t.yaml", &text);
    vhost.mq(["topology", "apply", &file.path()]).run().code(0);
    file
}

/// Works the queue of that file until it is empty.
fn work(vhost: &Vhost, file: &TextFile, handler: &Script) -> Mq {
    let args = ["consume", "w", "--until-empty", "--topology"].map(OsString::from);
    let exec = [file.path().into(), "--exec".into(), handler.path()];
    vhost.mq(args.into_iter().chain(exec))
}

#[test]
fn backoff_waits_step_by_step_and_ends_in_the_dead_letter_queue() {
    for kind in ["classic", "quorum"] {
        let vhost = Vhost::new();
        let file = backoff(&vhost, kind);
        vhost
            .mq(["publish", "--exchange", "in", "--key", "a.b", "x"])
            .run()
            .code(0);
        let handler = Script::new(
            "echo \"$MQ_ATTEMPT/$MQ_MAX_ATTEMPTS <$MQ_EXCHANGE> $MQ_ROUTING_KEY $(date +%s%3N)\" >>$(dirname $0)/seen; exit 1",
        );
        work(&vhost, &file, &handler)
            .run()
            .code(0)
            .shows(&["3 retried", "1 exhausted"]);
        let seen = handler.lines("seen");
        let words = |line: &String| {
            let mut words = line.rsplitn(2, ' ');
            let time: u64 = words.next().expect("time").parse().expect("a number");
            (time, words.next().unwrap_or_default().to_owned())
        };
        let seen: Vec<(u64, String)> = seen.iter().map(words).collect();
        let told: Vec<&str> = seen.iter().map(|(_, told)| told.as_str()).collect();
        let expected: Vec<String> = (1..=4).map(|n| format!("{n}/4 <in> a.b")).collect();
        assert_eq!(told, expected);
        // Each step waits at least its delay; the last one repeats.
        for (pair, delay) in seen.windows(2).zip([150, 400, 400]) {
            assert!(pair[1].0 - pair[0].0 >= delay, "{seen:?}");
        }
        let dead = vhost.inspect("w.dlq");
        assert_eq!(dead["messages"][0]["reason"], "exhausted");
        assert_eq!(dead["messages"][0]["attempts"], 4);
        assert_eq!(vhost.ready("w"), 0);
    }
}

/// The attempts 1, 2, 3 and the wait queues between them, whose delays grow.
#[test]
fn delays_that_grow_are_waited_in_the_queues_of_their_steps() {
    let vhost = Vhost::new();
    let file = TextFile::new(
        "t.yaml",
        "version: 1
workers: { w: { retry: { strategy: backoff, delays: { first: 150ms, factor: 2.5, max: 10s }, max_attempts: 3 } } }
",
    );
    vhost.mq(["topology", "apply", &file.path()]).run().code(0);
    vhost
        .mq(["topology", "plan", "--check", &file.path()])
        .run()
        .code(0);
    let mut ttls: Vec<(String, u64)> = vhost
        .get(&["queues", &vhost.name])
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|queue| {
            let ttl = queue["arguments"]["x-message-ttl"].as_u64()?;
            Some((queue["name"].as_str().unwrap_or_default().to_owned(), ttl))
        })
        .collect();
    ttls.sort();
    let expected = [("w.retry.150ms", 150), ("w.retry.375ms", 375)];
    assert_eq!(ttls, expected.map(|(name, ttl)| (name.to_owned(), ttl)));
    vhost.publish("w", "x");
    // The header of a copy that came back tells where it has waited.
    let handler =
        Script::new("echo \"$MQ_ATTEMPT $(date +%s%3N) $MQ_HEADERS\" >>$(dirname $0)/seen; exit 1");
    work(&vhost, &file, &handler)
        .run()
        .code(0)
        .shows(&["2 retried", "1 exhausted"]);
    let seen = handler.lines("seen");
    let seen: Vec<Vec<&str>> = seen
        .iter()
        .map(|line| line.splitn(3, ' ').collect())
        .collect();
    let attempts: Vec<&str> = seen.iter().map(|words| words[0]).collect();
    assert_eq!(attempts, ["1", "2", "3"]);
    for (pair, (wait_queue, delay)) in seen.windows(2).zip(expected) {
        let [before, after] = [&pair[0], &pair[1]].map(|words| words[1].parse::<u64>());
        let waited = after.expect("time") - before.expect("time");
        assert!(waited >= delay, "{waited} ms in {wait_queue}: {seen:?}");
        assert!(pair[1][2].contains(wait_queue), "{wait_queue}: {seen:?}");
    }
    assert_eq!(vhost.inspect("w.dlq")["messages"][0]["attempts"], 3);
}

/// What the file says can be said by flags, of whatever has such wait queues.
#[test]
fn backoff_can_be_asked_for_by_flags() {
    let vhost = Vhost::new();
    backoff(&vhost, "classic");
    vhost.publish("w", "x");
    let handler = Script::new("echo $MQ_ATTEMPT >>$(dirname $0)/seen; exit 1");
    let run = |delays: &str| {
        let flags = [
            "--strategy",
            "backoff",
            "--delays",
            delays,
            "--max-attempts",
        ];
        let args = ["consume", "w", "--until-empty"].iter().chain(&flags);
        let args = args.chain(&["3", "--exec"]).map(OsString::from);
        vhost.mq(args.chain([handler.path()])).run()
    };
    run("150ms,1s")
        .code(2)
        .says(&["no queue (without `expires`) holds messages for 1s"]);
    run("150ms,400ms")
        .code(0)
        .shows(&["2 retried", "1 exhausted"]);
    assert_eq!(handler.lines("seen"), ["1", "2", "3"]);
    assert_eq!(vhost.inspect("w.dlq")["messages"][0]["attempts"], 3);
}

#[test]
fn backoff_ends_with_the_first_success_and_poison_waits_for_nothing() {
    let vhost = Vhost::new();
    let file = backoff(&vhost, "quorum");
    vhost.publish("w", "good");
    vhost.publish("w", "poison");
    let handler = Script::new("grep -q poison && exit 65; [ $MQ_ATTEMPT -ge 3 ]");
    work(&vhost, &file, &handler)
        .run()
        .code(0)
        .shows(&["1 acked", "2 retried", "1 poison"]);
    assert_eq!(vhost.inspect("w.dlq")["messages"][0]["attempts"], 1);
}

#[test]
fn backoff_is_not_worked_without_its_wait_queues() {
    let vhost = Vhost::new();
    let file = backoff(&vhost, "classic");
    vhost.publish("w", "x");
    // Gone before the worker starts: it does not.
    vhost.delete_queue("w.retry.400ms");
    work(&vhost, &file, &Script::new("exit 1"))
        .run()
        .code(2)
        .says(&["no queue (without `expires`) holds messages for 400ms"]);
    assert_eq!(vhost.ready("w"), 1);
    // Gone while it works: the copy is not taken, the message goes back.
    vhost.mq(["topology", "apply", &file.path()]).run().code(0);
    let handler = Script::new(
        "touch $(dirname $0)/started; while [ ! -e $(dirname $0)/go ]; do sleep 0.05; done; exit 1",
    );
    let worker = work(&vhost, &file, &handler).spawn();
    wait_until("it to run", || handler.file("started").exists());
    vhost.delete_queue("w.retry.150ms");
    go_on(&handler);
    worker.wait().code(67).says(&["w.retry.150ms"]);
    vhost.wait_for_ready("w", 1);
}

#[expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tells a handler to go on"
)]
fn go_on(handler: &Script) {
    std::fs::write(handler.file("go"), "").unwrap();
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
            "--until-empty",
        ];
        vhost
            .mq(args.iter().chain(&["--exec", "true"]))
            .run()
            .code(0);
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
