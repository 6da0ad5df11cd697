//! A table of topologies with what is found in each, and what is not.

use super::lint;
use crate::broker::BrokerFacts;
use crate::lint::RULES;

/// The codes with their objects: `MQ209 queue 'a'`.
fn found_on(yaml: &str, version: Option<&str>) -> Vec<String> {
    let topology = crate::topologyfile::parsed(yaml);
    let facts = version.map(|version| BrokerFacts::new("RabbitMQ", version));
    lint(&topology, facts.as_ref())
        .iter()
        .filter(|finding| finding.code != "MQ213")
        .map(|finding| {
            let subject = match &finding.subject {
                super::Subject::Queue(name) => name.to_string(),
                super::Subject::Exchange(name) => name.to_string(),
                super::Subject::Binding(number) => format!("binding {number}"),
                super::Subject::Policy(_, name) => name.to_string(),
                super::Subject::Vhost => "vhost".to_owned(),
            };
            format!("{} {subject}", &finding.code[2..])
        })
        .collect()
}

#[track_caller]
fn check(yaml: &str, expected: &[&str]) {
    assert_eq!(found_on(yaml, None), expected, "{yaml}");
}

const DLX: &str = "
exchanges: { in: { type: topic }, dlx: { type: direct } }
";

#[test]
fn dead_letters_must_reach_a_queue() {
    let with = |work: &str, dead: &str| {
        format!("{DLX}queues:\n  work: {{ {work} }}\n  dead: {{ type: classic, {dead} }}\n")
    };
    let bind = "bind: [{ exchange: in, key: order.paid }]";
    let dead = "bind: [{ exchange: dlx, key: dead }]";
    for (work, dead, expected) in [
        (format!("{bind}, dead_letter: {{ exchange: dlx, key: dead }}"), dead, vec![]),
        (format!("{bind}, dead_letter: {{ exchange: dlx, key: deda }}"), dead, vec!["202 work"]),
        // The key is kept, and is the one it came with.
        (format!("{bind}, dead_letter: {{ exchange: dlx }}"), dead, vec!["202 work"]),
        (
            format!("{bind}, dead_letter: {{ exchange: dlx }}"),
            "bind: [{ exchange: dlx, key: order.paid }]",
            vec![],
        ),
        (
            "bind: [{ exchange: in, key: order.* }], dead_letter: { exchange: dlx }".to_owned(),
            "bind: [{ exchange: dlx, key: order.paid }]",
            vec!["203 work"],
        ),
        (
            "bind: [{ exchange: in, key: order.paid }, { exchange: in, key: a }], dead_letter: { exchange: dlx }".to_owned(),
            "bind: [{ exchange: dlx, key: order.paid }]",
            vec!["203 work"],
        ),
        (format!("{bind}, dead_letter: {{ exchange: '', key: dead }}"), "", vec![]),
        (format!("{bind}, dead_letter: {{ exchange: '', key: deda }}"), "", vec!["202 work", "220 dead"]),
        (format!("{bind}, dead_letter: {{ exchange: '' }}"), dead, vec!["202 work"]),
    ] {
        let yaml = with(&work, dead);
        let expected: Vec<&str> = expected;
        let mut found = found_on(&yaml, None);
        // What nobody uses then follows from it.
        found.retain(|one| !matches!(one.as_str(), "209 dead" | "221 dlx"));
        assert_eq!(found, expected, "{yaml}");
    }
}

#[test]
fn kept_keys_are_followed_through_exchanges() {
    let with = |dlx: &str, bind: &str| {
        format!(
            "
exchanges: {{ in: {{ type: topic }}, dlx: {{ type: {dlx} }}, next: {{ type: topic }}, rest: {{ type: fanout }} }}
queues:
  work: {{ bind: [{{ exchange: in, key: 'order.#' }}], dead_letter: {{ exchange: dlx }} }}
  dead: {{ type: classic, bind: [{{ exchange: next, key: 'order.*' }}, {{ exchange: rest }}] }}
bindings: [{bind}]
"
        )
    };
    let next = |key: &str| {
        format!("{{ source: dlx, destination: next, destination_type: exchange, key: '{key}' }}")
    };
    check(&with("topic, alternate: rest", &next("invoice.*")), &[]);
    check(&with("topic", &next("#")), &["203 work"]);
    check(&with("topic", &next("order.*")), &["203 work"]);
    check(&with("topic", &next("invoice.*")), &["202 work"]);
    check(
        &with("fanout", "{ source: dlx, destination: dead, key: '' }"),
        &[],
    );
    check(&with("x-random", ""), &[]);
    // A ring is no way out.
    check(
        &with(
            "topic",
            "{ source: dlx, destination: dlx, destination_type: exchange, key: '#' }",
        ),
        &["202 work"],
    );
}

