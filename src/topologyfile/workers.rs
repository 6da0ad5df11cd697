//! The `workers:` of a file: a work queue with its retries in a few lines.

use crate::diagnostic::Diagnostic;
use crate::lint::Subject;
use crate::topology::{QueueType, Strategy, Topology, Worker};
use crate::topologyfile::check::Places;
use crate::topologyfile::fields::Reader;
use crate::topologyfile::queue_fields::Part;
use crate::topologyfile::queues::{queue_name, read_bind};
use crate::topologyfile::shorthand;
use crate::topologyfile::tree::{Key, Node};

/// The keys of a queue that are not settled by being a worker.
pub(super) const KEYS: [&str; 16] = [
    "bind",
    "type",
    "retry",
    "delivery_limit",
    "message_ttl",
    "max_length",
    "max_length_bytes",
    "overflow",
    "single_active_consumer",
    "max_priority",
    "consumer_timeout",
    "leader_locator",
    "initial_cluster_size",
    "arguments",
    "schema",
    "description",
];

pub(super) fn read(node: &Node, reader: &mut Reader, topology: &mut Topology, places: &mut Places) {
    for (key, value) in reader.entries(node, "workers") {
        let Some(worker) = read_one(key, value, reader, topology, places) else {
            continue;
        };
        let what = format!("worker '{}'", worker.name);
        let subject = Subject::Queue(worker.name.clone());
        shorthand::add(worker.expand(), key, &what, reader, topology, places);
        if let Some(place) = value.key_place("schema") {
            places.spots.add_key(&subject, "schema", place);
        }
    }
}

