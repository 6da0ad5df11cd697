//! What handlers give back: published, confirmed and routed, before the ack.
#![expect(
    clippy::disallowed_methods,
    reason = "tests read what handlers left behind"
)]

use std::ffi::OsString;

use lapin::BasicProperties;

use crate::consume::{DLX, IMMEDIATE, consume, consumers, of_type};
use crate::support::{Script, wait_until};
use crate::vhost::Vhost;

const RESULTS: &str = "
exchanges: { results: { type: topic } }
queues: { answers: { type: classic, bind: [ { exchange: results, key: 'done.#' } ] } }
";

fn with_results() -> Vhost {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    vhost.apply(RESULTS);
    vhost
}

fn asked(id: &str, reply_to: Option<&str>) -> BasicProperties {
    let properties = BasicProperties::default()
        .with_delivery_mode(2)
        .with_correlation_id(id.into());
    match reply_to {
        Some(queue) => properties.with_reply_to(queue.into()),
        None => properties,
    }
}

#[test]
fn a_result_is_published_with_its_correlation_id_and_then_the_message_is_acked() {
    let vhost = with_results();
    vhost.publish_raw("work", &[(vec![0, 255, 10], asked("c-1", None))]);
    let handler = Script::new("echo talk >&2; cat; printf end");
    let flags = [
        "--result-exchange",
        "results",
        "--result-key",
        "done.x",
        "--until-empty",
    ];
    consume(&vhost, &flags, &handler)
        .run()
        .code(0)
        .shows(&["1 acked"])
        .says(&["[#1] talk"]);
    let answer = &vhost.inspect("answers")["messages"][0];
    assert_eq!(answer["properties"]["correlation_id"], "c-1", "{answer:#}");
    assert_eq!(answer["body_encoding"], "base64", "{answer:#}");
    assert_eq!(answer["body"], "AP8KZW5k");
    assert_eq!(answer["properties"]["delivery_mode"], 2);
}

#[test]
fn a_result_that_no_queue_takes_stops_the_worker_and_keeps_the_message() {
    let vhost = with_results();
    vhost.publish_raw("work", &[(b"x".to_vec(), asked("c-1", None))]);
    let handler = Script::new("echo result");
    let flags = ["--result-exchange", "results", "--result-key", "lost"];
    consume(&vhost, &flags, &handler)
        .run()
        .code(67)
        .says(&["no queue takes results", "given back"]);
    vhost.wait_for_ready("work", 1);
    consume(&vhost, &["--result-exchange", "nowhere"], &handler)
        .run()
        .code(2)
        .says(&["exchange 'nowhere' for its results does not exist"]);
    assert_eq!(vhost.ready("work"), 1);
}

