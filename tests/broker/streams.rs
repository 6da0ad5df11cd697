//! Reading streams: where to start, what is kept, and what becomes of failures.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};
use rustix::process::Signal;
use serde_json::{Value as Json, json};

use crate::exec_stream::handler;
use crate::proxy::Proxy;
use crate::support::{Mq, Ran, Script, wait_until};
use crate::vhost::Vhost;

const TOPOLOGY: &str = "
queues:
  events: { type: stream }
  aside: { type: classic }
";

/// Writes each offset down when it is done.
const WRITES: &str = "offset=${line#*'\"stream_offset\":'}; offset=${offset%%,*}; echo $offset $body >>$d/seen; say done";

fn vhost(count: usize) -> Vhost {
    let vhost = Vhost::new();
    vhost.apply(TOPOLOGY);
    publish(&vhost, 0..count);
    vhost
}

fn publish(vhost: &Vhost, numbers: std::ops::Range<usize>) {
    let bodies: Vec<String> = numbers.map(|n| n.to_string()).collect();
    vhost.publish_all("events", &bodies);
}

fn read(vhost: &Vhost, flags: &[&str], handler: &Script) -> Mq {
    let mut args: Vec<OsString> = vec!["consume".into(), "events".into()];
    args.extend(flags.iter().map(Into::into));
    args.extend(["-o".into(), "json".into()]);
    args.extend(["--exec-stream".into(), handler.path()]);
    vhost.mq(args)
}

fn print(vhost: &Vhost, flags: &[&str]) -> Ran {
    let args = ["consume", "events", "--print"].iter().chain(flags);
    vhost.mq(args).run()
}

