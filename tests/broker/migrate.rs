//! A queue gets other arguments; its messages stay, once and in their order.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a publisher of the test's own, and runs that are killed after a while"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions,
    ExchangeBindOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, ConnectionProperties};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{Mq, TextFile, wait_until};
use crate::vhost::{Vhost, block_on};

/// A queue fed by a topic exchange, by another exchange in front of it, and by headers.
const BEFORE: &str = "
exchanges:
  front: { type: fanout }
  t: { type: topic }
  h: { type: headers }
queues:
  work: { type: TYPE, bind: [ { exchange: t, key: 'a.*' }, { exchange: t, key: 'a.#' }, { exchange: h, arguments: { x-match: any, n: 5, s: x } } ] }
bindings: [ { source: front, destination: t, destination_type: exchange } ]
";

fn file(queue: &str) -> TextFile {
    TextFile::new("t.yaml", &format!("version: 1\nqueues: {{ {queue} }}\n"))
}

fn migrate(vhost: &Vhost, file: &TextFile, flags: &[&str]) -> Mq {
    let path = file.path();
    let mut args = vec!["topology", "migrate", "work", &path];
    args.extend(flags);
    vhost.mq(args)
}

async fn connect(url: &str) -> lapin::Connection {
    lapin::Connection::connect(url, ConnectionProperties::default())
        .await
        .unwrap()
}

/// What every numbered message carries, so that a copy can be told from it.
fn properties(number: u32) -> BasicProperties {
    let mut headers = FieldTable::default();
    headers.insert("n".into(), AMQPValue::LongInt(5));
    headers.insert("x-own".into(), AMQPValue::ShortShortInt(-3));
    BasicProperties::default()
        .with_message_id(number.to_string().into())
        .with_delivery_mode(2)
        .with_priority(0)
        .with_type("t".into())
        .with_correlation_id("c".into())
        .with_timestamp(7)
        .with_headers(headers)
}

/// Publishes numbers from `next` on in turns to `front` and `t`, one after the
/// other or in blocks, and counts only what is confirmed.
async fn publish_some(url: &str, next: &AtomicU32, count: u32, pause: Duration, stop: &AtomicBool) {
    let connection = connect(url).await;
    let channel = connection.create_channel().await.unwrap();
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await
        .unwrap();
    let block = if count == u32::MAX { 1 } else { 200 };
    let mut left = count;
    while left > 0 && !stop.load(Ordering::Relaxed) {
        let mut confirms = Vec::new();
        for _ in 0..block.min(left) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let exchange = if number.is_multiple_of(2) {
                "front"
            } else {
                "t"
            };
            let sent = channel
                .basic_publish(
                    exchange.into(),
                    "a.b".into(),
                    BasicPublishOptions {
                        mandatory: true,
                        ..BasicPublishOptions::default()
                    },
                    number.to_string().as_bytes(),
                    properties(number),
                )
                .await
                .unwrap();
            confirms.push(sent);
            left = left.saturating_sub(1);
        }
        for confirm in confirms {
            let confirmed = confirm.await.unwrap();
            assert!(
                matches!(confirmed, lapin::Confirmation::Ack(None)),
                "a publisher noticed: {confirmed:?}"
            );
        }
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
    connection.close(200, "bye".into()).await.unwrap();
}

/// A publisher that waits for each confirm and goes on until it is stopped.
struct Load {
    stop: Arc<AtomicBool>,
    next: Arc<AtomicU32>,
    thread: JoinHandle<()>,
}

impl Load {
    fn start(vhost: &Vhost, first: u32, pause: Duration) -> Self {
        let (stop, next) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU32::new(first)),
        );
        let (url, halt, counter) = (vhost.url(), stop.clone(), next.clone());
        let thread = std::thread::spawn(move || {
            block_on(publish_some(&url, &counter, u32::MAX, pause, &halt));
        });
        Self { stop, next, thread }
    }

    /// Ends it; gives how many were published and confirmed.
    fn stop(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.next.load(Ordering::Relaxed)
    }
}

fn fill(vhost: &Vhost, count: u32) {
    let go_on = AtomicBool::new(false);
    block_on(publish_some(
        &vhost.url(),
        &AtomicU32::new(0),
        count,
        Duration::ZERO,
        &go_on,
    ));
}

