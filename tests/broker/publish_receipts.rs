//! Publishing many messages: what became of each is told truly, whatever goes wrong.
#![expect(
    clippy::disallowed_methods,
    reason = "files that are written and read back; kills after a time"
)]

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::dlq_export::{Folder, lines};
use crate::proxy::Proxy;
use crate::publish_bulk::{taken, with_queue};
use crate::support::wait_until;
use crate::vhost::Vhost;

#[test]
fn what_reached_no_queue_before_a_kill_is_told_by_the_run_that_goes_on() {
    let vhost = with_queue();
    let folder = Folder::new();
    let (input, state, results) = (
        folder.path("input"),
        folder.path("state"),
        folder.path("results"),
    );
    let line = |n: usize| {
        let key = if n == 2 { "nobody" } else { "q" };
        json!({"routing_key": key, "body": n.to_string(), "properties": {}}).to_string() + "\n"
    };
    std::fs::write(&input, (1..=200).map(line).collect::<String>()).unwrap();
    let run = |rate: &str| {
        vhost.mq([
            "publish",
            "--jsonl",
            input.to_str().unwrap(),
            "--rate",
            rate,
            "--resume",
            state.to_str().unwrap(),
            "--results",
            results.to_str().unwrap(),
        ])
    };
    let running = run("50").spawn();
    let has = |text: &str| std::fs::read_to_string(&state).is_ok_and(|kept| kept.contains(text));
    wait_until("it to be kept", || has("\"first\":[2]"));
    // One run at a time.
    run("50").run().code(75).says(&["in use by another run"]);
    running.signal(rustix::process::Signal::KILL);
    running.wait();
    run("100000")
        .run()
        .code(3)
        .says(&["line 2: reached no queue in an earlier run"]);
    run("100000").run().code(0);
    // Each that is not sent again has its receipt.
    let numbers: BTreeSet<u64> = (std::fs::read_to_string(&results).unwrap().lines())
        .filter_map(|line| {
            serde_json::from_str::<Json>(line)
                .ok()?
                .get("number")?
                .as_u64()
        })
        .collect();
    assert_eq!(numbers, (1..=200).collect());
    // Another target is another matter.
    run("1")
        .args(["-q", "other"])
        .run()
        .code(65)
        .says(&["is about '"]);
}

#[test]
fn a_body_is_part_of_what_is_resumed_and_files_cannot_be() {
    let vhost = with_queue();
    let folder = Folder::new();
    let state = folder.path("state");
    let run = |more: &[&str]| {
        vhost
            .mq(["publish", "-q", "q", "--resume", state.to_str().unwrap()])
            .args(more)
            .run()
    };
    run(&["--repeat", "2", "x"]).code(0);
    run(&["--repeat", "3", "x"])
        .code(0)
        .shows(&["routed 1 of 1"]);
    run(&["--repeat", "3", "y"]).code(65).says(&["is about '"]);
    run(&["--files", "."]).code(64).says(&["--files"]);
}

#[test]
fn what_has_no_receipt_is_not_settled() {
    let vhost = with_queue();
    let folder = Folder::new();
    let (input, results) = (folder.path("input"), folder.path("results"));
    std::fs::write(&input, "1\n2\n3\n").unwrap();
    let full = || std::fs::File::options().write(true).open("/dev/full");
    for (n, to) in ["-", "/dev/full"].into_iter().enumerate() {
        let state = folder.path(&format!("state{n}"));
        let ended = Command::new(env!("CARGO_BIN_EXE_mq"))
            .args(["publish", "-q", "q", "--results", to])
            .args(["--lines".as_ref(), input.as_os_str()])
            .args(["--resume".as_ref(), state.as_os_str()])
            .env("MQ_URL", vhost.url())
            .stdin(Stdio::null())
            .stdout(if to == "-" {
                Stdio::from(full().unwrap())
            } else {
                Stdio::null()
            })
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(74), "{to}: {said}");
        for part in ["No space left", "; receipts from line 1 on may be missing"] {
            assert!(said.contains(part), "{to}: {said}");
        }
        let kept: Json = serde_json::from_slice(&std::fs::read(&state).unwrap()).unwrap();
        assert_eq!(kept.get("settled"), Some(&json!(0)), "{to}: {kept}");
        vhost
            .mq(["publish", "-q", "q"])
            .args(["--lines".as_ref(), input.as_os_str()])
            .args(["--resume".as_ref(), state.as_os_str()])
            .args(["--results".as_ref(), results.as_os_str()])
            .run()
            .code(0)
            .shows(&["routed 3 of 3"]);
    }
    assert_eq!(lines(&results).len(), 6);
    // Each was sent twice.
    assert_eq!(taken(&vhost).len(), 12);
}

