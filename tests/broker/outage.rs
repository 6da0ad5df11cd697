//! `--pause-after`: an outage downstream is waited out and costs no attempts.

use rustix::process::Signal;
use serde_json::Value as Json;

use crate::consume::{DLX, IMMEDIATE, of_type};
use crate::exec_stream::{handler, stream};
use crate::proxy::Proxy;
use crate::support::{Ran, Running, Script, wait_until};
use crate::vhost::Vhost;

/// What works while the file `down` is not there.
const NEEDS_SOMETHING: &str =
    "if [ -e $d/down ]; then say retry down; else echo $attempt >>$d/done; say done; fi";

const FLAGS: [&str; 6] = [
    "--pause-after",
    "3",
    "--probe-wait",
    "100ms",
    "--max-attempts",
    "3",
];

const PAUSED: &str = "paused: 3 attempts in a row failed; probing with one message, next in 100ms";

/// A work queue whose failed messages are copied into a wait queue.
const BACKOFF: &str = "
exchanges: { dlx: { type: fanout } }
queues:
  work: { type: TYPE, dead_letter: { exchange: dlx } }
  wait: { type: TYPE, message_ttl: 300ms, dead_letter: { exchange: '', key: work } }
  dead: { type: classic, bind: [ { exchange: dlx } ] }
";

fn vhost(topology: &str, kind: &str, count: usize) -> Vhost {
    let vhost = Vhost::new();
    vhost.apply(&of_type(topology, kind));
    let bodies: Vec<String> = (0..count).map(|n| n.to_string()).collect();
    vhost.publish_all("work", &bodies);
    vhost
}

fn down(handler: &Script) {
    touch(handler, "down");
}

#[expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tells a handler what to do"
)]
fn touch(handler: &Script, name: &str) {
    std::fs::write(handler.file(name), "").unwrap();
}

#[expect(clippy::unwrap_used, reason = "tells a handler what to do")]
fn up(handler: &Script) {
    std::fs::remove_file(handler.file("down")).unwrap();
}

fn work(vhost: &Vhost, flags: &[&str], handler: &Script) -> Running {
    let flags: Vec<&str> = FLAGS.iter().chain(flags).copied().collect();
    stream(vhost, &flags, handler).spawn()
}

/// Its last word; the warnings stand on standard error.
fn summary(ran: Ran) -> Json {
    let ran = ran.code(0);
    assert!(ran.stderr.contains("resumed: "), "{}", ran.stderr);
    ran.json()
}

#[test]
fn an_outage_costs_no_attempts_under_dlx() {
    wait_out(DLX, &["--strategy", "dlx"]);
}

#[test]
fn an_outage_costs_no_attempts_under_immediate() {
    wait_out(IMMEDIATE, &["--strategy", "immediate"]);
}

#[test]
fn an_outage_costs_no_attempts_under_backoff() {
    wait_out(BACKOFF, &["--strategy", "backoff", "--delays", "300ms"]);
}

#[expect(clippy::indexing_slicing, reason = "looks into the last word")]
fn wait_out(topology: &str, strategy: &[&str]) {
    for kind in ["quorum", "classic"] {
        for prefetch in ["1", "50"] {
            let about = format!("{strategy:?} {kind} {prefetch}");
            let vhost = vhost(topology, kind, 1000);
            let handler = handler(NEEDS_SOMETHING);
            down(&handler);
            // More jobs would be more shells.
            let mut flags = vec!["--until-empty", "--prefetch", prefetch, "--jobs", "1"];
            flags.extend(strategy);
            let mut worker = work(&vhost, &flags, &handler);
            worker.wait_for_stderr(PAUSED);
            up(&handler);
            let summary = summary(worker.wait());
            assert_eq!(summary["acked"], 1000, "{about} {summary}");
            assert_eq!(summary["dead_lettered"]["exhausted"], 0, "{about}");
            assert_eq!(vhost.ready("dead"), 0, "{about}");
            assert_eq!(vhost.ready("work"), 0, "{about}");
            // The two failures before the one that was the sign.
            assert!(summary["retried"].as_u64() <= Some(2), "{about} {summary}");
            let attempts = handler.lines("done");
            assert_eq!(attempts.len(), 1000, "{about}");
            let again = attempts.iter().filter(|attempt| *attempt != "1").count();
            assert!(again <= 2, "{about} {again}");
        }
    }
}

#[test]
fn a_handler_that_says_stop_pauses_the_worker_instead() {
    let vhost = vhost(DLX, "quorum", 20);
    let handler = handler("if [ -e $d/down ]; then say stop 'no database'; else say done; fi");
    down(&handler);
    let mut worker = work(&vhost, &["--until-empty"], &handler);
    worker.wait_for_stderr("paused: the handler said that something it needs is down");
    worker.wait_for_stderr("no database");
    up(&handler);
    let summary = summary(worker.wait());
    assert_eq!(
        (&summary["acked"], &summary["retried"]),
        (&20.into(), &0.into())
    );
    // Without the flag it stops, as always.
    vhost.publish("work", "x");
    down(&handler);
    stream(&vhost, &[], &handler)
        .run()
        .code(69)
        .says(&["no database"]);
    vhost.wait_for_ready("work", 1);
}