/// Takes everything out of `work`; checks that each message is whole.
fn drain(vhost: &Vhost) -> Vec<u32> {
    let expected = vhost.ready("work") as usize;
    block_on(async {
        let connection = connect(&vhost.url()).await;
        let channel = connection.create_channel().await.unwrap();
        let mut consumer = channel
            .basic_consume(
                "work".into(),
                "".into(),
                BasicConsumeOptions::default(),
                FieldTable::default(),
            )
            .await
            .unwrap();
        let mut found = Vec::new();
        while found.len() < expected {
            let delivery = consumer.next().await.unwrap().unwrap();
            let number: u32 = std::str::from_utf8(&delivery.data)
                .unwrap()
                .parse()
                .unwrap();
            let own = delivery.properties.headers().clone().unwrap();
            let mut headers = FieldTable::default();
            for (name, value) in own.inner() {
                // What a quorum queue adds when it hands out.
                if !["x-delivery-count", "x-acquired-count"].contains(&name.as_str()) {
                    headers.insert(name.clone(), value.clone());
                }
            }
            assert_eq!(
                delivery.properties.clone().with_headers(headers),
                properties(number)
            );
            assert_eq!(delivery.routing_key.as_str(), "a.b");
            found.push(number);
            channel
                .basic_ack(delivery.delivery_tag, BasicAckOptions::default())
                .await
                .unwrap();
        }
        connection.close(200, "bye".into()).await.unwrap();
        found
    })
}

/// Every number below `published`, in order; told in runs, not one by one.
#[track_caller]
fn all_in_order(found: &[u32], published: u32) {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in found {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    assert_eq!(runs, [(0, published - 1)]);
}

/// Bindings of the vhost as `source -> destination [key]`.
fn bindings(vhost: &Vhost) -> BTreeSet<String> {
    vhost
        .get(&["bindings", &vhost.name])
        .as_array()
        .into_iter()
        .flatten()
        .filter(|binding| binding["source"] != "")
        .map(|binding| {
            format!(
                "{} -> {} [{}]",
                binding["source"], binding["destination"], binding["properties_key"]
            )
        })
        .collect()
}

fn names(vhost: &Vhost, kind: &str) -> Vec<String> {
    vhost
        .get(&[kind, &vhost.name])
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|object| object["name"].as_str())
        .filter(|name| name.contains("mq-migrate"))
        .map(str::to_owned)
        .collect()
}

fn nothing_temporary_is_left(vhost: &Vhost) {
    let mut queues = names(vhost, "queues");
    // The lock goes when the broker has seen the end of its connection.
    queues.retain(|name| !name.ends_with(".mq-migrate.lock"));
    assert_eq!(queues, [""; 0]);
    assert_eq!(names(vhost, "exchanges"), [""; 0]);
    wait_until("the lock to go", || names(vhost, "queues").is_empty());
}

#[test]
fn a_classic_queue_becomes_a_quorum_queue_and_keeps_messages_and_bindings() {
    let vhost = Vhost::new();
    vhost.apply(&BEFORE.replace("TYPE", "classic"));
    // What other clients bind with: numbers of another width than ours.
    block_on(async {
        let connection = connect(&vhost.url()).await;
        let channel = connection.create_channel().await.unwrap();
        let mut arguments = FieldTable::default();
        arguments.insert("x-match".into(), AMQPValue::LongString("all".into()));
        arguments.insert("n".into(), AMQPValue::LongInt(5));
        channel
            .queue_bind(
                "work".into(),
                "h".into(),
                "".into(),
                QueueBindOptions::default(),
                arguments,
            )
            .await
            .unwrap();
        channel
            .exchange_bind(
                "h".into(),
                "front".into(),
                "".into(),
                ExchangeBindOptions::default(),
                FieldTable::default(),
            )
            .await
            .unwrap();
        connection.close(200, "bye".into()).await.unwrap();
    });
    fill(&vhost, 700);
    let before = bindings(&vhost);
    let file = file("work: { type: quorum, max_length: 1000 }");
    migrate(&vhost, &file, &[])
        .run()
        .code(2)
        .says(&["nothing was changed", "--yes"])
        .shows(&["13 steps; none was taken", "the file says quorum"]);
    nothing_temporary_is_left(&vhost);
    migrate(&vhost, &file, &["--yes"])
        .run()
        .code(0)
        .shows(&["700 messages moved"]);
    assert_eq!(bindings(&vhost), before);
    nothing_temporary_is_left(&vhost);
    let work = vhost.get(&["queues", &vhost.name, "work"]);
    assert_eq!(work["arguments"]["x-queue-type"], "quorum");
    assert_eq!(work["arguments"]["x-max-length"], 1000);
    all_in_order(&drain(&vhost), 700);
    migrate(&vhost, &file, &["--yes"])
        .run()
        .code(0)
        .shows(&["nothing to migrate"]);
}

