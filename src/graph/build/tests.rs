use super::*;
use crate::graph::{Depth, Role};
use crate::topologyfile::parsed as topology;

/// Every edge as `from -kind[labels]-> to`.
fn edges(graph: &Graph) -> Vec<String> {
    graph
        .edges
        .iter()
        .map(|edge| {
            format!(
                "{} -{}[{}]-> {}",
                graph.nodes[edge.from].name,
                edge.kind.word(),
                edge.labels.join("; "),
                graph.nodes[edge.to].name
            )
        })
        .collect()
}

fn node<'g>(graph: &'g Graph, name: &str) -> &'g Node {
    graph
        .nodes
        .iter()
        .find(|node| node.name == name)
        .unwrap_or_else(|| panic!("no node {name}"))
}

#[test]
fn several_bindings_between_two_are_one_edge() {
    let graph = draw(
        &topology(
            "exchanges: { t: { type: topic }, f: { type: fanout }, h: { type: headers } }
queues:
  a: { bind: [ { exchange: t, key: x }, { exchange: t, key: 'y.*' }, { exchange: t, key: '' } ] }
  b: { bind: [ { exchange: f }, { exchange: h, arguments: { x-match: any, n: 5, s: text } } ] }
  c: { bind: [ { exchange: amq.topic, key: '#', arguments: { ignored: 1 } } ] }
bindings: [ { source: t, destination: t, destination_type: exchange, key: again } ]
",
        ),
        None,
    );
    assert_eq!(
        edges(&graph),
        [
            "amq.topic -binding[#]-> c",
            "f -binding[]-> b",
            "h -binding[any: n=5, s=text]-> b",
            "t -binding[again]-> t",
            "t -binding[x; y.*; \"\"]-> a",
        ]
    );
    // A predeclared exchange is there only because it is used.
    let names: Vec<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["amq.topic", "f", "h", "t", "a", "b", "c"]);
    assert!(graph.nodes.iter().all(|node| node.state == State::Declared));
}

#[test]
fn dead_letters_go_where_arguments_and_policies_send_them() {
    let graph = draw(
        &topology(
            "exchanges: { dlx: { type: topic }, other: { type: topic } }
queues:
  by.policy: {}
  by.argument: { dead_letter: { exchange: dlx } }
  straight: { dead_letter: { exchange: '', key: rest } }
  kept: { dead_letter: { exchange: '' } }
  rest: {}
  waits: { message_ttl: 10s, dead_letter: { exchange: '', key: by.policy } }
  waits.too: { dead_letter: { exchange: other, key: k } }
policies:
  dl: { pattern: '^by', definition: { dead-letter-exchange: other, dead-letter-routing-key: dead } }
  ttl: { pattern: '^waits.too', definition: { message-ttl: 90000 } }
  alternate: { pattern: '^dlx$', apply_to: exchanges, definition: { alternate-exchange: other } }
",
        ),
        None,
    );
    assert_eq!(
        edges(&graph),
        [
            "dlx -alternate[unrouted]-> other",
            // A key of a policy counts also where the exchange is an argument.
            "by.argument -dead_letter[key dead]-> dlx",
            "by.policy -dead_letter[key dead]-> other",
            "straight -dead_letter[]-> rest",
            "waits -retry[after 10s]-> by.policy",
            "waits.too -retry[after 1m30s, key k]-> other",
        ]
    );
    assert_eq!(
        node(&graph, "kept").facts,
        ["dead letters by their own key"]
    );
    for (name, role) in [
        ("rest", Some(Role::DeadLetter)),
        ("waits", Some(Role::Wait)),
        ("waits.too", Some(Role::Wait)),
        ("straight", None),
    ] {
        assert_eq!(node(&graph, name).role, role, "{name}");
    }
}

#[test]
fn what_nobody_declares_is_missing() {
    // A file with a mistake like this is refused; a broker accepts it.
    let mut topology = topology(
        "exchanges: { e: { type: direct, alternate: gone.too } }
queues:
  q: { dead_letter: { exchange: gone } }
  s: { dead_letter: { exchange: '', key: nowhere }, bind: [ { exchange: theirs } ] }
elsewhere: { exchanges: [ gone, gone.too, theirs ], queues: [ nowhere ] }
",
    );
    topology.elsewhere.retain(|name| name == "theirs");
    let graph = draw(&topology, None);
    for (name, state) in [
        ("e", State::Declared),
        ("theirs", State::Elsewhere),
        ("gone", State::Missing),
        ("gone.too", State::Missing),
        ("nowhere", State::Missing),
    ] {
        assert_eq!(node(&graph, name).state, state, "{name}");
    }
}

#[test]
fn a_worker_publishes_what_it_retries_and_gives_up() {
    let graph = draw(
        &topology(
            "workers:
  dlx: { retry: { strategy: dlx, delays: [10s], max_attempts: 4 } }
  steps: { retry: { strategy: backoff, delays: [1s, 1s, 10s, 1m], max_attempts: 9 } }
",
        ),
        None,
    );
    let edges = edges(&graph);
    for edge in [
        "dlx -dead_letter[key retry; key dead after 4 attempts]-> dlx.dlx",
        "dlx.retry -retry[after 10s]-> dlx",
        "steps -worker[retries 1 to 2]-> steps.retry.1s",
        "steps -worker[retry 3]-> steps.retry.10s",
        "steps -worker[retries 4 to 8]-> steps.retry.1m",
        "steps.retry.1m -retry[after 1m]-> steps",
    ] {
        assert!(
            edges.iter().any(|found| found == edge),
            "{edge}\n{edges:#?}"
        );
    }
    assert_eq!(node(&graph, "steps.dlq").role, Some(Role::DeadLetter));
    assert_eq!(node(&graph, "dlx").role, Some(Role::Work));
}

#[test]
fn depths_belong_to_queues_and_unknown_ones_stay_unknown() {
    let mut topology = topology(
        "exchanges: { dlx: { type: direct } }
queues:
  work: { dead_letter: { exchange: dlx } }
  dlq: { bind: [ { exchange: dlx, key: k } ] }
  new: { bind: [ { exchange: dlx, key: k } ] }
  absent: {}
  reply: { bind: [ { exchange: amq.direct, key: r } ] }
",
    );
    let name = |text: &str| QueueName::new(text).expect("name");
    // The queue of a connection is not part of what a broker has declared.
    topology.queues.remove(&name("reply"));
    let full = Depth {
        ready: Some(2),
        ..Depth::default()
    };
    let exclusive = Depth {
        exclusive: true,
        ..Depth::default()
    };
    let depths = Depths::from([
        (name("work"), full),
        (name("dlq"), full),
        (name("new"), Depth::default()),
        (name("reply"), exclusive),
        (name("somebody's"), full),
    ]);
    let graph = draw(&topology, Some(&depths));
    assert!(node(&graph, "dlq").alarms());
    assert!(!node(&graph, "work").alarms(), "work is no dead letter");
    assert!(!node(&graph, "new").alarms(), "unknown is not full");
    assert_eq!(node(&graph, "new").lines(), ["depth unknown"]);
    assert_eq!(node(&graph, "absent").facts, ["not on the broker"]);
    let reply = node(&graph, "reply");
    assert_eq!(
        (reply.state, reply.facts.join(",")),
        (State::Elsewhere, "exclusive".to_owned())
    );
    assert!(graph.nodes.iter().all(|node| node.name != "somebody's"));
}