#[expect(clippy::unwrap_used, reason = "a folder of the test's own")]
fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "looks into the file of positions"
)]
fn kept(path: &Path) -> Json {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Each line is `OFFSET BODY`, and they are the same here.
fn seen(handler: &Script) -> Vec<u64> {
    let lines = handler.lines("seen");
    lines
        .iter()
        .filter_map(|line| {
            let (offset, body) = line.split_once(' ')?;
            assert_eq!(offset, body);
            offset.parse().ok()
        })
        .collect()
}

#[test]
fn a_stream_is_read_from_where_one_says() {
    let vhost = vhost(50);
    let bodies = |from: &str| -> Vec<u64> {
        let ran = print(&vhost, &["--from", from, "--until-empty"]).code(0);
        (ran.stdout.lines())
            .map(|line| line.parse().expect("a number"))
            .collect()
    };
    assert_eq!(bodies("first"), (0..50).collect::<Vec<_>>());
    assert_eq!(bodies("20"), (20..50).collect::<Vec<_>>());
    assert_eq!(bodies("50"), [0_u64; 0]);
    assert_eq!(bodies("next"), [0_u64; 0]);
    assert_eq!(bodies("last").last(), Some(&49));
    // All chunks are younger than this; none is younger than that.
    assert_eq!(bodies("2020-01-01T00:00:00Z").len(), 50);
    assert_eq!(bodies("@1577836800").len(), 50);
    assert_eq!(bodies("2099-01-01T00:00:00+01:00"), [0_u64; 0]);
    // At most so many, from the middle of a chunk.
    let ran = print(&vhost, &["--from", "10", "--max-messages", "3"]).code(0);
    assert_eq!(ran.stdout, "10\n11\n12\n");
}

#[test]
fn what_comes_later_is_read_from_next() {
    let vhost = vhost(5);
    let handler = handler(WRITES);
    let mut reader = read(&vhost, &["--prefetch", "10", "--jobs", "1"], &handler).spawn();
    wait_until("it to subscribe", || {
        vhost.get(&["queues", &vhost.name, "events"])["consumers"] == 1
    });
    assert!(reader.is_running());
    publish(&vhost, 5..8);
    wait_until("it to read", || seen(&handler).len() == 3);
    reader.signal(Signal::TERM);
    reader.wait().code(0);
    assert_eq!(seen(&handler), [5, 6, 7]);
}

#[test]
fn only_streams_have_offsets() {
    let vhost = vhost(1);
    for flags in [&["--from", "first"][..], &["--offset-file", "x"]] {
        let args = ["consume", "aside", "--print"].iter().chain(flags);
        vhost.mq(args).run().code(64).says(&["is no stream"]);
    }
    print(&vhost, &["--from", "nowhere"]).code(64);
    print(&vhost, &["--rewind"]).code(64);
    // Without the management API nobody knows; the broker does.
    let ran = (vhost.mq(["consume", "aside", "--print", "--from", "first"]))
        .env("MQ_MANAGEMENT_URL", "http://127.0.0.1:1")
        .run();
    ran.code(64)
        .says(&["x-stream-offset", "only streams have offsets"]);
    let flags = ["--from", "first", "--max-messages", "1"];
    let args = ["consume", "events", "--print"].iter().chain(&flags);
    let ran = (vhost.mq(args))
        .env("MQ_MANAGEMENT_URL", "http://127.0.0.1:1")
        .run()
        .code(0);
    assert_eq!(ran.stdout, "0\n");
}

#[test]
fn an_offset_that_a_publisher_made_up_is_not_believed() {
    let vhost = vhost(0);
    let forged = FieldTable::from(BTreeMap::from([(
        "x-stream-offset".into(),
        AMQPValue::LongLongInt(999),
    )]));
    let messages: Vec<(Vec<u8>, BasicProperties)> = (0..3)
        .map(|n: u8| {
            let properties = BasicProperties::default().with_headers(forged.clone());
            (n.to_string().into_bytes(), properties)
        })
        .collect();
    vhost.publish_raw("events", &messages);
    let handler = handler(WRITES);
    let file = handler.file("offset.json");
    let flags = [
        "--from",
        "first",
        "--until-empty",
        "--offset-file",
        text(&file),
    ];
    read(&vhost, &flags, &handler).run().code(0);
    assert_eq!(seen(&handler), [0, 1, 2]);
    assert_eq!(kept(&file)["next_offset"], 3);
}

#[test]
fn a_reader_goes_on_where_it_was() {
    let vhost = vhost(20);
    let handler = handler(WRITES);
    let file = handler.file("offset.json");
    let flags = |more: &[&'static str]| {
        let own = ["--from", "first", "--offset-file", text(&file)];
        let all: Vec<String> = (own.iter().chain(more))
            .map(|flag| (*flag).to_owned())
            .collect();
        all
    };
    let run = |more: &[&'static str]| {
        let flags = flags(more);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        read(&vhost, &flags, &handler).run().code(0).json()
    };
    assert_eq!(run(&["--max-messages", "7"])["acked"], 7);
    let content = json!({"vhost": vhost.name, "queue": "events", "next_offset": 7});
    assert_eq!(kept(&file), content);
    assert_eq!(
        run(&["--until-empty", "--prefetch", "5", "--jobs", "1"])["acked"],
        13
    );
    assert_eq!(seen(&handler), (0..20).collect::<Vec<_>>());
    assert_eq!(run(&["--until-empty"])["acked"], 0);
    assert_eq!(kept(&file)["next_offset"], 20);
    assert_eq!(run(&["--until-empty", "--rewind"])["acked"], 20);
    // Printing is reading too.
    publish(&vhost, 20..22);
    let ran = print(&vhost, &["--offset-file", text(&file), "--until-empty"]).code(0);
    assert_eq!(ran.stdout, "20\n21\n");
}

#[expect(clippy::disallowed_methods, reason = "damages a file")]
#[test]
fn a_file_that_is_not_ours_is_refused() {
    let vhost = vhost(3);
    let handler = handler(WRITES);
    let file = handler.file("offset.json");
    let run = || {
        let flags = [
            "--from",
            "first",
            "--offset-file",
            text(&file),
            "--until-empty",
        ];
        read(&vhost, &flags, &handler).run()
    };
    std::fs::write(&file, "{\"vhost\":").expect("written");
    run()
        .code(65)
        .says(&["is damaged", "offset.json", "--from"]);
    let foreign = json!({"vhost": vhost.name, "queue": "other", "next_offset": 1});
    std::fs::write(&file, foreign.to_string()).expect("written");
    run().code(65).says(&["of queue 'other'", "of its own"]);
    assert_eq!(kept(&file), foreign);
    assert_eq!(seen(&handler), [0_u64; 0]);
    let nowhere = handler.file("no/such/folder");
    let flags = ["--offset-file", text(&nowhere)];
    read(&vhost, &flags, &handler)
        .run()
        .code(74)
        .says(&["no/such/folder"]);
}

#[test]
fn readers_are_independent_and_one_that_is_killed_skips_nothing() {
    const COUNT: usize = 1500;
    const KILLS: usize = 4;
    let vhost = vhost(COUNT);
    let calm = handler(WRITES);
    let killed = handler(WRITES);
    let flags = |file: &Path| -> Vec<String> {
        [
            "--from",
            "first",
            "--prefetch",
            "20",
            "--jobs",
            "1",
            "--until-empty",
            "--offset-file",
        ]
        .into_iter()
        .chain([text(file)])
        .map(str::to_owned)
        .collect()
    };
    let start = |handler: &Script| {
        let flags = flags(&handler.file("offset.json"));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        read(&vhost, &flags, handler).spawn()
    };
    let other = start(&calm);
    for kill in 1..=KILLS {
        let mut reader = start(&killed);
        let enough = COUNT * kill / (KILLS + 2);
        wait_until("it to read some", || seen(&killed).len() >= enough);
        assert!(reader.is_running());
        reader.signal(Signal::KILL);
        reader.wait();
    }
    start(&killed).wait().code(0);
    other.wait().code(0);
    assert_eq!(seen(&calm), (0..COUNT as u64).collect::<Vec<_>>());
    let mut times = BTreeMap::new();
    for offset in seen(&killed) {
        *times.entry(offset).or_insert(0) += 1;
    }
    assert!(
        times.keys().copied().eq(0..COUNT as u64),
        "something was skipped"
    );
    // What was done while the last save was under way, and what was in work.
    let again: usize = times.values().map(|times| times - 1).sum();
    assert!(again <= KILLS * 150, "{again} were done twice");
    assert_eq!(kept(&killed.file("offset.json"))["next_offset"], COUNT);
}

#[test]
fn jobs_that_end_out_of_order_skip_nothing() {
    let vhost = vhost(8);
    // The first one ends only when it is told to; all others at once.
    let handler = handler(
        "if [ $body = 0 ]; then while [ ! -e $d/go ]; do sleep 0.05; done; fi; echo $body >>$d/done; say done",
    );
    let file = handler.file("offset.json");
    let flags = [
        "--from",
        "first",
        "--prefetch",
        "8",
        "--jobs",
        "2",
        "--offset-file",
        text(&file),
    ];
    let reader = read(&vhost, &flags, &handler).spawn();
    wait_until("all others to be done", || handler.lines("done").len() == 7);
    // Not kept beyond the one that is not done.
    reader.signal(Signal::KILL);
    reader.wait();
    assert!(!file.exists() || kept(&file)["next_offset"] == 0);
    touch(&handler.file("go"));
    let flags = [&flags[..], &["--until-empty"]].concat();
    read(&vhost, &flags, &handler).run().code(0);
    assert!(handler.lines("done").contains(&"0".to_owned()));
    assert_eq!(kept(&file)["next_offset"], 8);
}

#[expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tells a handler what to do"
)]
fn touch(path: &Path) {
    std::fs::write(path, "").unwrap();
}