fn read_one(
    key: &Key,
    node: &Node,
    reader: &mut Reader,
    topology: &mut Topology,
    places: &mut Places,
) -> Option<Worker> {
    let name = queue_name(key, reader)?;
    let what = format!("worker '{name}'");
    let fields = reader.fields(node, &what, &KEYS)?;
    let queue = Part {
        fields,
        what: &what,
        reader,
        places,
        default_type: Some(QueueType::Quorum),
        of_worker: true,
    }
    .queue();
    if let Some(node) = fields.get("bind") {
        read_bind(node, reader, &name, topology, places);
    }
    if queue.kind == Some(QueueType::Stream) && fields.get("retry").is_none() {
        reader.report(
            Diagnostic::new(
                "MQ114",
                key.place.clone(),
                format!("{what} is a stream, whose messages are read and never retried"),
            )
            .help("declare it under `queues:`"),
        );
        return None;
    }
    let Some(retry_node) = fields.get("retry") else {
        reader.report(
            Diagnostic::new("MQ107", key.place.clone(), format!("{what} has no `retry`")).help(
                "add `retry: { delays: [10s] }`, or `retry: { strategy: immediate }` to try again at once",
            ),
        );
        return None;
    };
    // A retry that could not be read has been reported.
    let policy = queue.retry.as_ref()?;
    let waits = policy.strategy != Some(Strategy::Immediate);
    if waits && policy.delays.is_empty() {
        // The other cases have been reported where delays are read.
        let delays = retry_node.entry("delays");
        let none = delays.is_none_or(|node| node.item_count() == Some(0));
        if policy.strategy != Some(Strategy::Backoff) && none {
            reader.report(
                Diagnostic::new(
                    "MQ107",
                    delays.map_or_else(|| retry_node.start(), Node::place),
                    format!("`retry` of {what} has no `delays`"),
                )
                .help("add `delays: [10s]`: how long a failed message waits"),
            );
        }
        return None;
    }
    if policy.strategy == Some(Strategy::Native) && queue.kind != Some(QueueType::Quorum) {
        reader.report(
            Diagnostic::new(
                "MQ114",
                retry_node.place(),
                format!("{what} asks for `native` retries, which only quorum queues have"),
            )
            .help("write `type: quorum`, or use another strategy"),
        );
        return None;
    }
    Some(Worker { name, queue })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::{prop_assert_eq, proptest};
    use proptest::strategy::Strategy as Generator;

    use crate::diagnostic::{Source, render};
    use crate::retry::{self, Strategy};
    use crate::topology::{DeadLetterStrategy, QueueName, Topology};
    use crate::topologyfile::{expanded, parse, schema};

    /// Whatever is read here, the schema takes too.
    fn parsed(text: &str) -> Topology {
        assert_eq!(schema::tests::complaints(text), Vec::<String>::new());
        let source = Source {
            name: "t.yaml".to_owned(),
            text: text.to_owned(),
        };
        let mut topology = parse(std::slice::from_ref(&source), &|_| None)
            .unwrap_or_else(|found| panic!("{}\n{text}", render(&found, &[source])));
        // Their order has no meaning.
        topology.bindings.sort_by_key(ToString::to_string);
        topology
    }

    /// Any worker that can be written, with the strategy that it asks for.
    fn worker() -> impl Generator<Value = (Strategy, String)> {
        (
            0_usize..4,
            proptest::collection::vec(1_u64..100_000_000, 1..6),
            proptest::option::of(0_u32..4),
            proptest::option::of(1_u64..1000),
            proptest::bool::ANY,
            proptest::bool::ANY,
            proptest::option::of((10_u32..50, proptest::option::of(1_u64..1_000_000_000))),
            proptest::option::of(0_u8..100),
        )
            .prop_map(
                |(which, mut delays, more, length, bound, classic, growing, jitter)| {
                    let (word, strategy) = Strategy::ALL[which];
                    delays.sort_unstable();
                    match strategy {
                        Strategy::Dlx => delays.truncate(1),
                        Strategy::Native => delays.truncate(2),
                        Strategy::Immediate => delays.clear(),
                        Strategy::Backoff => {}
                    }
                    let attempts = u32::try_from(delays.len()).expect("few") + 1;
                    let delays: Vec<String> = delays
                        .iter()
                        .map(|delay| {
                            humantime::format_duration(Duration::from_millis(*delay)).to_string()
                        })
                        .collect();
                    // The default of 5 attempts reaches 4 delays.
                    let attempts = match more {
                        None if delays.len() <= 4 => String::new(),
                        more => format!(", max_attempts: {}", attempts + more.unwrap_or(0)),
                    };
                    let delays = match (growing, delays.first()) {
                        (_, None) => String::new(),
                        (Some((tenths, more)), Some(first)) if strategy == Strategy::Backoff => {
                            let factor = f64::from(tenths) / 10.0;
                            let max = more.map_or(String::new(), |more| {
                                let max = Duration::from_millis(100_000_000 + more);
                                format!(", max: {}", humantime::format_duration(max))
                            });
                            format!(", delays: {{ first: {first}, factor: {factor}{max} }}")
                        }
                        _ => format!(", delays: [{}]", delays.join(", ")),
                    };
                    let jitter = match jitter {
                        Some(percent) if strategy == Strategy::Backoff => match percent {
                            0 => ", jitter: full".to_owned(),
                            percent => format!(", jitter: {percent}%"),
                        },
                        _ => String::new(),
                    };
                    let mut text =
                        format!("retry: {{ strategy: {word}{delays}{jitter}{attempts} }}");
                    if let Some(length) = length {
                        text.push_str(&format!(", max_length: {length}, overflow: reject-publish"));
                    }
                    if bound {
                        text.push_str(
                            ", bind: [ { exchange: in, key: 'a.*' }, { exchange: in, key: b } ]",
                        );
                    }
                    if classic && strategy != Strategy::Native {
                        text.push_str(", type: classic, max_priority: 3");
                    }
                    (strategy, text)
                },
            )
    }

    proptest! {
        #[test]
        fn every_worker_has_the_path_it_asks_for((strategy, worker) in worker(), prefix in "[a-z]{0,3}") {
            let topology = parsed(&format!(
                "version: 1\nexchanges: {{ in: {{ type: topic }} }}\nworkers: {{ 'w.1': {{ {worker} }}, other: {{ {worker} }} }}\n"
            ));
            let topology = topology.prefixed(&prefix).expect("prefixed");
            let name = QueueName::new(format!("{prefix}w.1")).expect("name");
            let policy = topology.queues[&name].retry.clone().expect("retry");
            let path = retry::path(&crate::routing::Router::new(&topology), &name, &policy).expect("path");
            prop_assert_eq!(path.strategy, strategy);
            prop_assert_eq!(path.dead_letter_queues, [QueueName::new(format!("{prefix}w.1.dlq")).expect("name")].into());
            let steps: std::collections::BTreeSet<_> = policy.delays.iter().collect();
            let waits = match strategy {
                Strategy::Dlx | Strategy::Backoff => steps.len(),
                Strategy::Immediate | Strategy::Native => 0,
            };
            prop_assert_eq!(path.wait_queues.len(), waits);
            for wait_queue in &path.wait_queues {
                let strategy = topology.queues[wait_queue].dead_letter_strategy;
                prop_assert_eq!(strategy, Some(DeadLetterStrategy::AtLeastOnce));
            }
        }

        #[test]
        fn written_out_it_is_the_same_topology((_, worker) in worker(), partitions in 1_u8..4) {
            let topology = parsed(&format!(
                "version: 1\nvhost: {{ name: v, description: '', tags: [], limits: {{ max_queues: unlimited }} }}\nexchanges: {{ in: {{ type: topic }} }}
workers: {{ w: {{ {worker}, description: 'a ${{b}}: #' }} }}
super_streams: {{ s: {{ partitions: {partitions}, max_age: 7d }} }}
policies: {{ p: {{ pattern: '^x', definition: {{ max-length: 5 }}, description: why }} }}
users: {{ u: {{ password: {{ env: PW }}, tags: [ management ], description: who }} }}
permissions: {{ u: {{ configure: '^w', write: '', read: '', topics: {{ in: {{ write: a, read: b }} }} }} }}
owns: [ '^w' ]
elsewhere: {{ exchanges: [ far ], queues: [ away ] }}
bindings: [ {{ source: far, destination: away, key: k }}, {{ source: far, destination: in, destination_type: exchange, key: k }} ]\n"
            ).replace("${b}", "$${b}"));
            let exported = expanded(&topology).expect("expanded");
            prop_assert_eq!(&exported.left_out, &Vec::<String>::new());
            prop_assert_eq!(parsed(&exported.text), topology);
        }
    }
}
