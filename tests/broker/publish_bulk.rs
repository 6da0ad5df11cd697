//! Publishing many messages: lines, files, one again and again; what became of
//! each is told.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "files that are written and read back"
)]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::Value as Json;

use crate::dlq_export::{Folder, lines};
use crate::vhost::Vhost;

fn with_queue() -> Vhost {
    let vhost = Vhost::new();
    vhost.dead_letter_queue("q", "quorum");
    vhost
}

/// What is in the queue, as lines of JSON; it is empty then.
fn taken(vhost: &Vhost) -> Vec<Json> {
    let folder = Folder::new();
    let file = folder.path("f");
    vhost
        .mq([
            "dlq",
            "export",
            "q",
            "--remove",
            "--to",
            file.to_str().unwrap(),
        ])
        .run()
        .code(0);
    lines(&file)
}

fn texts<'j>(lines: &'j [Json], key: &str) -> Vec<&'j str> {
    let pointer = format!("/{key}");
    lines
        .iter()
        .map(|line| line.pointer(&pointer).and_then(Json::as_str).unwrap_or("-"))
        .collect()
}

#[test]
fn each_line_is_a_body_of_its_own() {
    let vhost = with_queue();
    vhost
        .mq([
            "publish",
            "-q",
            "q",
            "--lines",
            "-",
            "-H",
            "a={{seq}}",
            "--content-type",
            "text/plain",
        ])
        .stdin("one\r\n\n{{seq}}\nlast")
        .run()
        .code(0)
        .shows(&["routed 4 of 4 messages of standard input"]);
    let found = taken(&vhost);
    assert_eq!(texts(&found, "body"), ["one", "", "{{seq}}", "last"]);
    assert_eq!(texts(&found, "properties/headers/a"), ["{{seq}}"; 4]);
    assert_eq!(texts(&found, "properties/content_type"), ["text/plain"; 4]);
}

#[test]
fn templates_are_filled_for_each_message() {
    let vhost = with_queue();
    let template = [
        "publish",
        "-e",
        "",
        "-k",
        "q",
        "--template",
        "-H",
        "n={{seq}}",
        "--message-id",
        "{{uuid}}",
        "--correlation-id",
        "{{uuid}}",
    ];
    vhost
        .mq(template)
        .args(["--repeat", "300", "{\"id\":{{seq}},\"at\":\"{{now}}\"}"])
        .run()
        .code(0)
        .shows(&["routed 300 of 300 messages of the command line"]);
    let found = taken(&vhost);
    let numbers: Vec<String> = (1..=300).map(|n| n.to_string()).collect();
    assert_eq!(texts(&found, "properties/headers/n"), numbers);
    let ids = texts(&found, "properties/message_id");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 300);
    // All places of one message get the same.
    assert_eq!(ids, texts(&found, "properties/correlation_id"));
    for (number, body) in (1..).zip(texts(&found, "body")) {
        let body: Json = serde_json::from_str(body).unwrap();
        assert_eq!(body.get("id"), Some(&number.into()));
        let at = body.get("at").and_then(Json::as_str).unwrap();
        assert!(at.starts_with("20") && at.ends_with('Z'), "{at}");
    }
    vhost
        .mq(template)
        .args(["--repeat", "3", "{{nothing}}"])
        .run()
        .code(64)
        .says(&[
            "asks for 'nothing', which is not known",
            "seq, uuid, now, file and env.NAME",
        ]);
    assert!(taken(&vhost).is_empty());
}

#[test]
fn each_file_of_a_folder_is_a_body_byte_for_byte() {
    let vhost = with_queue();
    let folder = Folder::new();
    for (name, bytes) in [
        ("b.bin", b"\xff\0\xfe".as_slice()),
        ("a.txt", b"a\r\n"),
        (".hidden", b"no"),
    ] {
        std::fs::write(folder.path(name), bytes).unwrap();
    }
    std::fs::create_dir(folder.path("sub")).unwrap();
    let path = folder.path(".");
    vhost
        .mq([
            "publish",
            "-q",
            "q",
            "--files",
            path.to_str().unwrap(),
            "-o",
            "json",
        ])
        .run()
        .code(0);
    assert_eq!(texts(&taken(&vhost), "body"), ["a\r\n", "/wD+"]);
    vhost
        .mq(["publish", "-q", "q", "--files", "/no/such/folder"])
        .run()
        .code(66)
        .says(&["the folder /no/such/folder does not exist"]);
}