#[test]
fn what_is_resumed_is_the_same_in_all_that_matters() {
    let (vhost, other) = (with_queue(), with_queue());
    let folder = Folder::new();
    let (input, state) = (folder.path("input"), folder.path("state"));
    let run = |vhost: &Vhost, source: &str, text: &str, more: &[&str]| {
        std::fs::write(&input, text).unwrap();
        vhost
            .mq(["publish", "-q", "q"])
            .args([source.as_ref(), input.as_os_str()])
            .args(["--resume".as_ref(), state.as_os_str()])
            .args(more)
            .run()
    };
    run(&vhost, "--lines", "1\n2\n3", &[]).code(0);
    for (vhost, source, more) in [
        (&other, "--lines", &[][..]),
        (&vhost, "--jsonl", &[]),
        (&vhost, "--lines", &["--template"]),
    ] {
        run(vhost, source, "1\n2\n3\n4\n", more)
            .code(65)
            .says(&["is about '--lines ", "input to queue 'q' in vhost '"]);
    }
    // Any of the lines that are settled, and not the last one only.
    for text in ["1\nx\n3\n4\n", "2\n3\n4\n", "1\n2 \n3\n4\n"] {
        run(&vhost, "--lines", text, &[])
            .code(65)
            .says(&["input:3: ", "the source has changed"]);
    }
    assert_eq!(taken(&vhost).len(), 3);
    run(&vhost, "--lines", "1\r\n2\n3\n4\n", &[])
        .code(0)
        .shows(&["routed 1 of 1"]);
    // What an earlier version kept is told, and not taken for something else.
    let kept = r#"{"source":"input","settled":2,"mark":"0123456789abcdef","run":"r"}"#;
    std::fs::write(&state, kept).unwrap();
    run(&vhost, "--lines", "1\n", &[]).code(65).says(&[
        "an earlier version of mq",
        "the first 2 of 'input' are settled",
    ]);
    assert_eq!(std::fs::read_to_string(&state).unwrap(), kept);
    assert_eq!(taken(&vhost).len(), 1);
    assert!(taken(&other).is_empty());
}

#[test]
fn what_the_broker_altered_is_still_told_by_its_number() {
    let vhost = with_queue();
    let line = |n: usize| {
        let key = if n.is_multiple_of(2) { "nobody" } else { "q" };
        json!({"routing_key": key, "body": n.to_string(), "properties": {
            "expiration": "0000060000",
            "headers": {"BCC": ["nobody-else"]},
        }})
        .to_string()
            + "\n"
    };
    vhost
        .mq(["publish", "--jsonl", "-"])
        .stdin((1..=20).map(line).collect::<String>())
        .run()
        .code(3)
        .shows(&["routed 10 of 20 messages"])
        .says(&["lines 2, 4, 6, 8, 10, 12, 14, 16, 18, 20: reached no queue"]);
}

#[test]
fn a_body_too_large_for_the_broker_is_named_and_takes_nothing_with_it() {
    let vhost = with_queue();
    let folder = Folder::new();
    let input = folder.path("input");
    // More than the limit of every version.
    let large = "x".repeat(135 * 1024 * 1024);
    std::fs::write(
        &input,
        format!("1\n2\n{}\n{large}\n5\n", "y".repeat(2 << 20)),
    )
    .unwrap();
    vhost
        .mq(["publish", "-q", "q", "--lines", input.to_str().unwrap()])
        .run()
        .code(65)
        .shows(&["routed 3 of 4 messages"])
        .says(&["input:4: ", "line 4: refused by the broker"]);
    assert_eq!(taken(&vhost).len(), 3);
}

#[test]
fn results_that_nobody_reads_are_no_success() {
    let vhost = with_queue();
    let mut child = Command::new(env!("CARGO_BIN_EXE_mq"))
        .args([
            "publish",
            "-q",
            "q",
            "--repeat",
            "20000",
            "x",
            "--results",
            "-",
        ])
        .env("MQ_URL", vhost.url())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(74));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("nobody reads the results"), "{said}");
}

#[test]
fn a_dry_run_finds_what_sending_would() {
    let vhost = with_queue();
    let long = "x".repeat(256);
    for more in [&["--dry-run"][..], &[]] {
        vhost
            .mq([
                "publish", "-q", "q", "--repeat", "2", "--app-id", &long, "x",
            ])
            .args(more)
            .run()
            .code(65)
            .says(&["app_id has 256 bytes; AMQP allows 255"]);
    }
}

#[test]
fn a_second_signal_does_not_wait_and_a_confirm_is_not_waited_for_anew() {
    let vhost = with_queue();
    let proxy = Proxy::to(vhost.address());
    proxy.keep_back_confirms(1_000_000);
    let publish = |more: &[&str]| {
        vhost
            .mq(["publish", "-q", "q", "--lines", "-"])
            .args(more)
            .env("MQ_URL", vhost.url_at("guest", "guest", &proxy.address))
    };
    let running = publish(&[]).stdin("1\n2\n").spawn();
    vhost.wait_for_ready("q", 2);
    running.signal(rustix::process::Signal::INT);
    std::thread::sleep(Duration::from_millis(300));
    running.signal(rustix::process::Signal::INT);
    running
        .wait()
        .code(130)
        .says(&["lines 1, 2: no answer", "a second signal"]);
    // Each message that is sent interrupts the wait.
    let start = Instant::now();
    publish(&["--confirm-timeout", "2s", "--rate", "4"])
        .stdin("x\n".repeat(80))
        .run()
        .code(75)
        .says(&["no confirm within 2s"]);
    assert!(start.elapsed() < Duration::from_secs(12));
}

#[test]
fn one_message_gets_a_receipt_too() {
    let vhost = with_queue();
    let folder = Folder::new();
    let (results, state) = (folder.path("results"), folder.path("state"));
    for _ in 0..2 {
        vhost
            .mq(["publish", "-q", "q", "hello", "--results"])
            .args([&results])
            .args(["--resume"])
            .args([&state])
            .run()
            .code(0);
    }
    let receipts = lines(&results);
    assert_eq!(receipts.len(), 1, "{receipts:?}");
    assert_eq!(receipts[0]["receipt"], "routed");
    // The second run knew that it was settled.
    assert_eq!(vhost.ready("q"), 1);
}
