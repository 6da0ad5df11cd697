//! The `tests:` of topology files: read, and run without a broker.

use crate::support::{Mq, TextFile};

#[test]
fn what_is_wrong_in_tests_is_a_mistake() {
    let mistakes = |text: &str| {
        let file = TextFile::new("t.yaml", text);
        let ran = Mq::new(["topology", "validate", &file.path()])
            .run()
            .code(65);
        file.normalise(&ran.stderr)
    };
    insta::assert_snapshot!(mistakes(
        "version: 1
exchanges: { in: { type: topic } }
queues: { work: {} }
tests:
  - { reaches: [work] }
  - { name: empty, publish: { exchange: in } }
  - { name: forgotten, publish: { exchange: in }, reaches: }
  - { name: 5, publish: { exchange: in, keys: a }, reaches: work }
  - { publish: { exchange: in, headers: { CC: text } }, reaches: ['', 7], reject: [work] }
"
    ));
    insta::assert_snapshot!(mistakes(
        "version: 1
exchanges: { in: { type: topic } }
queues: { work: {} }
tests:
  - { name: names, publish: { exchange: inn }, reaches: [work], rejected: [wrok] }
"
    ));
}

const OBJECTS: &str = "version: 1
exchanges:
  orders: { type: topic }
  random: { type: x-random }
  dlx: { type: direct }
queues:
  work: { type: quorum, delivery_limit: 5, bind: [{ exchange: orders, key: 'order.*' }], dead_letter: { exchange: dlx, key: wait } }
  wait: { type: quorum, delivery_limit: unlimited, message_ttl: 5s, bind: [{ exchange: dlx, key: wait }], dead_letter: { exchange: '', key: work } }
  dlq: { type: classic, bind: [{ exchange: dlx, key: dead }] }
tests:
";

const GOOD: &str = "  - name: a paid order is worked again
    publish: { exchange: orders, key: order.paid }
    reaches: [work]
    rejected: [work]
    delivery_limit: []
  - { publish: { exchange: '', key: dlq }, reaches: [dlq], expired: [] }
";

const BAD: &str = "  - name: \"<lost> \\e[31m& 'found'\"
    publish: { exchange: orders, key: order.paid }
    reaches: [dlq]
    rejected: [work]
    delivery_limit: [dlq]
    max_length: []
  - { publish: { exchange: orders, key: refund }, reaches: [work] }
  - { publish: { exchange: random }, reaches: [] }
";

#[test]
fn tests_that_hold_pass() {
    let file = TextFile::new("t.yaml", &format!("{OBJECTS}{GOOD}"));
    let path = file.path();
    let ran = Mq::new(["topology", "test", &path]).run().code(0);
    insta::assert_snapshot!(file.normalise(&ran.stdout));
    let quiet = Mq::new(["topology", "test", "--quiet", &path])
        .run()
        .code(0);
    assert_eq!(quiet.stdout, "");
    let ran = Mq::new(["topology", "test", "-o", "json", &path])
        .run()
        .code(0);
    insta::assert_snapshot!(file.normalise(&ran.stdout));
}

#[test]
fn tests_that_do_not_hold_say_where_the_message_went() {
    let file = TextFile::new("t.yaml", &format!("{OBJECTS}{GOOD}{BAD}"));
    let path = file.path();
    let junit = file.path().replace("t.yaml", "report.xml");
    let ran = Mq::new(["topology", "test", &path, "--junit", &junit])
        .run()
        .code(1);
    insta::assert_snapshot!(file.normalise(&ran.stdout));
    let xml = read(&junit);
    insta::assert_snapshot!(file.normalise(&xml));
    assert!(xml.chars().all(|c| c == '\n' || !c.is_control()), "{xml}");
    let quiet = Mq::new(["topology", "test", "--quiet", &path])
        .run()
        .code(1);
    assert!(!quiet.stdout.contains("ok "), "{}", quiet.stdout);
    assert!(quiet.stdout.contains("3 of 5 tests failed"));
}

#[expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "reads what mq wrote"
)]
fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_version_decides_and_a_prefix_changes_nothing() {
    let file = TextFile::new(
        "t.yaml",
        "version: 1
queues: { q: { type: quorum } }
tests: [{ publish: { exchange: '', key: q }, reaches: [q], delivery_limit: [] }]
",
    );
    for (version, code) in [("3.10", 1), ("4.0", 0)] {
        Mq::new([
            "topology",
            "test",
            "--for",
            version,
            "--prefix",
            "ci.",
            &file.path(),
        ])
        .run()
        .code(code);
    }
}

#[test]
fn nothing_tested_is_no_success() {
    Mq::new(["topology", "test", "-"])
        .stdin("version: 1\nqueues: { q: {} }\n")
        .run()
        .code(65)
        .says(&["no tests", "add `tests:`"]);
}

#[test]
fn a_report_that_cannot_be_written_is_74_and_the_results_are_told() {
    let file = TextFile::new("t.yaml", &format!("{OBJECTS}{GOOD}"));
    Mq::new([
        "topology",
        "test",
        &file.path(),
        "--junit",
        "/nowhere/report.xml",
    ])
    .run()
    .code(74)
    .shows(&["2 tests passed"])
    .says(&["/nowhere/report.xml", "--junit"]);
}

#[test]
fn live_needs_a_broker_and_everything_declared() {
    let file = TextFile::new("t.yaml", &format!("{OBJECTS}{GOOD}"));
    Mq::new(["topology", "test", "--live", &file.path()])
        .env("MQ_URL", "amqp://127.0.0.1:1")
        .env("MQ_MANAGEMENT_URL", "http://127.0.0.1:1")
        .run()
        .code(69)
        .says(&["without --live the tests need no broker"]);
    let elsewhere = format!("{OBJECTS}{GOOD}elsewhere: {{ queues: [theirs] }}\n");
    Mq::new(["topology", "test", "--live", "-"])
        .stdin(elsewhere)
        .run()
        .code(65)
        .says(&["theirs", "without --live"]);
}

#[test]
fn the_shipped_tests_hold() {
    Mq::new(["topology", "test", "topologies/orders.yaml"])
        .run()
        .code(0);
    Mq::new(["topology", "test", "topologies/workers.yaml"])
        .run()
        .code(0);
}
