//! Publishing many messages: lines, files, one again and again; what became of
//! each is told.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "files that are written and read back; kills after a time"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::dlq_export::{Folder, lines};
use crate::vhost::Vhost;

pub(crate) fn with_queue() -> Vhost {
    let vhost = Vhost::new();
    vhost.dead_letter_queue("q", "quorum");
    vhost
}

/// What is in the queue, as lines of JSON; it is empty then.
pub(crate) fn taken(vhost: &Vhost) -> Vec<Json> {
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
    let mut text = String::new();
    for n in 1..=200 {
        let key = if n % 50 == 0 { "nobody" } else { "q" };
        text += &json!({"routing_key": key, "body": n.to_string(), "properties": {"message_id": format!("m{n}")}}).to_string();
        text.push('\n');
    }
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
    publish()
        .run()
        .code(64)
        .says(&["is there already", "name another file for --results"]);
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
    let start = Instant::now();
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

/// Killed at any moment, run again until it is through: every line arrives, those
/// that arrive twice have the same id, and none has another's.
#[test]
fn a_killed_run_goes_on_where_it_was() {
    const LINES: usize = 4000;
    let vhost = with_queue();
    let folder = Folder::new();
    let input = folder.path("input");
    let text: String = (0..LINES).fold(String::new(), |text, n| text + &format!("body {n}\n"));
    std::fs::write(&input, text).unwrap();
    let state = folder.path("state");
    let run = || {
        vhost.mq([
            "publish",
            "-q",
            "q",
            "--generate-message-id",
            "--in-flight",
            "20",
            "--lines",
            input.to_str().unwrap(),
            "--resume",
            state.to_str().unwrap(),
        ])
    };
    let mut pause = 20;
    let mut runs = 0;
    loop {
        runs += 1;
        assert!(runs < 60, "it never ends");
        let running = run().spawn();
        std::thread::sleep(Duration::from_millis(pause));
        pause += 15;
        if runs % 2 == 0 {
            // Not INT, which is ignored in all that a script starts in the background.
            running.signal(rustix::process::Signal::TERM);
        } else {
            running.signal(rustix::process::Signal::KILL);
        }
        if running.wait().code == 0 {
            break;
        }
    }
    assert!(runs > 4, "{runs}");
    run().run().code(0).shows(&["routed 0 of 0 messages"]);
    let found = taken(&vhost);
    let mut ids: BTreeMap<&str, &str> = BTreeMap::new();
    for (body, id) in texts(&found, "body")
        .into_iter()
        .zip(texts(&found, "properties/message_id"))
    {
        let known = ids.entry(body).or_insert(id);
        assert_eq!(*known, id, "{body} was sent again under another id");
    }
    assert_eq!(ids.len(), LINES);
    assert_eq!(ids.values().collect::<BTreeSet<_>>().len(), LINES);

    // More lines are more messages; another beginning is another source.
    let add = |text: &str| {
        let old = std::fs::read_to_string(&input).unwrap();
        std::fs::write(&input, old + text).unwrap();
    };
    add("one more\n");
    run().run().code(0).shows(&["routed 1 of 1 messages"]);
    std::fs::write(&input, "something else\n").unwrap();
    run()
        .run()
        .code(65)
        .says(&["the source has changed", ":4001: "]);
    assert_eq!(texts(&taken(&vhost), "body"), ["one more"]);
}

#[test]
fn a_refused_message_is_not_overtaken_by_a_run_that_goes_on() {
    let vhost = Vhost::new();
    vhost.apply("queues: { q: { type: classic, max_length: 3, overflow: reject-publish } }\n");
    let folder = Folder::new();
    let state = folder.path("state");
    let input: String = (1..=10).fold(String::new(), |text, n| text + &format!("{n}\n"));
    let run = || {
        vhost
            .mq([
                "publish",
                "-q",
                "q",
                "--in-flight",
                "1",
                "--lines",
                "-",
                "--resume",
                state.to_str().unwrap(),
            ])
            .stdin(&*input)
    };
    run().run().code(75).says(&["refused by the broker"]);
    assert_eq!(texts(&taken(&vhost), "body"), ["1", "2", "3"]);
    // There is room again for as many.
    run().run().code(75);
    assert_eq!(texts(&taken(&vhost), "body"), ["4", "5", "6"]);
    run().run().code(75);
    taken(&vhost);
    run().run().code(0).shows(&["routed 1 of 1 messages"]);
    assert_eq!(texts(&taken(&vhost), "body"), ["10"]);
}

#[test]
fn nothing_is_sent_from_the_first_body_on_that_does_not_fit_its_schema() {
    let vhost = with_queue();
    let folder = Folder::new();
    let schema = folder.path("order.json");
    std::fs::write(&schema, r#"{"required": ["id"]}"#).unwrap();
    let publish = |more: &[&str]| {
        vhost
            .mq(["publish", "-q", "q", "--schema", schema.to_str().unwrap()])
            .args([
                "--ce-type",
                "t",
                "--ce-source",
                "/s",
                "--guess-content-type",
            ])
            .args(["--traceparent", "--in-flight", "1"])
            .args(more)
    };
    let mut lines: Vec<String> = (1..=200).map(|n| format!("{{\"id\":{n}}}")).collect();
    lines[150] = "{}".to_owned();
    publish(&["--lines", "-"])
        .stdin(lines.join("\n"))
        .run()
        .code(65)
        .shows(&["routed 150 of 150 messages"])
        .says(&["standard input:151: the body does not fit schema order.json: /: \"id\" is missing (required)"]);
    let found = taken(&vhost);
    assert_eq!(found.len(), 150);
    for line in &found {
        let text = |pointer: &str| line.pointer(pointer).and_then(Json::as_str).unwrap();
        let properties = "/properties";
        let header = |name: &str| text(&format!("{properties}/headers/{name}"));
        assert_eq!(text("/properties/content_type"), "application/json");
        assert_eq!(header("cloudEvents:id"), text("/properties/message_id"));
        assert_eq!(header("cloudEvents:type"), "t");
        assert_eq!(header("traceparent").len(), 55);
    }
    publish(&["{}"])
        .run()
        .code(65)
        .says(&["is missing (required)"]);
    publish(&["{\"id\":1}"]).run().code(0);
    let found = taken(&vhost);
    assert_eq!(found.len(), 1);
    assert!(found[0].pointer("/properties/message_id").is_some());
}
