//! Deaths, wait queues, cycles and what is lost on the way.

use super::*;
use crate::diagnostic::Source;
use crate::field::FieldTable;
use crate::routing::Message;
use crate::topology::{ExchangeName, RoutingKey, Topology};

fn topology(yaml: &str) -> Topology {
    let source = Source {
        name: "t.yaml".to_owned(),
        text: format!("version: 1\n{yaml}"),
    };
    crate::topologyfile::parse(std::slice::from_ref(&source), &|_| None)
        .unwrap_or_else(|found| panic!("{}", crate::diagnostic::render(&found, &[source])))
}

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
    assert_eq!(journey.steps.len(), MAX_STEPS);
}
