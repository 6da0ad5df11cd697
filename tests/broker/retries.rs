//! Retries count right, whoever counts them: the same attempts under every
//! strategy, delays that handlers ask for, and messages that end their workers.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests measure delays and leave files for handlers"
)]

use std::ffi::OsString;
use std::time::{Duration, Instant};

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldArray, FieldTable};
use reqwest::Method;
use serde_json::json;

use crate::consume::{DLX, IMMEDIATE, consume, of_type};
use crate::support::{Mq, Script, TextFile, wait_until};
use crate::vhost::Vhost;

/// What a handler that never succeeds sees.
const FAILS: &str = "echo \"$MQ_ATTEMPT/$MQ_MAX_ATTEMPTS\" >>$(dirname $0)/seen; echo some words >&2; echo last words >&2; exit 1";

fn file(retry: &str, kind: &str) -> TextFile {
    let text =
        format!("version: 1\nworkers: {{ work: {{ type: {kind}, retry: {{ {retry} }} }} }}\n");
    TextFile::new("t.yaml", &text)
}

/// Works the queue `work` of a file that was applied before.
fn work(vhost: &Vhost, file: &TextFile, flags: &[&str], handler: &Script) -> Mq {
    let mut args: Vec<OsString> = ["consume", "work", "--topology", &file.path()]
        .map(Into::into)
        .to_vec();
    args.extend(flags.iter().map(Into::into));
    args.extend(["--exec".into(), handler.path()]);
    vhost.mq(args)
}

/// Every strategy that this broker can work, on the queue types that it can have.
fn every_strategy(vhost: &Vhost) -> Vec<(&'static str, &'static str)> {
    let mut every = Vec::new();
    for retry in [
        "strategy: dlx, delays: [200ms]",
        "strategy: backoff, delays: [100ms, 200ms]",
        "strategy: immediate",
    ] {
        every.extend([(retry, "classic"), (retry, "quorum")]);
    }
    if vhost.version() >= (4, 3) {
        every.push(("strategy: native, delays: [100ms, 300ms]", "quorum"));
    }
    every
}

#[test]
fn under_every_strategy_a_handler_sees_the_same_attempts_and_the_message_ends_the_same_way() {
    for (retry, kind) in every_strategy(&Vhost::new()) {
        let vhost = Vhost::new();
        let file = file(&format!("{retry}, max_attempts: 4"), kind);
        vhost.mq(["topology", "apply", &file.path()]).run().code(0);
        // Fails k times, then succeeds: attempts 1 to k + 1.
        for k in 0..4 {
            vhost.publish("work", "x");
            let handler = Script::new(&format!(
                "echo $MQ_ATTEMPT >>$(dirname $0)/seen; [ $MQ_ATTEMPT -gt {k} ]"
            ));
            work(&vhost, &file, &["--until-empty"], &handler)
                .run()
                .code(0)
                .shows(&["1 acked"]);
            let expected: Vec<String> = (1..=k + 1).map(|n| n.to_string()).collect();
            assert_eq!(handler.lines("seen"), expected, "{retry} {kind}");
        }
        vhost.publish("work", "x");
        let handler = Script::new(FAILS);
        let summary = work(&vhost, &file, &["--until-empty", "-o", "json"], &handler)
            .run()
            .code(0)
            .json();
        assert_eq!(summary["retried"], 3, "{retry} {kind}: {summary}");
        assert_eq!(summary["dead_lettered"]["exhausted"], 1, "{summary}");
        assert_eq!(handler.lines("seen"), ["1/4", "2/4", "3/4", "4/4"]);
        let dead = vhost.inspect("work.dlq");
        let dead = &dead["messages"][0];
        assert_eq!(dead["reason"], "exhausted", "{retry} {kind}: {dead:#}");
        assert_eq!(dead["attempts"], 4);
        assert_eq!(dead["error"], "exit 1: last words");
        let headers = &dead["properties"]["headers"];
        assert_eq!(headers["mq-error-layer"], "downstream", "{dead:#}");
        assert_eq!(headers["mq-error-exit"], "exit 1");
        assert_eq!(headers["mq-error-stderr"], "some words\nlast words");
        assert!(
            headers["mq-error-worker"]
                .as_str()
                .is_some_and(|worker| worker.contains(':'))
        );
    }
}

