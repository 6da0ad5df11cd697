//! Long-lived handlers: what they are given and what their answers do.

use std::ffi::OsString;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value as Json, json};

use crate::consume::{DLX, IMMEDIATE, of_type};
use crate::consume_failures::is_gone;
use crate::support::{Mq, Script};
use crate::vhost::Vhost;

/// A handler that does this with each message; `id`, `attempt` and `body` are
/// set, `say OUTCOME [REASON]` answers. Its pid is in the file `pids`, and `end`
/// in the file `ends` once its input has ended.
pub(crate) fn handler(each: &str) -> Script {
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

pub(crate) fn stream(vhost: &Vhost, flags: &[&str], handler: &Script) -> Mq {
    let mut args: Vec<OsString> = vec!["consume".into(), "work".into()];
    args.extend(flags.iter().map(Into::into));
    args.extend(["-o".into(), "json".into()]);
    args.extend(["--exec-stream".into(), handler.path()]);
    vhost.mq(args)
}

pub(crate) fn vhost(topology: &str, bodies: &[&str]) -> Vhost {
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
pub(crate) fn all_gone(handler: &Script, count: usize) {
    let pids = handler.lines("pids");
    assert_eq!(pids.len(), count, "{pids:?}");
    for pid in pids {
        assert!(is_gone(&pid), "child {pid} is still there");
    }
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