#[test]
fn an_argument_changes_under_load_and_no_publisher_notices() {
    let vhost = Vhost::new();
    vhost.apply(&BEFORE.replace("TYPE", "quorum, delivery_limit: unlimited"));
    fill(&vhost, 5000);
    let load = Load::start(&vhost, 5000, Duration::from_millis(1));
    let file = file("work: { type: quorum, delivery_limit: unlimited, max_length: 1000000 }");
    let report = migrate(&vhost, &file, &["--yes", "-v", "-o", "json"])
        .run()
        .code(0)
        .json();
    assert_eq!(report["complete"], true, "{report:#}");
    assert_eq!(report["maybe_twice"], 0, "{report:#}");
    assert_eq!(report["out_of_order"], 0, "{report:#}");
    let seen = vhost.ready("work");
    wait_until("the load to go on", || vhost.ready("work") > seen);
    let published = load.stop();
    all_in_order(&drain(&vhost), published);
    nothing_temporary_is_left(&vhost);
}

#[test]
fn killed_at_any_moment_it_goes_on_and_nothing_is_lost() {
    let vhost = Vhost::new();
    vhost.apply(&BEFORE.replace("TYPE", "classic"));
    fill(&vhost, 2000);
    let load = Load::start(&vhost, 2000, Duration::from_millis(2));
    let file = file("work: { type: quorum, delivery_limit: unlimited }");
    let mut told = 0;
    for part in 0..9 {
        let mut run = migrate(&vhost, &file, &["--yes", "-v"]).spawn();
        // At ever later points: early steps are short, so it is killed in some
        // of them soon after they began.
        let steps = [
            "move_bindings",
            "empty",
            "empty",
            "delete",
            "refill",
            "catch_up",
        ];
        let step = format!("step=\"{}\"", steps[part % steps.len()]);
        // A run that goes on behind that step is killed after a while.
        let deadline = Instant::now() + Duration::from_secs(2);
        while run.is_running() && !run.stderr_so_far().contains(&step) && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(37 * part as u64));
        if run.is_running() {
            run.signal(Signal::KILL);
        }
        let ran = run.wait();
        told += u32::from(ran.stderr.contains("may be in the queue twice"));
        if ran.code == 0 {
            break;
        }
    }
    let ran = migrate(&vhost, &file, &["--yes", "-v", "-o", "json"])
        .run()
        .code(0);
    let report = ran.json();
    assert_eq!(report["complete"], true, "{report:#}");
    nothing_temporary_is_left(&vhost);
    let published = load.stop();
    let drained = drain(&vhost);
    let mut seen = BTreeSet::new();
    let first_time: Vec<u32> = drained
        .iter()
        .copied()
        .filter(|n| seen.insert(*n))
        .collect();
    all_in_order(&first_time, published);
    let twice = drained.len() - first_time.len();
    // Each message names itself, so copies of killed runs are recognised.
    assert!(twice == 0 || told > 0, "{twice} twice: {report:#}");
}

#[test]
fn a_signal_ends_it_between_two_messages() {
    let vhost = Vhost::new();
    vhost.apply(&BEFORE.replace("TYPE", "classic"));
    fill(&vhost, 3000);
    let file = file("work: { type: classic, max_length: 5000 }");
    let mut run = migrate(&vhost, &file, &["--yes", "-v"]).spawn();
    run.wait_for_stderr("step=\"empty\"");
    run.signal(Signal::TERM);
    run.wait()
        .code(3)
        .says(&["a signal came", "run the same command again"])
        .shows(&["stopped", "planned"]);
    migrate(&vhost, &file, &["--yes"]).run().code(0);
    all_in_order(&drain(&vhost), 3000);
}

#[test]
fn what_could_lose_a_message_is_refused_before_anything_is_touched() {
    let vhost = Vhost::new();
    vhost.apply(&format!(
        "{}  wait: {{ type: classic, message_ttl: 1h, dead_letter: {{ exchange: '', key: work }} }}\n",
        "queues:\n  work: { type: classic }\n"
    ));
    vhost.publish_all("work", &["1".to_owned(), "2".to_owned()]);
    let quorum = file("work: { type: quorum }");
    let refused = |file: &TextFile, why: &[&str]| {
        migrate(&vhost, file, &["--yes"]).run().code(2).says(why);
        nothing_temporary_is_left(&vhost);
        assert_eq!(vhost.ready("work"), 2);
    };
    refused(
        &file("work: { type: quorum, max_length: 1 }"),
        &["holds 2 messages", "would hold 1"],
    );
    refused(&file("work: { type: stream }"), &["stream"]);
    refused(&file("work: { durable: false }"), &["not durable"]);

    let policy =
        json!({"pattern": ".*", "apply-to": "queues", "definition": {"message-ttl": 1_000_000}});
    vhost.api(
        reqwest::Method::PUT,
        &["policies", &vhost.name, "all"],
        &policy,
    );
    refused(
        &quorum,
        &["a policy sets message-ttl", "work.mq-migrate.new"],
    );
    vhost.api(
        reqwest::Method::DELETE,
        &["policies", &vhost.name, "all"],
        &json!({}),
    );

    vhost.publish("wait", "later");
    refused(&quorum, &["queue 'wait' holds 1 messages", "would vanish"]);
    vhost.delete_queue("wait");

    block_on(async {
        let connection = connect(&vhost.url()).await;
        let channel = connection.create_channel().await.unwrap();
        let options = QueueDeclareOptions {
            exclusive: true,
            ..QueueDeclareOptions::default()
        };
        let lock = "work.mq-migrate.lock";
        channel
            .queue_declare(lock.into(), options, FieldTable::default())
            .await
            .unwrap();
        migrate(&vhost, &quorum, &["--yes"])
            .run()
            .code(2)
            .says(&["another migration of queue 'work' is running"]);
        connection.close(200, "bye".into()).await.unwrap();
    });

    let worker = vhost
        .mq(["consume", "work", "--print", "--prefetch", "1"])
        .spawn();
    wait_until("the consumer", || {
        migrate(&vhost, &quorum, &["--dry-run"])
            .run()
            .stderr
            .contains("it has 1 consumers")
    });
    drop(worker);
    nothing_temporary_is_left(&vhost);
}

