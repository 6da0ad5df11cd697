//! Sending dead letters back: where they go, what stays, and that nothing is
//! lost on the way.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test helpers")]

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};
use serde_json::{Value as Json, json};

use crate::dead_letters::{DeadLetter, Reason, Sent};
use crate::support::{Ran, wait_until};
use crate::vhost::Vhost;

/// A topic exchange, a work queue of this type behind it, and a dead-letter queue.
fn shop(kind: &str) -> Vhost {
    let vhost = Vhost::new();
    vhost.exchange("orders", "topic");
    vhost.dead_letter_queue("dlq", kind);
    vhost.deadly_queue("work", kind, Reason::Rejected, DeadLetter::to_queue("dlq"));
    vhost.bind("orders", "work", "order.#");
    vhost
}

fn order(key: &str, body: impl Into<Vec<u8>>) -> Sent {
    Sent {
        exchange: "orders".to_owned(),
        key: key.to_owned(),
        body: body.into(),
        ..Sent::default()
    }
}

/// So many rejected orders, with their numbers as bodies.
fn rejected(vhost: &Vhost, count: usize) {
    vhost.send((0..count).map(|number| order("order.created", number.to_string())));
    vhost.let_die("work", Reason::Rejected, count);
    vhost.wait_for_ready("dlq", u32::try_from(count).unwrap());
}

fn replay(vhost: &Vhost, args: &[&str]) -> Ran {
    let words = ["dlq", "replay", "dlq", "-o", "json"].iter().chain(args);
    vhost.mq(words).run()
}

fn json_of(ran: &Ran) -> Json {
    serde_json::from_str(&ran.stdout).unwrap()
}

/// All bodies of the dead-letter queue, in their order.
fn exported(vhost: &Vhost) -> Vec<String> {
    let ran = vhost.mq(["dlq", "export", "dlq"]).run().code(0);
    let line = |line| serde_json::from_str::<Json>(line).unwrap();
    let body = |line: Json| line["body"].as_str().unwrap().to_owned();
    ran.stdout.lines().map(line).map(body).collect()
}

