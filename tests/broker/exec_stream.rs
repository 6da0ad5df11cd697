//! Long-lived handlers: what they are given, what their answers do, and that
//! none of them costs a message or outlives the worker.

use std::ffi::OsString;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};

use crate::consume::{DLX, IMMEDIATE, of_type};
use crate::consume_failures::is_gone;
use crate::support::{Mq, Script, wait_until};
use crate::vhost::Vhost;

/// A handler that does this with each message; `id`, `attempt` and `body` are
/// set, `say OUTCOME [REASON]` answers. Its pid is in the file `pids`, and `end`
/// in the file `ends` once its input has ended.
fn handler(each: &str) -> Script {
    Script::new(&format!(
        r#"d=$(dirname $0); echo $$ >>$d/pids
say() {{ printf '{{"id":%s,"outcome":"%s","reason":"%s"}}\n' "$id" "$1" "$2"; }}
while read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%,*}}
  attempt=${{line#*'"attempt":'}}; attempt=${{attempt%%,*}}
  body=${{line##*'"body":"'}}; body=${{body%%'"'*}}
  {each}
done
echo end >>$d/ends"#
    ))
}

fn stream(vhost: &Vhost, flags: &[&str], handler: &Script) -> Mq {
    let mut args: Vec<OsString> = vec!["consume".into(), "work".into()];
    args.extend(flags.iter().map(Into::into));
    args.extend(["-o".into(), "json".into()]);
    args.extend(["--exec-stream".into(), handler.path()]);
    vhost.mq(args)
}

fn vhost(topology: &str, bodies: &[&str]) -> Vhost {
    let vhost = Vhost::new();
    vhost.apply(&of_type(topology, "quorum"));
    let bodies: Vec<String> = bodies.iter().map(|body| (*body).to_owned()).collect();
    vhost.publish_all("work", &bodies);
    vhost
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|n| n.to_string()).collect()
}

#[track_caller]
fn all_gone(handler: &Script, count: usize) {
    let pids = handler.lines("pids");
    assert_eq!(pids.len(), count, "{pids:?}");
    for pid in pids {
        assert!(is_gone(&pid), "child {pid} is still there");
    }
}

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
fn one_child_works_every_message_and_ends_with_its_input() {
    let vhost = vhost(IMMEDIATE, &[]);
    vhost.publish_all("work", &numbered(200));
    // Blank lines are no answers.
    let handler = handler("echo $body >>$d/bodies; printf '\\n \\r\\n'; say done");
    let summary = stream(&vhost, &["--until-empty"], &handler)
        .run()
        .code(0)
        .json();
    assert_eq!(
        (&summary["acked"], &summary["received"]),
        (&200.into(), &200.into())
    );
    assert_eq!(handler.lines("bodies"), numbered(200));
    all_gone(&handler, 1);
    assert_eq!(handler.lines("ends"), ["end"]);
}

#[test]
fn prefetch_is_how_many_children_work_at_once() {
    let vhost = vhost(IMMEDIATE, &[]);
    vhost.publish_all("work", &numbered(40));
    // Each waits until four have started: with fewer at once it would never end.
    let handler = handler(
        "i=0; while [ $(wc -l <$d/pids) -lt 4 ]; do i=$((i+1)); [ $i -lt 200 ] || exit 1; sleep 0.05; done; say done",
    );
    let flags = ["--prefetch", "4", "--until-empty"];
    let summary = stream(&vhost, &flags, &handler).run().code(0).json();
    assert_eq!(
        (&summary["acked"], &summary["retried"]),
        (&40.into(), &0.into())
    );
    all_gone(&handler, 4);
    assert_eq!(handler.lines("ends").len(), 4);
}

#[test]
fn a_message_that_is_to_be_retried_comes_again_with_its_attempt() {
    for topology in [DLX, IMMEDIATE] {
        let vhost = vhost(topology, &["x"]);
        let handler = handler(
            "echo $line >>$d/seen; if [ $attempt -lt 3 ]; then say retry busy; else say done; fi",
        );
        let ran = stream(&vhost, &["--until-empty"], &handler).run().code(0);
        let summary = ran.json();
        assert_eq!(
            (&summary["acked"], &summary["retried"]),
            (&1.into(), &2.into())
        );
        ran.says(&["busy"]);
        let seen: Vec<Json> = handler
            .lines("seen")
            .iter()
            .map(|line| serde_json::from_str(line).expect("json"))
            .collect();
        for (at, json) in seen.iter().enumerate() {
            assert_eq!(json["attempt"], at + 1);
            assert_eq!(json["max_attempts"], 5);
            // The route it first came by, on every attempt.
            assert_eq!(
                (&json["exchange"], &json["routing_key"]),
                (&json!(""), &json!("work"))
            );
        }
        assert_eq!(seen.len(), 3);
        all_gone(&handler, 1);
    }
}

#[test]
fn poison_rests_in_the_dead_letter_queue_with_its_reason() {
    let vhost = vhost(DLX, &["x"]);
    let handler = handler("say poison 'no order id'");
    let summary = stream(&vhost, &["--until-empty"], &handler)
        .run()
        .code(0)
        .json();
    assert_eq!(summary["dead_lettered"]["poison"], 1);
    let dlq = vhost.inspect("dead");
    assert_eq!(dlq["messages"][0]["error"], "no order id");
    assert_eq!(dlq["messages"][0]["attempts"], 1);
}

#[test]
fn stop_stops_the_worker_and_the_message_stays() {
    let vhost = vhost(DLX, &["x"]);
    let handler = handler("say stop 'database is down'");
    stream(&vhost, &[], &handler)
        .run()
        .code(69)
        .says(&["database is down", "given back"]);
    vhost.wait_for_ready("work", 1);
    all_gone(&handler, 1);
}

#[test]
fn a_result_is_published_with_its_content_type() {
    let vhost = vhost(
        &format!("{IMMEDIATE}  out: {{ type: classic }}\n"),
        &["x", "nothing"],
    );
    let handler = handler(
        r#"if [ $body = x ]; then echo "{\"id\":$id,\"outcome\":\"done\",\"result\":{\"body\":\"/wA=\",\"body_encoding\":\"base64\",\"content_type\":\"a/b\"}}"; else say done; fi"#,
    );
    let flags = [
        "--until-empty",
        "--result-exchange",
        "",
        "--result-key",
        "out",
    ];
    let summary = stream(&vhost, &flags, &handler).run().code(0).json();
    assert_eq!(summary["acked"], 2);
    let out = vhost.inspect("out");
    // No result is no message.
    assert_eq!(out["ready"], 1);
    assert_eq!(out["messages"][0]["body"], "/wA=");
    assert_eq!(out["messages"][0]["body_encoding"], "base64");
    assert_eq!(out["messages"][0]["properties"]["content_type"], "a/b");
}

#[test]
fn a_delay_that_is_asked_for_is_kept() {
    let vhost = vhost(IMMEDIATE, &["x"]);
    let handler = handler(
        r#"date +%s%3N >>$d/times; if [ $attempt = 1 ]; then echo "{\"id\":$id,\"outcome\":\"retry\",\"retry_after\":0.7}"; else say done; fi"#,
    );
    let summary = stream(&vhost, &["--until-empty"], &handler)
        .run()
        .code(0)
        .json();
    assert_eq!(summary["acked"], 1);
    let times: Vec<u64> = handler
        .lines("times")
        .iter()
        .map(|time| time.parse().expect("milliseconds"))
        .collect();
    assert!(times.len() == 2 && times[1] - times[0] >= 700, "{times:?}");
}

#[test]
fn the_child_gets_everything_about_the_message() {
    let vhost = vhost(IMMEDIATE, &[]);
    let body = [0_u8, 1, 254, 255].repeat(5_000);
    let publish = ["publish", "-q", "work", "-H", "k=v", "--message-id", "m1"];
    vhost.mq(publish).stdin(body.clone()).run().code(0);
    let handler = handler("echo $line >>$d/line; env | grep ^MQ_ | sort >>$d/env; say done");
    stream(&vhost, &["--max-messages", "1"], &handler)
        .env("MQ_ATTEMPT", "9")
        .env("MQ_MESSAGE_ID", "of an outer message")
        .run()
        .code(0);
    let lines = handler.lines("line");
    assert_eq!(lines.len(), 1);
    let mut json: Json = serde_json::from_str(&lines[0]).expect("json");
    assert!(json["redelivered"].take().is_boolean());
    assert!(json["body"].take() == BASE64.encode(&body));
    let delivery_mode = json["properties"]["delivery_mode"].take();
    assert_eq!(delivery_mode, 2);
    assert_eq!(json["properties"]["message_id"].take(), "m1");
    json["properties"].take();
    assert_eq!(
        json,
        json!({
            "v": 1, "id": 1, "queue": "work", "exchange": "", "routing_key": "work",
            "attempt": 1, "max_attempts": 5, "redelivered": null, "properties": null,
            "headers": { "k": "v" }, "body": null, "body_encoding": "base64",
        })
    );
    let env = handler.lines("env");
    let of_a_message: Vec<&String> = env
        .iter()
        .filter(|line| !line.starts_with("MQ_URL=") && !line.starts_with("MQ_MANAGEMENT_URL="))
        .collect();
    assert_eq!(of_a_message, ["MQ_QUEUE=work", "MQ_STREAM_PROTOCOL=1"]);
}

/// A message of this size fits into no pipe.
#[test]
fn a_large_message_arrives_whole() {
    let vhost = vhost(IMMEDIATE, &[]);
    vhost
        .mq(["publish", "-q", "work"])
        .stdin(vec![b'\xff'; 15 << 20])
        .run()
        .code(0);
    let handler = Script::new(
        r#"d=$(dirname $0); head -n 1 | wc -c >$d/bytes; echo '{"id":1,"outcome":"done"}'"#,
    );
    let summary = stream(&vhost, &["--max-messages", "1"], &handler)
        .run()
        .code(0)
        .json();
    assert_eq!(summary["acked"], 1);
    let bytes: usize = handler.lines("bytes")[0].trim().parse().expect("a number");
    assert!(bytes > (15 << 20) / 3 * 4, "{bytes}");
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
            "it answered before it had read the message",
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
    let handler = handler("head -c 10485760 /dev/zero >&2; echo >&2; echo heard $id >&2; say done");
    let ran = stream(&vhost, &["--until-empty"], &handler).run().code(0);
    assert_eq!(ran.json()["acked"], 3);
    // Each line names the message in work; which one that is by the time it is
    // read, is a matter of chance.
    ran.says(&["] heard 1\n", "] heard 2\n", "] heard 3\n"]);
    all_gone(&handler, 1);
}

#[test]
fn flags_after_it_belong_to_the_program_and_mq_says_so() {
    let vhost = vhost(IMMEDIATE, &[]);
    let handler = handler("say done");
    let worker = vhost
        .mq([
            "consume".into(),
            "work".into(),
            "--idle-timeout".into(),
            "200ms".into(),
            "--exec-stream".into(),
            handler.path(),
            "--until-empty".into(),
        ])
        .run()
        .code(0);
    worker.says(&["--until-empty stands after --exec-stream"]);
}

#[expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "reads the README and writes what it shows"
)]
fn write_handler_of_the_readme(path: &std::path::Path) {
    let readme =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let (_, after) = readme.split_once("```python\n").unwrap();
    let (example, _) = after.split_once("```").unwrap();
    std::fs::write(path, example).unwrap();
}

#[test]
fn the_handler_of_the_readme_works() {
    let vhost = vhost(IMMEDIATE, &[r#"{"id":"é"}"#, r#"{"no":"id"}"#]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("handle_orders.py");
    write_handler_of_the_readme(&path);
    let args: [OsString; 7] = [
        "consume".into(),
        "work".into(),
        "--until-empty".into(),
        "--output=json".into(),
        "--exec-stream".into(),
        "python3".into(),
        path.into(),
    ];
    let summary = vhost.mq(args).run().code(0).json();
    assert_eq!(summary["acked"], 1);
    assert_eq!(summary["dead_lettered"]["poison"], 1);
    let dlq = vhost.inspect("dead");
    assert_eq!(dlq["messages"][0]["error"], "an order without id");
}