#[test]
fn policies_can_lose_dead_letters_too() {
    check(
        &format!(
            "{DLX}queues: {{ work: {{ bind: [{{ exchange: in, key: a }}] }}, dead: {{ type: classic, bind: [{{ exchange: dlx, key: dead }}] }} }}
policies: {{ p: {{ pattern: '^work$', apply_to: queues, definition: {{ dead-letter-exchange: dlx }} }} }}\n"
        ),
        &["202 work"],
    );
}

/// A retry loop: `work` rejects into `wait`, which leads back.
fn retry(work: &str, wait: &str) -> String {
    format!(
        "
exchanges: {{ in: {{ type: direct }}, dlx: {{ type: direct }} }}
queues:
  work: {{ bind: [{{ exchange: in, key: a }}], dead_letter: {{ exchange: dlx, key: wait }}, {work} }}
  wait: {{ type: classic, message_ttl: 1s, bind: [{{ exchange: dlx, key: wait }}], dead_letter: {{ exchange: '', key: work }}, {wait} }}
"
    )
}

#[test]
fn only_a_rejection_may_begin_a_retry() {
    check(&retry("type: classic", ""), &["206 work"]);
    check(
        &retry("type: quorum, delivery_limit: unlimited", ""),
        &["206 work"],
    );
    check(
        &retry("type: quorum, delivery_limit: 5", ""),
        &["205 work", "206 work"],
    );
    check(&retry("type: quorum", ""), &["205 work", "206 work"]);
    assert_eq!(
        found_on(&retry("type: quorum", ""), Some("3.10.8")),
        ["206 work"]
    );
    check(&retry("max_length: 5", ""), &["205 work", "206 work"]);
    check(
        &retry("max_length: 5, overflow: reject-publish", ""),
        &["206 work", "217 work"],
    );
    check(&retry("message_ttl: 1m", ""), &["204 wait"]);
    check(
        &retry("type: classic", "expires: 1h"),
        &["206 work", "208 wait"],
    );
}

#[test]
fn rings_of_every_shape_are_told_once() {
    check(
        "queues: { a: { message_ttl: 1s, dead_letter: { exchange: '', key: a } } }\n",
        &["204 a"],
    );
    check(
        "queues: { a: { dead_letter: { exchange: '', key: a } } }\n",
        &["206 a"],
    );
    check(
        "queues: { a: { dead_letter: { exchange: '', key: b } }, b: { dead_letter: { exchange: '', key: a } } }\n",
        &["206 a"],
    );
}

#[test]
fn a_retry_that_is_bounded_is_fine() {
    check(
        "
exchanges: { in: { type: topic } }
workers:
  a: { bind: [{ exchange: in, key: a }], retry: { strategy: dlx, delays: [1s] } }
  b: { bind: [{ exchange: in, key: b }], retry: { strategy: backoff, delays: [1s, 2s] } }
  c: { bind: [{ exchange: in, key: c }], retry: { strategy: immediate } }
",
        &[],
    );
}

#[test]
fn what_queues_lose_by_themselves() {
    let one = |queue: &str| format!("queues: {{ q: {{ {queue} }} }}\n");
    check(&one("type: classic"), &["209 q"]);
    check(&one("type: stream"), &[]);
    check(&one("auto_delete: true, durable: false"), &[]);
    check(&one("durable: false"), &["209 q", "212 q"]);
    check(&one("message_ttl: 1s"), &["209 q", "211 q"]);
    check(&one("max_length: 1"), &["209 q", "211 q"]);
    check(&one("max_length: 1, overflow: reject-publish"), &["209 q"]);
    check(&one("type: quorum, delivery_limit: 3"), &["209 q", "211 q"]);
    check("queues: { orders.dlq: {} }\n", &[]);
    check(
        &one("type: quorum, arguments: { x-queue-mode: lazy }"),
        &["209 q", "215 q"],
    );
    check(
        &one("type: classic, arguments: { x-queue-mode: lazy }"),
        &["209 q"],
    );
    check(
        &one("arguments: { x-max-in-memory-length: '5' }"),
        &["209 q", "216 q"],
    );
}