#[test]
fn a_handler_says_how_long_to_wait() {
    for (retry, longer) in [
        ("strategy: dlx, delays: [1h]", false),
        ("strategy: backoff, delays: [1h]", false),
        ("strategy: immediate", true),
    ] {
        let vhost = Vhost::new();
        let file = file(&format!("{retry}, max_attempts: 2"), "quorum");
        vhost.mq(["topology", "apply", &file.path()]).run().code(0);
        vhost.publish("work", "x");
        let handler = Script::new(
            "echo $MQ_ATTEMPT >>$(dirname $0)/seen; [ $MQ_ATTEMPT = 2 ] || { echo 400ms >\"$MQ_RETRY_AFTER\"; exit 75; }",
        );
        let began = Instant::now();
        work(
            &vhost,
            &file,
            &["--max-messages", if longer { "1" } else { "2" }],
            &handler,
        )
        .run()
        .code(0)
        .shows(&["1 acked"]);
        assert!(began.elapsed() >= Duration::from_millis(400), "{retry}");
        assert_eq!(handler.lines("seen"), ["1", "2"], "{retry}");
    }
}

#[test]
fn a_held_message_goes_back_at_once_when_the_worker_stops() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    vhost.publish("work", "x");
    let handler = Script::new("echo 1h >\"$MQ_RETRY_AFTER\"; touch $(dirname $0)/failed; exit 75");
    let worker = consume(&vhost, &["-v"], &handler).spawn();
    wait_until("the attempt to fail", || {
        worker.stderr_so_far().contains("attempt failed")
    });
    worker.signal(rustix::process::Signal::TERM);
    worker.wait().code(0).shows(&["1 given back"]);
    vhost.wait_for_ready("work", 1);
}

#[test]
fn used_up_attempts_can_stop_the_worker_instead() {
    for (retry, kind) in every_strategy(&Vhost::new()) {
        let vhost = Vhost::new();
        let retry = retry.replace("100ms, 200ms", "100ms");
        let file = file(&format!("{retry}, max_attempts: 2"), kind);
        vhost.mq(["topology", "apply", &file.path()]).run().code(0);
        vhost.publish("work", "x");
        let handler = Script::new(
            "echo $MQ_ATTEMPT >>$(dirname $0)/seen; [ -e $(dirname $0)/up ] || { echo refused >&2; exit 75; }",
        );
        let stop = &["--on-exhausted", "stop", "--until-empty"];
        work(&vhost, &file, stop, &handler)
            .run()
            .code(69)
            .says(&["attempt 2 of 2 failed: exit 75: refused", "given back"]);
        assert_eq!(vhost.ready("work.dlq"), 0, "{retry} {kind}");
        assert_eq!(handler.lines("seen"), ["1", "2"], "{retry} {kind}");
        // Up again: the restarted worker acks it.
        std::fs::write(handler.file("up"), "").unwrap();
        work(&vhost, &file, stop, &handler)
            .run()
            .code(0)
            .shows(&["1 acked"]);
        assert_eq!(vhost.ready("work.dlq"), 0, "{retry} {kind}");
    }
}

/// Puts the one message of the dead-letter queue back with all its headers, as
/// shovels and scripts do.
fn move_back(vhost: &Vhost, dead: &str) {
    let properties = crate::vhost::block_on(async {
        let connection =
            lapin::Connection::connect(&vhost.url(), lapin::ConnectionProperties::default())
                .await
                .unwrap();
        let channel = connection.create_channel().await.unwrap();
        let options = lapin::options::BasicGetOptions { no_ack: true };
        let got = channel.basic_get(dead.into(), options).await.unwrap();
        let properties = got.unwrap().delivery.properties;
        connection.close(200, "bye".into()).await.unwrap();
        properties
    });
    vhost.publish_raw("work", &[(b"x".to_vec(), properties)]);
}

