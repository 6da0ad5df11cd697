//! Exporting a dead-letter queue: every message whole, none lost, and back again
//! as it was.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers outside #[test] functions, and files that are read back"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use lapin::options::BasicGetOptions;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, ConnectionProperties};
use rustix::process::Signal;
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::dead_letters::{Sent, every_header, every_property, texts};
use crate::support::{Mq, wait_until};
use crate::vhost::{Vhost, block_on};

pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

pub(crate) fn lines(path: &Path) -> Vec<Json> {
    parsed(&std::fs::read_to_string(path).unwrap())
}

fn parsed(text: &str) -> Vec<Json> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

pub(crate) fn bodies(lines: &[Json]) -> Vec<String> {
    lines
        .iter()
        .map(|line| line["body"].as_str().unwrap().to_owned())
        .collect()
}

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

fn export(vhost: &Vhost, queue: &str, more: &[&str]) -> Mq {
    vhost.mq(["dlq", "export", queue]).args(more)
}

fn as_arg(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A message as a client that knows nothing of ours sees it.
#[derive(Debug, PartialEq)]
struct Seen {
    exchange: String,
    key: String,
    properties: BasicProperties,
    body: Vec<u8>,
}

/// Takes everything out of a queue. What a quorum queue says about the delivery
/// is not the message's.
fn drain(vhost: &Vhost, queue: &str) -> Vec<Seen> {
    block_on(async {
        let properties = ConnectionProperties::default();
        let connection = lapin::Connection::connect(&vhost.url(), properties)
            .await
            .unwrap();
        let channel = connection.create_channel().await.unwrap();
        let mut seen = Vec::new();
        let no_ack = BasicGetOptions { no_ack: true };
        while let Some(got) = channel.basic_get(queue.into(), no_ack).await.unwrap() {
            let delivery = got.delivery;
            let mut properties = delivery.properties;
            if let Some(headers) = properties.headers() {
                let mut kept = FieldTable::default();
                for (name, value) in headers.inner() {
                    if !["x-delivery-count", "x-acquired-count"].contains(&name.as_str()) {
                        kept.insert(name.clone(), value.clone());
                    }
                }
                properties = if kept.inner().is_empty() {
                    without_headers(&properties)
                } else {
                    properties.with_headers(kept)
                };
            }
            seen.push(Seen {
                exchange: delivery.exchange.to_string(),
                key: delivery.routing_key.to_string(),
                properties,
                body: delivery.data,
            });
        }
        connection.close(200, "bye".into()).await.unwrap();
        seen
    })
}

/// Headers that are there and empty are as good as none.
fn without_headers(properties: &BasicProperties) -> BasicProperties {
    let mut without = BasicProperties::default();
    if let Some(mode) = properties.delivery_mode() {
        without = without.with_delivery_mode(*mode);
    }
    if let Some(id) = properties.message_id() {
        without = without.with_message_id(id.clone());
    }
    if let Some(id) = properties.correlation_id() {
        without = without.with_correlation_id(id.clone());
    }
    without
}

fn with_header(name: &str, value: AMQPValue) -> BasicProperties {
    let mut headers = every_header();
    headers.insert(name.into(), value);
    BasicProperties::default().with_headers(headers)
}

/// Messages of every kind, to `queue` by its name and by a key of 255 bytes.
fn of_every_kind(vhost: &Vhost, queue: &str) -> Vec<Sent> {
    let user = vhost.endpoint().user;
    let key = "k".repeat(255);
    let to = |body: &[u8]| Sent::to_queue(queue, body);
    let mut large = vec![0xfe_u8; 10 * 1024 * 1024];
    large.extend_from_slice(b"the end");
    vec![
        to(b"").with(every_property()),
        to(b"\x00\xff\xfebinary").with(
            every_property()
                .with_expiration("86400000".into())
                .with_user_id(user.as_str().into()),
        ),
        to("{\"a\": \"\u{0}\\u0000 é \u{1f407}\u{202e}\u{9b}31m \u{7f} \r\n\"}".as_bytes()),
        to(b"\n\n"),
        to(b"stale").with(with_header("x-death", AMQPValue::LongLongInt(7))),
        to(b"texts").with(with_header("list", texts(&["a", "", "é"]))),
        to(b"mode").with(BasicProperties::default().with_delivery_mode(1)),
        to(b"zero").with(with_header("zero", AMQPValue::Double(-0.0))),
        to(b"names").with(
            BasicProperties::default()
                .with_message_id("x".repeat(255).as_str().into())
                .with_correlation_id("".into()),
        ),
        Sent {
            exchange: "by key".to_owned(),
            key,
            properties: every_property(),
            body: b"by key".to_vec(),
        },
        to(&large).with(every_property()),
    ]
}

fn with_queue(vhost: &Vhost, kind: &str) {
    vhost.dead_letter_queue("dead", kind);
    vhost.exchange("by key", "direct");
    vhost.bind("by key", "dead", &"k".repeat(255));
}

#[test]
fn dump_and_restore_is_the_identity() {
    for kind in ["classic", "quorum"] {
        let vhost = Vhost::new();
        with_queue(&vhost, kind);
        let sent = of_every_kind(&vhost, "dead");
        let count = u32::try_from(sent.len()).unwrap();
        vhost.send(sent);
        let mut before = drain(&vhost, "dead");
        assert_eq!(before.len(), usize::try_from(count).unwrap());
        vhost.send(of_every_kind(&vhost, "dead"));

        let folder = Folder::new();
        let file = folder.path("dead letters.jsonl");
        export(&vhost, "dead", &["--remove", "--to", as_arg(&file)])
            .run()
            .code(0)
            .says(&[
                &format!("exported {count} messages"),
                &format!("{count} removed"),
            ]);
        assert_eq!(vhost.ready("dead"), 0);
        let mut read = lines(&file);
        assert_eq!(
            read[0]["source"],
            json!({"vhost": vhost.name, "queue": "dead"}),
            "{kind}"
        );

        vhost
            .mq(["publish", "--jsonl", as_arg(&file)])
            .run()
            .code(0)
            .shows(&[&format!("routed {count} of {count} messages")]);
        // Priorities have a say in the order of quorum queues.
        let mut again = parsed(&export(&vhost, "dead", &[]).run().code(0).stdout);
        for lines in [&mut read, &mut again] {
            lines.sort_by_key(|line| line["body"].as_str().map(str::to_owned));
        }
        for (read, again) in read.iter().zip(&again) {
            assert!(read == again, "{kind}: {read:.2000}\n{again:.2000}");
        }
        let mut after = drain(&vhost, "dead");
        before.sort_by(|a, b| a.body.cmp(&b.body));
        after.sort_by(|a, b| a.body.cmp(&b.body));
        for (before, after) in before.iter().zip(&after) {
            assert!(before == after, "{kind}: {before:.2000?}\n{after:.2000?}");
        }
        assert_eq!(before.len(), after.len());
    }
}

#[test]
fn an_export_takes_nothing_and_keeps_the_order() {
    for kind in ["classic", "quorum"] {
        let vhost = Vhost::new();
        vhost.dead_letters("work", "dead", kind, 30);
        for _ in 0..3 {
            let ran = export(&vhost, "dead", &[])
                .run()
                .code(0)
                .says(&["exported 30 messages of queue 'dead' to standard output"]);
            assert_eq!(bodies(&parsed(&ran.stdout)), numbers(30), "{kind}");
            vhost.wait_for_ready("dead", 30);
        }
        // What a quorum queue got back comes before all others and behind what it
        // got back before: only the whole keeps its order.
        let limit = if kind == "classic" { "7" } else { "30" };
        let some = export(&vhost, "dead", &["--limit", limit]).run().code(0);
        assert_eq!(
            bodies(&parsed(&some.stdout)),
            numbers(limit.parse().unwrap()),
            "{kind}"
        );
        vhost.wait_for_ready("dead", 30);
        let left: Vec<String> = drain(&vhost, "dead")
            .into_iter()
            .map(|seen| String::from_utf8(seen.body).unwrap())
            .collect();
        assert_eq!(left, numbers(30), "{kind}");
    }
}

/// So many that they come to several consumers, one after the other.
#[test]
fn thousands_keep_their_order_too() {
    for kind in ["classic", "quorum"] {
        let vhost = Vhost::new();
        vhost.dead_letters("work", "dead", kind, 3500);
        for _ in 0..2 {
            let ran = export(&vhost, "dead", &[]).run().code(0);
            assert!(bodies(&parsed(&ran.stdout)) == numbers(3500), "{kind}");
            vhost.wait_for_ready("dead", 3500);
        }
    }
}

#[test]
fn only_what_the_filter_says_yes_to_leaves_the_queue() {
    for kind in ["classic", "quorum"] {
        let vhost = Vhost::new();
        vhost.dead_letters("work", "dead", kind, 30);
        let folder = Folder::new();
        let file = folder.path("odd.jsonl");
        let odd = ".reason == \"expired\" and (.body | tonumber % 2 == 1)";
        export(
            &vhost,
            "dead",
            &["--remove", "--filter", odd, "--to", as_arg(&file)],
        )
        .run()
        .code(0)
        .says(&["exported 15 messages", "15 removed; 15 left by the filter"]);
        vhost.wait_for_ready("dead", 15);
        let out = bodies(&lines(&file));
        assert!(out.iter().all(|body| body.parse::<u32>().unwrap() % 2 == 1));
        export(
            &vhost,
            "dead",
            &[
                "--append",
                "--filter",
                ".body == \"4\"",
                "--to",
                as_arg(&file),
            ],
        )
        .run()
        .code(0);
        assert_eq!(lines(&file).len(), 16);
        let left = export(&vhost, "dead", &["--quiet"]).run().code(0);
        let even: Vec<String> = (0..30).step_by(2).map(|n| n.to_string()).collect();
        assert_eq!(bodies(&parsed(&left.stdout)), even, "{kind}");
        // With a limit, it is what leaves that counts.
        let first = folder.path("first.jsonl");
        export(
            &vhost,
            "dead",
            &[
                "--remove",
                "--limit",
                "2",
                "--filter",
                ".body | tonumber > 9",
                "--to",
                as_arg(&first),
            ],
        )
        .run()
        .code(0);
        assert_eq!(bodies(&lines(&first)), ["10", "12"]);
        vhost.wait_for_ready("dead", 13);
    }
}

#[test]
fn a_filter_that_fails_stops_and_what_was_fine_is_safe() {
    let vhost = Vhost::new();
    vhost.dead_letter_queue("dead", "classic");
    for body in ["{\"n\":1}", "no json", "{\"n\":2}"] {
        vhost.publish("dead", body);
    }
    let folder = Folder::new();
    let file = folder.path("some.jsonl");
    export(
        &vhost,
        "dead",
        &[
            "--remove",
            "--filter",
            ".body | fromjson | .n > 0",
            "--to",
            as_arg(&file),
        ],
    )
    .run()
    .code(65)
    .says(&[
        "--filter '.body | fromjson",
        "not JSON",
        "fromjson?",
        "1 removed",
    ]);
    assert_eq!(bodies(&lines(&file)), ["{\"n\":1}"]);
    vhost.wait_for_ready("dead", 2);
    export(&vhost, "dead", &["--filter", ".body |"])
        .run()
        .code(64)
        .says(&["--filter '.body |' is no jq program", "expected term"]);
}

#[test]
fn what_is_there_is_not_written_over() {
    let vhost = Vhost::new();
    vhost.dead_letter_queue("dead", "classic");
    vhost.publish("dead", "x");
    let folder = Folder::new();
    let file = folder.path("kept.jsonl");
    std::fs::write(&file, "mine").unwrap();
    for remove in [&["--remove"][..], &[]] {
        export(&vhost, "dead", &["--to", as_arg(&file)])
            .args(remove)
            .run()
            .code(64)
            .says(&["kept.jsonl is there already", "--append"]);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    for (to, code, says) in [
        ("-", 64, "--remove needs a file"),
        ("/dev/full", 64, "is there already"),
        ("/dev/stdout", 64, "is there already"),
        ("/no/such/folder/f", 74, "cannot open"),
    ] {
        export(&vhost, "dead", &["--remove", "--to", to])
            .run()
            .code(code)
            .says(&[says]);
    }
    for to in ["/dev/full", "/dev/stdout", "/dev/null"] {
        export(&vhost, "dead", &["--remove", "--append", "--to", to])
            .run()
            .code(64)
            .says(&["no file on a disk"]);
    }
    export(&vhost, "nowhere", &[])
        .run()
        .code(65)
        .says(&["queue 'nowhere'"]);
    assert_eq!(vhost.ready("dead"), 1);
    // Without --remove it is told, and nothing is lost either.
    export(&vhost, "dead", &["--append", "--to", "/dev/full"])
        .run()
        .code(74)
        .says(&["cannot write /dev/full", "No space left"]);
    vhost.wait_for_ready("dead", 1);
}

#[test]
fn names_of_files_may_be_odd() {
    let vhost = Vhost::new();
    vhost.dead_letter_queue("dead", "classic");
    vhost.publish("dead", "x");
    let folder = Folder::new();
    let file = folder.path("-a b'\"\n\u{202e}é%2F.jsonl");
    let ran = export(&vhost, "dead", &["--remove", "--to", as_arg(&file)])
        .run()
        .code(0);
    assert!(!ran.stderr.contains('\u{202e}'), "{}", ran.stderr);
    assert_eq!(bodies(&lines(&file)), ["x"]);
    vhost
        .mq(["publish", "--jsonl", as_arg(&file)])
        .run()
        .code(0);
    assert_eq!(vhost.ready("dead"), 1);
}

/// A limit on the size of files is a full disk that needs no disk.
#[test]
fn a_full_disk_loses_nothing() {
    for kind in ["classic", "quorum"] {
        let vhost = Vhost::new();
        vhost.dead_letters("work", "dead", kind, 3000);
        let folder = Folder::new();
        let file = folder.path("full.jsonl");
        let mut command = Command::new("sh");
        command
            .args(["-c", "trap '' XFSZ; ulimit -f 1600; exec \"$0\" \"$@\""])
            .arg(env!("CARGO_BIN_EXE_mq"))
            .args(["dlq", "export", "dead", "--remove", "--to"])
            .arg(&file)
            .env_clear()
            .env("MQ_URL", vhost.url())
            .env(
                "MQ_MANAGEMENT_URL",
                std::env::var("MQ_MANAGEMENT_URL").unwrap(),
            );
        let ran = command.output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(74), "{said}");
        assert!(said.contains("cannot write"), "{said}");
        let written = bodies(&lines(&file));
        let left = u32::try_from(3000 - written.len()).unwrap();
        assert!(!written.is_empty() && left > 0, "{} written", written.len());
        assert_eq!(written, numbers(written.len()), "{kind}");
        vhost.wait_for_ready("dead", left);
    }
}

#[test]
fn a_signal_ends_it_cleanly_and_a_reader_may_leave() {
    let vhost = Vhost::new();
    vhost.dead_letters("work", "dead", "quorum", 5000);
    let slow = "[range(3000)] | add > 0";
    let folder = Folder::new();
    let file = folder.path("some.jsonl");
    let running = export(
        &vhost,
        "dead",
        &["--remove", "--filter", slow, "--to", as_arg(&file)],
    )
    .spawn();
    wait_until("the first lines", || {
        std::fs::metadata(&file).is_ok_and(|meta| meta.len() > 0)
    });
    running.signal(Signal::INT);
    running.wait().code(3).says(&["stopped by a signal"]);
    let written = bodies(&lines(&file));
    assert_eq!(written, numbers(written.len()));
    vhost.wait_for_ready("dead", u32::try_from(5000 - written.len()).unwrap());

    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "\"$0\" \"$@\" | head -n 1 >/dev/null; exit ${PIPESTATUS:-0}",
        ])
        .arg(env!("CARGO_BIN_EXE_mq"))
        .args(["dlq", "export", "dead"])
        .env("MQ_URL", vhost.url())
        .env(
            "MQ_MANAGEMENT_URL",
            std::env::var("MQ_MANAGEMENT_URL").unwrap(),
        );
    let ran = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
    vhost.wait_for_ready("dead", u32::try_from(5000 - written.len()).unwrap());
}