#[test]
fn dead_letter_queues_must_outlive_a_look() {
    let dead = |dead: &str| {
        format!(
            "queues: {{ work: {{ type: classic, dead_letter: {{ exchange: '', key: rest }} }}, rest: {{ {dead} }} }}\n"
        )
    };
    check(&dead("type: classic"), &[]);
    check(&dead("type: quorum, delivery_limit: unlimited"), &[]);
    check(&dead("type: quorum, delivery_limit: 5"), &["207 rest"]);
    check(&dead("type: quorum"), &["207 rest"]);
    assert!(found_on(&dead("type: quorum"), Some("3.10.8")).is_empty());
    assert_eq!(found_on(&dead("type: quorum"), Some("4.3.6")), ["207 rest"]);
    check(&dead("expires: 1h"), &["214 rest"]);
    // Workers park there; no queue sends there by itself.
    check(
        &retry("type: classic", "").replace(
            "queues:",
            "queues:\n  parked: { type: quorum, bind: [{ exchange: dlx, key: dead }] }",
        ),
        &["206 work", "207 parked"],
    );
}

#[test]
fn every_exchange_leads_somewhere_and_every_queue_is_led_to() {
    check(
        "
exchanges: { in: { type: direct }, hidden: { type: direct, internal: true }, ae: { type: fanout, alternate: in }, plug: { type: x-random } }
queues:
  a: { dead_letter: { exchange: '', key: dlq } }
  b: { bind: [{ exchange: hidden, key: b }], dead_letter: { exchange: '', key: dlq } }
  dlq: { type: classic }
",
        &["220 a", "220 b", "221 ae", "221 in"],
    );
    check(
        "
exchanges: { in: { type: direct }, ring: { type: fanout }, out: { type: fanout } }
queues: { a: { bind: [{ exchange: out }], dead_letter: { exchange: '', key: dlq } }, dlq: { type: classic } }
bindings:
  - { source: in, destination: out, destination_type: exchange, key: k }
  - { source: ring, destination: ring, destination_type: exchange }
",
        &["221 ring"],
    );
    // Where nobody declares an exchange, publishers name the queue.
    check(
        "queues: { a: { dead_letter: { exchange: '', key: dlq } }, dlq: { type: classic } }\n",
        &[],
    );
}

#[test]
fn bindings_that_match_nothing_or_something_else() {
    let bound = |exchange: &str, binding: &str| {
        format!(
            "
exchanges: {{ x: {{ type: {exchange} }}, far: {{ type: topic }} }}
queues: {{ a.dlq: {{ bind: [{{ exchange: far, key: a }}] }} }}
bindings:
  - {{ source: x, destination: a.dlq, {binding} }}
  - {{ source: far, destination: x, destination_type: exchange, key: 'order.*' }}
"
        )
    };
    check(&bound("topic", "key: 'order.#'"), &[]);
    check(&bound("topic", "key: 'order#'"), &["223 binding 1"]);
    check(&bound("topic", "key: ''"), &[]);
    check(&bound("topic", "key: '#.#.#'"), &[]);
    check(&bound("direct", "key: 'order.*'"), &["223 binding 1"]);
    check(&bound("direct", "key: 'order'"), &[]);
    check(
        &bound("topic, internal: true", "key: 'invoice.*'"),
        &["222 binding 1"],
    );
    check(&bound("topic, internal: true", "key: '#.paid'"), &[]);
    check(
        &bound("direct, internal: true", "key: order"),
        &["222 binding 1"],
    );
    check(
        &bound("headers", "arguments: { x-match: some, a: 1 }"),
        &["224 binding 1"],
    );
    check(
        &bound("headers", "arguments: { x-match: 1 }"),
        &["224 binding 1"],
    );
    check(&bound("headers", "arguments: { a: 1 }"), &[]);
    check(&bound("headers", ""), &["225 binding 1"]);
    check(
        &bound("headers", "arguments: { x-a: 1 }"),
        &["225 binding 1"],
    );
    check(
        &bound("headers", "arguments: { x-match: any-with-x, x-a: 1 }"),
        &[],
    );
}

