//! Working a queue when things go as they should, and when handlers fail.

use std::ffi::OsString;

use rustix::process::Signal;

use crate::support::{Mq, Script, wait_until};
use crate::vhost::Vhost;

/// A work queue whose dead letters go straight to a resting place.
pub(crate) const IMMEDIATE: &str = "
exchanges: { dlx: { type: fanout } }
queues:
  work: { type: TYPE, dead_letter: { exchange: dlx } }
  dead: { type: classic, bind: [ { exchange: dlx } ] }
";

/// A work queue whose dead letters wait 300 ms and come back.
pub(crate) const DLX: &str = "
exchanges: { dlx: { type: direct } }
queues:
  work: { type: TYPE, dead_letter: { exchange: dlx, key: retry } }
  wait: { type: TYPE, message_ttl: 300ms, dead_letter: { exchange: '', key: work }, bind: [ { exchange: dlx, key: retry } ] }
  dead: { type: classic, bind: [ { exchange: dlx, key: dead } ] }
";

/// The topology with its queues of one type, quorum without a limit. Where the
/// work queue is one of those, its retries are nacks: it keeps what it
/// dead-letters until the wait queue has it.
pub(crate) fn of_type(topology: &str, kind: &str) -> String {
    if kind != "quorum" {
        return topology.replace("TYPE", kind);
    }
    topology
        .replace(
            "work: { type: TYPE, dead_letter: { exchange: dlx, key: retry }",
            "work: { type: TYPE, overflow: reject-publish, dead_letter: { exchange: dlx, key: retry, strategy: at-least-once }",
        )
        .replace("TYPE", "quorum, delivery_limit: unlimited")
}

pub(crate) fn consume(vhost: &Vhost, flags: &[&str], handler: &Script) -> Mq {
    let mut args: Vec<OsString> = vec!["consume".into(), "work".into()];
    args.extend(flags.iter().map(Into::into));
    args.extend(["--exec".into(), handler.path()]);
    vhost.mq(args)
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|n| n.to_string()).collect()
}

#[test]
fn a_handler_that_keeps_failing_sees_every_attempt_and_the_message_ends_in_the_dead_letter_queue() {
    for topology in [DLX, IMMEDIATE] {
        for kind in ["classic", "quorum"] {
            let vhost = Vhost::new();
            vhost.apply(&of_type(topology, kind));
            // The route is the one the message first came by, on every attempt.
            let handler = Script::new(
                "echo \"$MQ_ATTEMPT/$MQ_MAX_ATTEMPTS <$MQ_EXCHANGE> $MQ_ROUTING_KEY\" >>$(dirname $0)/seen; exit 1",
            );
            vhost.publish("work", "body");
            let flags = ["--until-empty", "--max-attempts", "4", "-o", "json"];
            let summary = consume(&vhost, &flags, &handler).run().code(0).json();
            assert_eq!(
                handler.lines("seen"),
                ["1/4 <> work", "2/4 <> work", "3/4 <> work", "4/4 <> work"],
                "{kind} {topology}"
            );
            assert_eq!(summary["dead_lettered"]["exhausted"], 1);
            let dlq = vhost.inspect("dead");
            assert_eq!(dlq["ready"], 1);
            assert_eq!(dlq["messages"][0]["body"], "body");
            assert_eq!(dlq["messages"][0]["origin"], "work");
        }
    }
}

#[test]
fn a_handler_that_recovers_gets_its_message_acked() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "quorum"));
    let handler = Script::new("[ $MQ_ATTEMPT -ge 3 ]");
    vhost.publish("work", "body");
    let summary = consume(&vhost, &["--until-empty", "-o", "json"], &handler)
        .run()
        .code(0)
        .json();
    assert_eq!(summary["acked"], 1);
    assert_eq!(summary["retried"], 2);
    assert_eq!(vhost.ready("dead"), 0);
}

#[test]
fn the_handler_gets_the_body_and_everything_about_the_message() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    let handler = Script::new("cat >$(dirname $0)/body; env | grep ^MQ_ | sort >$(dirname $0)/env");
    vhost
        .mq([
            "publish",
            "-q",
            "work",
            "-H",
            "k=v",
            "--message-id",
            "m1",
            "--type",
            "t",
        ])
        .stdin([0_u8, 1, 254, 255].repeat(50_000))
        .run()
        .code(0);
    consume(&vhost, &["--max-messages", "1"], &handler)
        .run()
        .code(0);
    let body = read(&handler, "body");
    assert!(body == [0_u8, 1, 254, 255].repeat(50_000));
    let env = handler.lines("env");
    for expected in [
        "MQ_QUEUE=work",
        "MQ_ROUTING_KEY=work",
        "MQ_EXCHANGE=",
        "MQ_ATTEMPT=1",
        "MQ_MESSAGE_ID=m1",
        "MQ_TYPE=t",
        "MQ_HEADERS={\"k\":\"v\"}",
        "MQ_BODY_BYTES=200000",
        "MQ_REDELIVERED=false",
    ] {
        assert!(
            env.iter().any(|line| line == expected),
            "{expected} not in {env:?}"
        );
    }
}

