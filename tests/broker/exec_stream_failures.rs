//! Long-lived handlers that die, hang, or say what is no answer: none of them
//! costs a message or outlives the worker.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::consume::{DLX, IMMEDIATE};
use crate::consume_failures::is_gone;
use crate::exec_stream::{all_gone, handler, stream, vhost};
use crate::support::{Script, wait_until};

#[expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tells a handler to go on"
)]
fn touch(handler: &Script, name: &str) {
    std::fs::write(handler.file(name), "").unwrap();
}

#[expect(clippy::unwrap_used, reason = "the handler wrote a pid")]
fn kill(pid: &str) {
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn a_child_that_dies_with_a_message_costs_an_attempt_and_is_replaced() {
    let vhost = vhost(DLX, &["1", "die", "2"]);
    let handler = handler(
        "if [ $body$attempt = die1 ]; then echo 'out of luck' >&2; exit 65; fi; echo $body >>$d/done; say done",
    );
    let ran = stream(&vhost, &["--until-empty"], &handler).run().code(0);
    let summary = ran.json();
    // 65 is no poison here: whose it was, a child that works many cannot say.
    assert_eq!(
        (&summary["acked"], &summary["retried"]),
        (&3.into(), &1.into())
    );
    ran.says(&["exit 65 without an answer: out of luck"]);
    assert_eq!(handler.lines("done"), ["1", "2", "die"]);
    all_gone(&handler, 2);
}

#[test]
fn what_is_no_answer_fails_the_attempt_and_ends_the_child() {
    for (what, says) in [
        ("echo 'Starting…'", "it said 'Starting…' where {"),
        ("id=99; say done", "it answered message 99, not 1"),
        ("say ok", "unknown variant `ok`"),
        (
            r#"echo "{\"id\":$id,\"outcome\":\"done\",\"retry\":1}""#,
            "unknown field `retry`",
        ),
        ("head -c 20000000 /dev/zero", "longer than 16 MiB"),
        (
            "printf '{\"id\":1,'; exit 0",
            r#"exit 0 without an answer; it said '{\"id\":1,' without a line end"#,
        ),
        (
            "exec >&-; sleep 600",
            "closed its standard input or output without an answer",
        ),
    ] {
        let vhost = vhost(IMMEDIATE, &["x"]);
        let handler = handler(&format!(
            "if [ $attempt = 1 ]; then {what}; else say done; fi"
        ));
        let ran = stream(&vhost, &["--until-empty"], &handler).run().code(0);
        let summary = ran.json();
        assert_eq!(
            (&summary["acked"], &summary["retried"]),
            (&1.into(), &1.into()),
            "{what}"
        );
        ran.says(&[says]);
        all_gone(&handler, 2);
    }
}

/// A child that talks before it listens blocks neither side.
#[test]
fn a_child_that_never_reads_blocks_nothing() {
    for (script, says) in [
        (
            "yes | head -c 1000000; sleep 600",
            // Before it was given the message, or before it had read it.
            "before it",
        ),
        ("exec <&-; sleep 600", "closed its standard input or output"),
        ("sleep 600 & exit 3", "exit 3 without an answer"),
    ] {
        let vhost = vhost(IMMEDIATE, &[]);
        vhost
            .mq(["publish", "-q", "work"])
            .stdin(vec![b'x'; 15 << 20])
            .run()
            .code(0);
        let handler = Script::new(&format!("echo $$ >>$(dirname $0)/pids; {script}"));
        let flags = ["--until-empty", "--max-attempts", "1"];
        let ran = stream(&vhost, &flags, &handler).run().code(0);
        assert_eq!(ran.json()["dead_lettered"]["exhausted"], 1, "{script}");
        ran.says(&[says]);
        all_gone(&handler, 1);
    }
}

#[test]
fn a_timeout_is_a_failed_attempt_and_ends_the_childs_children_too() {
    let vhost = vhost(IMMEDIATE, &["slow", "quick"]);
    let handler = handler(
        "if [ $body$attempt = slow1 ]; then sleep 600 & echo $! >>$d/pids; wait; fi; say done",
    );
    let flags = ["--handler-timeout", "1s", "--until-empty"];
    let ran = stream(&vhost, &flags, &handler).run().code(0);
    let summary = ran.json();
    assert_eq!(
        (&summary["acked"], &summary["retried"]),
        (&2.into(), &1.into())
    );
    ran.says(&["no answer within 1s"]);
    all_gone(&handler, 3);
}

#[test]
fn a_drain_ends_the_children() {
    let vhost = vhost(IMMEDIATE, &["1", "2", "3"]);
    let handler = handler(
        "echo x >>$d/started; while [ ! -e $d/go ]; do sleep 0.05; done; echo x >>$d/done; say done",
    );
    let mut worker = stream(&vhost, &["--prefetch", "2", "-v"], &handler).spawn();
    wait_until("two to work", || handler.lines("started").len() == 2);
    worker.signal(Signal::TERM);
    worker.wait_for_stderr("draining");
    touch(&handler, "go");
    let summary = worker.wait().code(0).json();
    assert_eq!(
        (&summary["acked"], &summary["stopped"]),
        (&2.into(), &json!("signal"))
    );
    all_gone(&handler, 2);
    assert_eq!(handler.lines("ends").len(), 2);
    vhost.wait_for_ready("work", 1);
}

#[test]
fn a_child_that_will_not_end_is_ended() {
    let vhost = vhost(IMMEDIATE, &["x"]);
    let script = Script::new(
        r#"trap '' TERM; d=$(dirname $0); sleep 600 & echo $! >>$d/pids; echo $$ >>$d/pids
        read -r line; echo '{"id":1,"outcome":"done"}'; while :; do sleep 0.1; done"#,
    );
    let summary = stream(&vhost, &["--until-empty"], &script)
        .run()
        .code(0)
        .json();
    assert_eq!(summary["acked"], 1);
    all_gone(&script, 2);
}

#[test]
fn after_the_grace_period_the_child_is_ended_and_its_message_goes_back() {
    let vhost = vhost(IMMEDIATE, &["x"]);
    let handler = handler("echo x >>$d/started; sleep 600");
    let worker = stream(&vhost, &["--drain-timeout", "200ms"], &handler).spawn();
    wait_until("it to work", || handler.lines("started").len() == 1);
    worker.signal(Signal::TERM);
    let summary = worker.wait().code(0).json();
    assert_eq!(summary["released"], 1);
    vhost.wait_for_ready("work", 1);
    all_gone(&handler, 1);
}

#[test]
fn a_child_killed_from_outside_is_replaced() {
    let vhost = vhost(IMMEDIATE, &["1"]);
    let handler = handler(
        "echo $body >>$d/started; while [ ! -e $d/go$body ]; do sleep 0.05; done; say done",
    );
    let mut worker = stream(&vhost, &["-v"], &handler).spawn();
    wait_until("it to work", || handler.lines("started").len() == 1);
    // With a message in work: that costs an attempt.
    kill(&handler.lines("pids")[0]);
    worker.wait_for_stderr("signal 9 without an answer");
    touch(&handler, "go1");
    wait_until("the second to start", || handler.lines("pids").len() == 2);
    vhost.publish("work", "2");
    wait_until("the next to work", || {
        handler.lines("started") == ["1", "1", "2"]
    });
    touch(&handler, "go2");
    vhost.publish("work", "3");
    touch(&handler, "go3");
    wait_until("the third to work", || handler.lines("started").len() == 4);
    // Idle: that costs nothing. It is idle once its answer has been acked.
    wait_until("the queue to be empty", || {
        let queue = vhost.get(&["queues", &vhost.name, "work"]);
        queue["messages"] == 0 && queue["message_stats"]["ack"] == 3
    });
    let idle = handler.lines("pids")[1].clone();
    kill(&idle);
    wait_until("it to be gone", || is_gone(&idle));
    touch(&handler, "go4");
    vhost.publish("work", "4");
    wait_until("the fourth to work", || handler.lines("started").len() == 5);
    worker.wait_for_stderr("an idle handler process ended");
    worker.signal(Signal::TERM);
    let summary = worker.wait().code(0).json();
    assert_eq!(
        (&summary["acked"], &summary["retried"]),
        (&4.into(), &1.into())
    );
    all_gone(&handler, 3);
}

#[test]
fn a_bad_deploy_drains_nothing() {
    for (script, says) in [
        (
            "echo 'no such module' >&2; exit 1",
            "exit 1 without an answer: no such module",
        ),
        ("echo 'Welcome!'; cat >/dev/null", "it said 'Welcome!'"),
        ("exit 65", "exit 65 without an answer"),
        ("cat >/dev/null", "no answer within 1s"),
    ] {
        let vhost = vhost(DLX, &["1", "2", "3", "4", "5"]);
        let handler = Script::new(&format!("echo $$ >>$(dirname $0)/pids; {script}"));
        stream(&vhost, &["--handler-timeout", "1s"], &handler)
            .run()
            .code(69)
            .says(&[says, "to 3 messages in a row", "given back"]);
        vhost.wait_for_ready("work", 5);
        assert_eq!(vhost.ready("dead"), 0);
        let pids = handler.lines("pids").len();
        all_gone(&handler, pids);
    }
}

#[test]
fn a_message_that_breaks_every_child_is_no_bad_deploy() {
    for topology in [DLX, IMMEDIATE] {
        let vhost = vhost(topology, &["die"]);
        let handler = handler("[ $body != die ] || exit 1; say done");
        let flags = ["--until-empty", "--max-attempts", "5"];
        let summary = stream(&vhost, &flags, &handler).run().code(0).json();
        assert_eq!(summary["dead_lettered"]["exhausted"], 1, "{topology}");
        assert_eq!(vhost.ready("dead"), 1);
        all_gone(&handler, 5);
    }
}

#[test]
fn a_program_that_is_not_there_takes_no_message() {
    let vhost = vhost(IMMEDIATE, &["x"]);
    vhost
        .mq(["consume", "work", "--exec-stream", "/no/such/program"])
        .run()
        .code(69)
        .says(&[
            "'/no/such/program' cannot be started",
            "no message was taken",
        ]);
    assert_eq!(vhost.ready("work"), 1);
}

#[test]
fn a_program_that_vanishes_is_a_bad_deploy() {
    let vhost = vhost(IMMEDIATE, &["1", "2"]);
    let handler = handler("rm $0; say done; exit 0");
    let ran = stream(&vhost, &[], &handler).run().code(69);
    ran.says(&["cannot start", "given back"]);
    vhost.wait_for_ready("work", 1);
}

#[test]
fn a_child_that_floods_standard_error_is_heard_and_blocks_nothing() {
    let vhost = vhost(IMMEDIATE, &["1", "2", "3"]);
    let handler =
        handler("head -c 10485760 /dev/zero >&2; echo >&2; echo heard $body >&2; say done");
    let ran = stream(&vhost, &["--until-empty"], &handler).run().code(0);
    assert_eq!(ran.json()["acked"], 3);
    // Each line names the message in work; which one that is by the time it is
    // read, is a matter of chance.
    ran.says(&["] heard 1\n", "] heard 2\n", "] heard 3\n"]);
    all_gone(&handler, 1);
}

#[test]
fn an_answer_to_what_was_not_read_acks_nothing() {
    let vhost = vhost(IMMEDIATE, &["1", "2", "3", "4", "5", "6"]);
    // Says done for all there may be after it has read one.
    let handler = Script::new(
        r#"d=$(dirname $0); read -r line; echo read >>$d/read
        id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        for n in 0 1 2 3 4 5 6; do echo "{\"id\":$((id + n)),\"outcome\":\"done\"}"; done
        sleep 60"#,
    );
    let flags = ["--until-empty", "--max-attempts", "1"];
    let ran = stream(&vhost, &flags, &handler).run();
    let summary = ran.json();
    let acked = summary["acked"].as_u64().unwrap_or_default();
    let read = handler.lines("read").len() as u64;
    assert!(acked <= read, "{read} read: {summary}");
    assert!(acked > 0, "{summary}");
}