#[test]
fn a_message_that_is_moved_back_has_all_its_attempts_again() {
    for (retry, kind) in every_strategy(&Vhost::new()) {
        for how in ["republish", "nack"] {
            if how == "nack" && retry.contains("dlx") {
                continue;
            }
            let vhost = Vhost::new();
            let file = file(&format!("{retry}, max_attempts: 3"), kind);
            vhost.mq(["topology", "apply", &file.path()]).run().code(0);
            vhost.publish("work", "x");
            let flags = ["--until-empty", "--dead-letter", how];
            for _ in 0..2 {
                let handler = Script::new(FAILS);
                work(&vhost, &file, &flags, &handler).run().code(0);
                assert_eq!(
                    handler.lines("seen"),
                    ["1/3", "2/3", "3/3"],
                    "{retry} {kind} {how}"
                );
                assert_eq!(vhost.ready("work.dlq"), 1, "{retry} {kind} {how}");
                move_back(&vhost, "work.dlq");
            }
        }
    }
}

#[test]
fn records_of_another_tool_that_come_back_with_a_message_do_not_count() {
    // As rejected five times by a worker that parks with the records and all.
    let mut death = FieldTable::default();
    death.insert("queue".into(), AMQPValue::LongString("work".into()));
    death.insert("reason".into(), AMQPValue::LongString("rejected".into()));
    death.insert("count".into(), AMQPValue::LongLongInt(5));
    death.insert("exchange".into(), AMQPValue::LongString("".into()));
    death.insert("time".into(), AMQPValue::Timestamp(1_700_000_000));
    let keys = FieldArray::from(vec![AMQPValue::LongString("work".into())]);
    death.insert("routing-keys".into(), AMQPValue::FieldArray(keys));
    let deaths = AMQPValue::FieldArray(FieldArray::from(vec![AMQPValue::FieldTable(death)]));
    for kind in ["classic", "quorum"] {
        let vhost = Vhost::new();
        vhost.apply(&of_type(DLX, kind));
        let mut headers = FieldTable::default();
        headers.insert("x-death".into(), deaths.clone());
        let stale = BasicProperties::default()
            .with_headers(headers)
            .with_delivery_mode(2);
        vhost.publish_raw("work", &[(b"x".to_vec(), stale)]);
        let handler = Script::new(FAILS);
        consume(&vhost, &["--until-empty", "--max-attempts", "3"], &handler)
            .run()
            .code(0);
        assert_eq!(handler.lines("seen"), ["1/3", "2/3", "3/3"], "{kind}");
    }
}

#[test]
fn a_plain_nack_ends_a_message_with_the_brokers_own_record_only() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    vhost.publish("work", "x");
    let handler = Script::new("exit 65");
    consume(
        &vhost,
        &["--until-empty", "--dead-letter", "nack"],
        &handler,
    )
    .run()
    .code(0)
    .shows(&["1 poison"]);
    let dead = vhost.inspect("dead");
    let headers = &dead["messages"][0]["properties"]["headers"];
    assert!(headers.get("mq-error-kind").is_none(), "{dead:#}");
    assert_eq!(headers["x-death"][0]["reason"], "rejected", "{dead:#}");
    // Without the queue it would vanish: it stays.
    vhost.publish("work", "y");
    vhost.delete_queue("dead");
    let worker = consume(&vhost, &["--dead-letter", "nack"], &handler);
    worker.run().code(2);
    assert_eq!(vhost.ready("work"), 1);
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "classic"));
    consume(&vhost, &["--dead-letter", "nack"], &handler)
        .run()
        .code(2)
        .says(&["leads into the wait queue", "--dead-letter nack"]);
}