fn bodies(vhost: &Vhost, queue: &str, count: usize) -> Vec<String> {
    let limit = count.to_string();
    let ran = vhost
        .mq(["dlq", "inspect", queue, "-o", "jsonl", "--limit", &limit])
        .run()
        .code(0);
    let lines = ran.stdout.lines();
    lines
        .map(|line| {
            serde_json::from_str::<Json>(line).unwrap()["body"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect()
}

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[test]
fn each_goes_back_to_the_exchange_and_key_it_came_by() {
    for kind in ["classic", "quorum"] {
        let vhost = shop(kind);
        rejected(&vhost, 500);
        let report = json_of(&replay(&vhost, &[]).code(0));
        assert_eq!(report["moved"], 500, "{report}");
        assert_eq!(report["stayed"], json!({}));
        assert_eq!(
            report["moved_to"],
            json!([{"count": 500, "origin": "work", "exchange": "orders",
                    "routing_key": "order.created", "queues": ["work"],
                    "unknown_exchanges": [], "comes_back": "if_it_fails"}])
        );
        vhost.wait_for_ready("work", 500);
        assert_eq!(vhost.ready("dlq"), 0);
        // Where it can be looked at, its order is that of before.
        if kind == "classic" {
            assert_eq!(bodies(&vhost, "work", 500), numbers(0..500));
        }
    }
}

/// Everything a publisher set stays, everything a death added goes.
#[test]
fn a_copy_is_the_message_as_it_was_first_published() {
    let vhost = shop("classic");
    vhost.queue("copied", "classic", &json!({}));
    let mut headers = FieldTable::default();
    headers.insert("tenant".into(), AMQPValue::LongString("a".into()));
    headers.insert("at".into(), AMQPValue::Timestamp(9));
    headers.insert(
        "CC".into(),
        AMQPValue::FieldArray(vec![AMQPValue::LongString("copied".into())].into()),
    );
    let properties = BasicProperties::default()
        .with_headers(headers)
        .with_message_id("id-1".into())
        .with_priority(3)
        .with_delivery_mode(2)
        .with_user_id("guest".into())
        .with_expiration("3600000".into())
        .with_timestamp(1_700_000_000);
    vhost.send([Sent {
        exchange: String::new(),
        key: "work".to_owned(),
        properties,
        body: vec![0xff, 0],
    }]);
    vhost.let_die("work", Reason::Rejected, 1);
    vhost.wait_for_ready("dlq", 1);
    replay(&vhost, &["--restore-expiration"]).code(0);
    vhost.wait_for_ready("work", 1);
    // CC sent the first publish there, and must not do so again.
    assert_eq!(vhost.ready("copied"), 1);
    let back = &vhost.inspect("work")["messages"][0];
    let mut properties = back["properties"].clone();
    let id = properties["headers"]
        .as_object_mut()
        .unwrap()
        .remove("mq-replay-id");
    assert!(id.is_some());
    assert_eq!(
        properties,
        json!({"message_id": "id-1", "priority": 3, "delivery_mode": 2, "user_id": "guest",
               "expiration": "3600000", "timestamp": 1_700_000_000,
               "headers": {"tenant": "a", "at": 9, "mq-replay-count": 1}})
    );
    assert_eq!(back["body"], "/wA=");
}

#[test]
fn a_user_id_of_somebody_else_goes_and_the_message_gets_through() {
    let mut vhost = shop("classic");
    let other = vhost.user(".*", ".*", ".*", "management");
    let properties = BasicProperties::default().with_user_id(other.as_str().into());
    vhost.send_as(&other, "pw", [order("order.created", "x").with(properties)]);
    vhost.let_die("work", Reason::Rejected, 1);
    vhost.wait_for_ready("dlq", 1);
    replay(&vhost, &[]).code(0);
    vhost.wait_for_ready("work", 1);
    assert_eq!(
        vhost.inspect("work")["messages"][0]["properties"].get("user_id"),
        None
    );
}

#[test]
fn a_dry_run_tells_where_each_would_land_and_moves_nothing() {
    let vhost = shop("classic");
    vhost.queue("audit", "classic", &json!({}));
    vhost.bind("orders", "audit", "order.created");
    rejected(&vhost, 30);
    let report = json_of(&replay(&vhost, &["--dry-run"]).code(0));
    assert_eq!(report["dry_run"], true);
    assert_eq!(report["moved_to"][0]["queues"], json!(["audit", "work"]));
    assert_eq!(report["moved_to"][0]["count"], 30);
    assert_eq!(bodies(&vhost, "dlq", 30), numbers(0..30));
    let queue = json_of(&replay(&vhost, &["--dry-run", "--to", "queue"]).code(0));
    assert_eq!(queue["moved_to"][0]["queues"], json!(["work"]));
    assert_eq!(queue["moved_to"][0]["exchange"], "");
    // Nothing but looks: the numbers in both other queues did not change.
    assert_eq!((vhost.ready("work"), vhost.ready("audit")), (0, 30));
    let ran = vhost
        .mq(["dlq", "replay", "dlq", "--dry-run"])
        .run()
        .code(0);
    assert!(
        ran.stdout.contains("30 of 30 messages would be sent back"),
        "{}",
        ran.stdout
    );
    // The real one says that others get copies too.
    vhost
        .mq(["dlq", "replay", "dlq", "--limit", "1"])
        .run()
        .code(0)
        .says(&["also to 'audit'", "--to queue"]);
}

#[test]
fn what_no_queue_takes_stays_in_its_order() {
    let vhost = shop("classic");
    rejected(&vhost, 40);
    // Every other one has a key that leads nowhere any more.
    vhost.send((40..60).map(|number| order("order.paid", number.to_string())));
    vhost.let_die("work", Reason::Rejected, 20);
    vhost.wait_for_ready("dlq", 60);
    let path = [
        "bindings",
        &vhost.name,
        "e",
        "orders",
        "q",
        "work",
        "order.%23",
    ];
    vhost.api(reqwest::Method::DELETE, &path, &json!({}));
    vhost.bind("orders", "work", "order.paid");
    let ran = replay(&vhost, &[]).code(3);
    let report = json_of(&ran);
    assert_eq!(report["moved"], 20);
    assert_eq!(report["stayed"], json!({"unroutable": 40}));
    vhost.wait_for_ready("dlq", 40);
    assert_eq!(bodies(&vhost, "dlq", 40), numbers(0..40));
    assert_eq!(bodies(&vhost, "work", 20), numbers(40..60));
    replay(
        &vhost,
        &["--filter", ".routing_keys[0] == \"order.created\""],
    )
    .code(67);
    vhost.wait_for_ready("dlq", 40);
    replay(&vhost, &["--queue", "work"]).code(0);
    vhost.wait_for_ready("work", 60);
}

#[test]
fn an_exchange_that_is_gone_costs_nothing() {
    let vhost = shop("classic");
    rejected(&vhost, 5);
    vhost.api(
        reqwest::Method::DELETE,
        &["exchanges", &vhost.name, "orders"],
        &json!({}),
    );
    let ran = vhost.mq(["dlq", "replay", "dlq"]).run().code(3);
    ran.shows(&["5 stay: exchange 'orders' does not exist any more"]);
    vhost.wait_for_ready("dlq", 5);
    replay(&vhost, &["--exchange", "nope"]).code(3);
    replay(&vhost, &["--to", "queue"]).code(0);
    vhost.wait_for_ready("work", 5);
}

#[test]
fn a_full_queue_refuses_and_the_rest_stays() {
    let vhost = Vhost::new();
    vhost.dead_letters("work", "dlq", "classic", 50);
    vhost.queue(
        "full",
        "classic",
        &json!({"x-max-length": 10, "x-overflow": "reject-publish"}),
    );
    let report = json_of(&replay(&vhost, &["--queue", "full"]).code(3));
    let moved = report["moved"].as_u64().unwrap();
    assert!(moved >= 10, "{report}");
    assert_eq!(report["stayed"], json!({"refused": 50 - moved}));
    vhost.wait_for_ready("dlq", u32::try_from(50 - moved).unwrap());
    assert_eq!(u64::from(vhost.ready("full")), moved);
    replay(&vhost, &["--queue", "full"]).code(75);
}

#[test]
fn a_filter_and_a_limit_choose() {
    let vhost = shop("quorum");
    rejected(&vhost, 2500);
    let before = exported(&vhost);
    assert_eq!(before.len(), 2500);
    let odd = "(.body | tonumber) % 2 == 1";
    let report = json_of(&replay(&vhost, &["--filter", odd, "--limit", "100"]).code(0));
    assert_eq!(report["moved"], 100);
    vhost.wait_for_ready("dlq", 2400);
    let report = json_of(&replay(&vhost, &["--filter", odd]).code(0));
    assert_eq!(report["moved"], 1150);
    assert_eq!(report["stayed"], json!({"filtered": 1250}));
    vhost.wait_for_ready("dlq", 1250);
    let left = exported(&vhost);
    let even: Vec<String> = before
        .into_iter()
        .filter(|body| body.parse::<u32>().unwrap() % 2 == 0)
        .collect();
    assert!(left == even, "not those, or not in this order: {left:?}");
    // A filter that fails says so, and nothing was moved.
    replay(&vhost, &["--filter", ".body.nothing"]).code(65);
    replay(&vhost, &["--filter", ".body ||"]).code(64);
    vhost.wait_for_ready("dlq", 1250);
}

#[test]
fn what_fails_again_and_again_stays() {
    let vhost = shop("classic");
    rejected(&vhost, 3);
    for _ in 0..2 {
        replay(&vhost, &["--max-replays", "2"]).code(0);
        vhost.let_die("work", Reason::Rejected, 3);
        vhost.wait_for_ready("dlq", 3);
    }
    let ran = vhost
        .mq(["dlq", "replay", "dlq", "--max-replays", "2"])
        .run()
        .code(3);
    ran.shows(&[
        "3 stay: they were sent back 2 times already",
        "--max-replays",
    ]);
    vhost.wait_for_ready("dlq", 3);
    replay(&vhost, &[]).code(0);
}

/// The queue that is being emptied is filled again by what was sent back.
#[test]
fn a_replay_ends_although_all_messages_come_back_at_once() {
    let vhost = Vhost::new();
    vhost.dead_letters("work", "dlq", "classic", 3000);
    // Whatever comes here is a dead letter at once.
    let to = json!({"x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"});
    vhost.queue("again", "classic", &to);
    let report = json_of(&replay(&vhost, &["--queue", "again"]).code(0));
    assert_eq!(report["moved"], 3000);
    assert_eq!(report["moved_to"][0]["comes_back"], "unless_consumed");
    vhost.wait_for_ready("dlq", 3000);
    // A dead letter that would be in its own queue again is not sent at all.
    vhost.exchange("back", "fanout");
    vhost.bind("back", "dlq", "");
    let report = json_of(&replay(&vhost, &["--exchange", "back"]).code(3));
    assert_eq!(report["stayed"], json!({"comes_back": 3000}));
}

#[test]
fn bodies_are_repaired_by_a_program_or_by_hand() {
    let vhost = shop("classic");
    vhost.send([
        order(
            "order.created",
            r#"{"price":"10","big":12345678901234567890123}"#,
        ),
        order("order.created", "no json"),
    ]);
    vhost.let_die("work", Reason::Rejected, 2);
    vhost.wait_for_ready("dlq", 2);
    let report = json_of(&replay(&vhost, &["--transform", ".price |= tonumber"]).code(3));
    assert_eq!(report["stayed"], json!({"not_repaired": 1}));
    vhost.wait_for_ready("work", 1);
    assert_eq!(
        bodies(&vhost, "work", 1),
        [r#"{"price":10,"big":12345678901234567890123}"#]
    );
    let edit = |editor: &str| {
        vhost
            .mq(["dlq", "replay", "dlq", "-o", "json", "--edit"])
            .env("EDITOR", editor)
            .run()
    };
    assert_eq!(
        json_of(&edit("true").code(0))["stayed"],
        json!({"unchanged": 1})
    );
    edit("false").code(74).says(&["the editor 'false' failed"]);
    vhost.wait_for_ready("dlq", 1);
    edit("sed -i s/no/new/").code(0);
    vhost.wait_for_ready("work", 2);
    assert_eq!(bodies(&vhost, "work", 2)[1], "new json");
}

#[test]
fn a_person_decides_message_by_message() {
    let vhost = shop("classic");
    rejected(&vhost, 6);
    let ran = vhost
        .mq(["dlq", "replay", "dlq", "--interactive"])
        .env("EDITOR", "sed -i s/2/two/")
        .stdin("r\nwhat\ns\ne\nr\nq\n")
        .run()
        .code(0);
    let ran = ran.says(&[
        "#1 rejected in work",
        "exchange 'orders' with key 'order.created'",
    ]);
    ran.shows(&["2 of 6 messages sent back", "1 stay: you left them out"]);
    vhost.wait_for_ready("dlq", 4);
    assert_eq!(bodies(&vhost, "dlq", 4), ["1", "3", "4", "5"]);
    assert_eq!(bodies(&vhost, "work", 2), ["0", "two"]);
    // All others too; and the end of the answers is the end.
    let all = vhost
        .mq(["dlq", "replay", "dlq", "--interactive"])
        .stdin("s\na\n");
    all.run().code(0).shows(&["3 of 4 messages"]);
    let none = vhost
        .mq(["dlq", "replay", "dlq", "--interactive"])
        .stdin("");
    none.run()
        .code(3)
        .shows(&["0 of 1 message", "run it again to go on"]);
    vhost.wait_for_ready("dlq", 1);
}

#[test]
fn a_signal_stops_it_where_it_is() {
    let vhost = shop("classic");
    rejected(&vhost, 200);
    let mut running = vhost
        .mq(["dlq", "replay", "dlq", "-o", "json", "--rate", "20"])
        .spawn();
    wait_until("some to be sent back", || vhost.ready("work") > 5);
    assert!(running.is_running());
    running.signal(rustix::process::Signal::INT);
    let ran = running.wait().code(3);
    let report = json_of(&ran);
    let moved = report["moved"].as_u64().unwrap();
    assert_eq!(
        (report["interrupted"].clone(), report["open"].clone()),
        (json!(true), json!(0))
    );
    assert!((5..200).contains(&moved), "{report}");
    vhost.wait_for_ready("dlq", u32::try_from(200 - moved).unwrap());
    assert_eq!(u64::from(vhost.ready("work")), moved);
    let left = usize::try_from(200 - moved).unwrap();
    assert_eq!(bodies(&vhost, "dlq", left), numbers(200 - left..200));
    replay(&vhost, &[]).code(0);
    vhost.wait_for_ready("work", 200);
}

/// Where going back could lose messages nothing is taken unasked; and when it is,
/// what would be lost is replaced.
#[test]
fn messages_that_would_be_lost_by_going_back_are_replaced() {
    let vhost = Vhost::new();
    vhost.queue("dlq", "quorum", &json!({"x-delivery-limit": 0}));
    vhost.publish_all("dlq", &numbers(0..10));
    vhost.queue("work", "classic", &json!({}));
    let ran = replay(&vhost, &["--queue", "work"]).code(2);
    ran.says(&[
        "delivery limit 0",
        "rabbitmq-queues peek",
        "mq dlq replay dlq --even-if-it-counts",
    ]);
    let forced = [
        "--queue",
        "work",
        "--even-if-it-counts",
        "--filter",
        ".body == \"3\"",
    ];
    let report = json_of(&replay(&vhost, &forced).code(0));
    assert_eq!(
        (report["moved"].clone(), report["replaced"].clone()),
        (json!(1), json!(9))
    );
    vhost.wait_for_ready("dlq", 9);
    assert_eq!(vhost.ready("work"), 1);
}

/// What no command took away is there afterwards, whatever limit the queue has and
/// however often it is tried.
#[test]
fn no_forced_command_loses_what_it_does_not_move() {
    let keeping: [&[&str]; 5] = [
        &["replay", "dlq", "--queue", "nowhere"],
        &["replay", "dlq", "--queue", "work", "--filter", "false"],
        &["export", "dlq"],
        &["export", "dlq", "--filter", "false", "--limit", "2"],
        &["purge", "dlq", "--yes", "--no-backup", "--filter", "false"],
    ];
    let vhost = Vhost::new();
    vhost.queue("work", "classic", &json!({}));
    for limit in [0, 2] {
        vhost.queue("dlq", "quorum", &json!({"x-delivery-limit": limit}));
        vhost.publish_all("dlq", &numbers(0..5));
        for round in 0..4 {
            for command in keeping {
                let words = ["dlq"]
                    .iter()
                    .chain(command)
                    .chain(&["--even-if-it-counts"]);
                let ran = vhost.mq(words).run();
                assert!([0, 67].contains(&ran.code), "{command:?}: {}", ran.stderr);
                let there = || vhost.ready("dlq") == 5;
                wait_until(&format!("5 left after {command:?}, round {round}"), there);
            }
        }
        // One at a time, and those that are moved are moved once.
        let moving = ["--queue", "work", "--even-if-it-counts", "--limit", "3"];
        replay(&vhost, &moving).code(0);
        vhost.wait_for_ready("dlq", 2);
        replay(&vhost, &moving).code(0);
        vhost.wait_for_ready("work", 5);
        vhost.delete_queue("dlq");
        vhost
            .mq(["dlq", "purge", "work", "--yes", "--no-backup"])
            .run()
            .code(0);
    }
}

#[test]
fn names_and_targets_that_make_no_sense_are_refused() {
    let vhost = shop("classic");
    replay(&vhost, &["--queue", "dlq"])
        .code(64)
        .says(&["is where the messages are"]);
    replay(&vhost, &["--key", "k"]).code(64);
    replay(&vhost, &["--exchange", "x", "--to", "queue"]).code(64);
    replay(&vhost, &["--edit"]).code(64).says(&["VISUAL"]);
    vhost
        .mq(["dlq", "replay", "nope"])
        .run()
        .code(65)
        .says(&["nope"]);
    let report = json_of(&replay(&vhost, &[]).code(0));
    assert_eq!(report["moved"], 0);
}
