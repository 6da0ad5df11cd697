//! Reading and checking a topology file of 10,000 objects: `cargo bench --bench validate`.
#![expect(clippy::unwrap_used, reason = "a benchmark")]

use std::fmt::Write as _;

use mq::diagnostic::Source;

fn main() {
    divan::main();
}

/// 501 exchanges, 4,500 queues (4,000 with dead letters), 5,000 bindings and 20
/// policies; `scripts/bench validate` times the same as a whole process.
fn file() -> Source {
    let mut text = String::from("version: 1\nexchanges:\n");
    for n in 0..500 {
        let kind = match n % 4 {
            0 => "topic",
            1 => "direct",
            2 => "fanout",
            _ => "headers",
        };
        writeln!(text, "  ex.{n}: {{ type: {kind} }}").unwrap();
    }
    text.push_str("  dlx: { type: direct }\nqueues:\n");
    for n in 0..4_000 {
        writeln!(
            text,
            "  q.{n}: {{ type: quorum, max_length: 1000, bind: [{{ exchange: ex.{}, key: a.{n}.* }}], dead_letter: {{ exchange: dlx, key: dead.{} }} }}",
            n % 500,
            n % 500
        )
        .unwrap();
    }
    for n in 0..500 {
        writeln!(
            text,
            "  dead.{n}: {{ type: classic, bind: [{{ exchange: dlx, key: dead.{n} }}] }}"
        )
        .unwrap();
    }
    text.push_str("bindings:\n");
    for n in 0..500 {
        writeln!(
            text,
            "  - {{ source: ex.{n}, destination: q.{}, key: b.{n} }}",
            n * 8
        )
        .unwrap();
    }
    text.push_str("policies:\n");
    for n in 0..20 {
        writeln!(
            text,
            "  p{n}: {{ pattern: '^q\\.{n}', priority: {n}, apply_to: queues, definition: {{ message-ttl: 60000 }} }}"
        )
        .unwrap();
    }
    Source {
        name: "t.yaml".to_owned(),
        text,
    }
}

#[divan::bench]
fn parse_and_check_10_000_objects(bencher: divan::Bencher<'_, '_>) {
    let source = file();
    bencher.bench(|| mq::topologyfile::parse(std::slice::from_ref(&source), &|_| None).unwrap());
}