#[test]
fn a_message_that_kills_its_workers_is_buried_and_its_neighbours_are_not() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "quorum"));
    let bodies: Vec<String> = ["killer", "a", "b", "c", "d"].map(str::to_owned).to_vec();
    vhost.publish_all("work", &bodies);
    // The neighbours are in work while the killer does its deed.
    let handler = Script::new(
        "b=$(cat); if [ $b = killer ]; then sleep 0.3; kill -9 $PPID; else sleep 0.5; echo $b >>$(dirname $0)/done; fi",
    );
    let mut runs = 0;
    loop {
        runs += 1;
        assert!(runs < 10, "it goes on for ever");
        let flags = ["--prefetch", "5", "--max-returns", "2", "--until-empty"];
        if consume(&vhost, &flags, &handler).run().code == 0 {
            break;
        }
    }
    let dead = vhost.inspect("dead");
    assert_eq!(
        dead["messages"].as_array().map(Vec::len),
        Some(1),
        "{dead:#}"
    );
    let dead = &dead["messages"][0];
    assert_eq!(dead["body"], "killer");
    assert_eq!(dead["reason"], "returned", "{dead:#}");
    assert_eq!(dead["properties"]["headers"]["mq-error-layer"], "worker");
    let mut done = handler.lines("done");
    done.sort();
    done.dedup();
    assert_eq!(done, ["a", "b", "c", "d"]);
    assert_eq!((vhost.ready("work"), vhost.ready("wait")), (0, 0));
    assert!(runs >= 3, "{runs}");
}

#[test]
fn a_crashing_child_costs_its_neighbours_nothing() {
    let vhost = Vhost::new();
    // Two returns and a message would be gone from the queue.
    vhost.apply(
        "
exchanges: { dlx: { type: fanout } }
queues:
  work: { type: quorum, delivery_limit: 1, dead_letter: { exchange: dlx } }
  dead: { type: classic, bind: [ { exchange: dlx } ] }
",
    );
    let bodies: Vec<String> = ["killer", "a", "b", "c"].map(str::to_owned).to_vec();
    vhost.publish_all("work", &bodies);
    let handler = Script::new(
        "b=$(cat); if [ $b = killer ]; then kill -9 $$; else sleep 0.5; echo $b >>$(dirname $0)/done; fi",
    );
    let flags = ["--prefetch", "4", "--max-attempts", "5", "--until-empty"];
    consume(&vhost, &flags, &handler)
        .run()
        .code(0)
        .shows(&["3 acked", "4 retried", "1 exhausted"]);
    let dead = vhost.inspect("dead");
    assert_eq!(dead["messages"].as_array().map(Vec::len), Some(1));
    assert_eq!(dead["messages"][0]["error"], "killed by signal 9");
    assert_eq!(handler.lines("done").len(), 3);
}

#[test]
fn native_retries_wait_longer_each_time_and_are_for_4_3() {
    let vhost = Vhost::new();
    let arguments = json!({"durable": true, "arguments": {
        "x-queue-type": "quorum", "x-delivery-limit": 20, "x-dead-letter-exchange": "dlx",
        "x-delayed-retry-type": "all", "x-delayed-retry-min": 200, "x-delayed-retry-max": 500
    }});
    vhost.apply("exchanges: { dlx: { type: fanout } }\nqueues: { dead: { type: classic, bind: [ { exchange: dlx } ] } }\n");
    vhost.api(Method::PUT, &["queues", &vhost.name, "work"], &arguments);
    if vhost.version() < (4, 3) {
        // Kept there and ignored.
        consume(&vhost, &[], &Script::new("exit 1"))
            .run()
            .code(2)
            .says(&["ignores its `delayed_retry`"]);
        return;
    }
    // A count that a client wrote is not believed.
    let mut headers = FieldTable::default();
    headers.insert("x-delivery-count".into(), AMQPValue::LongInt(7));
    let forged = BasicProperties::default()
        .with_headers(headers)
        .with_delivery_mode(2);
    vhost.publish_raw("work", &[(b"x".to_vec(), forged)]);
    let handler = Script::new("echo \"$MQ_ATTEMPT $(date +%s%3N)\" >>$(dirname $0)/seen; exit 1");
    // It is seen without being told: the queue holds back what is rejected.
    consume(&vhost, &["--until-empty", "--max-attempts", "4"], &handler)
        .run()
        .code(0)
        .shows(&["3 retried", "1 exhausted"]);
    let seen: Vec<(u64, u64)> = handler
        .lines("seen")
        .iter()
        .map(|line| {
            let (attempt, time) = line.split_once(' ').unwrap();
            (attempt.parse().unwrap(), time.parse().unwrap())
        })
        .collect();
    let attempts: Vec<u64> = seen.iter().map(|(attempt, _)| *attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
    for (pair, least) in seen.windows(2).zip([200, 400, 500]) {
        assert!(pair[1].1 - pair[0].1 >= least, "{seen:?}");
    }
    assert_eq!(vhost.inspect("dead")["messages"][0]["attempts"], 4);
}

#[test]
fn a_worker_with_less_prefetch_than_there_are_messages_gives_none_back_over_and_over() {
    for kind in ["classic", "quorum"] {
        let vhost = Vhost::new();
        vhost.apply(&of_type(DLX, kind));
        let bodies: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        vhost.publish_all("work", &bodies);
        let handler = Script::new("echo x >>$(dirname $0)/started; sleep 1");
        let flags = ["--prefetch", "4", "--jobs", "2", "-o", "json"];
        let worker = consume(&vhost, &flags, &handler).spawn();
        wait_until("two to run", || handler.lines("started").len() == 2);
        worker.signal(rustix::process::Signal::TERM);
        let summary = worker.wait().code(0).json();
        assert_eq!(summary["acked"], 2, "{kind}: {summary}");
        let released = summary["released"].as_u64().unwrap_or(u64::MAX);
        assert!((2..=3).contains(&released), "{kind}: {summary}");
        vhost.wait_for_ready("work", 10);
    }
}

#[test]
fn a_pipe_in_place_of_the_delay_holds_nobody_up() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    vhost.publish("work", "x");
    let handler = Script::new("[ $MQ_ATTEMPT = 2 ] || { mkfifo \"$MQ_RETRY_AFTER\"; exit 75; }");
    consume(&vhost, &["--until-empty"], &handler)
        .run()
        .code(0)
        .shows(&["1 acked", "1 retried"]);
}

