//! Which dead-letter queues there are, and what one learns of them before looking.

use serde_json::{Value as Json, json};

use crate::dead_letters::{DeadLetter, Reason};
use crate::support::wait_for;
use crate::vhost::Vhost;

/// What `mq dlq list` says, once the broker has statistics of so many
/// dead-letter queues.
fn listed(vhost: &Vhost, args: &[&str], count: usize) -> Vec<Json> {
    let mut found = Vec::new();
    wait_for(&format!("{count} dead-letter queues"), || {
        let words = ["dlq", "list", "-o", "json"].iter().chain(args);
        let json = vhost.mq(words).run().code(0).json();
        found = json.as_array().cloned().unwrap_or_default();
        let told = found.iter().filter(|queue| !queue["ready"].is_null());
        if told.count() == count {
            Ok(())
        } else {
            Err(json.to_string())
        }
    });
    found
}

fn named<'q>(queues: &'q [Json], name: &str) -> &'q Json {
    let found = queues.iter().find(|queue| queue["queue"] == name);
    found.unwrap_or(&Json::Null)
}

#[test]
fn they_are_found_by_what_reaches_them_and_not_by_name() {
    let vhost = Vhost::new();
    vhost.exchange("dlx", "direct");
    // By argument, through an exchange, into a queue with any name.
    let by_key = DeadLetter {
        exchange: "dlx",
        key: Some("dead"),
    };
    vhost.deadly_queue("a", "classic", Reason::Expired, by_key);
    vhost.queue("bin", "classic", &json!({}));
    vhost.bind("dlx", "bin", "dead");
    // By a policy alone.
    let to_box = DeadLetter::to_queue("box");
    vhost.deadly_by_policy("b", "quorum", Reason::MaxLen, to_box);
    vhost.dead_letter_queue("box", "quorum");
    // With a limit that nobody set.
    vhost.deadly_queue(
        "c",
        "quorum",
        Reason::Rejected,
        DeadLetter::to_queue("limited"),
    );
    vhost.queue("limited", "quorum", &json!({}));
    // What only has the name.
    vhost.queue("not.a.dlq", "classic", &json!({}));
    vhost.publish("a", "12345");
    vhost.wait_for_ready("bin", 1);

    // Statistics may be older than the message.
    wait_for("the message to be counted", || {
        let queues = listed(&vhost, &[], 3);
        let bin = named(&queues, "bin");
        let is_counted = bin["ready"] == 1 && bin["bytes"] == 5 && bin["oldest_seconds"].is_u64();
        let is_told = named(&queues, "limited")["look"] != "unknown";
        (is_counted && is_told)
            .then_some(())
            .ok_or_else(|| bin.to_string())
    });
    let queues = listed(&vhost, &[], 3);
    let bin = named(&queues, "bin");
    assert_eq!(
        (&bin["type"], &bin["look"]),
        (&json!("classic"), &json!("safe"))
    );
    assert_eq!(bin["consumers"], 0);
    assert_eq!(bin["look_why"], Json::Null);
    assert_eq!(
        bin["fed_by"],
        json!([{"queue": "a", "reasons": ["rejected", "expired"]}])
    );
    let by_policy = named(&queues, "box");
    assert_eq!(by_policy["look"], "safe");
    assert_eq!(by_policy["fed_by"][0]["queue"], "b");
    let reasons = &by_policy["fed_by"][0]["reasons"];
    assert!(
        reasons
            .as_array()
            .is_some_and(|it| it.contains(&json!("maxlen"))),
        "{reasons}"
    );
    let limited = named(&queues, "limited");
    let expected = match vhost.version() {
        (3, _) => "safe",
        (4, 0..=2) => "counts",
        _ => "carried",
    };
    assert_eq!(limited["look"], expected);
    assert_eq!(limited["oldest_seconds"], Json::Null);

    let without = listed(&vhost, &["--no-look"], 3);
    assert_eq!(named(&without, "bin")["oldest_seconds"], Json::Null);
    vhost
        .mq(["dlq", "list"])
        .run()
        .code(0)
        .shows(&["FED BY", "a (rejected, expired)", "5 B"]);
    assert_eq!(vhost.ready("bin"), 1);
}

#[test]
fn what_workers_park_and_what_retries_bring_back_are_told_apart() {
    let vhost = Vhost::new();
    vhost.apply(
        "exchanges: { shop: { type: topic } }
workers:
  orders: { bind: [{ exchange: shop, key: 'order.*' }], retry: { strategy: dlx, delays: [10s], max_attempts: 3 } }
  mails: { retry: { strategy: backoff, delays: [1s, 10s], max_attempts: 3 } }
",
    );
    let queues = listed(&vhost, &[], 2);
    let names: Vec<&Json> = queues.iter().map(|queue| &queue["queue"]).collect();
    assert_eq!(names, ["mails.dlq", "orders.dlq"]);
    assert_eq!(queues[1]["fed_by"][0]["queue"], "orders");
}

#[test]
fn counts_that_are_not_told_yet_are_unknown_and_not_zero() {
    let vhost = Vhost::new();
    vhost.deadly_queue(
        "a",
        "classic",
        Reason::Rejected,
        DeadLetter::to_queue("dead"),
    );
    vhost.queue("dead", "classic", &json!({}));
    let seen = vhost.mq(["dlq", "list", "-o", "json"]).run().code(0);
    let queue = &seen.json()[0];
    assert_eq!(queue["queue"], "dead");
    // Unless the statistics were quick.
    if queue["ready"].is_null() {
        seen.says(&["does not tell yet which policies"]);
        assert_eq!(queue["consumers"], Json::Null);
    } else {
        assert_eq!(queue["ready"], 0);
    }
}

#[test]
fn all_vhosts_are_those_that_the_user_may_see() {
    let mut vhost = Vhost::new();
    vhost.deadly_queue(
        "a",
        "classic",
        Reason::Rejected,
        DeadLetter::to_queue("dead"),
    );
    vhost.queue("dead", "classic", &json!({}));
    let all = ["dlq", "list", "--all-vhosts"];
    let own = vhost.user("^$", "^$", ".*", "management");
    let at_own = vhost
        .management_url
        .replace("guest:guest", &format!("{own}:pw"));
    vhost
        .mq(all)
        .env("MQ_MANAGEMENT_URL", at_own)
        .run()
        .code(0)
        .shows(&["VHOST", &vhost.name, "a (rejected)"]);
}
