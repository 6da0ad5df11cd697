//! The metrics page is what Prometheus reads, byte for byte as it was reviewed.

use std::collections::BTreeSet;
use std::time::Duration;

use mq::metrics::{Labels, NAMES, metrics_text};
use mq::retry::Outcome;
use mq::worker::{Counts, Link, Status};

use crate::support::Mq;
use crate::support::exposition::Exposition;

fn labels(queue: &str) -> Labels {
    Labels {
        vhost: "/".to_owned(),
        queue: queue.to_owned(),
    }
}

fn page(queue: &str, status: &Status) -> String {
    metrics_text(
        &labels(queue),
        Duration::from_millis(1_764_475_200_250),
        status,
    )
}

fn busy() -> Status {
    let mut status = Status {
        counts: Counts {
            received: 40,
            acked: 20,
            retried: 7,
            poison: 1,
            exhausted: 2,
            returned: 3,
            deduplicated: 4,
            released: 5,
            unsettled: 6,
        },
        in_flight: 8,
        link: Link::Up,
        paused: true,
        stopping: false,
        reconnects: 9,
        ..Status::default()
    };
    for (outcome, milliseconds) in [
        (Outcome::Done, 0),
        (Outcome::Done, 7),
        (Outcome::Done, 7_200_000),
        (Outcome::Poison { why: String::new() }, 2_500),
    ] {
        let took = Duration::from_millis(milliseconds);
        status.handler_times.add(&outcome, took);
    }
    status
}

#[test]
fn a_busy_worker() {
    let text = page("orders.queue", &busy());
    insta::assert_snapshot!("busy_worker", text);
    let page = Exposition::parse(&text);
    assert_eq!(page.sum("mq_dead_lettered_total", &[]), 6);
    assert_eq!(
        page.sum("mq_handler_seconds_count", &[("outcome", "done")]),
        3
    );
}

#[test]
fn every_series_exists_from_the_start() {
    let (fresh, busy) = (
        Exposition::parse(&page("q", &Status::default())),
        Exposition::parse(&page("q", &busy())),
    );
    assert!(fresh.series.keys().eq(busy.series.keys()));
    for ((name, labels), value) in &fresh.series {
        let is_always = ["mq_info", "process_start_time_seconds", "mq_healthy"];
        assert_eq!(*value > 0.0, is_always.contains(&name.as_str()), "{name}");
        let names: Vec<&str> = labels.iter().map(|(label, _)| label.as_str()).collect();
        assert!(names.starts_with(&["vhost", "queue"]), "{name} {names:?}");
    }
    let names: BTreeSet<&str> = NAMES.into_iter().collect();
    let told: BTreeSet<&str> = fresh.kinds.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, told);
    assert_eq!(NAMES.len(), fresh.kinds.len());
}

#[test]
fn a_name_cannot_forge_a_series() {
    let hostile = "a\"} 1\nmq_acked_total{queue=\"b\\";
    let page = Exposition::parse(&page(hostile, &Status::default()));
    let with = |queue| page.series.keys().any(|(_, labels)| labels[1].1 == queue);
    assert!(with(hostile) && !with("b\\"));
}

#[test]
fn a_stuck_worker_says_so() {
    let status = Status {
        link: Link::Up,
        since_turn: Duration::from_hours(1),
        ..Status::default()
    };
    let page = Exposition::parse(&page("q", &status));
    assert_eq!(page.sum("mq_healthy", &[]), 0);
}

#[test]
fn an_address_that_cannot_be_is_told_before_anything_else() {
    for (address, says) in [
        ("everywhere", "is no address to listen at"),
        ("127.0.0.1:70000", "is no address to listen at"),
        (
            "192.0.2.1:9464",
            "cannot serve metrics at 192.0.2.1, port 9464",
        ),
    ] {
        Mq::new(["consume", "q", "--print", "--metrics", address])
            .env("MQ_URL", "amqp://127.0.0.1:1")
            .run()
            .code(78)
            .says(&[says, "help:"]);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    Mq::new(["consume", "q", "--print", "--metrics", &address])
        .env("MQ_URL", "amqp://127.0.0.1:1")
        .run()
        .code(69)
        .says(&["cannot serve metrics at 127.0.0.1, port", "port 0"]);
}
