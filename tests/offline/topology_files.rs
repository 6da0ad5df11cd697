//! Topology files: every mistake is shown at once, with its place and the way out.
#![expect(
    clippy::disallowed_methods,
    reason = "a test that writes the files it names"
)]

use crate::support::{Mq, TextFile};

/// The messages of `validate` for this text, with the changing folder replaced.
fn mistakes(text: &str) -> String {
    let file = TextFile::new("t.yaml", text);
    let ran = Mq::new(["topology", "validate", &file.path()])
        .run()
        .code(65);
    assert!(ran.stdout.is_empty());
    file.normalise(&ran.stderr)
}

#[test]
fn every_mistake_is_shown_at_once() {
    insta::assert_snapshot!(mistakes(
        r#"version: 1
exchanges:
  orders: { type: topic }
  amq.mine: { type: direct }
  x: { typ: direct }
queues:
  a:
    type: quorm
    durable: yes
    delivery_limit: -1
    message_ttl: 500
    max_length: "100"
    overflow: drop
    bind: [ { exchange: orders, key: k, colour: red } ]
    dead_letter: { key: z }
    arguments: { x-message-ttl: 5 }
    retry: { strategy: magic, max_attempts: 0 }
  amq.b:
"#
    ));
}

#[test]
fn references_are_checked_once_everything_can_be_read() {
    insta::assert_snapshot!(mistakes(
        "version: 1
exchanges:
  orders: { type: topic, alternate: unrouted }
queues:
  a:
    bind: [ { exchange: ordres, key: k }, { exchange: orders } ]
    dead_letter: { exchange: nowhere }
bindings:
  - { source: orders, destination: missing, key: k }
  - { source: orders, destination: other, destination_type: exchange, key: k }
"
    ));
}

#[test]
fn a_retry_that_cannot_work_is_a_mistake() {
    insta::assert_snapshot!(mistakes(
        "version: 1
exchanges:
  in: { type: direct }
  dlx: { type: direct }
queues:
  lost:
    bind: [ { exchange: in, key: new } ]
    dead_letter: { exchange: dlx }
    retry: { max_attempts: 3 }
  wrong:
    dead_letter: { exchange: dlx, key: dead }
    retry: { strategy: dlx }
  dead: { bind: [ { exchange: dlx, key: dead } ] }
"
    ));
}

#[test]
fn what_a_type_or_a_strategy_cannot_have_is_a_mistake() {
    insta::assert_snapshot!(mistakes(
        "version: 1
exchanges: { dlx: { type: fanout } }
queues:
  classic: { type: classic, delivery_limit: 3, dead_letter: { exchange: dlx, strategy: at-least-once } }
  quorum: { type: quorum, max_priority: 9, durable: false, overflow: reject-publish-dlx }
  log: { type: stream, message_ttl: 1h, max_age: 1 month, max_segment_size: 4GB, filter_size: 15B }
  any: { initial_cluster_size: 3, delayed_retry: { type: all } }
  late: { type: quorum, delayed_retry: { type: sometimes, min: 1m, max: 1s } }
policies:
  p: { pattern: '^q', definition: { dead-letter-strategy: at-least-twice, delayed-retry-min: 1s } }
"
    ));
    insta::assert_snapshot!(mistakes(
        "version: 1
exchanges: { dlx: { type: fanout } }
queues:
  untyped: { overflow: reject-publish, dead_letter: { exchange: dlx, strategy: at-least-once } }
  drops: { type: quorum, dead_letter: { exchange: dlx, strategy: at-least-once } }
  policy: { type: quorum, dead_letter: { exchange: dlx } }
  rest: { type: quorum, bind: [ { exchange: dlx } ] }
policies:
  safe: { pattern: '^(policy|rest)$', definition: { dead-letter-strategy: at-least-once } }
"
    ));
}

