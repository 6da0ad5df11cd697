//! Ten thousand messages, each sent twice, to workers that are killed over and
//! over: each is done, and only what was in a worker's hands when it was killed
//! may be done twice.
#![expect(
    clippy::print_stdout,
    reason = "the README quotes how many were done twice"
)]

use std::collections::BTreeMap;

use lapin::BasicProperties;
use rustix::process::Signal;

use crate::consume::{IMMEDIATE, of_type};
use crate::support::redis::Redis;
use crate::support::{Script, wait_until};
use crate::vhost::Vhost;

/// Most that a worker has in its hands.
const PREFETCH: usize = 20;

/// Writes the id of each message that it works as one line, at once.
const HANDLER: &str = r#"exec python3 -c '
import json, os, sys
done = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for line in sys.stdin:
    message = json.loads(line)
    os.write(done, (message["properties"]["message_id"] + "\n").encode())
    print(json.dumps({"id": message["id"], "outcome": "done"}), flush=True)
' "$(dirname $0)/done""#;

/// How many of `count` messages were done twice by workers of which `kills` were killed.
fn done_twice(count: usize, kills: usize, store: &str) -> usize {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    let once = (0..count).map(|n| {
        let properties = BasicProperties::default().with_message_id(n.to_string().into());
        (b"x".to_vec(), properties)
    });
    // Copies follow at once and after all others.
    let mut messages: Vec<_> = once
        .clone()
        .take(count / 2)
        .flat_map(|m| [m.clone(), m])
        .collect();
    messages.extend(once.clone().skip(count / 2));
    messages.extend(once.skip(count / 2));
    vhost.publish_raw("work", &messages);
    let handler = Script::new(HANDLER);
    let worker = || {
        let prefetch = PREFETCH.to_string();
        let flags = ["--until-empty", "--prefetch", &prefetch, "--jobs", "4"];
        vhost
            .mq(["consume", "work"])
            .args(flags)
            .args([
                "--dedupe",
                "message-id",
                "--dedupe-store",
                store,
                "--exec-stream",
            ])
            .args([handler.path()])
            .spawn()
    };
    for kill in 1..=kills {
        let worker = worker();
        wait_until("a part of the work to be done", || {
            handler.lines("done").len() >= kill * count / (kills + 2)
        });
        worker.signal(Signal::KILL);
    }
    worker().wait().code(0);
    let mut times = BTreeMap::new();
    for id in handler.lines("done") {
        *times.entry(id).or_insert(0) += 1;
    }
    assert_eq!(times.len(), count, "all are done");
    assert_eq!(vhost.ready("work") + vhost.ready("dead"), 0);
    assert!(times.values().all(|times| *times <= 1 + kills), "{times:?}");
    times.values().filter(|times| **times > 1).count()
}

#[test]
fn what_finished_before_the_kill_is_done_once_with_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("done.redb");
    let twice = done_twice(10_000, 10, store.to_str().unwrap());
    assert!(twice <= 10 * PREFETCH, "{twice}");
    println!("with a file: {twice} of 10,000 done twice in 10 kills");
}

#[test]
fn what_finished_before_the_kill_is_done_once_with_a_server() {
    let server = Redis::start("");
    let twice = done_twice(3_000, 3, &server.url(""));
    assert!(twice <= 3 * PREFETCH, "{twice}");
    println!("with a server: {twice} of 3,000 done twice in 3 kills");
}
