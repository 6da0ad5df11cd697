//! A dead letter fails the build at once, and what is not known never passes.
#![expect(clippy::disallowed_methods, reason = "a test reads what was written")]

use lapin::options::{BasicConsumeOptions, BasicGetOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, ConnectionProperties};
use serde_json::{Value as Json, json};

use crate::dead_letters::{DeadLetter, Reason};
use crate::support::exposition::Exposition;
use crate::support::{Ran, TextFile, wait_for};
use crate::vhost::{Vhost, block_on};

const CHECK: [&str; 4] = ["dlq", "check", "-o", "json"];

/// A queue whose messages die at once, and where they come to rest.
fn with_dead_letters(kind: &str) -> Vhost {
    let vhost = Vhost::new();
    vhost.deadly_queue("work", kind, Reason::Expired, DeadLetter::to_queue("dead"));
    vhost.dead_letter_queue("dead", kind);
    vhost
}

fn check(vhost: &Vhost, args: &[&str]) -> Ran {
    vhost.mq(CHECK.iter().chain(args)).run()
}

fn named<'q>(json: &'q Json, vhost: &str, queue: &str) -> &'q Json {
    let mut all = json["queues"].as_array().into_iter().flatten();
    all.find(|it| it["vhost"] == vhost && it["queue"] == queue)
        .unwrap_or(&Json::Null)
}

#[test]
fn a_message_that_died_just_now_fails_the_build() {
    for kind in ["classic", "quorum"] {
        let vhost = with_dead_letters(kind);
        let clean = check(&vhost, &[]).code(0).json();
        assert_eq!(clean["ok"], true, "{clean}");
        assert_eq!(named(&clean, &vhost.name, "dead")["status"], "ok");
        vhost.publish("work", "x");
        vhost.wait_for_ready("dead", 1);
        let ran = check(&vhost, &[]).code(1);
        let json = ran.json();
        let dead = named(&json, &vhost.name, "dead");
        assert_eq!(
            (&dead["ready"], &dead["ready_is_exact"]),
            (&json!(1), &json!(true)),
            "{kind}: {dead}"
        );
        assert_eq!(
            dead["over"],
            json!([{"limit": "max_messages", "allowed": 0, "found": 1}])
        );
        ran.says(&[
            "queue 'dead'",
            "1 message, 0 allowed",
            "mq dlq inspect dead",
        ]);
        check(&vhost, &["dead", "--max-messages", "1"]).code(0);
    }
}

#[test]
fn a_message_in_somebodys_hands_is_still_there() {
    for kind in ["classic", "quorum"] {
        let vhost = with_dead_letters(kind);
        check(&vhost, &[]).code(0);
        vhost.publish("work", "x");
        vhost.wait_for_ready("dead", 1);
        block_on(async {
            let properties = ConnectionProperties::default();
            let connection = lapin::Connection::connect(&vhost.url(), properties)
                .await
                .expect("connection");
            let channel = connection.create_channel().await.expect("channel");
            let options = BasicConsumeOptions::default();
            let mut consumer = channel
                .basic_consume("dead".into(), "c".into(), options, FieldTable::default())
                .await
                .expect("consumer");
            let delivery = futures_util::StreamExt::next(&mut consumer).await;
            delivery.expect("delivery").expect("delivery");
            // Statistics say now: nothing is ready, and nobody holds anything.
            let json = tokio::task::block_in_place(|| check(&vhost, &[]).code(1).json());
            let dead = named(&json, &vhost.name, "dead");
            assert_eq!(
                (&dead["ready"], &dead["unacknowledged"]),
                (&json!(0), &json!(1))
            );
            connection.close(200, "bye".into()).await.expect("close");
        });
    }
}

#[test]
fn every_limit_is_checked_and_told() {
    let vhost = with_dead_letters("classic");
    for _ in 0..3 {
        vhost.publish("work", "x");
    }
    vhost.wait_for_ready("dead", 3);
    let args = ["--max-messages=5", "--max-age=0s", "--max-rate=1/m"];
    wait_for("the statistics", || {
        let ran = check(&vhost, &args);
        let json = ran.json();
        let dead = named(&json, &vhost.name, "dead");
        let over = dead["over"].as_array().into_iter().flatten();
        let over: Vec<&Json> = over.map(|it| &it["limit"]).collect();
        let is_it = over == ["max_age", "max_rate"] && ran.code == 1;
        is_it.then_some(()).ok_or_else(|| format!("{ran:?}"))
    });
    check(&vhost, &["--max-age=1h", "--max-rate=30/m"]).code(0);
    vhost
        .mq(["dlq", "check", "--max-age", "0s"])
        .run()
        .code(1)
        .shows(&["STATUS", "over", "0s allowed"]);
}

