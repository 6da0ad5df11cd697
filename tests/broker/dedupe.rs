//! The same message twice, worked once.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests that tell handlers by files when to go on"
)]

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};
use rustix::process::Signal;
use serde_json::Value as Json;

use crate::consume::{DLX, IMMEDIATE, consume, of_type};
use crate::support::redis::Redis;
use crate::support::{Script, TextFile, wait_until};
use crate::vhost::Vhost;

/// Leaves the id of each message that it works in the file `done`.
const NOTE: &str = r#"echo "$MQ_MESSAGE_ID" >>$(dirname $0)/done"#;

fn with_id(id: &str) -> (Vec<u8>, BasicProperties) {
    let properties = BasicProperties::default().with_message_id(id.into());
    (b"x".to_vec(), properties)
}

fn vhost(ids: &[&str]) -> Vhost {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    let messages: Vec<_> = ids.iter().map(|id| with_id(id)).collect();
    vhost.publish_raw("work", &messages);
    vhost
}

/// The counts of a run until the queue is empty.
fn worked(vhost: &Vhost, flags: &[&str], handler: &Script) -> Json {
    let mut all = vec!["--until-empty", "-o", "json"];
    all.extend(flags);
    consume(vhost, &all, handler).run().code(0).json()
}

fn store() -> Script {
    Script::new("")
}

fn path(store: &Script) -> String {
    store.file("done.redb").to_str().unwrap().to_owned()
}

#[test]
fn the_same_order_twice_is_handled_once_even_by_another_run() {
    let vhost = vhost(&["order-1", "order-2", "order-1"]);
    let handler = Script::new(NOTE);
    let store = store();
    let flags = ["--dedupe", "message-id", "--dedupe-store", &path(&store)];
    let counts = worked(&vhost, &flags, &handler);
    assert_eq!(
        (&counts["acked"], &counts["deduplicated"]),
        (&2.into(), &1.into())
    );
    vhost.publish_raw("work", &[with_id("order-2"), with_id("order-3")]);
    let counts = worked(&vhost, &flags, &handler);
    assert_eq!(
        (&counts["acked"], &counts["deduplicated"]),
        (&1.into(), &1.into())
    );
    assert_eq!(handler.lines("done"), ["order-1", "order-2", "order-3"]);
    assert_eq!((vhost.ready("work"), vhost.ready("dead")), (0, 0));
}

#[test]
fn copies_that_are_in_work_at_once_wait_for_the_first() {
    let vhost = vhost(&["a"; 8]);
    let handler = Script::new(&format!("sleep 0.2; {NOTE}"));
    let store = store();
    let store = path(&store);
    let flags = [
        "--prefetch",
        "8",
        "--dedupe",
        "message-id",
        "--dedupe-store",
        &store,
    ];
    let counts = worked(&vhost, &flags, &handler);
    assert_eq!(
        (&counts["acked"], &counts["deduplicated"]),
        (&1.into(), &7.into())
    );
    assert_eq!(handler.lines("done"), ["a"]);
}

#[test]
fn only_what_is_done_is_remembered() {
    for topology in [IMMEDIATE, DLX] {
        let vhost = Vhost::new();
        vhost.apply(&of_type(topology, "quorum"));
        vhost.publish_raw(
            "work",
            &[with_id("a"), with_id("b"), with_id("a"), with_id("b")],
        );
        // `a` fails once and then succeeds, `b` never does.
        let handler = Script::new(
            r#"echo "$MQ_MESSAGE_ID" >>$(dirname $0)/tried
            [ "$MQ_MESSAGE_ID" = a ] && [ "$MQ_ATTEMPT" = 2 ]"#,
        );
        let store = store();
        let store = path(&store);
        let flags = [
            "--max-attempts",
            "2",
            "--prefetch",
            "4",
            "--dedupe",
            "message-id",
            "--dedupe-store",
            &store,
        ];
        let counts = worked(&vhost, &flags, &handler);
        assert_eq!(
            counts["dead_lettered"]["exhausted"], 2,
            "{topology} {counts}"
        );
        assert_eq!(
            counts["acked"].as_u64().unwrap() + counts["deduplicated"].as_u64().unwrap(),
            2
        );
        let tried = handler.lines("tried");
        let of = |id: &str| tried.iter().filter(|other| *other == id).count();
        assert_eq!(of("b"), 4, "{tried:?}");
        assert!((2..=4).contains(&of("a")), "{tried:?}");
        vhost.wait_for_ready("dead", 2);
    }
}

