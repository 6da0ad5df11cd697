use super::*;
use crate::diagnostic::Source;
use crate::topology::Jitter;
use crate::topologyfile::parsed;

/// Reads a topology whose retry block is not checked, then asks for the path of `work`.
fn found(yaml: &str) -> Result<RetryPath, PathProblem> {
    found_with(yaml, None)
}

fn found_with(yaml: &str, dead_letter_queue: Option<&str>) -> Result<RetryPath, PathProblem> {
    let policy = RetryPolicy {
        dead_letter_queue: dead_letter_queue.map(queue),
        ..RetryPolicy::default()
    };
    path(&Router::new(&parsed(yaml)), &queue("work"), &policy)
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
fn only_at_least_once_confirms_a_nack() {
    assert!(!found(LOOP).expect("path").nack_is_confirmed);
    let safe = "work: { type: quorum, delivery_limit: unlimited, overflow: reject-publish, dead_letter: { exchange: dlx, key: retry, strategy: at-least-once }";
    let path = found(&LOOP.replace("work: { dead_letter: { exchange: dlx, key: retry }", safe));
    assert!(path.expect("path").nack_is_confirmed);
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

/// What the strategy finds with these delays in seconds.
fn asked(yaml: &str, strategy: Strategy, delays: &[u64]) -> Result<RetryPath, PathProblem> {
    let source = Source {
        name: "t.yaml".to_owned(),
        text: format!("version: 1\n{yaml}"),
    };
    let topology = crate::topologyfile::parse(&[source], &|_| None).expect("topology");
    let policy = RetryPolicy {
        strategy: Some(strategy),
        delays: delays.iter().copied().map(Duration::from_secs).collect(),
        ..RetryPolicy::default()
    };
    path(&Router::new(&topology), &queue("work"), &policy)
}

#[test]
fn backoff_needs_a_wait_queue_for_every_delay() {
    let steps = "
exchanges: { dlx: { type: direct } }
queues:
  work: { dead_letter: { exchange: dlx, key: dead } }
  a: { message_ttl: 1s, dead_letter: { exchange: '', key: work } }
  b: { message_ttl: 10s, dead_letter: { exchange: '', key: work } }
  dead: { bind: [ { exchange: dlx, key: dead } ] }
";
    let path = asked(steps, Strategy::Backoff, &[1, 1, 10]).expect("path");
    assert_eq!(path.strategy, Strategy::Backoff);
    assert_eq!(path.wait_queues, BTreeSet::from([queue("a"), queue("b")]));
    assert_eq!(path.dead_letter_queues, BTreeSet::from([queue("dead")]));
    assert_eq!(path.longest_wait, Duration::from_secs(10));
    let key = RoutingKey::new("kept").expect("key");
    let step = |attempt| {
        let address = path.waiting(&key, attempt, None, Jitter::None, 0.0).address;
        assert!(address.exchange.is_empty());
        address.key.to_string()
    };
    // The last step is for every further attempt.
    assert_eq!([1, 2, 3, 4, u32::MAX].map(step), ["a", "a", "b", "b", "b"]);

    let none = |seconds| {
        Err(PathProblem::NoWaitQueue(
            queue("work"),
            Duration::from_secs(seconds),
        ))
    };
    assert_eq!(asked(steps, Strategy::Backoff, &[1, 60]), none(60));
    // Leads elsewhere too, expires with its messages, or nowhere.
    for (from, to) in [
        (
            "b: { message_ttl: 10s, dead_letter: { exchange: '', key: work } }",
            "b: { message_ttl: 10s, dead_letter: { exchange: '', key: dead } }",
        ),
        (
            "b: { message_ttl: 10s,",
            "b: { message_ttl: 10s, expires: 1h,",
        ),
        (
            "b: { message_ttl: 10s, dead_letter: { exchange: '', key: work } }",
            "b: { message_ttl: 10s }",
        ),
    ] {
        let changed = steps.replace(from, to);
        assert_eq!(
            asked(&changed, Strategy::Backoff, &[1, 10]),
            none(10),
            "{to}"
        );
    }
    // A dead-letter exchange that leads into a wait queue is `dlx`, whatever was asked.
    let path = asked(LOOP, Strategy::Backoff, &[5]).expect("path");
    assert_eq!(path.strategy, Strategy::Dlx);
}

#[test]
fn native_needs_a_quorum_queue_that_holds_back() {
    let yaml = |work: &str| {
        format!(
            "
exchanges: {{ dlx: {{ type: direct }} }}
queues:
  work: {{ type: quorum, dead_letter: {{ exchange: dlx, key: dead }}{work} }}
  dead: {{ bind: [ {{ exchange: dlx, key: dead }} ] }}
"
        )
    };
    let native = |work: &str, delays: &[u64]| asked(&yaml(work), Strategy::Native, delays);
    let delayed = ", delayed_retry: { type: all, min: 1s, max: 1m }";
    assert_eq!(
        native(delayed, &[1, 60]).map(|path| path.strategy),
        Ok(Strategy::Native)
    );
    assert_eq!(
        native(delayed, &[]).map(|path| path.strategy),
        Ok(Strategy::Native)
    );
    assert_eq!(
        native("", &[1, 60]),
        Err(PathProblem::NoDelayedRetry(queue("work")))
    );
    let seconds = Duration::from_secs;
    assert_eq!(
        native(delayed, &[2, 60]),
        Err(PathProblem::WaitsOtherwise(
            queue("work"),
            seconds(2),
            seconds(1)
        ))
    );
    // Without `max` the delay never grows.
    let constant = ", delayed_retry: { type: all, min: 1s }";
    assert!(native(constant, &[1]).is_ok());
    assert_eq!(
        native(constant, &[1, 60]),
        Err(PathProblem::WaitsOtherwise(
            queue("work"),
            seconds(60),
            seconds(1)
        ))
    );
}

#[test]
fn a_wait_queue_keeps_its_messages_and_the_delay_asked_for() {
    assert_eq!(
        found(&LOOP.replace("message_ttl: 5s", "message_ttl: 5s, expires: 1h")),
        Err(PathProblem::WaitQueueExpires(queue("wait")))
    );
    let chained = "
exchanges: { dlx: { type: direct } }
queues:
  work: { dead_letter: { exchange: dlx, key: a } }
  a: { message_ttl: 1s, dead_letter: { exchange: '', key: b }, bind: [ { exchange: dlx, key: a } ] }
  b: { message_ttl: 2s, expires: 1h, dead_letter: { exchange: '', key: work } }
  dead: { bind: [ { exchange: dlx, key: dead } ] }
";
    assert_eq!(
        found(chained),
        Err(PathProblem::WaitQueueExpires(queue("b")))
    );
    assert!(asked(LOOP, Strategy::Dlx, &[5]).is_ok());
    assert_eq!(
        asked(LOOP, Strategy::Dlx, &[6]),
        Err(PathProblem::WaitsOtherwise(
            queue("work"),
            Duration::from_secs(6),
            Duration::from_secs(5)
        ))
    );
}

#[test]
fn no_chain_of_wait_queues_is_too_long() {
    let mut yaml = "exchanges: { dlx: { type: direct } }
queues:
  work: { dead_letter: { exchange: dlx, key: a } }
  dead: { bind: [ { exchange: dlx, key: dead } ] }
  q0: { message_ttl: 1s, dead_letter: { exchange: '', key: q1 }, bind: [ { exchange: dlx, key: a } ] }
"
    .to_owned();
    for n in 1..1000 {
        let next = if n == 999 {
            "work".to_owned()
        } else {
            format!("q{}", n + 1)
        };
        yaml.push_str(&format!(
            "  q{n}: {{ message_ttl: 1s, dead_letter: {{ exchange: '', key: {next} }} }}\n"
        ));
    }
    let little = std::thread::Builder::new().stack_size(256 * 1024);
    let topology = parsed(&yaml);
    let found = little.spawn(move || {
        path(
            &Router::new(&topology),
            &queue("work"),
            &RetryPolicy::default(),
        )
    });
    let path = found.expect("thread").join().expect("no overflow");
    assert_eq!(path.expect("path").longest_wait, Duration::from_secs(1000));
}