#[test]
fn a_reply_goes_to_who_asked_and_one_for_nobody_is_kept() {
    let vhost = with_results();
    vhost.publish_raw(
        "work",
        &[
            (b"one".to_vec(), asked("c-1", Some("answers"))),
            (b"two".to_vec(), asked("c-2", None)),
            (b"three".to_vec(), asked("c-3", Some("gone"))),
        ],
    );
    let handler = Script::new("cat");
    consume(&vhost, &["--reply", "--until-empty"], &handler)
        .run()
        .code(0)
        .shows(&["2 acked", "1 poison"]);
    let answers = vhost.inspect("answers");
    assert_eq!(answers["messages"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        answers["messages"][0]["properties"]["correlation_id"],
        "c-1"
    );
    let dead = &vhost.inspect("dead")["messages"][0];
    assert_eq!(dead["body"], "three");
    let error = dead["error"].as_str().unwrap();
    assert!(
        error.contains("the work is done, but no queue takes results"),
        "{error}"
    );
}

#[test]
fn a_retry_may_carry_what_the_handler_made_of_it() {
    for (topology, kind) in [(DLX, "classic"), (DLX, "quorum"), (IMMEDIATE, "quorum")] {
        let vhost = Vhost::new();
        vhost.apply(&of_type(topology, kind));
        vhost.publish("work", "a");
        let handler = Script::new(
            "b=$(cat); echo \"$MQ_ATTEMPT $b\" >>$(dirname $0)/seen; [ $MQ_ATTEMPT = 3 ] || { printf \"$b+\"; exit 1; }",
        );
        consume(
            &vhost,
            &["--retry-body", "result", "--until-empty"],
            &handler,
        )
        .run()
        .code(0)
        .shows(&["1 acked", "2 retried"]);
        assert_eq!(handler.lines("seen"), ["1 a", "2 a+", "3 a++"]);
        // A handler that fails without a word changes nothing.
        vhost.publish("work", "b");
        let handler = Script::new("echo $(cat) >>$(dirname $0)/seen; [ $MQ_ATTEMPT = 2 ]");
        consume(
            &vhost,
            &["--retry-body", "result", "--until-empty"],
            &handler,
        )
        .run()
        .code(0);
        assert_eq!(handler.lines("seen"), ["b", "b"]);
    }
}

/// Subtasks of agents: results by correlation id, poison kept exactly as sent,
/// two workers that do four things at a time.
#[test]
fn sub_agents_share_the_work() {
    let vhost = Vhost::new();
    let file = "topologies/antigravity-tasks.yaml";
    vhost.mq(["topology", "apply", file]).run().code(0);
    vhost.apply(RESULTS);
    let handler = Script::new(
        r#"b=$(cat)
case $b in *invalid_specialty*) echo "no such specialty" >&2; exit 65 ;; esac
echo "start $(date +%s%3N)" >>$(dirname $0)/times
sleep 0.3
echo "end $(date +%s%3N)" >>$(dirname $0)/times
echo "{\"done\":$b}""#,
    );
    let poison = r#"{"task_id":"T-ERR-04","specialty":"invalid_specialty"}"#;
    let worker = || {
        let args = ["consume", "antigravity.execution.queue", "--topology", file];
        let flags = ["--prefetch", "2", "--idle-timeout", "10s", "-o", "json"];
        let results = [
            "--result-exchange",
            "results",
            "--result-key",
            "done.task",
            "--exec",
        ];
        let args = args
            .iter()
            .chain(&flags)
            .chain(&results)
            .map(OsString::from);
        vhost.mq(args.chain([handler.path()])).spawn()
    };
    let workers = [worker(), worker()];
    wait_until("both to be there", || consumers(&vhost) == 2);
    for (id, body) in [
        (
            "T-SEC-01",
            r#"{"task_id":"T-SEC-01","specialty":"security"}"#,
        ),
        ("T-DAT-02", r#"{"task_id":"T-DAT-02","specialty":"data"}"#),
        (
            "T-MET-03",
            r#"{"task_id":"T-MET-03","specialty":"metrics"}"#,
        ),
        ("T-ERR-04", poison),
    ] {
        let properties = ["--correlation-id", id];
        let to = ["publish", "-e", "antigravity.tasks", "-k", "subtask"];
        vhost
            .mq(to.iter().chain(&properties).chain(&[body]))
            .run()
            .code(0);
    }
    let acked: u64 = workers
        .into_iter()
        .map(|worker| worker.wait().code(0).json()["acked"].as_u64().unwrap())
        .sum();
    assert_eq!(acked, 3);
    let answers = vhost.inspect("answers");
    let mut ids: Vec<&str> = answers["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["properties"]["correlation_id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, ["T-DAT-02", "T-MET-03", "T-SEC-01"]);
    let dead = vhost.inspect("antigravity.poison.dlq");
    assert_eq!(dead["messages"].as_array().map(Vec::len), Some(1));
    assert_eq!(dead["messages"][0]["body"], poison);
    assert_eq!(dead["messages"][0]["error"], "exit 65: no such specialty");
    // One began before another ended.
    let mut times: Vec<(u64, bool)> = handler
        .lines("times")
        .iter()
        .map(|line| {
            let (what, time) = line.split_once(' ').unwrap();
            (time.parse().unwrap(), what == "start")
        })
        .collect();
    times.sort_unstable();
    let mut at_once = 0_i32;
    let most = times.iter().map(|(_, starts)| {
        at_once += if *starts { 1 } else { -1 };
        at_once
    });
    assert!(most.max() >= Some(2), "{times:?}");
}

/// The order lab: a worker with prefetch 1 and half a second for each order.
#[test]
fn the_order_lab_keeps_the_invalid_order_and_says_why() {
    let vhost = Vhost::new();
    let file = "topologies/order-process.yaml";
    vhost.mq(["topology", "apply", file]).run().code(0);
    let handler = Script::new(
        r#"b=$(cat); sleep 0.5
case $b in *'"invalid"'*) echo "order is invalid" >&2; exit 65 ;; esac
echo $b >>$(dirname $0)/done"#,
    );
    for (id, status) in [(1001, "valid"), (1002, "invalid"), (1003, "valid")] {
        let body = format!("{{\"order_id\":{id},\"status\":\"{status}\"}}");
        vhost
            .mq([
                "publish",
                "-e",
                "order.main.exchange",
                "-k",
                "order.process",
                &body,
            ])
            .run()
            .code(0);
    }
    let args = [
        "consume",
        "order.main.queue",
        "--topology",
        file,
        "--prefetch",
        "1",
        "--until-empty",
        "--exec",
    ];
    let began = std::time::Instant::now();
    vhost
        .mq(args.iter().map(OsString::from).chain([handler.path()]))
        .run()
        .code(0)
        .shows(&["2 acked", "1 poison"]);
    assert!(
        began.elapsed() >= std::time::Duration::from_millis(1500),
        "one at a time"
    );
    let done = handler.lines("done");
    assert!(
        done[0].contains("1001") && done[1].contains("1003"),
        "{done:?}"
    );
    let dead = vhost.inspect("order.dlq.queue");
    assert_eq!(dead["messages"].as_array().map(Vec::len), Some(1));
    let dead = &dead["messages"][0];
    assert_eq!(dead["body"], r#"{"order_id":1002,"status":"invalid"}"#);
    assert_eq!(dead["error"], "exit 65: order is invalid");
}

/// Handlers wait for a free job; more messages than jobs may be in our hands.
#[test]
fn jobs_are_how_many_run_at_once_whatever_the_prefetch() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    let bodies: Vec<String> = (0..8).map(|n| n.to_string()).collect();
    vhost.publish_all("work", &bodies);
    let handler = Script::new(
        "d=$(dirname $0); touch $d/run.$$; ls $d | grep -c '^run' >>$d/at_once; sleep 0.1; rm $d/run.$$",
    );
    let flags = ["--prefetch", "8", "--jobs", "2", "--until-empty"];
    consume(&vhost, &flags, &handler)
        .run()
        .code(0)
        .shows(&["8 acked"]);
    let at_once = handler.lines("at_once");
    assert!(at_once.contains(&"2".to_owned()), "{at_once:?}");
    assert!(at_once.iter().all(|n| n == "1" || n == "2"), "{at_once:?}");
}