#[test]
fn a_header_or_the_body_can_tell_and_what_says_nothing_is_worked() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    let message = |header: Option<&str>, body: &str| {
        let mut headers = FieldTable::default();
        if let Some(header) = header {
            headers.insert("order".into(), AMQPValue::LongString(header.into()));
        }
        let properties = BasicProperties::default().with_headers(headers);
        (body.as_bytes().to_vec(), properties)
    };
    let messages = [
        message(Some("1"), "x"),
        message(Some("1"), "y"),
        message(Some("2"), "x"),
        message(None, "y"),
        message(None, "y"),
    ];
    for (by, acked) in [("header:order", 4), ("body", 2), ("message-id", 5)] {
        vhost.publish_raw("work", &messages);
        let handler = Script::new("exit 0");
        let store = store();
        let counts = worked(
            &vhost,
            &["--dedupe", by, "--dedupe-store", &path(&store)],
            &handler,
        );
        assert_eq!(counts["acked"], acked, "{by} {counts}");
        assert_eq!(counts["deduplicated"], 5 - acked, "{by} {counts}");
    }
}

#[test]
fn a_result_is_part_of_the_work() {
    let vhost = vhost(&["a"]);
    vhost.apply("exchanges: { results: { type: fanout } }\n");
    let handler = Script::new(&format!("{NOTE}; echo result"));
    let store = store();
    let store = path(&store);
    let flags = [
        "--result-exchange",
        "results",
        "--dedupe",
        "message-id",
        "--dedupe-store",
        &store,
    ];
    let unroutable = consume(&vhost, &flags, &handler).run().code(67);
    assert!(
        unroutable.stderr.contains("results"),
        "{}",
        unroutable.stderr
    );
    vhost.apply("exchanges: { results: { type: fanout } }\nqueues: { out: { type: classic, bind: [ { exchange: results } ] } }\n");
    vhost.publish_raw("work", &[with_id("a")]);
    let counts = worked(&vhost, &flags, &handler);
    assert_eq!(
        (&counts["acked"], &counts["deduplicated"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        handler.lines("done"),
        ["a", "a"],
        "done, not given, and done again"
    );
    vhost.wait_for_ready("out", 1);
}

#[test]
fn printed_messages_are_told_apart_too() {
    let vhost = vhost(&["a", "b", "a", "a", "c", "b"]);
    let store = store();
    let ran = vhost
        .mq([
            "consume",
            "work",
            "--print",
            "--until-empty",
            "--prefetch",
            "100",
        ])
        .args(["--dedupe", "message-id", "--dedupe-store", &path(&store)])
        .run()
        .code(0)
        .says(&["3 acked", "3 done before"]);
    assert_eq!(ran.stdout, "x\nx\nx\n");
}

#[test]
fn after_its_time_to_live_it_is_worked_again() {
    let vhost = vhost(&["a"]);
    let handler = Script::new(NOTE);
    let store = store();
    let store = path(&store);
    let flags = [
        "--dedupe",
        "message-id",
        "--dedupe-ttl",
        "1s",
        "--dedupe-store",
        &store,
    ];
    assert_eq!(worked(&vhost, &flags, &handler)["acked"], 1);
    wait_until("the key to be forgotten", || {
        vhost.publish_raw("work", &[with_id("a")]);
        worked(&vhost, &flags, &handler)["acked"] == 1
    });
}

#[test]
fn each_queue_has_a_file_of_its_own_unless_one_is_named() {
    let vhost = vhost(&["a", "a"]);
    let handler = Script::new(NOTE);
    let state = tempfile::tempdir().unwrap();
    let flags = ["--until-empty", "--dedupe", "message-id"];
    consume(&vhost, &flags, &handler)
        .env("XDG_STATE_HOME", state.path())
        .run()
        .code(0)
        .shows(&["1 acked", "1 done before"]);
    let files: Vec<_> = std::fs::read_dir(state.path().join("mq"))
        .unwrap()
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
}

#[test]
fn a_store_that_cannot_be_used_is_told_before_a_message_is_taken() {
    let vhost = vhost(&["a"]);
    let handler = Script::new(NOTE);
    let foreign = TextFile::new("foreign", &"this is no store\n".repeat(1000));
    let server = Redis::start("right");
    let mut gone = Redis::start("");
    gone.stop();
    for (store, code, says) in [
        ("no/such/folder/x.redb", 74, "no/such/folder/x.redb"),
        (foreign.path().as_str(), 65, "is no dedupe store"),
        ("sqlite://x", 78, "none that mq knows"),
        (server.url(":wrong@").as_str(), 77, "127.0.0.1"),
        (server.url("").as_str(), 77, "127.0.0.1"),
        (gone.url("").as_str(), 69, "127.0.0.1"),
    ] {
        let ran = consume(
            &vhost,
            &["--dedupe", "message-id", "--dedupe-store", store],
            &handler,
        )
        .run()
        .code(code)
        .says(&[says, "help:"]);
        assert!(!ran.stderr.contains("wrong"), "{}", ran.stderr);
    }
    consume(&vhost, &["--dedupe", "id"], &handler)
        .run()
        .code(64);
    consume(&vhost, &["--dedupe-store", "x"], &handler)
        .run()
        .code(64);
    assert_eq!(vhost.ready("work"), 1);
    assert!(handler.lines("done").is_empty());
}

#[test]
fn one_file_serves_one_worker() {
    let vhost = vhost(&["a"]);
    let handler = Script::new(&format!(
        "{NOTE}; while [ ! -e $(dirname $0)/go ]; do sleep 0.05; done"
    ));
    let store = store();
    let flags = [
        "--until-empty",
        "--dedupe",
        "message-id",
        "--dedupe-store",
        &path(&store),
    ];
    let first = consume(&vhost, &flags, &handler).spawn();
    wait_until("the first to work", || handler.lines("done").len() == 1);
    consume(&vhost, &flags, &handler)
        .run()
        .code(69)
        .says(&["is in use by another process", "redis://"]);
    std::fs::write(handler.file("go"), "").unwrap();
    first.wait().code(0).shows(&["1 acked"]);
}

#[test]
fn workers_that_share_a_server_work_each_message_once() {
    let ids: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let both: Vec<&str> = ids
        .iter()
        .flat_map(|id| [id.as_str(), id.as_str()])
        .collect();
    let vhost = vhost(&both);
    let server = Redis::start("secret");
    let handler = Script::new(NOTE);
    let url = server.url(":secret@");
    let flags = [
        "--until-empty",
        "--prefetch",
        "16",
        "--jobs",
        "2",
        "-o",
        "json",
        "--dedupe",
        "message-id",
    ];
    let workers: Vec<_> = (0..3)
        .map(|_| {
            consume(&vhost, &flags, &handler)
                .env("MQ_DEDUPE_STORE", &url)
                .spawn()
        })
        .collect();
    let counts: Vec<Json> = (workers.into_iter())
        .map(|worker| worker.wait().code(0).json())
        .collect();
    let sum = |name: &str| -> u64 {
        counts
            .iter()
            .map(|count| count[name].as_u64().unwrap())
            .sum()
    };
    assert_eq!(
        (sum("acked"), sum("deduplicated")),
        (200, 200),
        "{counts:?}"
    );
    let mut done = handler.lines("done");
    done.sort_unstable();
    done.dedup();
    assert_eq!((done.len(), handler.lines("done").len()), (200, 200));
}

#[test]
fn a_server_that_comes_back_is_waited_for() {
    let vhost = vhost(&["a", "b", "c"]);
    let mut server = Redis::start("");
    let handler = Script::new(&format!(
        "{NOTE}; while [ ! -e $(dirname $0)/$MQ_MESSAGE_ID ]; do sleep 0.05; done"
    ));
    let url = server.url("");
    let flags = [
        "--until-empty",
        "-o",
        "json",
        "--dedupe",
        "message-id",
        "--dedupe-store",
        &url,
    ];
    let mut worker = consume(&vhost, &flags, &handler).spawn();
    wait_until("the first to be in work", || {
        handler.lines("done").len() == 1
    });
    server.stop();
    std::fs::write(handler.file("a"), "").unwrap();
    worker.wait_for_stderr("the dedupe store does not answer");
    assert_eq!(
        handler.lines("done").len(),
        1,
        "nothing is begun without the store"
    );
    server.start_again();
    for id in ["b", "c"] {
        std::fs::write(handler.file(id), "").unwrap();
    }
    let counts = worker.wait().code(0).json();
    assert_eq!(counts["acked"], 3, "{counts}");
    assert_eq!(handler.lines("done"), ["a", "b", "c"]);
}

#[test]
fn a_server_that_stays_away_stops_the_worker_and_loses_nothing() {
    let vhost = vhost(&["a", "b"]);
    let mut server = Redis::start("");
    let handler = Script::new(&format!(
        "{NOTE}; while [ ! -e $(dirname $0)/go ]; do sleep 0.05; done"
    ));
    let url = server.url("");
    let flags = [
        "--reconnect-for",
        "1s",
        "--dedupe",
        "message-id",
        "--dedupe-store",
        &url,
    ];
    let worker = consume(&vhost, &flags, &handler).spawn();
    wait_until("the first to be in work", || {
        handler.lines("done").len() == 1
    });
    server.stop();
    std::fs::write(handler.file("go"), "").unwrap();
    worker.wait().code(69).says(&["dedupe store", "127.0.0.1"]);
    // `a` was done and is acked: given back it would surely be done twice.
    vhost.wait_for_ready("work", 1);
    assert_eq!(handler.lines("done"), ["a"]);
}

#[test]
fn the_claims_of_a_killed_worker_end_by_themselves() {
    let vhost = vhost(&["a"]);
    let server = Redis::start("");
    let url = server.url("");
    let handler = Script::new(&format!("{NOTE}; [ -e $(dirname $0)/go ] || sleep 100"));
    let flags = [
        "--until-empty",
        "--dedupe",
        "message-id",
        "--dedupe-store",
        &url,
    ];
    let worker = consume(&vhost, &flags, &handler).spawn();
    wait_until("it to be in work", || handler.lines("done").len() == 1);
    worker.signal(Signal::KILL);
    std::fs::write(handler.file("go"), "").unwrap();
    consume(&vhost, &flags, &handler)
        .run()
        .code(0)
        .shows(&["1 acked", ", 0 given back"]);
    assert_eq!(handler.lines("done"), ["a", "a"]);
    drop(worker);
}

#[test]
fn a_message_whose_ack_was_cut_off_is_only_acked_when_it_comes_again() {
    let vhost = vhost(&["a"]);
    let proxy = crate::proxy::Proxy::to(vhost.address());
    let handler = Script::new(&format!(
        "{NOTE}; while [ ! -e $(dirname $0)/go ]; do sleep 0.05; done"
    ));
    let store = store();
    let url = vhost.url_at("guest", "guest", &proxy.address);
    let flags = [
        "--until-empty",
        "-o",
        "json",
        "--url",
        &url,
        "--dedupe",
        "message-id",
        "--dedupe-store",
        &path(&store),
    ];
    let worker = consume(&vhost, &flags, &handler).spawn();
    wait_until("it to be in work", || handler.lines("done").len() == 1);
    proxy.cut();
    std::fs::write(handler.file("go"), "").unwrap();
    let counts = worker.wait().code(0).json();
    assert_eq!(handler.lines("done"), ["a"], "{counts}");
    assert_eq!(counts["deduplicated"], 1, "{counts}");
}