#[expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "reads what a handler wrote"
)]
fn read(handler: &Script, name: &str) -> Vec<u8> {
    std::fs::read(handler.file(name)).unwrap()
}

#[test]
fn max_messages_takes_no_more_than_it_settles() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    vhost.publish_all("work", &numbered(10));
    let handler = Script::new("exit 0");
    let summary = consume(&vhost, &["--max-messages", "3", "-o", "json"], &handler)
        .run()
        .code(0)
        .json();
    assert_eq!(
        (&summary["acked"], &summary["received"]),
        (&3.into(), &3.into())
    );
    assert_eq!(vhost.ready("work"), 7);
}

#[test]
fn prefetch_is_how_many_run_at_once() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    vhost.publish_all("work", &numbered(8));
    // Each run waits until four are running: with fewer at once it would never end.
    let handler = Script::new(
        "d=$(dirname $0); echo x >>$d/started
         i=0; while [ $(wc -l <$d/started) -lt 4 ]; do i=$((i+1)); [ $i -lt 200 ] || exit 1; sleep 0.05; done",
    );
    let summary = consume(
        &vhost,
        &["--prefetch", "4", "--until-empty", "-o", "json"],
        &handler,
    )
    .run()
    .code(0)
    .json();
    assert_eq!(summary["acked"], 8);
    assert_eq!(summary["retried"], 0);
}

#[test]
fn idle_timeout_ends_an_idle_worker() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    let handler = Script::new("exit 0");
    let summary = consume(&vhost, &["--idle-timeout", "500ms", "-o", "json"], &handler)
        .run()
        .code(0)
        .json();
    assert_eq!(summary["stopped"], "idle");
}

#[test]
fn a_signal_on_an_idle_worker_ends_it_at_once() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let vhost = Vhost::new();
        vhost.apply(&of_type(IMMEDIATE, "classic"));
        let handler = Script::new("exit 0");
        let worker = consume(&vhost, &["-o", "json"], &handler).spawn();
        wait_until("the worker to subscribe", || consumers(&vhost) == 1);
        worker.signal(signal);
        let summary = worker.wait().code(0).json();
        assert_eq!(summary["stopped"], "signal");
    }
}

pub(crate) fn consumers(vhost: &Vhost) -> usize {
    vhost
        .get(&["consumers", &vhost.name])
        .as_array()
        .map_or(0, Vec::len)
}

#[test]
fn a_signal_lets_running_handlers_end_and_leaves_the_rest() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    vhost.publish_all("work", &numbered(5));
    let handler = Script::new(
        "d=$(dirname $0); echo x >>$d/started
         while [ ! -e $d/go ]; do sleep 0.05; done; echo x >>$d/done",
    );
    let flags = ["--prefetch", "2", "-o", "json", "-v"];
    let mut worker = consume(&vhost, &flags, &handler).spawn();
    wait_until("two to run", || handler.lines("started").len() == 2);
    worker.signal(Signal::TERM);
    // A handler that ends before the signal is seen makes room for a third.
    worker.wait_for_stderr("draining");
    touch(&handler, "go");
    let summary = worker.wait().code(0).json();
    assert_eq!(summary["acked"], 2);
    assert_eq!(handler.lines("started").len(), 2);
    vhost.wait_for_ready("work", 3);
}

#[expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tells a handler to go on"
)]
fn touch(handler: &Script, name: &str) {
    std::fs::write(handler.file(name), "").unwrap();
}

/// A terminal that closes says so twice; that is no second wish.
#[test]
fn hanging_up_twice_still_drains() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    vhost.publish("work", "x");
    let handler = Script::new(
        "d=$(dirname $0); echo x >>$d/started
         while [ ! -e $d/go ]; do sleep 0.05; done",
    );
    let mut worker = consume(&vhost, &["-o", "json", "-v"], &handler).spawn();
    wait_until("it to run", || handler.lines("started").len() == 1);
    worker.signal(Signal::HUP);
    worker.wait_for_stderr("draining");
    worker.signal(Signal::HUP);
    touch(&handler, "go");
    let summary = worker.wait().code(0).json();
    assert_eq!(summary["acked"], 1);
}