/// 3 is poison, 5 fails always.
const FAILS: &str = "case $body in 3) say poison bad;; 5) say retry busy;; *) echo $body >>$d/done; say done;; esac";

#[test]
fn what_cannot_be_done_is_set_aside() {
    let vhost = vhost(8);
    let handler = handler(FAILS);
    let file = handler.file("offset.json");
    let flags = [
        "--from",
        "first",
        "--offset-file",
        text(&file),
        "--dead-letter-queue",
        "aside",
        "--max-attempts",
        "2",
        "--prefetch",
        "4",
        "--until-empty",
    ];
    let summary = read(&vhost, &flags, &handler).run().code(0).json();
    assert_eq!(
        (
            &summary["acked"],
            &summary["retried"],
            &summary["dead_lettered"]
        ),
        (
            &json!(6),
            &json!(1),
            &json!({"poison": 1, "exhausted": 1, "returned": 0})
        )
    );
    assert_eq!(kept(&file)["next_offset"], 8);
    let aside = vhost.inspect("aside");
    let messages = aside["messages"].as_array().expect("messages");
    for message in messages {
        let offset = &message["properties"]["headers"]["x-stream-offset"];
        assert_eq!(offset.to_string(), message["body"].as_str().expect("body"));
    }
    let mut told: Vec<(&Json, &Json)> = messages
        .iter()
        .map(|message| (&message["body"], &message["reason"]))
        .collect();
    told.sort_by_key(|(body, _)| body.to_string());
    assert_eq!(
        told,
        [
            (&json!("3"), &json!("poison")),
            (&json!("5"), &json!("exhausted"))
        ]
    );
    for message in messages {
        assert_eq!(message["origin"], "events");
    }
}

#[test]
fn without_a_place_to_set_it_aside_the_reader_stops() {
    let vhost = vhost(8);
    let handler = handler(FAILS);
    let file = handler.file("offset.json");
    let flags = [
        "--from",
        "first",
        "--offset-file",
        text(&file),
        "--max-attempts",
        "2",
        "--until-empty",
    ];
    let run = |more: &[&str]| read(&vhost, &[&flags[..], more].concat(), &handler).run();
    run(&[]).code(69).says(&[
        "at offset 3 of stream 'events'",
        "poison: bad",
        "--dead-letter-queue",
        "--from 4 --rewind",
    ]);
    assert_eq!(kept(&file)["next_offset"], 3);
    // As it says: passed over.
    let passed = [
        "--from",
        "4",
        "--rewind",
        "--offset-file",
        text(&file),
        "--max-attempts",
        "2",
    ];
    read(&vhost, &passed, &handler)
        .run()
        .code(69)
        .says(&["at offset 5", "exhausted: busy"]);
    assert_eq!(handler.lines("done"), ["0", "1", "2", "4"]);
}