#[test]
fn long_chains_and_wide_rings_have_an_answer() {
    let mut yaml = String::from("queues:\n");
    let count = 10_000;
    for at in 0..count {
        let next = (at + 1) % count;
        yaml.push_str(&format!(
            "  q{at}: {{ message_ttl: 1s, dead_letter: {{ exchange: '', key: q{next} }} }}\n"
        ));
    }
    assert_eq!(found_on(&yaml, None), ["204 q0"]);
    let mut yaml = String::from("exchanges:\n");
    for at in 0..count {
        yaml.push_str(&format!(
            "  x{at}: {{ type: fanout, alternate: x{} }}\n",
            (at + 1) % count
        ));
    }
    yaml.push_str("queues: { a: { dead_letter: { exchange: x0 } } }\n");
    yaml.push_str("bindings:\n");
    for at in 1..count {
        yaml.push_str(&format!(
            "  - {{ source: x{}, destination: x{at}, destination_type: exchange }}\n",
            at - 1
        ));
    }
    let found = found_on(&yaml, None);
    let first = found.first().map(String::as_str);
    assert_eq!((found.len(), first), (count, Some("220 a")));
}

#[test]
fn every_rule_is_described() {
    for rule in RULES {
        assert!(
            !rule.finds.is_empty() && !rule.finds.ends_with('.'),
            "{}",
            rule.code
        );
    }
}

#[test]
fn keys_are_those_that_really_arrive() {
    // The wait queue brings messages back with another key, which leads nowhere.
    check(
        "
exchanges: { in: { type: topic }, dlx: { type: topic } }
queues:
  work: { type: classic, bind: [{ exchange: in, key: 'order.*' }], dead_letter: { exchange: dlx } }
  wait: { type: classic, message_ttl: 1s, bind: [{ exchange: dlx, key: 'order.*' }], dead_letter: { exchange: '', key: work } }
",
        &["202 work", "206 work"],
    );
    // Retry and requeue exchanges that keep topic keys: nothing is lost.
    check(
        "
exchanges: { in: { type: topic }, retry: { type: topic }, back: { type: topic } }
queues:
  work: { type: classic, bind: [{ exchange: in, key: 'order.*' }, { exchange: back, key: 'order.*' }], dead_letter: { exchange: retry } }
  wait: { type: classic, message_ttl: 1s, bind: [{ exchange: retry, key: '#' }], dead_letter: { exchange: back } }
",
        &["206 work"],
    );
    // The key leads to another queue than the one it came from: no ring.
    check(
        "
exchanges: { in: { type: direct }, delay: { type: topic }, back: { type: topic } }
queues:
  a: { type: quorum, bind: [{ exchange: in, key: a }, { exchange: back, key: 'a.*' }], dead_letter: { exchange: delay, key: b.failed } }
  b: { type: classic, bind: [{ exchange: back, key: 'b.*' }], dead_letter: { exchange: '', key: b.dlq } }
  b.dlq: { type: classic }
  wait: { type: classic, message_ttl: 1s, bind: [{ exchange: delay, key: '#' }], dead_letter: { exchange: back } }
",
        &[],
    );
    // A wait queue that keeps keys may be for messages with a CC header.
    check(
        "
exchanges: { service: { type: topic }, delay: { type: topic }, retry: { type: topic } }
queues:
  q: { type: classic, bind: [{ exchange: service, key: user.save }, { exchange: retry, key: 'q.#' }], dead_letter: { exchange: '', key: q.dlq } }
  q.dlq: { type: classic }
  delay.1m: { type: classic, message_ttl: 1m, bind: [{ exchange: delay, key: 'delay.1m.#' }], dead_letter: { exchange: retry } }
",
        &["203 delay.1m"],
    );
}