/// Killed wherever: every message is in the file or in the queue, and what cannot
/// be read of the file is its last line at most.
#[test]
fn killed_in_the_middle_it_has_lost_nothing() {
    let vhost = Vhost::new();
    for (kind, after) in [("classic", 1), ("quorum", 60_000), ("classic", 200_000)] {
        let (origin, dead) = (format!("work {after}"), format!("dead {after}"));
        vhost.dead_letters(&origin, &dead, kind, 3000);
        let folder = Folder::new();
        let file = folder.path("killed.jsonl");
        let running = export(&vhost, &dead, &["--remove", "--to", as_arg(&file)]).spawn();
        wait_until("some of the file", || {
            std::fs::metadata(&file).is_ok_and(|meta| meta.len() >= after)
        });
        running.signal(Signal::KILL);
        running.wait();
        let text = std::fs::read_to_string(&file).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut found = bodies(&parsed(whole));
        wait_until("what was out to be back", || {
            let shown = vhost.get(&["queues", &vhost.name, &dead]);
            shown["messages_unacknowledged"] == 0 && shown["consumers"] == 0
        });
        let seen = drain(&vhost, &dead);
        found.extend(
            seen.into_iter()
                .map(|seen| String::from_utf8(seen.body).unwrap()),
        );
        let mut found: Vec<usize> = found.iter().map(|body| body.parse().unwrap()).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, (0..3000).collect::<Vec<_>>(), "{kind} {after}");
    }
}

#[test]
fn where_a_return_could_lose_messages_nothing_is_taken() {
    let vhost = Vhost::new();
    vhost.queue("counts", "quorum", &json!({"x-delivery-limit": 3}));
    vhost.publish("counts", "x");
    for args in [
        &["dlq", "export", "counts"][..],
        &["dlq", "purge", "counts", "--yes"],
    ] {
        vhost
            .mq(args.iter().copied())
            .run()
            .code(2)
            .says(&["delivery limit 3", "--even-if-it-counts"]);
    }
    let ran = vhost
        .mq(["dlq", "export", "counts", "--even-if-it-counts"])
        .run()
        .code(0);
    assert_eq!(bodies(&parsed(&ran.stdout)), ["x"]);
    vhost.wait_for_ready("counts", 1);
}