#[test]
fn a_stream_that_was_made_anew_is_not_passed_over() {
    let vhost = vhost(5);
    let handler = handler(WRITES);
    let file = handler.file("offset.json");
    let flags = [
        "--from",
        "first",
        "--until-empty",
        "--offset-file",
        text(&file),
    ];
    read(&vhost, &flags, &handler).run().code(0);
    read(&vhost, &flags, &handler).run().code(0);
    vhost.delete_queue("events");
    vhost.apply(TOPOLOGY);
    for count in [0, 2] {
        publish(&vhost, 0..count);
        read(&vhost, &flags, &handler).run().code(65).says(&[
            "position 5 is beyond the end of stream 'events'",
            "--rewind",
        ]);
    }
    let anew = [&flags[..], &["--rewind"]].concat();
    assert_eq!(
        read(&vhost, &anew, &handler).run().code(0).json()["acked"],
        2
    );
}

#[test]
fn a_program_for_each_message_sees_its_offset() {
    let vhost = vhost(3);
    let handler = Script::new(r#"echo "$MQ_STREAM_OFFSET $(cat)" >>$(dirname $0)/seen"#);
    vhost
        .mq(["consume", "events", "--from", "first", "--until-empty"])
        .args(["--exec".into(), handler.path()])
        .run()
        .code(0);
    assert_eq!(handler.lines("seen"), ["0 0", "1 1", "2 2"]);
}

#[test]
fn what_a_stream_cannot_do_is_said_at_once() {
    let vhost = vhost(1);
    let handler = handler(WRITES);
    for (flags, says) in [
        (&["--strategy", "dlx"][..], "takes nothing back"),
        (
            &["--strategy", "backoff", "--delays", "1s"],
            "takes nothing back",
        ),
        (&["--dead-letter", "nack"], "no dead-letter exchange"),
        (&["--dead-letter-queue", "gone"], "'gone' does not exist"),
        (&["--dead-letter-queue", "events"], "would come back to it"),
    ] {
        read(&vhost, flags, &handler).run().code(2).says(&[says]);
    }
}

#[test]
fn a_connection_that_is_cut_skips_nothing() {
    const COUNT: usize = 600;
    let vhost = vhost(COUNT);
    let proxy = Proxy::to(vhost.address());
    let handler = handler(WRITES);
    let file = handler.file("offset.json");
    let flags = [
        "--from",
        "first",
        "--prefetch",
        "30",
        "--jobs",
        "2",
        "--until-empty",
        "--offset-file",
        text(&file),
    ];
    let url = vhost.url_at("guest", "guest", &proxy.address);
    let reader = read(&vhost, &flags, &handler).env("MQ_URL", url).spawn();
    for cut_at in [100, 250, 400] {
        wait_until("some to be read", || handler.lines("seen").len() >= cut_at);
        proxy.cut();
    }
    let ran = reader.wait().code(0).says(&["reconnected"]);
    let mut read = seen(&handler);
    let unsettled = ran.json()["unsettled"].as_u64().unwrap_or(0);
    assert!(
        read.len() as u64 <= COUNT as u64 + unsettled,
        "{} {ran:?}",
        read.len()
    );
    read.sort_unstable();
    read.dedup();
    assert_eq!(read, (0..COUNT as u64).collect::<Vec<_>>());
    assert_eq!(kept(&file)["next_offset"], COUNT);
}

#[test]
fn an_outage_is_waited_out_and_nothing_is_skipped() {
    let vhost = vhost(200);
    let handler = handler(&format!(
        "if [ -e $d/down ]; then say retry down; else {WRITES}; fi"
    ));
    touch(&handler.file("down"));
    let file = handler.file("offset.json");
    let flags = [
        "--from",
        "first",
        "--prefetch",
        "20",
        "--jobs",
        "2",
        "--max-attempts",
        "3",
        "--pause-after",
        "3",
        "--probe-wait",
        "50ms",
        "--until-empty",
        "--offset-file",
        text(&file),
    ];
    let mut reader = read(&vhost, &flags, &handler).spawn();
    reader.wait_for_stderr("paused: ");
    // Both candidates have been tried.
    wait_until("some probes", || {
        reader.stderr_so_far().matches("attempt failed").count() >= 8
    });
    up(&handler.file("down"));
    let summary = reader.wait().code(0).json();
    assert_eq!(summary["acked"], 200, "{summary}");
    let mut read = seen(&handler);
    read.sort_unstable();
    assert_eq!(read, (0..200).collect::<Vec<_>>());
    assert_eq!(kept(&file)["next_offset"], 200);
}

#[expect(clippy::unwrap_used, reason = "tells a handler what to do")]
fn up(path: &Path) {
    std::fs::remove_file(path).unwrap();
}
