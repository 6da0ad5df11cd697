use super::*;
use crate::diagnostic::Source;

/// Reads a topology whose retry block is not checked, then asks for the path of `work`.
fn found(yaml: &str) -> Result<RetryPath, PathProblem> {
    found_with(yaml, None)
}

fn found_with(yaml: &str, dead_letter_queue: Option<&str>) -> Result<RetryPath, PathProblem> {
    let source = Source {
        name: "t.yaml".to_owned(),
        text: format!("version: 1\n{yaml}"),
    };
    let topology = crate::topologyfile::parse(&[source], &|_| None).expect("topology");
    let dead_letter_queue = dead_letter_queue.map(queue);
    path(&topology, &queue("work"), dead_letter_queue.as_ref())
}

fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("queue name")
}

fn exchange(name: &str) -> ExchangeName {
    ExchangeName::new(name).expect("exchange name")
}

const LOOP: &str = "
exchanges:
  dlx: { type: direct }
queues:
  work: { dead_letter: { exchange: dlx, key: retry } }
  wait: { message_ttl: 5s, dead_letter: { exchange: '', key: work }, bind: [ { exchange: dlx, key: retry } ] }
  dead: { bind: [ { exchange: dlx, key: dead } ] }
";

#[test]
fn a_wait_queue_that_leads_back_is_the_dlx_strategy() {
    let path = found(LOOP).expect("path");
    assert_eq!(path.strategy, Strategy::Dlx);
    assert_eq!(path.wait_queues, BTreeSet::from([queue("wait")]));
    assert_eq!(path.dead_letter_queues, BTreeSet::from([queue("dead")]));
    assert_eq!(path.longest_wait, Duration::from_secs(5));
    let park = path.park.expect("park");
    assert_eq!((park.exchange.as_str(), park.key.as_str()), ("dlx", "dead"));
}

#[test]
fn chained_wait_queues_add_up() {
    let path = found(
        "
exchanges:
  dlx: { type: direct }
queues:
  work: { dead_letter: { exchange: dlx, key: a } }
  a: { message_ttl: 1s, dead_letter: { exchange: dlx, key: b }, bind: [ { exchange: dlx, key: a } ] }
  b: { message_ttl: 2s, dead_letter: { exchange: dlx, key: back }, bind: [ { exchange: dlx, key: b } ] }
  dead: { bind: [ { exchange: dlx, key: dead } ] }
bindings:
  - { source: dlx, destination: work, key: back }
",
    )
    .expect("path");
    assert_eq!(path.longest_wait, Duration::from_secs(3));
    assert_eq!(path.dead_letter_queues, BTreeSet::from([queue("dead")]));
}

#[test]
fn a_dlx_straight_to_the_dead_letter_queue_is_immediate() {
    let path = found(
        "
exchanges:
  in: { type: topic }
  dlx: { type: fanout }
queues:
  work: { dead_letter: { exchange: dlx }, bind: [ { exchange: in, key: 'a.*' }, { exchange: in, key: 'b.#' } ] }
  dead: { bind: [ { exchange: dlx } ] }
",
    )
    .expect("path");
    assert_eq!(path.strategy, Strategy::Immediate);
    assert_eq!(path.park, None);
    assert_eq!(path.dead_letter_queues, BTreeSet::from([queue("dead")]));
}

#[test]
fn the_default_exchange_can_be_the_dlx() {
    let path = found(
        "
queues:
  work: { dead_letter: { exchange: '', key: dead } }
  dead:
",
    )
    .expect("path");
    assert_eq!(path.strategy, Strategy::Immediate);
}

