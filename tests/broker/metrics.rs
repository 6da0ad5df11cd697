//! The metrics and the health of a worker, as Prometheus and a supervisor ask for them.
#![expect(
    clippy::expect_used,
    reason = "helpers outside #[test] functions ask a worker that must answer"
)]

use std::net::{TcpListener, TcpStream};

use rustix::process::Signal;

use crate::consume::{IMMEDIATE, of_type};
use crate::proxy::Proxy;
use crate::support::exposition::{Exposition, ask};
use crate::support::{Mq, Running, Script, wait_for};
use crate::vhost::Vhost;

fn worker(vhost: &Vhost, args: &[&str], handler: &Script) -> Mq {
    let words = ["consume", "work", "--metrics", "0"].iter().chain(args);
    let command = ["--exec".into(), handler.path()];
    vhost.mq(words.map(Into::into).chain(command))
}

/// Where it says that it listens.
fn address(running: &mut Running) -> String {
    running.wait_for_stderr("/metrics\n");
    let said = running.stderr_so_far();
    let (_, rest) = said
        .split_once("mq: metrics at http://")
        .expect("an address");
    rest.split_once("/metrics\n").expect("a path").0.to_owned()
}

#[track_caller]
fn wait_for_ready(address: &str, status: u16, word: &str) {
    wait_for(&format!("/readyz to say {status} {word}"), || {
        let answer = ask(address, "GET", "/readyz").ok_or("but nobody answers")?;
        let is_it = answer.status == status && answer.body == format!("{word}\n");
        is_it.then_some(()).ok_or_else(|| format!("{answer:?}"))
    });
}

fn scrape(address: &str) -> Exposition {
    let answer = ask(address, "GET", "/metrics").expect("an answer");
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    Exposition::parse(&answer.body)
}

#[track_caller]
fn wait_for_sum(address: &str, name: &str, sum: u64) {
    wait_for(&format!("{name} to be {sum}"), || {
        let is = scrape(address).sum(name, &[]);
        (is == sum)
            .then_some(())
            .ok_or_else(|| format!("it is {is}"))
    });
}

#[test]
fn the_counts_are_those_of_the_summary() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    let bodies = ["good", "bad", "once", "never", "good"].map(|body| format!("{body}\n"));
    vhost.publish_all("work", &bodies);
    let handler = Script::new(
        "read -r body
        case $body in
          bad) exit 65 ;;
          never) exit 1 ;;
          once) [ \"$MQ_ATTEMPT\" -gt 1 ] || exit 1 ;;
        esac",
    );
    let mut running = worker(&vhost, &["-o", "json", "--max-attempts", "3"], &handler).spawn();
    let address = address(&mut running);
    // Somebody who says nothing is in nobody's way.
    let silent = TcpStream::connect(&address).expect("a connection");
    wait_for_sum(&address, "mq_dead_lettered_total", 2);
    wait_for_sum(&address, "mq_acked_total", 3);
    let page = scrape(&address);
    let labelled = page.sum(
        "mq_received_total",
        &[("vhost", &vhost.name), ("queue", "work")],
    );
    assert_eq!(labelled, 5);
    for (outcome, attempts) in [
        ("done", 3),
        ("poison", 1),
        ("failed", 4),
        ("interrupted", 0),
    ] {
        let count = page.sum("mq_handler_seconds_count", &[("outcome", outcome)]);
        assert_eq!(count, attempts, "{outcome}");
    }
    drop(silent);
    running.signal(Signal::TERM);
    let summary = running.wait().code(0).json();
    for name in [
        "received",
        "acked",
        "retried",
        "deduplicated",
        "released",
        "unsettled",
    ] {
        let sum = page.sum(&format!("mq_{name}_total"), &[]);
        assert_eq!(summary[name], sum, "{name}");
    }
    for reason in ["poison", "exhausted", "returned"] {
        let sum = page.sum("mq_dead_lettered_total", &[("reason", reason)]);
        assert_eq!(summary["dead_lettered"][reason], sum, "{reason}");
    }
    assert_eq!(summary["retried"], 3);
    assert!(ask(&address, "GET", "/metrics").is_none());
}

#[test]
fn it_is_answered_before_the_broker_is() {
    let vhost = Vhost::new();
    // Takes connections and says nothing.
    let deaf = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = vhost.url_at(
        "guest",
        "guest",
        &deaf.local_addr().expect("an address").to_string(),
    );
    let handler = Script::new("exit 0");
    let mut running = worker(&vhost, &["--timeout", "1m"], &handler)
        .env("MQ_URL", url)
        .spawn();
    let address = address(&mut running);
    wait_for_ready(&address, 503, "connecting");
    assert_eq!(
        ask(&address, "GET", "/healthz").expect("an answer").status,
        200
    );
    let page = scrape(&address);
    assert_eq!(page.sum("mq_connected", &[]), 0);
    assert_eq!(page.sum("mq_received_total", &[]), 0);
    assert_eq!(page.sum("mq_healthy", &[]), 1);
    let methods = ask(&address, "DELETE", "/healthz").expect("an answer");
    assert_eq!(
        (methods.status, methods.header("allow")),
        (405, Some("GET, HEAD"))
    );
    assert_eq!(ask(&address, "GET", "/").expect("an answer").status, 404);
    running.signal(Signal::TERM);
    running.wait().code(0);
}

#[test]
fn readiness_follows_the_connection_and_the_drain() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    let proxy = Proxy::to(vhost.address());
    let endpoint = vhost.endpoint();
    let url = vhost.url_at(&endpoint.user, endpoint.password.reveal(), &proxy.address);
    let handler = Script::new("while [ ! -e $(dirname $0)/go ]; do sleep 0.02; done");
    let mut running = worker(&vhost, &["-o", "json"], &handler)
        .env("MQ_URL", url)
        .spawn();
    let address = address(&mut running);
    wait_for_ready(&address, 200, "ready");

    proxy.let_through(false);
    proxy.cut();
    wait_for_ready(&address, 503, "reconnecting");
    assert_eq!(
        ask(&address, "GET", "/healthz").expect("an answer").status,
        200
    );
    assert_eq!(scrape(&address).sum("mq_connected", &[]), 0);
    proxy.let_through(true);
    wait_for_ready(&address, 200, "ready");
    let page = scrape(&address);
    assert_eq!(page.sum("mq_connected", &[]), 1);
    assert_eq!(page.sum("mq_reconnects_total", &[]), 1);

    vhost.publish("work", "x");
    wait_for_sum(&address, "mq_in_flight", 1);
    running.signal(Signal::TERM);
    wait_for_ready(&address, 503, "draining");
    let page = scrape(&address);
    assert_eq!(
        (page.sum("mq_draining", &[]), page.sum("mq_in_flight", &[])),
        (1, 1)
    );
    handler.leave("go");
    let summary = running.wait().code(0).json();
    assert_eq!(summary["acked"], 1);
    assert!(ask(&address, "GET", "/healthz").is_none());
}

#[test]
fn quiet_tells_no_address() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    let handler = Script::new("exit 0");
    let ran = worker(&vhost, &["--quiet", "--until-empty"], &handler)
        .run()
        .code(0);
    assert_eq!(ran.stderr, "");
}
