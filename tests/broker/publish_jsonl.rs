//! Publishing a file of messages: in order, and what became of each is told.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "files that are read back"
)]

use std::io::Write as _;
use std::process::{Command, Stdio};

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, ConnectionProperties};
use serde_json::json;

use crate::dlq_export::{Folder, bodies, lines};
use crate::support::{Mq, TextFile};
use crate::vhost::{Vhost, block_on};

fn publish(vhost: &Vhost, text: &str, more: &[&str]) -> Mq {
    vhost.mq(["publish", "--jsonl", "-"]).args(more).stdin(text)
}

fn to_queue(body: &str) -> String {
    json!({"routing_key": "q", "body": body}).to_string() + "\n"
}

fn with_queue(kind: &str) -> Vhost {
    let vhost = Vhost::new();
    vhost.dead_letter_queue("q", kind);
    vhost
}

fn content(vhost: &Vhost) -> Vec<String> {
    let folder = Folder::new();
    let file = folder.path("f");
    let path = file.to_str().unwrap();
    vhost
        .mq(["dlq", "export", "q", "--to", path, "--remove"])
        .run()
        .code(0);
    bodies(&lines(&file))
}

#[test]
fn lines_arrive_in_their_order() {
    for kind in ["classic", "quorum"] {
        let vhost = with_queue(kind);
        let text: String = (0..2000).map(|n| to_queue(&n.to_string())).collect();
        publish(&vhost, &format!("\n{text}\n  \n"), &[])
            .run()
            .code(0)
            .shows(&["routed 2000 of 2000 messages of standard input"]);
        let expected: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
        assert_eq!(content(&vhost), expected);
        // The last line may lack its end.
        publish(&vhost, to_queue("x").trim_end(), &["-o", "json"])
            .run()
            .code(0);
        assert_eq!(content(&vhost), ["x"]);
    }
}

#[test]
fn a_line_that_cannot_be_read_is_named_and_nothing_behind_it_is_sent() {
    let vhost = with_queue("classic");
    let torn = &to_queue("torn")[..20];
    let file = TextFile::new("dead.jsonl", &format!("{}\n{torn}", to_queue("a")));
    vhost
        .mq(["publish", "--jsonl", &file.path()])
        .run()
        .code(65)
        .says(&[
            "dead.jsonl:3: it ends in the middle",
            "before its line is whole and on disk",
        ])
        .shows(&["routed 1 of 1 messages"]);
    assert_eq!(content(&vhost), ["a"]);
    for (line, says) in [
        ("no json", "standard input:2: it is not JSON"),
        (
            "{\"body\":\"x\"}",
            "standard input:2: it names neither an exchange nor a routing key",
        ),
        (
            "{\"routing_key\":\"q\"}",
            "standard input:2: it has no body",
        ),
        (
            r#"{"routing_key":"q","body":"","properties":{"headers":{"h":{"$new":1}}}}"#,
            "standard input:2: headers.h: the type '$new'",
        ),
        (
            r#"{"routing_key":"q","body":"","properties":{"headers":{"h":[{"$double":"NaN"}]}}}"#,
            "standard input:2: the header 'h' holds NaN or infinity",
        ),
        (
            r#"{"exchange":"nope","routing_key":"q","body":""}"#,
            "standard input:2: exchange 'nope' does not exist",
        ),
    ] {
        let text = format!("{}{line}\n{}", to_queue("first"), to_queue("behind"));
        publish(&vhost, &text, &[]).run().code(65).says(&[says]);
        assert_eq!(content(&vhost), ["first"], "{line}");
    }
    vhost
        .mq(["publish", "--jsonl", "/no/such/file"])
        .run()
        .code(66)
        .says(&["/no/such/file does not exist"]);
}