#[test]
fn everything_that_would_lose_or_multiply_a_message_is_a_problem() {
    let dlx = exchange("dlx");
    let key = |key: &str| RoutingKey::new(key).expect("key");
    for (name, yaml, problem) in [
        (
            "no queue",
            "queues: { other: }",
            PathProblem::NoQueue(queue("work")),
        ),
        (
            "no dead-letter exchange",
            "queues: { work: }",
            PathProblem::NoDeadLetterExchange(queue("work")),
        ),
        (
            "the classic silent loss: a direct DLX and the original key",
            "
exchanges: { in: { type: direct }, dlx: { type: direct } }
queues:
  work: { dead_letter: { exchange: dlx }, bind: [ { exchange: in, key: new } ] }
  dead: { bind: [ { exchange: dlx, key: dead } ] }
",
            PathProblem::Unrouted(dlx.clone(), key("new")),
        ),
        (
            "straight back",
            "
exchanges: { dlx: { type: fanout } }
queues:
  work: { dead_letter: { exchange: dlx }, bind: [ { exchange: dlx } ] }
",
            PathProblem::Loop(queue("work")),
        ),
        (
            "waits and rests at once",
            "
exchanges: { dlx: { type: fanout } }
queues:
  work: { dead_letter: { exchange: dlx } }
  wait: { message_ttl: 1s, dead_letter: { exchange: '', key: work }, bind: [ { exchange: dlx } ] }
  dead: { bind: [ { exchange: dlx } ] }
",
            PathProblem::Mixed(
                BTreeSet::from([queue("wait")]),
                BTreeSet::from([queue("dead")]),
            ),
        ),
        (
            "nowhere to rest",
            "
exchanges: { dlx: { type: direct } }
queues:
  work: { dead_letter: { exchange: dlx, key: retry } }
  wait: { message_ttl: 1s, dead_letter: { exchange: '', key: work }, bind: [ { exchange: dlx, key: retry } ] }
",
            PathProblem::NoDeadLetterQueue(dlx.clone()),
        ),
        (
            "keys that differ",
            "
exchanges: { in: { type: direct }, dlx: { type: direct } }
queues:
  work: { dead_letter: { exchange: dlx }, bind: [ { exchange: in, key: a }, { exchange: in, key: b } ] }
  dead.a: { bind: [ { exchange: dlx, key: a } ] }
  dead.b: { bind: [ { exchange: dlx, key: b } ] }
",
            PathProblem::KeysDiffer(dlx),
        ),
    ] {
        assert_eq!(found(yaml), Err(problem), "{name}");
    }
}

#[test]
fn a_loop_must_not_be_left_in_another_way_than_by_rejection() {
    for (more, death) in [
        ("type: quorum", Some(OtherDeath::DeliveryLimit)),
        (
            "type: quorum, delivery_limit: 5",
            Some(OtherDeath::DeliveryLimit),
        ),
        ("type: quorum, delivery_limit: unlimited", None),
        ("type: classic", None),
        ("message_ttl: 1h", Some(OtherDeath::Expiry)),
        ("max_length: 5", Some(OtherDeath::DropHead)),
        (
            "max_length_bytes: 5kB, overflow: drop-head",
            Some(OtherDeath::DropHead),
        ),
        ("max_length: 5, overflow: reject-publish", None),
    ] {
        let yaml = LOOP.replace("work: { ", &format!("work: {{ {more}, "));
        let problem = death.map(|death| PathProblem::DiesOtherwise(queue("work"), death));
        assert_eq!(found(&yaml).err(), problem, "{more}");
    }
}

#[test]
fn a_shared_dlx_needs_the_name_of_the_dead_letter_queue() {
    let shared = format!("{LOOP}  other.dead: {{ bind: [ {{ exchange: dlx, key: other }} ] }}\n");
    assert!(matches!(
        found(&shared),
        Err(PathProblem::SeveralDeadLetterQueues(_, queues)) if queues.len() == 2
    ));
    let path = found_with(&shared, Some("other.dead")).expect("path");
    assert_eq!(path.park.expect("park").key.as_str(), "other");
    assert!(matches!(
        found_with(&shared, Some("stranger")),
        Err(PathProblem::NotParkable(..))
    ));
}
