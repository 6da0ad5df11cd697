//! Deaths, wait queues, cycles and what is lost on the way.

use super::*;
use crate::broker::BrokerFacts;
use crate::field::{FieldTable, FieldValue};
use crate::routing::Message;
use crate::topology::{ExchangeName, RoutingKey, Topology};
use crate::topologyfile::parsed as topology;

/// What becomes of a message published straight to `queue` that dies so there.
fn journey(topology: &Topology, queue: &str, death: Death) -> Journey {
    let exchange = ExchangeName::default_exchange();
    let key = RoutingKey::new(queue).expect("key");
    let router = Router::new(topology);
    let mut held = router.publish(&Message::new(exchange, key, FieldTable::new()));
    router.journey(held.pop().expect("a copy"), death)
}

fn told(journey: &Journey) -> String {
    let rests: Vec<&str> = journey.rests.iter().map(QueueName::as_str).collect();
    let lost: Vec<String> = journey
        .losses
        .iter()
        .map(|(queue, loss)| format!("{queue}: {loss}"))
        .collect();
    format!("[{}] {}", rests.join(" "), lost.join("; "))
}

const RETRY: &str = "
exchanges: { dlx: { type: direct } }
queues:
  work: { type: quorum, dead_letter: { exchange: dlx, key: wait } }
  wait: { message_ttl: 1s, bind: [{ exchange: dlx, key: wait }], dead_letter: { exchange: '', key: work } }
";

#[test]
fn only_a_rejection_comes_back_from_a_wait_queue() {
    let topology = topology(RETRY);
    let rejected = journey(&topology, "work", Death::Rejected);
    assert_eq!(told(&rejected), "[work] ");
    assert_eq!(
        rejected.passed(),
        BTreeSet::from([QueueName::new("wait").expect("name")])
    );
    let limit = journey(&topology, "work", Death::DeliveryLimit);
    assert_eq!(
        told(&limit),
        "[] wait: it would return to queue 'work' without a rejection since it left it, and the broker drops such a message"
    );
}

#[test]
fn what_is_wrong_with_the_exchange_is_told() {
    let topology = topology(
        "
exchanges: { dlx: { type: direct } }
queues:
  none: {}
  unbound: { dead_letter: { exchange: dlx } }
  missing: { type: quorum, overflow: reject-publish, dead_letter: { exchange: '', key: nobody, strategy: at-least-once } }
",
    );
    for (queue, expected) in [
        ("none", "none: the queue has no dead-letter exchange"),
        (
            "unbound",
            "unbound: exchange 'dlx' leads key 'unbound' nowhere",
        ),
        (
            "missing",
            "missing: kept in the queue for ever, unseen: there is no queue 'nobody'",
        ),
    ] {
        let told = told(&journey(&topology, queue, Death::Rejected));
        assert_eq!(told, format!("[] {expected}"));
    }
}

#[test]
fn a_second_rejection_protects_as_long_as_it_is_newer() {
    let topology = topology(RETRY);
    let router = Router::new(&topology);
    let key = RoutingKey::new("work").expect("key");
    let message = Message::new(ExchangeName::default_exchange(), key, FieldTable::new());
    let mut held = router.publish(&message).pop().expect("a copy");
    for _ in 0..3 {
        let mut arrived = router.die(held, Death::Rejected).arrived;
        let waiting = arrived.pop().expect("in wait");
        held = router
            .die(waiting, Death::Expired)
            .arrived
            .pop()
            .expect("in work");
        assert_eq!(held.deaths.len(), 2);
    }
    // The rejections are older than the stay in `wait`.
    let departure = router.die(held, Death::DeliveryLimit);
    assert!(departure.arrived.is_empty());
    assert_eq!(
        departure.losses,
        BTreeSet::from([Loss::Cycle(QueueName::new("wait").expect("name"))])
    );
}

#[test]
fn headers_exchanges_see_the_first_death() {
    let topology = topology(
        "
exchanges: { h: { type: headers } }
queues:
  work: { dead_letter: { exchange: h } }
  a: { bind: [{ exchange: h, arguments: { x-match: all-with-x, x-first-death-queue: work, x-first-death-reason: rejected } }] }
  b: { bind: [{ exchange: h, arguments: { x-match: all-with-x, x-first-death-reason: expired } }] }
",
    );
    assert_eq!(told(&journey(&topology, "work", Death::Rejected)), "[a] ");
    assert_eq!(told(&journey(&topology, "work", Death::Expired)), "[b] ");
}

#[test]
fn rings_and_long_chains_come_to_an_end() {
    let ring = |length: usize| {
        let mut yaml = String::from("queues:\n");
        for at in 0..length {
            let next = (at + 1) % length;
            yaml.push_str(&format!(
                "  q{at}: {{ message_ttl: 1s, dead_letter: {{ exchange: '', key: q{next} }} }}\n"
            ));
        }
        topology(&yaml)
    };
    for length in [1, 2, 3, 2_000] {
        let topology = ring(length);
        let rejected = journey(&topology, "q0", Death::Rejected);
        assert_eq!(told(&rejected), "[q0] ");
        assert_eq!(rejected.steps.len(), length);
        let expired = journey(&topology, "q0", Death::Expired);
        assert!(told(&expired).contains("return to queue 'q0'"));
    }
}

