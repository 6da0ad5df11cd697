//! Publishing to a queue that is full: what is refused is sent again until the
//! queue has room, in order, or until the time for it is over.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "files that are written and read back; a queue is emptied while mq waits"
)]

use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::dlq_export::{Folder, lines};
use crate::support::{Running, wait_until};
use crate::vhost::Vhost;

/// A queue that takes five messages and refuses the next.
fn with_small_queue(kind: &str) -> Vhost {
    let vhost = Vhost::new();
    vhost.apply(&format!(
        "queues: {{ q: {{ type: {kind}, max_length: 5, overflow: reject-publish }} }}\n"
    ));
    vhost
}

/// A line for each number.
fn numbered(count: u32) -> String {
    (1..=count).fold(String::new(), |text, n| text + &format!("{n}\n"))
}

/// The bodies of so many messages, which are taken out.
fn take(vhost: &Vhost, count: u32) -> Vec<u64> {
    let count = count.to_string();
    let ran = vhost
        .mq(["consume", "q", "--print", "--max-messages", &count])
        .run()
        .code(0);
    (ran.stdout.lines())
        .map(|line| line.parse().unwrap())
        .collect()
}

/// Takes messages while mq runs, and the rest after.
fn drain(vhost: &Vhost, running: &mut Running) -> Vec<u64> {
    let mut found = Vec::new();
    while running.is_running() {
        if vhost.ready("q") > 0 {
            found.extend(take(vhost, 1));
        }
    }
    match vhost.ready("q") {
        0 => {}
        left => found.extend(take(vhost, left)),
    }
    found
}

/// Without those that came a second time: a nack of a quorum queue may come though
/// it kept the message.
fn first_of_each(found: &[u64]) -> Vec<u64> {
    let mut first: Vec<u64> = Vec::new();
    for number in found {
        if !first.contains(number) {
            first.push(*number);
        }
    }
    first
}

#[test]
fn what_a_full_queue_refuses_is_sent_again_in_order_until_all_are_in() {
    for kind in ["classic", "quorum"] {
        let vhost = with_small_queue(kind);
        let folder = Folder::new();
        let results = folder.path("results");
        let mut running = vhost
            .mq(["publish", "-q", "q", "--lines", "-", "--in-flight", "1"])
            .args(["--retry-refused", "1m", "--results"])
            .args([&results])
            .stdin(numbered(25))
            .spawn();
        running.wait_for_stderr("refused (nack), it is sent again");
        let found = drain(&vhost, &mut running);
        running.wait().code(0).shows(&["routed 25 of 25 messages"]);
        // Of quorum queues the limit is soft, and so is what one of them refuses.
        let all: Vec<u64> = (1..=25).collect();
        assert_eq!(first_of_each(&found), all, "{kind}");
        let receipts: Vec<Json> = lines(&results);
        let numbers: Vec<u64> = (receipts.iter())
            .map(|line| line.pointer("/number").and_then(Json::as_u64).unwrap())
            .collect();
        assert_eq!(numbers, all, "{kind}");
    }
}

#[test]
fn many_under_way_are_all_taken_in_the_end() {
    let vhost = with_small_queue("classic");
    let mut running = vhost
        .mq([
            "publish",
            "-q",
            "q",
            "--repeat",
            "60",
            "--template",
            "{{seq}}",
        ])
        .args(["--retry-refused", "1m"])
        .spawn();
    let mut found = drain(&vhost, &mut running);
    running.wait().code(0).shows(&["routed 60 of 60 messages"]);
    found.sort_unstable();
    assert_eq!(found, (1..=60).collect::<Vec<_>>());
}

#[test]
fn one_message_is_sent_again_with_the_id_it_had() {
    let vhost = with_small_queue("classic");
    for n in 1..=5 {
        vhost.publish("q", &n.to_string());
    }
    let publish = |limit: &str| {
        vhost
            .mq([
                "publish",
                "-q",
                "q",
                "6",
                "--message-id",
                "m6",
                "--retry-refused",
                limit,
            ])
            .args(["-o", "json"])
    };
    let start = Instant::now();
    let ran = publish("700ms").run().code(75);
    assert_eq!(ran.json().pointer("/receipt"), Some(&"refused".into()));
    assert!(start.elapsed() >= Duration::from_millis(700));
    ran.says(&["sent again, for at most 700ms", "refused (nack)"]);
    let mut running = publish("1m").spawn();
    running.wait_for_stderr("sent again");
    take(&vhost, 1);
    let ran = running.wait().code(0);
    assert_eq!(ran.json().pointer("/message_id"), Some(&"m6".into()));
    assert_eq!(take(&vhost, 5), [2, 3, 4, 5, 6]);
    // A signal ends the wait with what is known.
    for n in 1..=5 {
        vhost.publish("q", &n.to_string());
    }
    let mut running = publish("1m").spawn();
    running.wait_for_stderr("sent again");
    running.signal(rustix::process::Signal::INT);
    running.wait().code(75).says(&["refused (nack)"]);
}

#[test]
fn once_the_time_is_over_nothing_more_is_sent_and_a_resumed_run_goes_on_there() {
    let vhost = with_small_queue("classic");
    let folder = Folder::new();
    let (input, state) = (folder.path("input"), folder.path("state"));
    std::fs::write(&input, numbered(9)).unwrap();
    let publish = |limit: &str| {
        vhost
            .mq([
                "publish",
                "-q",
                "q",
                "--in-flight",
                "1",
                "--retry-refused",
                limit,
            ])
            .args(["--lines".as_ref(), input.as_os_str()])
            .args(["--resume".as_ref(), state.as_os_str()])
    };
    publish("500ms")
        .run()
        .code(75)
        .shows(&["routed 5 of", "stopped because the broker went on refusing"]);
    assert_eq!(vhost.ready("q"), 5);
    // A signal while it waits ends it well, and nothing is lost.
    let mut running = publish("1m").spawn();
    running.wait_for_stderr("input:6: refused (nack)");
    running.signal(rustix::process::Signal::TERM);
    running
        .wait()
        .code(75)
        .shows(&["stopped by a signal"])
        .says(&["line 6"]);
    let mut running = publish("1m").spawn();
    let found = drain(&vhost, &mut running);
    running.wait().code(0).shows(&["routed 4 of 4 messages"]);
    assert_eq!(found, (1..=9).collect::<Vec<_>>());
    wait_until("the queue is empty", || vhost.ready("q") == 0);
}

#[test]
fn a_line_that_cannot_be_read_does_not_keep_those_before_it_from_another_try() {
    let vhost = with_small_queue("classic");
    let mut running = vhost
        .mq(["publish", "-q", "q", "--lines", "-", "--template"])
        .args(["--retry-refused", "1m"])
        .stdin(numbered(9) + "{{nope}}\n")
        .spawn();
    running.wait_for_stderr("refused (nack), it is sent again");
    let found = drain(&vhost, &mut running);
    running.wait().code(65).says(&["standard input:10", "nope"]);
    assert_eq!(found, (1..=9).collect::<Vec<u64>>());
}