#[test]
fn every_message_has_a_receipt() {
    let vhost = with_queue();
    let folder = Folder::new();
    let results = folder.path("results");
    let path = results.to_str().unwrap();
    let text: String = (1..=200)
        .map(|n| {
            let key = if n % 50 == 0 { "nobody" } else { "q" };
            format!("{{\"routing_key\":\"{key}\",\"body\":\"{n}\",\"properties\":{{\"message_id\":\"m{n}\"}}}}\n")
        })
        .collect();
    let publish = || {
        vhost
            .mq(["publish", "--jsonl", "-", "--results", path])
            .stdin(&*text)
    };
    publish()
        .run()
        .code(3)
        .shows(&["routed 196 of 200 messages"])
        .says(&["lines 50, 100, 150, 200: reached no queue"]);
    let found = lines(&results);
    assert_eq!(found.len(), 200);
    for (n, line) in (1..).zip(&found) {
        let expected = if n % 50 == 0 { "unroutable" } else { "routed" };
        assert_eq!(line.get("receipt"), Some(&expected.into()), "{line}");
        assert_eq!(line.get("number"), Some(&n.into()), "{line}");
        assert_eq!(
            line.get("message_id"),
            Some(&format!("m{n}").into()),
            "{line}"
        );
    }
    // What is there is never written over.
    publish().run().code(64).says(&["is there already"]);
    assert_eq!(taken(&vhost).len(), 196);
    vhost
        .mq([
            "publish",
            "--jsonl",
            "-",
            "--results",
            "-",
            "--on-unroutable",
            "stop",
            "--in-flight",
            "1",
        ])
        .stdin(&*text)
        .run()
        .code(3)
        .says(&[
            "stopped at the first that reached no queue",
            "line 50: reached no queue",
        ]);
    let sent = taken(&vhost).len();
    assert!((49..55).contains(&sent), "{sent}");
}

#[test]
fn results_that_cannot_be_written_end_it_and_are_told() {
    let vhost = with_queue();
    let link = Folder::new();
    let gone = link.path("no/such/folder");
    vhost
        .mq([
            "publish",
            "-q",
            "q",
            "--repeat",
            "2",
            "x",
            "--results",
            gone.to_str().unwrap(),
        ])
        .run()
        .code(74);
    assert!(
        taken(&vhost).is_empty(),
        "nothing is sent before its receipt has a place"
    );
}

#[test]
fn a_receipt_of_a_slow_source_does_not_wait_for_the_next_message() {
    let vhost = with_queue();
    let mut child = Command::new(env!("CARGO_BIN_EXE_mq"))
        .args(["publish", "-q", "q", "--lines", "-", "--results", "-"])
        .env("MQ_URL", vhost.url())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for n in 1..=3 {
        writeln!(input, "body {n}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let line: Json = serde_json::from_str(&line).unwrap();
        assert_eq!(line.get("number"), Some(&n.into()));
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_rate_is_kept_to() {
    let vhost = with_queue();
    let start = std::time::Instant::now();
    vhost
        .mq(["publish", "-q", "q", "--repeat", "60", "--rate", "40", "x"])
        .run()
        .code(0);
    assert!(start.elapsed().as_millis() >= 1400, "{:?}", start.elapsed());
    assert_eq!(taken(&vhost).len(), 60);
}

#[test]
fn a_dry_run_shows_what_would_be_sent_and_asks_no_broker() {
    let vhost = with_queue();
    let shown = vhost
        .mq([
            "publish",
            "-q",
            "q",
            "--dry-run",
            "--repeat",
            "2",
            "--template",
            "n {{seq}}",
            "-H",
            "a=b",
            "--expiration",
            "1m",
            "--url",
            "amqp://127.0.0.1:1",
        ])
        .run()
        .code(0)
        .stdout;
    let found: Vec<Json> = shown
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(texts(&found, "body"), ["n 1", "n 2"]);
    assert_eq!(texts(&found, "properties/expiration"), ["60000"; 2]);
    // It is what --jsonl reads.
    vhost
        .mq(["publish", "--jsonl", "-"])
        .stdin(&*shown)
        .run()
        .code(0);
    assert_eq!(texts(&taken(&vhost), "properties/headers/a"), ["b"; 2]);
}