#[test]
fn a_message_that_always_fails_is_no_outage() {
    for topology in [DLX, IMMEDIATE] {
        for kind in ["quorum", "classic"] {
            let vhost = vhost(topology, kind, 0);
            let bodies: Vec<String> = ["bad"]
                .into_iter()
                .map(str::to_owned)
                .chain((0..50).map(|n| n.to_string()))
                .collect();
            vhost.publish_all("work", &bodies);
            let handler = handler("if [ $body = bad ]; then say retry never; else say done; fi");
            let flags = [
                "--pause-after",
                "1",
                "--probe-wait",
                "50ms",
                "--max-attempts",
                "2",
            ];
            let mut worker = stream(&vhost, &flags, &handler).spawn();
            worker.wait_for_stderr("paused: an attempt failed");
            // Alone in its queue it would look like an outage: others come.
            let mut more = 0;
            wait_until("the bad one to be dead-lettered", || {
                vhost.publish("work", "good");
                more += 1;
                vhost.ready("dead") == 1
            });
            assert_eq!(vhost.inspect("dead")["messages"][0]["body"], "bad");
            assert_eq!(vhost.inspect("dead")["messages"][0]["reason"], "exhausted");
            vhost.wait_for_ready("work", 0);
            worker.signal(Signal::TERM);
            let summary = summary(worker.wait());
            assert_eq!(summary["acked"], 50 + more, "{summary}");
        }
    }
}

#[test]
fn a_connection_that_is_cut_in_a_pause_leaves_it_paused() {
    let vhost = vhost(DLX, "quorum", 100);
    let proxy = Proxy::to(vhost.address());
    let handler = handler(NEEDS_SOMETHING);
    down(&handler);
    let flags: Vec<&str> = FLAGS.iter().copied().chain(["--until-empty"]).collect();
    let url = vhost.url_at("guest", "guest", &proxy.address);
    let mut worker = stream(&vhost, &flags, &handler).env("MQ_URL", url).spawn();
    worker.wait_for_stderr(PAUSED);
    for times in 1..=3 {
        proxy.cut();
        wait_until("it to reconnect", || {
            worker.stderr_so_far().matches("reconnected").count() >= times
        });
    }
    let probes = || worker.stderr_so_far().matches("attempt failed").count();
    let before = probes();
    wait_until("it to go on probing", || probes() >= before + 3);
    assert_eq!(worker.stderr_so_far().matches("paused: ").count(), 1);
    up(&handler);
    let summary = summary(worker.wait());
    assert_eq!(summary["acked"], 100, "{summary}");
    assert_eq!(vhost.ready("dead"), 0);
}

#[test]
fn a_signal_ends_a_paused_worker_and_everything_is_back() {
    for (topology, kind) in [(DLX, "quorum"), (IMMEDIATE, "classic")] {
        let vhost = vhost(topology, kind, 100);
        let handler = handler(NEEDS_SOMETHING);
        down(&handler);
        // So long that it would not end in time by itself.
        let flags = [
            "--pause-after",
            "3",
            "--probe-wait",
            "10m",
            "--prefetch",
            "20",
            "--jobs",
            "2",
        ];
        let mut worker = stream(&vhost, &flags, &handler).spawn();
        worker.wait_for_stderr("paused: ");
        // The pause gives back what no handler has.
        wait_until("it to give back", || vhost.ready("work") >= 95);
        worker.signal(Signal::TERM);
        let ran = worker.wait().code(0);
        assert_eq!(ran.json()["stopped"], "signal");
        vhost.wait_for_ready("work", 100);
        assert_eq!(vhost.ready("dead"), 0);
    }
}

#[test]
fn nobody_waits_when_no_further_message_is_to_come() {
    let vhost = vhost(IMMEDIATE, "classic", 10);
    let handler = handler("say retry down");
    let flags = ["--pause-after", "2", "--max-messages", "1"];
    stream(&vhost, &flags, &handler)
        .run()
        .code(69)
        .says(&["2 attempts in a row failed", "down"]);
    vhost.wait_for_ready("work", 10);
}

#[test]
fn on_exhausted_stop_still_stops() {
    let vhost = vhost(IMMEDIATE, "classic", 10);
    let handler = handler("say retry down");
    let flags = ["--on-exhausted", "stop", "--max-attempts", "2"];
    let with_pause: Vec<&str> = flags
        .iter()
        .chain(&["--pause-after", "5"])
        .copied()
        .collect();
    for flags in [&flags[..], &with_pause] {
        stream(&vhost, flags, &handler)
            .run()
            .code(69)
            .says(&["attempt 2 of 2 failed"]);
        vhost.wait_for_ready("work", 10);
    }
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let vhost = vhost(IMMEDIATE, "classic", 1);
    let run = |flags: &[&str]| {
        let args = ["consume", "work"].iter().chain(flags);
        vhost.mq(args).run()
    };
    run(&["--pause-after", "1", "--print"]).code(64);
    run(&["--probe-wait", "1s", "--exec", "true"]).code(64);
    run(&["--pause-after", "0", "--exec", "true"]).code(64);
    run(&[
        "--pause-after",
        "1",
        "--probe-wait",
        "11m",
        "--exec",
        "true",
    ])
    .code(64)
    .says(&["--probe-wait 11m", "10m at most"]);
    assert_eq!(vhost.ready("work"), 1);
}