#[test]
fn headers_that_are_too_large_for_the_environment_are_in_a_file() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    let mut headers = lapin::types::FieldTable::default();
    let large = "x".repeat(100_000);
    headers.insert(
        "large".into(),
        lapin::types::AMQPValue::LongString(large.clone().into()),
    );
    let properties = BasicProperties::default().with_headers(headers);
    vhost.publish_raw("work", &[(b"x".to_vec(), properties)]);
    let handler = Script::new(
        "cp \"$MQ_HEADERS_FILE\" $(dirname $0)/headers; echo $MQ_HEADERS_FILE >$(dirname $0)/name",
    );
    consume(&vhost, &["--until-empty"], &handler).run().code(0);
    let text = std::fs::read_to_string(handler.file("headers")).unwrap();
    let headers: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(headers["large"], large);
    // It goes with the attempt, and its folder with the worker.
    let name = handler.lines("name").remove(0);
    let folder = std::path::Path::new(&name).parent().unwrap();
    assert!(!folder.exists(), "{name}");
}

/// A requester that waits for direct replies, as RPC clients do.
#[test]
fn a_direct_reply_is_heard_and_its_message_acked() {
    let vhost = with_results();
    let url = vhost.url();
    let asking = std::thread::spawn(move || {
        crate::vhost::block_on(async {
            use futures_util::StreamExt as _;
            let connection =
                lapin::Connection::connect(&url, lapin::ConnectionProperties::default())
                    .await
                    .expect("connection");
            let channel = connection.create_channel().await.expect("channel");
            let options = lapin::options::BasicConsumeOptions {
                no_ack: true,
                ..lapin::options::BasicConsumeOptions::default()
            };
            let mut replies = channel
                .basic_consume(
                    "amq.rabbitmq.reply-to".into(),
                    "".into(),
                    options,
                    lapin::types::FieldTable::default(),
                )
                .await
                .expect("replies");
            channel
                .basic_publish(
                    "".into(),
                    "work".into(),
                    lapin::options::BasicPublishOptions::default(),
                    b"question",
                    asked("c-9", Some("amq.rabbitmq.reply-to")),
                )
                .await
                .expect("question");
            let reply = replies.next().await.expect("reply").expect("reply");
            let id = reply.properties.correlation_id().clone();
            connection.close(200, "bye".into()).await.expect("close");
            (reply.data, id.map(|id| id.to_string()))
        })
    });
    vhost.wait_for_ready("work", 1);
    let handler = Script::new("printf \"answer to \"; cat");
    consume(&vhost, &["--reply", "--until-empty"], &handler)
        .run()
        .code(0)
        .shows(&["1 acked", "0 dead-lettered"]);
    let (body, id) = asking.join().expect("the requester");
    assert_eq!(body, b"answer to question");
    assert_eq!(id.as_deref(), Some("c-9"));
}