#[test]
fn lines_that_reach_no_queue_are_named() {
    let vhost = with_queue("classic");
    let lost = json!({"routing_key": "nowhere", "body": "lost"}).to_string() + "\n";
    let text = format!("{}{lost}{}{lost}", to_queue("a"), to_queue("b"));
    let ran = publish(&vhost, &text, &["-o", "json"])
        .run()
        .code(3)
        .says(&["lines 2, 4: reached no queue"]);
    assert_eq!(
        ran.json()["unroutable"],
        json!({"count": 2, "first_lines": [2, 4]})
    );
    assert_eq!(content(&vhost), ["a", "b"]);
    publish(&vhost, &lost, &[])
        .run()
        .code(67)
        .says(&["line 1: reached no queue"]);
    // All of them somewhere else.
    publish(&vhost, &text, &["-q", "q"]).run().code(0);
    assert_eq!(content(&vhost), ["a", "lost", "b", "lost"]);
    publish(&vhost, "", &[])
        .run()
        .code(0)
        .shows(&["routed 0 of 0"]);
}

#[test]
fn a_full_queue_refuses_by_line() {
    let vhost = Vhost::new();
    vhost.queue(
        "q",
        "classic",
        &json!({"x-max-length": 2, "x-overflow": "reject-publish"}),
    );
    let text: String = (0..4).map(|n| to_queue(&n.to_string())).collect();
    publish(&vhost, &text, &[])
        .run()
        .code(75)
        .says(&["lines 3, 4: refused"])
        .shows(&["routed 2 of 4"]);
}

#[test]
fn the_user_of_somebody_else_is_not_sent() {
    let vhost = with_queue("classic");
    let theirs = json!({"routing_key": "q", "body": "x", "properties": {"user_id": "somebody"}});
    let text = to_queue("first") + &theirs.to_string();
    publish(&vhost, &text, &[]).run().code(65).says(&[
        "standard input:2: it has the user_id 'somebody'",
        "--drop-user-id",
    ]);
    assert_eq!(content(&vhost), ["first"]);
    publish(&vhost, &text, &["--drop-user-id"])
        .run()
        .code(0)
        .shows(&["1 without the user_id"]);
    assert_eq!(content(&vhost), ["first", "x"]);
}

#[test]
fn what_is_sent_to_one_queue_goes_to_no_other() {
    let vhost = with_queue("classic");
    vhost.dead_letter_queue("copy", "classic");
    let line = json!({"exchange": "gone", "routing_key": "q", "body": "x",
        "properties": {"headers": {"CC": ["copy"]}}});
    publish(&vhost, &line.to_string(), &["-q", "q"])
        .run()
        .code(0)
        .shows(&["CC and BCC renamed"]);
    assert_eq!((vhost.ready("q"), vhost.ready("copy")), (1, 0));
    let own = json!({"routing_key": "q", "body": "x", "properties": {"headers": {"CC": ["copy"]}}});
    publish(&vhost, &own.to_string(), &[]).run().code(0);
    assert_eq!((vhost.ready("q"), vhost.ready("copy")), (2, 1));
}

/// Standard input that stays open holds neither outcomes nor signals up.
#[test]
fn an_open_standard_input_can_be_interrupted() {
    let vhost = with_queue("classic");
    let mut child = Command::new(env!("CARGO_BIN_EXE_mq"))
        .args(["publish", "--jsonl", "-"])
        .env("MQ_URL", vhost.url())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(to_queue("x").as_bytes()).unwrap();
    vhost.wait_for_ready("q", 1);
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&ran.stdout).contains("routed 1 of 1 messages"));
    drop(stdin);
}

/// What is told of NaN is true: no such message can be in a queue.
#[test]
fn brokers_break_off_at_numbers_that_are_none() {
    for (kind, value) in [
        ("classic", AMQPValue::Double(f64::NAN)),
        ("quorum", AMQPValue::Float(f32::INFINITY)),
    ] {
        let vhost = with_queue(kind);
        let mut headers = FieldTable::default();
        headers.insert("h".into(), value);
        let properties = BasicProperties::default().with_headers(headers);
        block_on(async {
            let connection =
                lapin::Connection::connect(&vhost.url(), ConnectionProperties::default())
                    .await
                    .unwrap();
            let channel = connection.create_channel().await.unwrap();
            let confirms = ConfirmSelectOptions::default();
            channel.confirm_select(confirms).await.unwrap();
            let options = BasicPublishOptions::default();
            let sent = channel.basic_publish("".into(), "q".into(), options, b"x", properties);
            let error = sent.await.unwrap().await.unwrap_err();
            assert!(format!("{error:?}").contains("INTERNAL"), "{error:?}");
        });
        assert_eq!(vhost.ready("q"), 0);
    }
}