#[test]
fn a_dead_letter_whose_reasons_do_not_fit_a_frame_tells_less_of_them() {
    for topology in [DLX, IMMEDIATE] {
        let vhost = Vhost::new();
        vhost.apply(&of_type(topology, "quorum"));
        let mut headers = FieldTable::default();
        let large = "y".repeat(130_000);
        headers.insert("large".into(), AMQPValue::LongString(large.into()));
        let properties = BasicProperties::default()
            .with_headers(headers)
            .with_delivery_mode(2);
        vhost.publish_raw("work", &[(b"x".to_vec(), properties)]);
        let handler = Script::new("head -c 50000 /dev/zero | tr '\\0' e >&2; exit 75");
        consume(&vhost, &["--until-empty", "--max-attempts", "2"], &handler)
            .run()
            .code(0)
            .shows(&["1 retried", "1 exhausted"]);
        vhost.wait_for_ready("dead", 1);
    }
}

#[test]
fn a_single_active_consumer_keeps_its_queue() {
    let vhost = Vhost::new();
    vhost.apply(
        "
exchanges: { dlx: { type: fanout } }
queues:
  work: { type: quorum, delivery_limit: unlimited, single_active_consumer: true, dead_letter: { exchange: dlx } }
  dead: { type: classic, bind: [ { exchange: dlx } ] }
",
    );
    let handler = Script::new("echo $PPID $(cat) >>$(dirname $0)/seen; sleep 0.2");
    let flags = ["--prefetch", "4", "--jobs", "1"];
    let workers = [
        consume(&vhost, &flags, &handler).spawn(),
        consume(&vhost, &flags, &handler).spawn(),
    ];
    wait_until("both to be there", || {
        crate::consume::consumers(&vhost) == 2
    });
    let bodies: Vec<String> = (0..8).map(|n| n.to_string()).collect();
    vhost.publish_all("work", &bodies);
    wait_until("all to be worked", || handler.lines("seen").len() == 8);
    let seen = handler.lines("seen");
    let who = seen.first().and_then(|line| line.split(' ').next());
    let who = who.unwrap_or_default();
    let expected: Vec<String> = (0..8).map(|n| format!("{who} {n}")).collect();
    assert_eq!(seen, expected);
    for worker in workers {
        worker.signal(rustix::process::Signal::TERM);
        worker.wait().code(0);
    }
}