#[test]
fn a_delay_in_front_makes_no_dead_letter_queue() {
    check(
        "
exchanges: { in: { type: direct } }
queues:
  delay.5m: { type: classic, message_ttl: 5m, dead_letter: { exchange: in, key: a } }
  work: { type: quorum, bind: [{ exchange: in, key: a }] }
",
        &["209 work"],
    );
    // The dead-letter exchange is the one that everybody publishes to.
    check(
        "
exchanges: { events: { type: topic } }
queues:
  orders: { type: classic, bind: [{ exchange: events, key: 'order.*' }], dead_letter: { exchange: events, key: dead.order } }
  orders.dlq: { type: classic, bind: [{ exchange: events, key: 'dead.*' }] }
  billing: { type: quorum, bind: [{ exchange: events, key: 'billing.*' }] }
",
        &["209 billing"],
    );
}

#[test]
fn other_deaths_make_rings_too() {
    let two = |each: &str| {
        format!(
            "queues: {{ a: {{ {each}, dead_letter: {{ exchange: '', key: b }} }}, b: {{ {each}, dead_letter: {{ exchange: '', key: a }} }} }}\n"
        )
    };
    check(
        &two("type: quorum, delivery_limit: 2"),
        &["205 a", "205 b", "206 a"],
    );
    check(
        &two("type: classic, max_length: 10"),
        &["205 a", "205 b", "206 a"],
    );
    check(&two("type: classic"), &["206 a"]);
}

#[test]
fn what_may_not_be_so_is_no_error() {
    // Headers decide: the broker tells the deaths apart.
    let by_death = "
exchanges: { in: { type: direct }, dlx: { type: headers } }
queues:
  work: { type: quorum, delivery_limit: 5, bind: [{ exchange: in, key: a }], dead_letter: { exchange: dlx } }
  wait: { type: classic, message_ttl: 1s, bind: [{ exchange: dlx, arguments: { x-match: all-with-x, x-last-death-reason: rejected } }], dead_letter: { exchange: '', key: work } }
  work.dlq: { type: classic, bind: [{ exchange: dlx, arguments: { x-match: all-with-x, x-last-death-reason: delivery_limit } }] }
";
    let found = found_on(by_death, Some("4.0.5"));
    assert!(!found.iter().any(|one| one.starts_with("205")), "{found:?}");
    // A copy stays in the archive.
    check(
        "
exchanges: { in: { type: direct }, dlx: { type: fanout } }
queues:
  work: { type: quorum, delivery_limit: 5, bind: [{ exchange: in, key: a }], dead_letter: { exchange: dlx } }
  wait: { type: classic, message_ttl: 1s, bind: [{ exchange: dlx }], dead_letter: { exchange: '', key: work } }
  archive: { type: classic, bind: [{ exchange: dlx }] }
",
        &["206 work"],
    );
}

#[test]
fn dead_letters_are_not_refused_or_deleted_unseen() {
    let dead = |dead: &str| {
        format!(
            "queues: {{ work: {{ type: classic, dead_letter: {{ exchange: '', key: rest }} }}, rest: {{ type: classic, {dead} }} }}\n"
        )
    };
    check(
        &dead("max_length: 2, overflow: reject-publish"),
        &["217 rest"],
    );
    check(&dead("max_length: 2"), &["211 rest"]);
    check(&dead("auto_delete: true"), &["214 rest"]);
    check(
        &dead("auto_delete: true, durable: false"),
        &["212 rest", "214 rest"],
    );
    check(
        "queues: { work: { type: quorum, overflow: reject-publish, dead_letter: { exchange: '', key: rest, strategy: at-least-once } }, rest: { type: classic, max_length: 2, overflow: reject-publish } }\n",
        &[],
    );
}

#[test]
fn too_much_is_said_to_be_too_much() {
    let mut yaml =
        String::from("exchanges: { in: { type: topic }, dlx: { type: topic } }\nqueues:\n");
    let pattern = ["#.*"; 60].join(".");
    for at in 0..120 {
        yaml.push_str(&format!(
            "  q{at}: {{ type: classic, bind: [{{ exchange: in, key: '{pattern}.a{at}' }}, {{ exchange: dlx, key: '{pattern}.b{at}' }}], dead_letter: {{ exchange: dlx }} }}\n"
        ));
    }
    let found = found_on(&yaml, None);
    assert!(found.contains(&"226 vhost".to_owned()), "{found:?}");
}