#[test]
fn after_the_grace_period_handlers_are_ended_and_their_messages_go_back() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    vhost.publish("work", "x");
    let handler = Script::new("d=$(dirname $0); echo x >>$d/started; exec sleep 600");
    let worker = consume(
        &vhost,
        &["--drain-timeout", "200ms", "-o", "json"],
        &handler,
    )
    .spawn();
    wait_until("it to run", || handler.lines("started").len() == 1);
    worker.signal(Signal::TERM);
    let summary = worker.wait().code(0).json();
    assert_eq!(summary["released"], 1);
    vhost.wait_for_ready("work", 1);
}

#[test]
fn a_second_signal_kills_and_gives_back() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    vhost.publish("work", "x");
    let handler = Script::new(
        "trap '' TERM INT; d=$(dirname $0); echo x >>$d/started; while :; do sleep 0.1; done",
    );
    let mut worker = consume(&vhost, &["-v"], &handler).spawn();
    wait_until("it to run", || handler.lines("started").len() == 1);
    worker.signal(Signal::TERM);
    worker.wait_for_stderr("draining");
    worker.signal(Signal::TERM);
    worker.wait().code(143).shows(&["1 unsettled"]);
    vhost.wait_for_ready("work", 1);
}

#[test]
fn print_shows_bodies_and_acks_them() {
    let vhost = Vhost::new();
    vhost.apply("queues: { work: { type: classic } }\n");
    vhost.publish_all("work", &numbered(3));
    let ran = vhost
        .mq(["consume", "work", "--print", "--until-empty"])
        .run()
        .code(0);
    assert_eq!(ran.stdout, "0\n1\n2\n");
    assert!(ran.stderr.contains("3 acked"), "{}", ran.stderr);
    assert_eq!(vhost.ready("work"), 0);
}

#[test]
fn a_reader_that_goes_away_takes_no_message_along() {
    let vhost = Vhost::new();
    vhost.apply("queues: { work: { type: classic } }\n");
    // A pipe holds sixteen of these, and `head` may be slow to leave it.
    let large: Vec<String> = (0..200).map(|n| format!("{n:04096}")).collect();
    vhost.publish_all("work", &large);
    let script = Script::new(&format!(
        "{} consume work --print --prefetch 5 | head -n 3; echo",
        env!("CARGO_BIN_EXE_mq")
    ));
    let output = run_script(&vhost, &script);
    let seen = output.lines().filter(|line| !line.is_empty()).count();
    assert_eq!(seen, 3);
    // What `head` had not read was at most in the pipe; nothing else was acked.
    wait_until("the rest to be back", || {
        (160..=197).contains(&vhost.ready("work"))
    });
}

#[expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "runs a pipeline in a shell"
)]
fn run_script(vhost: &Vhost, script: &Script) -> String {
    let output = std::process::Command::new(script.path())
        .env("MQ_URL", vhost.url())
        .env("MQ_MANAGEMENT_URL", &vhost.management_url)
        .output()
        .unwrap();
    assert!(
        output.stderr.is_empty() || !String::from_utf8_lossy(&output.stderr).contains("panick"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn five_hundred_messages_of_which_some_fail_add_up() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "quorum"));
    vhost.publish_all("work", &numbered(500));
    // Every seventh fails once, every fiftieth always.
    let handler = Script::new(
        "n=$(cat)
         [ $((n % 50)) -ne 0 ] || exit 1
         [ $((n % 7)) -ne 0 ] || [ $MQ_ATTEMPT -gt 1 ] || exit 1
         echo $n >>$(dirname $0)/done",
    );
    let flags = [
        "--prefetch",
        "10",
        "--until-empty",
        "--max-attempts",
        "2",
        "-o",
        "json",
    ];
    let summary = consume(&vhost, &flags, &handler).run().code(0).json();
    assert_eq!(summary["acked"], 490);
    assert_eq!(summary["dead_lettered"]["exhausted"], 10);
    let mut done = handler.lines("done");
    done.sort();
    done.dedup();
    assert_eq!(done.len(), 490);
    assert_eq!(
        (
            vhost.ready("dead"),
            vhost.ready("work"),
            vhost.ready("wait")
        ),
        (10, 0, 0)
    );
}

/// As under `nohup`: whoever ignores the hangup wants the worker to go on.
#[test]
fn a_hangup_that_is_ignored_stays_ignored() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    let handler = Script::new("exit 0");
    let worker = consume(&vhost, &["-o", "json"], &handler);
    let mut worker = worker.under_nohup().spawn();
    wait_until("the worker to subscribe", || consumers(&vhost) == 1);
    worker.signal(Signal::HUP);
    // It would have been told before this one.
    vhost.publish("work", "x");
    vhost.wait_for_ready("work", 0);
    assert!(worker.is_running());
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait().code(0).json()["acked"], 1);
}
