//! `mq topology route`: which queues a message reaches, and what becomes of it there.

use crate::support::{Mq, Ran, TextFile};

const FILE: &str = "version: 1
exchanges:
  orders: { type: topic, alternate: unrouted }
  audit: { type: headers }
  unrouted: { type: fanout }
  inner: { type: direct, internal: true }
  random: { type: x-random }
  dlx: { type: direct }
queues:
  work:
    type: quorum
    delivery_limit: 5
    max_length: 1000
    bind: [{ exchange: orders, key: 'order.*' }]
    dead_letter: { exchange: dlx, key: wait }
  wait:
    type: quorum
    delivery_limit: unlimited
    message_ttl: 30s
    bind: [{ exchange: dlx, key: wait }]
    dead_letter: { exchange: '', key: work }
  large: { type: classic, bind: [{ exchange: audit, arguments: { x-match: any, amount: 5 } }] }
  log: { type: stream, bind: [{ exchange: unrouted }] }
  limited: { type: quorum, dead_letter: { exchange: '', key: \"odd \\e[31mname\" } }
  \"odd \\e[31mname\": { type: classic, bind: [{ exchange: random }] }
bindings:
  - { source: orders, destination: audit, destination_type: exchange, key: '#.paid' }
  - { source: orders, destination: theirs, key: theirs }
elsewhere: { queues: [theirs] }
";

fn route(args: &[&str]) -> Ran {
    let file = TextFile::new("t.yaml", FILE);
    let path = file.path();
    let words = ["topology", "route", &path];
    Mq::new(words.iter().chain(args)).run()
}

#[test]
fn the_way_in_and_every_way_on_are_told() {
    let ran = route(&[
        "-e",
        "orders",
        "-k",
        "order.paid",
        "--header-json",
        "amount=5",
    ])
    .code(0);
    insta::assert_snapshot!(ran.stdout);
}

#[test]
fn alternate_exchanges_and_streams_are_told() {
    let ran = route(&["-e", "orders", "-k", "nobody.binds.this"]).code(0);
    insta::assert_snapshot!(ran.stdout);
}

#[test]
fn a_queue_declared_elsewhere_is_reached_and_no_further_known() {
    let ran = route(&["-e", "orders", "-k", "theirs"]).code(0);
    insta::assert_snapshot!(ran.stdout);
}

#[test]
fn names_cannot_drive_the_terminal_and_the_version_counts() {
    let ran = route(&["-e", "", "-k", "limited"]).code(0);
    insta::assert_snapshot!(ran.stdout);
    // Quorum queues have no limit of their own before 4.0.
    let old = route(&["-e", "", "-k", "limited", "--for", "3.10"]).code(0);
    assert!(!old.stdout.contains("delivery_limit"), "{}", old.stdout);
}

#[test]
fn json_says_the_same() {
    let ran = route(&[
        "-e",
        "orders",
        "-k",
        "order.paid",
        "-H",
        "a=b",
        "-o",
        "json",
    ])
    .code(0);
    insta::assert_snapshot!(ran.stdout);
}

#[test]
fn no_queue_is_67_and_no_exchange_65() {
    route(&["-e", "dlx", "-k", "nothing"])
        .code(67)
        .shows(&["→ no queue"])
        .says(&["reaches no queue", "bind a queue"]);
    route(&["-e", "", "-k", "nothing"])
        .code(67)
        .says(&["no such queue"]);
    route(&["-e", "random"])
        .code(67)
        .shows(&["'x-random', which mq does not simulate"]);
    route(&["-e", "ordres"])
        .code(65)
        .says(&["no exchange 'ordres'", "did you mean 'orders'?"]);
    route(&["-e", "inner"]).code(65).says(&["is internal"]);
    route(&["-e", "orders", "--header-json", "a={"])
        .code(64)
        .says(&["not JSON"]);
}

#[test]
fn copies_that_multiply_are_told_in_few_words() {
    for count in [8, 12] {
        let mut text = String::from("version: 1\nexchanges: { f: { type: fanout } }\nqueues:\n");
        for at in 0..count {
            text.push_str(&format!(
                "  q{at}: {{ message_ttl: 1s, bind: [{{ exchange: f }}], dead_letter: {{ exchange: f }} }}\n"
            ));
        }
        let file = TextFile::new("f.yaml", &text);
        let args = ["topology", "route", &file.path(), "-e", "f"];
        let json = Mq::new(args.iter().chain(&["-o", "json"])).run().code(0);
        assert!(json.stdout.len() < 1_000_000, "{}", json.stdout.len());
        assert_eq!(json.json()["reached"][0]["deaths"][0]["broken_off"], true);
        let text = Mq::new(args).run().code(0).stdout;
        assert!(text.len() < 200_000, "{}", text.len());
        assert!(
            text.contains("… and more, not all of them followed"),
            "{text}"
        );
    }
}