#[test]
fn copies_that_multiply_are_followed_only_so_far() {
    // Twenty layers of two queues, each of which leads to both of the next.
    let mut yaml = String::from("exchanges:\n");
    for at in 0..20 {
        yaml.push_str(&format!("  x{at}: {{ type: fanout }}\n"));
    }
    yaml.push_str("queues:\n");
    for at in 0..20 {
        for side in ["a", "b"] {
            yaml.push_str(&format!(
                "  {side}{at}: {{ message_ttl: 1s, bind: [{{ exchange: x{at} }}]{} }}\n",
                if at < 19 {
                    format!(", dead_letter: {{ exchange: x{} }}", at + 1)
                } else {
                    String::new()
                }
            ));
        }
    }
    let journey = journey(&topology(&yaml), "a0", Death::Rejected);
    assert!(journey.broken_off);
    assert!(journey.steps.len() <= 4 * MAX_BRANCHES);
}

/// Wait queues that all lead to all: every copy makes as many more.
#[test]
fn the_word_about_copies_that_multiply_stays_small() {
    for (count, key) in [(8, ""), (12, ""), (60, "a.b")] {
        let mut yaml = String::from("exchanges: { f: { type: fanout } }\nqueues:\n");
        for at in 0..count {
            yaml.push_str(&format!(
                "  q{at}: {{ message_ttl: 1s, bind: [{{ exchange: f }}], dead_letter: {{ exchange: f }} }}\n"
            ));
        }
        let topology = topology(&yaml);
        let router = Router::new(&topology);
        let exchange = ExchangeName::new("f").expect("name");
        let key = RoutingKey::new(key).expect("key");
        let outlook = router.outlook(Message::new(exchange, key, FieldTable::new()), None);
        let deaths = outlook.reached.iter().filter_map(|r| r.deaths.as_ref());
        for (death, journey) in deaths.flatten() {
            assert!(journey.broken_off, "{count} {death}");
            let steps = journey.steps.iter();
            let outcomes: usize = steps.map(|s| s.arrived.len() + s.losses.len()).sum();
            assert!(outcomes < 700, "{count} {death}: {outcomes} outcomes");
        }
    }
}

/// One dead letter for each of many wait queues, each with a way of its own.
#[test]
fn a_wide_fan_is_followed_to_its_end() {
    let mut yaml = String::from(
        "exchanges: { f: { type: fanout } }\nqueues:\n  work: { dead_letter: { exchange: f } }\n  end: {}\n",
    );
    for at in 0..600 {
        yaml.push_str(&format!(
            "  q{at}: {{ message_ttl: 1s, bind: [{{ exchange: f }}], dead_letter: {{ exchange: '', key: end }} }}\n"
        ));
    }
    let journey = journey(&topology(&yaml), "work", Death::Rejected);
    assert!(!journey.broken_off);
    assert_eq!(journey.copies.len(), 600);
}

#[test]
fn what_another_queue_took_is_not_kept_for_ever() {
    let topology = topology(
        "
exchanges: { both: { type: fanout }, self: { type: fanout } }
queues:
  two: { type: quorum, overflow: reject-publish, dead_letter: { exchange: both, strategy: at-least-once }, bind: [{ exchange: both }] }
  one: { type: quorum, overflow: reject-publish, dead_letter: { exchange: self, strategy: at-least-once }, bind: [{ exchange: self }] }
  other: { bind: [{ exchange: both }] }
",
    );
    for (queue, expected) in [
        ("two", "[other] two: it would return to queue 'two'"),
        (
            "one",
            "[] one: kept in the queue for ever, unseen: it would return to queue 'one'",
        ),
    ] {
        let told = told(&journey(&topology, queue, Death::Expired));
        assert!(told.starts_with(expected), "{told}");
    }
}

/// What versions do otherwise, all measured.
#[test]
fn message_containers_changed_what_a_headers_exchange_finds() {
    let topology = topology(
        "
exchanges: { h: { type: headers } }
queues:
  work: { dead_letter: { exchange: h, key: dead } }
  last: { bind: [{ exchange: h, arguments: { x-match: all-with-x, x-last-death-reason: rejected } }] }
  history: { bind: [{ exchange: h, arguments: { x-match: all-with-x, x-death: null } }] }
  cc: { bind: [{ exchange: h, arguments: { CC: null } }] }
",
    );
    for (version, expected) in [("3.10.8", "[history] "), ("4.0.5", "[cc last] ")] {
        let router = Router::on(&topology, &BrokerFacts::new("RabbitMQ", version));
        let headers = FieldTable::from([("CC".to_owned(), FieldValue::Array(Vec::new()))]);
        let key = RoutingKey::new("work").expect("key");
        let message = Message::new(ExchangeName::default_exchange(), key, headers);
        let held = router.publish(&message).pop().expect("a copy");
        assert_eq!(told(&router.journey(held, Death::Rejected)), expected);
    }
}

/// The list of deaths before 3.13 is turned around at each death, so that a
/// rejection long ago can come to stand before the one that makes a cycle.
#[test]
fn before_3_13_an_old_rejection_protects_at_times() {
    let topology = topology(
        "
queues:
  work: { message_ttl: 1s, dead_letter: { exchange: '', key: wait } }
  wait: { message_ttl: 1s, dead_letter: { exchange: '', key: work } }
",
    );
    for (version, comes_back) in [("3.10.8", true), ("4.0.5", false)] {
        let router = Router::on(&topology, &BrokerFacts::new("RabbitMQ", version));
        let key = RoutingKey::new("work").expect("key");
        let message = Message::new(ExchangeName::default_exchange(), key, FieldTable::new());
        let held = router.publish(&message).pop().expect("a copy");
        let mut rejected = router.journey(held, Death::Rejected);
        let back = rejected.copies.pop().expect("it comes back");
        let expired = router.journey(back, Death::Expired);
        assert_eq!(!expired.copies.is_empty(), comes_back, "{version}");
    }
}