#[test]
fn a_worker_that_cannot_be_written_out_is_a_mistake() {
    insta::assert_snapshot!(mistakes(
        "version: 1
queues:
  taken.dlq: {}
workers:
  taken: { retry: { delays: [10s] } }
  none: {}
  waits: { retry: { strategy: dlx } }
  two: { retry: { delays: [1s, 10s] } }
  back: { retry: { strategy: backoff, delays: [10s, 1s] } }
  many: { retry: { strategy: backoff, delays: [1s, 2s, 3s], max_attempts: 3 } }
  at.once: { retry: { strategy: immediate, delays: [1s] } }
  late: { type: classic, retry: { strategy: native, delays: [1s, 2s, 3s] } }
  classic: { type: classic, delivery_limit: 3, retry: { strategy: native, delays: [1s] } }
  stream: { type: stream }
  own: { dead_letter: { exchange: x }, retry: { delays: [1s], dead_letter_queue: y } }
  amq.w: { retry: { delays: [1s] } }
super_streams:
  taken.dlx: { partitions: 2 }
  both: { partitions: 2, keys: [ a ] }
  twice: { keys: [ a, a ] }
  short: { partitions: 3, message_ttl: 1s }
"
    ));
}

#[test]
fn delays_that_cannot_be_kept_or_scattered_are_a_mistake() {
    insta::assert_snapshot!(mistakes(
        "version: 1
queues:
  plain: { retry: { jitter: 25% } }
workers:
  once: { retry: { delays: [10s], jitter: full } }
  at.once: { retry: { strategy: immediate, jitter: 1% } }
  held: { retry: { strategy: native, delays: [1s], jitter: full } }
  all: { retry: { strategy: backoff, delays: [1s], jitter: 100% } }
  number: { retry: { strategy: backoff, delays: [1s], jitter: 25 } }
  growing: { retry: { delays: { first: 1s } } }
  bounds: { retry: { strategy: native, delays: { first: 1s, max: 1m } } }
  headless: { retry: { strategy: backoff, delays: { factor: 2, maximum: 1m } } }
  shrinks: { retry: { strategy: backoff, delays: { first: 1s, factor: 0.5 } } }
  word: { retry: { strategy: backoff, delays: { first: soon, factor: two } } }
  less: { retry: { strategy: backoff, delays: { first: 1m, max: 1s } } }
  zero: { retry: { strategy: backoff, delays: { first: 0s } } }
  never: { retry: { strategy: backoff, delays: { first: 1s }, max_attempts: 1 } }
  slow: { retry: { strategy: backoff, delays: { first: 1s, factor: 1.001 }, max_attempts: 5000 } }
  empty: { retry: { delays: [] } }
  nothing: { retry: { strategy: native, delays: } }
  six: { retry: { strategy: backoff, delays: [1s, 2s, 3s, 4s, 5s], max_attempts: six } }
"
    ));
}

#[test]
fn delays_that_grow_are_written_out_as_a_list() {
    let file = TextFile::new(
        "t.yaml",
        "version: 1
workers:
  w: { retry: { strategy: backoff, delays: { first: '${FIRST:-1s}', factor: 1.5, max: 3s }, jitter: '${JITTER:-25%}', max_attempts: 9 } }
",
    );
    insta::assert_snapshot!(
        Mq::new(["topology", "validate", "--expand", &file.path()])
            .run()
            .code(0)
            .stdout
    );
}

#[test]
fn a_worker_is_judged_as_a_whole() {
    insta::assert_snapshot!(mistakes(
        "version: 1
queues:
  plain:
    dead_letter: { exchange: '', key: rest }
    retry: { strategy: backoff, delays: [1s, 10s] }
  rest: {}
  native:
    type: quorum
    dead_letter: { exchange: '', key: rest }
    retry: { strategy: native }
  wait.1s: { message_ttl: 1s, dead_letter: { exchange: '', key: plain } }
workers:
  drops: { max_length: 5, retry: { delays: [10s] } }
  expires: { message_ttl: 1h, retry: { delays: [10s] } }
  limited: { delivery_limit: 5, retry: { delays: [10s] } }
  fine: { max_length: 5, message_ttl: 1h, delivery_limit: 5, retry: { strategy: immediate } }
"
    ));
}