#[test]
fn what_is_wrong_in_the_file_is_told_before_the_queue_is_gone() {
    let vhost = Vhost::new();
    vhost.apply("queues: { work: { type: classic } }\n");
    migrate(&vhost, &file("other: "), &["--yes"])
        .run()
        .code(65)
        .says(&["do not declare queue 'work'"]);
    // The broker refuses it only when it is declared.
    migrate(
        &vhost,
        &file("work: { type: quorum, expires: 0s }"),
        &["--yes"],
    )
    .run()
    .code(65)
    .says(&["does not take the arguments", "x-expires"]);
    nothing_temporary_is_left(&vhost);
    vhost.delete_queue("work");
    migrate(&vhost, &file("work: { type: quorum }"), &["--yes"])
        .run()
        .code(65)
        .says(&["queue 'work' does not exist"]);
}

#[test]
fn a_dry_run_shows_every_step_and_takes_none() {
    let vhost = Vhost::new();
    vhost.apply(&BEFORE.replace("TYPE", "classic"));
    fill(&vhost, 3);
    let file = file("work: { type: quorum, message_ttl: 1h }");
    let ran = migrate(&vhost, &file, &["--dry-run"]).run().code(0);
    let shown: Vec<&str> = ran.stdout.lines().skip(1).collect();
    insta::assert_snapshot!("migrate_dry_run", shown.join("\n"));
    nothing_temporary_is_left(&vhost);
    assert_eq!(drain(&vhost), [0, 1, 2]);
}

#[test]
fn apply_migrates_what_it_may_not_change_in_place() {
    let vhost = Vhost::new();
    vhost.apply(
        "exchanges: { in: { type: topic } }
queues:
  work: { type: classic, bind: [ { exchange: in, key: 'a.#' } ] }
  other: { type: classic }
",
    );
    for n in 0..20 {
        vhost.publish("work", &n.to_string());
    }
    let wanted = TextFile::new(
        "t.yaml",
        "version: 1
exchanges: { in: { type: topic }, dlx: { type: fanout } }
queues:
  work: { type: quorum, dead_letter: { exchange: dlx }, bind: [ { exchange: in, key: 'a.#' }, { exchange: in, key: b } ] }
  other: { type: classic, bind: [ { exchange: dlx } ] }
",
    );
    let path = wanted.path();
    vhost
        .mq(["topology", "apply", &path])
        .run()
        .code(2)
        .shows(&["mq topology migrate work FILE"]);
    vhost
        .mq(["topology", "apply", "--allow", "migrate", &path])
        .run()
        .code(0)
        .shows(&[
            "changed    queue     work",
            "created    exchange  dlx",
            "read back: all",
        ]);
    vhost
        .mq(["topology", "plan", "--check", &path])
        .run()
        .code(0);
    vhost.wait_for_ready("work", 20);
    nothing_temporary_is_left(&vhost);
    vhost
        .mq(["topology", "apply", "--allow", "migrate", &path])
        .run()
        .code(0)
        .shows(&["nothing to change"]);
}

#[test]
fn apply_does_not_take_a_killed_migration_for_a_missing_queue() {
    let vhost = Vhost::new();
    // As a run leaves it that was killed when the queue was just deleted.
    vhost.apply("queues: { work.mq-migrate.old: { type: classic } }");
    vhost.publish("work.mq-migrate.old", "kept");
    let wanted = TextFile::new("t.yaml", "version: 1\nqueues: { work: { type: quorum } }\n");
    vhost
        .mq(["topology", "apply", &wanted.path()])
        .run()
        .code(2)
        .says(&[
            "a migration of queue 'work' was stopped half-way",
            "--allow migrate",
        ]);
    assert_eq!(vhost.ready("work.mq-migrate.old"), 1);
}