#[test]
fn an_age_that_nothing_tells_is_not_known() {
    let vhost = Vhost::new();
    vhost.queue("parked", "classic", &json!({}));
    let limits = ["parked", "--max-age", "1h"];
    check(&vhost, &limits).code(0);
    let with_time = |seconds| BasicProperties::default().with_timestamp(seconds);
    for (properties, code) in [
        (BasicProperties::default(), 3),
        // In milliseconds, as some write it.
        (with_time(1_796_036_580_000), 3),
        (with_time(1_000_000_000), 1),
    ] {
        vhost.publish_raw("parked", &[(b"x".to_vec(), properties)]);
        let ran = check(&vhost, &limits).code(code);
        let json = ran.json();
        let parked = named(&json, &vhost.name, "parked");
        assert_eq!(json["ok"], false);
        assert_eq!(parked["oldest_seconds"].is_null(), code == 3, "{parked}");
        vhost.drain("parked");
    }
    // Where a look could lose messages there is none.
    if vhost.version() >= (4, 0) {
        vhost.queue("limited", "quorum", &json!({}));
        vhost.publish("limited", "x");
        let limits = ["limited", "--max-age", "1h"];
        check(&vhost, &limits).code(3).says(&["a look could lose"]);
        check(&vhost, &["limited", "--max-age=1h", "--max-messages=0"]).code(1);
    }
}

#[test]
fn a_rate_of_a_queue_that_sheds_messages_is_at_least() {
    let vhost = Vhost::new();
    vhost.queue("capped", "classic", &json!({"x-max-length": 1}));
    wait_for("the statistics", || {
        let ran = check(&vhost, &["capped", "--max-rate", "1000/s"]);
        let is_it = ran.code == 3 && ran.stderr.contains("length limit");
        is_it.then_some(()).ok_or(ran.stderr)
    });
}

#[test]
fn queues_that_are_named_must_exist() {
    let vhost = with_dead_letters("classic");
    check(&vhost, &["dead", "one", "two"])
        .code(65)
        .says(&["'one', 'two'", "do not exist"]);
}