#[test]
fn short_forms_are_written_out() {
    let ran = Mq::new([
        "topology",
        "validate",
        "--expand",
        "topologies/workers.yaml",
    ])
    .run()
    .code(0);
    assert!(ran.stderr.is_empty(), "{}", ran.stderr);
    insta::assert_snapshot!(ran.stdout);
    let again = TextFile::new("expanded.yaml", &ran.stdout);
    let twice = Mq::new(["topology", "validate", "--expand", &again.path()])
        .run()
        .code(0);
    assert_eq!(twice.stdout, ran.stdout);

    let streams = TextFile::new(
        "s.yaml",
        "version: 1\nsuper_streams: { events: { keys: [ eu, us ], max_age: 7d } }\n",
    );
    let ran = Mq::new([
        "topology",
        "validate",
        "--expand",
        &streams.path(),
        "-o",
        "json",
    ])
    .run()
    .code(0);
    let json = ran.json();
    assert_eq!((&json["queues"], &json["bindings"]), (&2.into(), &2.into()));
    insta::assert_snapshot!(json["expanded"].as_str().unwrap_or_default());
}

/// The schemas of messages are files too, and theirs are the file's mistakes.
#[test]
fn schemas_of_messages_are_read_with_the_file_that_names_them() {
    let schema = TextFile::new("good.json", r#"{"type":"object"}"#);
    let text = "version: 1
exchanges: { in: { type: topic } }
queues:
  plain: { schema: good.json, bind: [ { exchange: in, key: a } ], dead_letter: { exchange: '', key: w } }
workers:
  w:
    bind: [ { exchange: in, key: b } ]
    schema: [ { key: 'b.*', type: v1, file: good.json }, { file: ./good.json } ]
    retry: { strategy: immediate }
";
    let folder = std::path::PathBuf::from(schema.path());
    let write = |name: &str, text: &str| {
        let path = folder.with_file_name(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = write("good.yaml", text);
    let ran = Mq::new(["topology", "validate", "--expand", &good])
        .run()
        .code(0)
        .shows(&[
            "    schema: good.json\n",
            "    schema:\n    - key: b.*\n      type: v1\n      file: good.json\n    - file: ./good.json\n",
        ]);
    let again = write("again.yaml", &ran.stdout);
    let twice = Mq::new(["topology", "validate", "--expand", &again])
        .run()
        .code(0);
    assert_eq!(twice.stdout, ran.stdout);
    // The broker does not know it.
    let converted = Mq::new(["topology", "convert", &good]).run().code(0);
    assert!(
        !converted.stdout.contains("good.json"),
        "{}",
        converted.stdout
    );

    write("bad.json", r#"{"properties":{"a":{"minimum":"5"}}}"#);
    let bad = write(
        "bad.yaml",
        &text
            .replace("schema: good.json", "schema: nowhere.json")
            .replace("./good.json", "bad.json"),
    );
    let ran = Mq::new(["topology", "validate", &bad]).run().code(65);
    insta::assert_snapshot!(schema.normalise(&ran.stderr));
    let json = Mq::new(["topology", "validate", &bad, "-o", "json"])
        .run()
        .code(65)
        .json();
    assert_eq!(json["valid"], false);
    let places: Vec<_> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["code"], &one["line"], &one["column"]))
        .collect();
    let code = "MQ116".into();
    assert_eq!(
        places,
        [
            (&code, &4.into(), &12.into()),
            (&code, &8.into(), &5.into())
        ]
    );
}

#[test]
fn a_schema_key_that_makes_no_sense_is_a_mistake() {
    insta::assert_snapshot!(mistakes(
        "version: 1
queues:
  none: { schema: }
  empty: { schema: '' }
  number: { schema: 5 }
  map: { schema: { file: a.json } }
  no.rule: { schema: [] }
  no.file: { schema: [ { key: a } ] }
  typo: { schema: [ { file: a.json, typ: b } ] }
  late: { schema: [ { file: a.json }, { key: b, file: b.json } ] }
super_streams:
  s: { partitions: 2, schema: a.json }
"
    ));
}

#[test]
fn users_and_permissions_can_be_wrong() {
    let shown = mistakes(
        "version: 1
vhost: { default_queue_type: quorom, limits: { max_queues: -1, max_conections: 5 } }
exchanges: { orders: { type: topic } }
users:
  a: { password: hunter2, tags: [ 7 ] }
  b:
    password: 12345
  c: { password: { env: A, file: B } }
  e: { tags: [ 'a,b' ] }
  d: { password: { } }
permissions:
  a: { configure: '(', write: '' }
  b: { configure: '', write: '', read: '', topics: { orders: { write: '', read: '[' } } }
owns: [ '*' ]
",
    );
    for secret in ["hunter2", "12345"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_password_in_the_wrong_place_is_not_shown() {
    for user in [
        "a: { password: { value: hunter2 } }",
        "a: { passwrd: hunter2 }",
        "a: hunter2",
        "a: [ hunter2 ]",
        "a: { password: [ hunter2 ] }",
        "a: { password: { env: [ hunter2 ] } }",
        "a: { password: hunter2, password: hunter3 }",
        "a: { password: \"hunter2\"x }",
        "a:\n    password: hun: hunter2",
    ] {
        let shown = mistakes(&format!("version: 1\nusers:\n  {user}\n"));
        assert!(!shown.contains("hunter"), "{user}\n{shown}");
    }
}

#[test]
fn permissions_name_exchanges_that_are_declared() {
    let shown = mistakes(
        "version: 1
exchanges: { orders: { type: topic } }
permissions: { a: { configure: '', write: '', read: '', topics: { ordres: { write: '', read: '' } } } }
",
    );
    assert!(shown.contains("did you mean `orders`?"), "{shown}");
}

#[test]
fn yaml_itself_can_be_wrong() {
    for (name, text) in [
        ("a_tab", "version: 1\nqueues:\n\ta: {}\n"),
        ("a_duplicate_key", "version: 1\nqueues:\n  a: {}\n  a: {}\n"),
        ("an_open_bracket", "version: 1\nqueues: { a: [\n"),
        ("nothing", ""),
        ("a_list", "- version: 1\n"),
        ("two_documents", "version: 1\n---\nversion: 1\n"),
        ("a_newer_version", "version: 2\n"),
        ("no_version", "queues: { a: }\n"),
        (
            "an_unquoted_variable",
            "version: 1\nqueues: { a: { message_ttl: ${TTL:-5s} } }\n",
        ),
        (
            "an_unset_variable",
            "version: 1\nqueues: { a: { message_ttl: '${TTL}' } }\n",
        ),
        (
            "a_slip_in_a_type",
            "version: 1\nexchanges: { e: { type: topik }, p: { type: x-delayed-message } }\n",
        ),
    ] {
        insta::assert_snapshot!(name, mistakes(text));
    }
}

#[test]
fn a_name_over_255_bytes_is_shown_with_its_length() {
    let text = format!("version: 1\nqueues:\n  {}: {{}}\n", "é".repeat(128));
    let shown = mistakes(&text);
    assert!(
        shown.contains("MQ104") && shown.contains("256 bytes"),
        "{shown}"
    );
}

#[test]
fn an_alias_bomb_is_refused_quickly() {
    let mut text = "version: 1\na: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (new, old) in ["b", "c", "d", "e", "f", "g", "h"]
        .iter()
        .zip(["a", "b", "c", "d", "e", "f", "g"])
    {
        text.push_str(&format!("{new}: &{new} [*{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}]\n"));
    }
    let shown = mistakes(&text);
    assert!(shown.contains("MQ100"), "{shown}");
}

#[test]
fn a_large_topology_is_read_and_a_huge_file_is_not() {
    let mut large = "version: 1\nqueues:\n".to_owned();
    for n in 0..45_000 {
        large.push_str(&format!("  q{n}: {{ type: classic, max_length: 5 }}\n"));
    }
    Mq::new(["topology", "validate", "-"])
        .stdin(large)
        .run()
        .code(0)
        .shows(&["45000 queues"]);
    Mq::new(["topology", "validate", "-"])
        .stdin(vec![b'a'; 33 * 1024 * 1024])
        .run()
        .code(65)
        .says(&["<stdin> has 33 MiB"]);
}

#[test]
fn files_from_windows_are_files_too() {
    let text = "\u{feff}version: 1\r\nqueues:\r\n  'C:\\x: %é/ 😀': { type: quorum }\r\n";
    Mq::new(["topology", "validate", "-"])
        .stdin(text)
        .run()
        .code(0)
        .shows(&["1 queues"]);
    let shown = mistakes(&text.replace("type", "typ"));
    assert!(shown.contains("t.yaml:3:"), "{shown}");
}

#[test]
fn bytes_that_are_not_utf_8_are_named_by_line() {
    Mq::new(["topology", "validate", "-"])
        .stdin(b"version: 1\n# \xff\n".to_vec())
        .run()
        .code(65)
        .says(&["<stdin>:2: not UTF-8"]);
}

#[test]
fn a_missing_file_is_66() {
    Mq::new(["topology", "apply", "/no/such.yaml"])
        .run()
        .code(66)
        .says(&["/no/such.yaml"]);
    let empty = TextFile::new("x.txt", "");
    let folder = empty.path().replace("/x.txt", "");
    Mq::new(["topology", "validate", &folder])
        .run()
        .code(66)
        .says(&["holds no .yaml"]);
}

#[test]
fn several_files_are_one_topology() {
    let a = TextFile::new("a.yaml", "version: 1\nexchanges: { e: { type: fanout } }\n");
    let b = TextFile::new(
        "b.yaml",
        "version: 1\nqueues: { q: { bind: [ { exchange: e } ] } }\n",
    );
    Mq::new(["topology", "validate", &a.path(), "-f", &b.path()])
        .run()
        .code(0)
        .shows(&["1 exchanges, 1 queues, 1 bindings"]);
    Mq::new(["topology", "validate", &b.path(), &b.path()])
        .run()
        .code(65)
        .says(&["declared in two files"]);
}

#[test]
fn short_forms_give_way_to_what_any_file_declares() {
    let a = TextFile::new(
        "a.yaml",
        "version: 1\nworkers: { w: { retry: { strategy: immediate } } }\n",
    );
    let b = TextFile::new("b.yaml", "version: 1\nqueues: { w.dlq: }\n");
    for files in [[&a, &b], [&b, &a]] {
        let ran = Mq::new(["topology", "validate", &files[0].path(), &files[1].path()])
            .run()
            .code(65)
            .says(&[
                "has 1 mistake\n",
                "worker 'w' makes queue 'w.dlq'",
                "a.yaml:2:12",
            ]);
        assert!(!ran.stderr.contains("b.yaml"), "{}", ran.stderr);
    }
}

#[test]
fn a_name_that_becomes_too_long_is_the_workers_mistake() {
    let name = "w".repeat(250);
    let shown = mistakes(&format!(
        "version: 1\nworkers: {{ {name}: {{ retry: {{ delays: [10s] }} }} }}\n"
    ));
    assert!(
        shown.contains("MQ104") && shown.contains("256 bytes"),
        "{shown}"
    );
}

#[test]
fn variables_come_from_the_environment() {
    let text = "version: 1\nqueues: { 'q.${STAGE}': { message_ttl: '${TTL:-5s}' } }\n";
    let run = |stage: Option<&str>| {
        let file = TextFile::new("t.yaml", text);
        let mut mq = Mq::new(["topology", "validate", &file.path()]);
        if let Some(stage) = stage {
            mq = mq.env("STAGE", stage);
        }
        mq.run()
    };
    run(Some("test")).code(0);
    run(None)
        .code(65)
        .says(&["has 1 mistake\n", "STAGE is not set", "${STAGE:-default}"]);
}

#[test]
fn every_shipped_topology_is_fine() {
    Mq::new(["topology", "validate", "topologies"])
        .run()
        .code(0)
        .shows(&["fine:"]);
}

#[test]
fn json_for_scripts() {
    let ran = Mq::new([
        "topology",
        "validate",
        "topologies/orders.yaml",
        "--output",
        "json",
    ])
    .run()
    .code(0);
    assert_eq!(
        ran.json(),
        serde_json::json!({
            "valid": true, "exchanges": 2, "queues": 3, "bindings": 3, "findings": []
        })
    );
}
