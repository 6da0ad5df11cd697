//! `mq topology test --live`: tests of a topology, done for real and cleaned up.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test, outside #[test] functions"
)]

use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value as Json, json};

use crate::proxy::Proxy;
use crate::support::{Mq, Ran, wait_until};
use crate::vhost::Vhost;

fn live(vhost: &Vhost, text: &str, args: &[&str]) -> Ran {
    let words: Vec<&str> = ["test", "--live"].iter().chain(args).copied().collect();
    vhost.topology(text, &words).run()
}

/// The temporary vhosts that a run with -v spoke of.
fn spoken_of(stderr: &str) -> Vec<String> {
    // Users of tests have such names too.
    let names = stderr.split("vhost=\"mq-test-").skip(1);
    let mut names: Vec<String> = names
        .map(|rest| {
            let random: String = rest
                .chars()
                .take_while(char::is_ascii_alphanumeric)
                .collect();
            format!("mq-test-{random}")
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

fn there(vhost: &Vhost, name: &str) -> bool {
    let vhosts = vhost.get(&["vhosts"]);
    let vhosts = vhosts.as_array().unwrap();
    vhosts.iter().any(|vhost| vhost["name"] == name)
}

#[track_caller]
fn assert_gone(vhost: &Vhost, stderr: &str) {
    let names = spoken_of(stderr);
    assert!(!names.is_empty(), "no temporary vhost in\n{stderr}");
    for name in names {
        assert!(!there(vhost, &name), "{name} is left");
    }
}

/// A work queue that every message can leave in every way, and ways in of every kind.
const LOOP: &str = "version: 1
exchanges:
  orders: { type: topic, alternate: unrouted }
  unrouted: { type: fanout }
  kinds: { type: headers }
  dlx: { type: direct }
queues:
  work:
    type: quorum
    delivery_limit: 100
    message_ttl: 10m
    max_length: 1000
    bind: [{ exchange: orders, key: 'order.*' }]
    dead_letter: { exchange: dlx, key: wait }
  wait:
    type: quorum
    delivery_limit: unlimited
    message_ttl: 30s
    bind: [{ exchange: dlx, key: wait }]
    dead_letter: { exchange: '', key: work }
  audit: { type: stream, bind: [{ exchange: orders, key: 'order.*' }] }
  rest: { type: classic, bind: [{ exchange: unrouted }] }
  invoices: { type: classic, bind: [{ exchange: kinds, arguments: { kind: invoice, n: 5 } }] }
tests:
  - name: the loop
    publish: { exchange: orders, key: order.paid }
    reaches: [audit, work]
    rejected: [work]
    expired: []
    max_length: []
    delivery_limit: []
  - { publish: { exchange: orders, key: refund }, reaches: [rest] }
  - { publish: { exchange: kinds, headers: { kind: invoice, n: 5 } }, reaches: [invoices] }
  - { publish: { exchange: kinds, headers: { kind: invoice, n: 6 } }, reaches: [] }
  - { publish: { exchange: dlx, key: wait, headers: { CC: [nobody] } }, reaches: [wait], expired: [] }
";

/// Queues of every type and limit, copies, losses and policies.
const DEATHS: &str = "version: 1
exchanges: { fan: { type: fanout }, dlx: { type: direct } }
queues:
  limited: { type: quorum, delivery_limit: 2, dead_letter: { exchange: '', key: end } }
  full: { type: classic, max_length: 3, overflow: reject-publish-dlx, dead_letter: { exchange: '', key: end } }
  bytes: { type: classic, max_length_bytes: 1MiB, dead_letter: { exchange: '', key: end } }
  lossy: { type: classic }
  left: { type: quorum, delivery_limit: unlimited, bind: [{ exchange: fan }], dead_letter: { exchange: '', key: end } }
  right: { type: classic, message_ttl: 1h, bind: [{ exchange: fan }], dead_letter: { exchange: '', key: rest } }
  safe: { type: quorum, delivery_limit: unlimited, overflow: reject-publish, dead_letter: { exchange: '', key: end, strategy: at-least-once } }
  stuck: { type: quorum, delivery_limit: unlimited, overflow: reject-publish, dead_letter: { exchange: dlx, key: nobody, strategy: at-least-once } }
  pol.work: { type: classic }
  pol.wait: { type: classic, dead_letter: { exchange: '', key: end } }
  single: { type: quorum, delivery_limit: unlimited, single_active_consumer: true, expires: 1s, dead_letter: { exchange: '', key: end } }
  rest: { type: classic }
  end: { type: classic, message_ttl: 1m }
policies:
  work: { pattern: '^pol[.]work$', apply_to: queues, definition: { dead-letter-exchange: '', dead-letter-routing-key: pol.wait, max-length: 100000 } }
  wait: { pattern: '^pol[.]wait$', apply_to: queues, definition: { message-ttl: 60000 } }
tests:
  - { publish: { exchange: '', key: limited }, rejected: [end], expired: [end], delivery_limit: [end] }
  - { publish: { exchange: '', key: full }, reaches: [full], max_length: [end] }
  - { publish: { exchange: '', key: bytes }, max_length: [end] }
  - { publish: { exchange: '', key: lossy }, rejected: [], expired: [] }
  - { publish: { exchange: fan }, reaches: [left, right], rejected: [end, rest], expired: [end, rest] }
  - { publish: { exchange: '', key: safe }, rejected: [end] }
  - { publish: { exchange: '', key: stuck }, rejected: [] }
  - { publish: { exchange: '', key: pol.work }, rejected: [end], max_length: [end] }
  - { publish: { exchange: '', key: single }, rejected: [end], expired: [end] }
";

#[test]
fn every_way_in_and_every_way_out_of_a_loop_is_as_simulated() {
    let vhost = Vhost::new();
    let ran = live(&vhost, LOOP, &["-v"]).code(0);
    let ran = ran.shows(&["5 tests passed", "on RabbitMQ"]);
    assert_gone(&vhost, &ran.stderr);
    // The vhost of the user was never touched.
    assert_eq!(vhost.get(&["queues", &vhost.name]), json!([]));
}

#[test]
fn every_death_goes_where_the_simulation_says() {
    let vhost = Vhost::new();
    let ran = live(&vhost, DEATHS, &["-v"]).code(0);
    let ran = ran.shows(&["9 tests passed"]);
    assert_gone(&vhost, &ran.stderr);
}

const SMALL: &str = "version: 1
exchanges: { in: { type: direct }, dlx: { type: direct } }
queues:
  work: { type: quorum, delivery_limit: 2, bind: [{ exchange: in, key: k }], dead_letter: { exchange: dlx, key: wait } }
  wait: { type: quorum, delivery_limit: unlimited, message_ttl: 5s, bind: [{ exchange: dlx, key: wait }], dead_letter: { exchange: '', key: work } }
  dlq: { type: quorum, delivery_limit: unlimited, bind: [{ exchange: dlx, key: dead }] }
tests:
";

#[test]
fn an_expectation_that_does_not_hold_fails_with_what_was_seen() {
    let vhost = Vhost::new();
    let text = format!(
        "{SMALL}  - {{ name: exhausted, publish: {{ exchange: in, key: k }}, reaches: [dlq], rejected: [dlq], delivery_limit: [dlq] }}
  - {{ name: right, publish: {{ exchange: in, key: k }}, reaches: [work] }}\n"
    );
    let ran = live(&vhost, &text, &["-v", "-o", "json"]).code(1);
    assert_gone(&vhost, &ran.stderr);
    let json = ran.json();
    assert_eq!(json["failed"], 1);
    let live: Vec<&Json> = json["tests"][0]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| &check["live"]["queues"])
        .collect();
    assert_eq!(live, [&json!(["work"]), &json!(["work"]), &json!([])]);
    live_text(&vhost, &text);
}

fn live_text(vhost: &Vhost, text: &str) {
    live(vhost, text, &[]).code(1).shows(&[
        "FAILED  exhausted  (<stdin>:8)",
        "reaches: expected dlq; on the broker it is work",
        "rejected: expected dlq; on the broker it is work",
        "seen: in work, after it was rejected in work, then expired in wait",
        "delivery_limit: expected dlq; on the broker it is lost",
        "ok      right",
        "1 of 2 tests failed",
    ]);
}

/// A message larger than its queue may hold is dropped at once; the simulation
/// knows no sizes.
#[test]
fn where_broker_and_simulation_differ_the_test_fails_whatever_it_expects() {
    let vhost = Vhost::new();
    for expected in ["[tiny]", "[]"] {
        let text = format!(
            "version: 1
queues: {{ tiny: {{ type: classic, max_length_bytes: 1B }} }}
tests: [{{ publish: {{ exchange: '', key: tiny }}, reaches: {expected} }}]
"
        );
        live(&vhost, &text, &[]).code(1).shows(&[
            "on the broker it is no queue",
            "the simulation says otherwise: tiny",
        ]);
    }
}

#[test]
fn a_signal_ends_it_and_the_vhost_goes() {
    let vhost = Vhost::new();
    let mut text = SMALL.to_owned();
    for _ in 0..30 {
        text.push_str("  - { publish: { exchange: in, key: k }, rejected: [work] }\n");
    }
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut running = vhost.topology(&text, &["test", "--live", "-vv"]).spawn();
        running.wait_for_stderr("testing test=");
        let name = spoken_of(&running.stderr_so_far()).pop().unwrap();
        assert!(there(&vhost, &name), "{name} is not there yet");
        running.signal(signal);
        let ran = running.wait().code(code);
        assert!(ran.stdout.is_empty(), "{}", ran.stdout);
        assert_gone(&vhost, &ran.stderr);
    }
}

#[test]
fn a_test_without_a_confirm_fails_alone() {
    let vhost = Vhost::new();
    let text = format!(
        "{SMALL}  - {{ name: unconfirmed, publish: {{ exchange: in, key: k }}, reaches: [work] }}
  - {{ name: right, publish: {{ exchange: in, key: k }}, reaches: [work] }}\n"
    );
    let proxy = Proxy::to(vhost.address());
    proxy.keep_back_confirms(1);
    let ran = vhost
        .topology(&text, &["test", "--live", "-v", "--timeout", "3s"])
        .env("MQ_URL", vhost.url_at("guest", "guest", &proxy.address))
        .run()
        .code(1);
    let ran = ran.shows(&[
        "FAILED  unconfirmed",
        "on the broker it is unknown: publish to exchange 'in': no confirm within 3s",
        "ok      right",
        "1 of 2 tests failed",
    ]);
    assert!(!ran.stderr.contains("--confirm-timeout"), "{}", ran.stderr);
    assert_gone(&vhost, &ran.stderr);
}

#[test]
fn what_cannot_be_declared_is_told_and_the_vhost_goes() {
    let vhost = Vhost::new();
    let text = "version: 1
exchanges: { odd: { type: x-not-there } }
tests: [{ publish: { exchange: odd }, reaches: [] }]
";
    let ran = live(&vhost, text, &["-v"]);
    assert_ne!(ran.code, 0);
    let ran = ran.says(&["x-not-there"]);
    assert_gone(&vhost, &ran.stderr);
}

/// mq as this user on both ways.
fn as_user(vhost: &Vhost, user: &str, text: &str, args: &[&str]) -> Mq {
    let words: Vec<&str> = ["test", "--live"].iter().chain(args).copied().collect();
    let management = vhost
        .management_url
        .replace("guest:guest", &format!("{user}:pw"));
    assert_ne!(management, vhost.management_url);
    vhost
        .topology(text, &words)
        .env("MQ_URL", vhost.url_of(user, "pw"))
        .env("MQ_MANAGEMENT_URL", management)
}

#[test]
fn it_takes_an_administrator_and_says_that_offline_does_not() {
    let mut vhost = Vhost::new();
    let user = vhost.user(".*", ".*", ".*", "monitoring");
    let text = format!("{SMALL}  - {{ publish: {{ exchange: in, key: k }}, reaches: [work] }}\n");
    as_user(&vhost, &user, &text, &[])
        .run()
        .code(77)
        .says(&["administrator", "without --live"]);
}

#[test]
fn a_vhost_that_cannot_be_deleted_is_named_with_the_way_out() {
    let mut vhost = Vhost::new();
    let user = vhost.user(".*", ".*", ".*", "administrator");
    let mut text = SMALL.to_owned();
    // Enough of them that it is stopped before the last one, also on a busy machine.
    for _ in 0..50 {
        text.push_str("  - { publish: { exchange: in, key: k }, reaches: [work] }\n");
    }
    let mut running = as_user(&vhost, &user, &text, &["-vv"]).spawn();
    running.wait_for_stderr("testing test=");
    let name = spoken_of(&running.stderr_so_far()).pop().unwrap();
    running.signal(Signal::STOP);
    let nobody = json!({"password": "pw", "tags": ""});
    vhost.api(Method::PUT, &["users", &user], &nobody);
    running.signal(Signal::CONT);
    let ran = running.wait().code(3);
    ran.says(&[&name, &format!("rabbitmqctl delete_vhost {name}")]);
    vhost.api(Method::DELETE, &["vhosts", &name], &json!({}));
    wait_until("the vhost to go", || !there(&vhost, &name));
}