#[test]
fn what_may_not_be_read_is_told_and_not_good() {
    let mut vhost = with_dead_letters("classic");
    let other = with_dead_letters("classic");
    check(&vhost, &[]).code(0);
    let watcher = vhost.user("", "", ".*", "monitoring");
    let at = |url: &str| url.replace("guest:guest", &format!("{watcher}:pw"));
    let watched = || {
        let ran = vhost.mq(CHECK).args(["--all-vhosts"]);
        ran.env("MQ_URL", vhost.url_of(&watcher, "pw"))
            .env("MQ_MANAGEMENT_URL", at(&vhost.management_url))
            .run()
    };
    let ran = watched().code(3);
    let json = ran.json();
    assert_eq!(
        (&json["ok"], &json["incomplete"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(named(&json, &vhost.name, "dead")["status"], "ok");
    assert_eq!(named(&json, &other.name, "dead"), &Json::Null);
    ran.says(&[&format!("vhost '{}' is left out", other.name)]);
    // What is over is told first.
    vhost.publish("work", "x");
    vhost.wait_for_ready("dead", 1);
    watched().code(1);
}

#[test]
fn without_amqp_the_statistics_must_do_and_it_is_said() {
    let vhost = with_dead_letters("classic");
    vhost.publish("work", "x");
    wait_for("the statistics", || {
        let nowhere = vhost.url_at("guest", "guest", "127.0.0.1:1");
        let ran = vhost.mq(CHECK).env("MQ_URL", nowhere).run();
        let json = ran.json();
        let dead = named(&json, &vhost.name, "dead");
        let is_it = ran.code == 1
            && (&dead["ready"], &dead["ready_is_exact"]) == (&json!(1), &json!(false))
            && ran.stderr.contains("up to 10 s old");
        is_it.then_some(()).ok_or_else(|| format!("{ran:?}"))
    });
}

#[test]
fn nagios_gets_one_line_and_its_own_codes() {
    let vhost = Vhost::new();
    let odd = "a|b'=1\tDLQ \u{1b}[2J";
    vhost.queue(odd, "classic", &json!({}));
    let nagios = |args: &[&str]| {
        let ran = vhost.mq(["dlq", "check", "--nagios", odd]).args(args);
        let ran = ran.run();
        assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.stdout);
        ran
    };
    nagios(&[])
        .code(0)
        .shows(&["DLQ OK - 1 queue", "=0;;0;0\n"]);
    vhost.publish_raw(odd, &[(b"x".to_vec(), BasicProperties::default())]);
    let ran = nagios(&[]).code(2);
    assert!(ran.stdout.starts_with("DLQ CRITICAL - "), "{}", ran.stdout);
    nagios(&["--max-age", "1h"])
        .code(3)
        .shows(&["DLQ UNKNOWN - ", "age not known"]);
    nagios(&["nobody"])
        .code(3)
        .shows(&["DLQ UNKNOWN - queue 'nobody'"]);
}

#[test]
fn metrics_are_of_this_check_or_of_none() {
    let vhost = with_dead_letters("quorum");
    let odd = "dead \"1\"\\\t";
    vhost.queue("odd", "classic", &DeadLetter::to_queue(odd).arguments());
    vhost.queue(odd, "classic", &json!({}));
    vhost.publish("work", "x");
    vhost.wait_for_ready("dead", 1);
    let file = TextFile::new("mq.prom", "mq_dlq_ok 1\n");
    let command = ["dlq", "check", "--prometheus", &file.path()];
    vhost.mq(command).run().code(1);
    let read = || Exposition::parse(&std::fs::read_to_string(file.path()).expect("file"));
    let of = |queue| [("vhost", vhost.name.as_str()), ("queue", queue)];
    let page = read();
    for (name, queue, value) in [
        ("mq_dlq_messages_ready", "dead", 1),
        ("mq_dlq_messages_ready", odd, 0),
        ("mq_dlq_messages_unacked", odd, 0),
        ("mq_dlq_ok", "dead", 0),
        ("mq_dlq_ok", odd, 1),
    ] {
        assert_eq!(page.sum(name, &of(queue)), value, "{name} {queue}");
    }
    assert_eq!(page.sum("mq_dlq_check_success", &[]), 1);
    assert!(page.sum("mq_dlq_check_timestamp_seconds", &[]) > 1_700_000_000);

    let gone = vhost
        .mq(command)
        .env("MQ_MANAGEMENT_URL", "http://127.0.0.1:1");
    gone.run().code(69);
    let page = read();
    assert_eq!(page.sum("mq_dlq_check_success", &[]), 0);
    assert!(page.kinds.iter().all(|(name, _)| name.contains("check")));

    let printed = vhost
        .mq(["dlq", "check", "--prometheus", "-"])
        .run()
        .code(1);
    assert!(!Exposition::parse(&printed.stdout).series.is_empty());
    vhost
        .mq(["dlq", "check", "--prometheus", "/nowhere/mq.prom"])
        .run()
        .code(74)
        .says(&["/nowhere/mq.prom", "help:"]);
}

#[test]
fn what_somebody_got_without_consuming_shows_in_the_statistics() {
    let vhost = with_dead_letters("classic");
    vhost.publish("work", "x");
    vhost.wait_for_ready("dead", 1);
    block_on(async {
        let properties = ConnectionProperties::default();
        let connection = lapin::Connection::connect(&vhost.url(), properties)
            .await
            .expect("connection");
        let channel = connection.create_channel().await.expect("channel");
        let options = BasicGetOptions::default();
        let got = channel.basic_get("dead".into(), options).await;
        assert!(got.expect("get").is_some());
        tokio::task::block_in_place(|| {
            wait_for("the statistics", || {
                let ran = check(&vhost, &[]);
                (ran.code == 1)
                    .then_some(())
                    .ok_or_else(|| format!("{ran:?}"))
            });
        });
        connection.close(200, "bye".into()).await.expect("close");
    });
}

/// What AMQP does not count is in the statistics a while later, and not before.
#[test]
fn without_amqp_a_message_that_died_just_now_fails_the_build_too() {
    let vhost = with_dead_letters("classic");
    // The queue is known as an empty one.
    check(&vhost, &[]).code(0);
    vhost.publish("work", "x");
    vhost.wait_for_ready("dead", 1);
    let ran = vhost
        .mq(CHECK)
        .env("MQ_URL", vhost.url_at("guest", "guest", "127.0.0.1:1"))
        .run()
        .code(1);
    assert_eq!(named(&ran.json(), &vhost.name, "dead")["ready"], 1);
}

/// An alternate exchange that a policy sets is a way of dead letters like any other.
#[test]
fn a_way_that_a_policy_makes_is_followed() {
    let vhost = Vhost::new();
    vhost.apply(
        "exchanges: { dlx: { type: direct }, rest: { type: fanout } }
queues:
  work: { type: classic, dead_letter: { exchange: dlx, key: nobody } }
  bin: { type: classic, bind: [ { exchange: rest } ] }
policies:
  aside: { pattern: '^dlx$', apply_to: exchanges, definition: { alternate-exchange: rest } }
",
    );
    let json = check(&vhost, &["--max-messages", "0"]).code(0).json();
    assert_eq!(named(&json, &vhost.name, "bin")["status"], "ok", "{json}");
}

/// Dead letters to an exchange that is gone are dropped; that hides no other queue.
#[test]
fn an_exchange_that_is_gone_makes_nothing_unknown() {
    let vhost = with_dead_letters("classic");
    vhost.queue(
        "careless",
        "classic",
        &json!({"x-dead-letter-exchange": "gone"}),
    );
    let json = check(&vhost, &[]).code(0).json();
    assert_eq!(named(&json, &vhost.name, "dead")["status"], "ok", "{json}");
}
