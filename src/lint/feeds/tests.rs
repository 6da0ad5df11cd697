use super::*;
use crate::diagnostic::Source;
use crate::topology::ExchangeName;

fn told(text: &str, version: &str) -> Vec<String> {
    let source = Source {
        name: "t.yaml".to_owned(),
        text: format!("version: 1\n{text}"),
    };
    let mut topology = crate::topologyfile::parse(std::slice::from_ref(&source), &|_| None)
        .unwrap_or_else(|found| panic!("{}", crate::diagnostic::render(&found, &[source])));
    // A broker does not tell what workers do.
    for queue in topology.queues.values_mut() {
        queue.retry = None;
    }
    let facts = BrokerFacts::new("RabbitMQ", version);
    let feeds = feeds(&topology, Some(&facts));
    assert!(!feeds.unknown);
    let told = feeds.into.into_iter().map(|(rest, feeds)| {
        let feeds = feeds.into_iter().map(|feed| {
            let mut reasons: Vec<&str> = feed.reasons.iter().map(|death| death.reason()).collect();
            if reasons.is_empty() {
                reasons.push("parked");
            }
            format!("{} {}", feed.queue, reasons.join("+"))
        });
        format!("{rest} < {}", feeds.collect::<Vec<_>>().join(", "))
    });
    told.collect()
}

#[test]
fn dead_letter_queues_are_found_by_what_they_are() {
    for (what, text, expected) in [
        (
            "by argument, with a name that says nothing",
            "exchanges: { dlx: { type: direct } }\nqueues:\n  work: { type: quorum, dead_letter: { exchange: dlx, key: k } }\n  bin: { bind: [{ exchange: dlx, key: k }] }\n  other.dlq: {}\n",
            vec!["bin < work rejected+delivery_limit"],
        ),
        (
            "by a policy, with the key that it came with",
            "exchanges: { in: { type: topic }, dlx: { type: topic } }\nqueues:\n  a: { type: classic, bind: [{ exchange: in, key: a.* }] }\n  b: { type: classic, max_length: 5, bind: [{ exchange: in, key: b.* }] }\n  a.bin: { bind: [{ exchange: dlx, key: a.# }] }\n  b.bin: { bind: [{ exchange: dlx, key: b.# }] }\npolicies: { p: { pattern: '^[ab]$', definition: { dead-letter-exchange: dlx } } }\n",
            vec!["a.bin < a rejected", "b.bin < b rejected+maxlen"],
        ),
        (
            "through queues it only waits in",
            "queues:\n  a: { type: classic, dead_letter: { exchange: '', key: wait } }\n  wait: { type: classic, message_ttl: 1s, dead_letter: { exchange: '', key: bin } }\n  bin: { type: classic }\n",
            vec!["bin < a rejected, wait rejected+expired"],
        ),
        (
            "not where a retry brings it back to, by one shared wait queue",
            "exchanges: { in: { type: direct }, again: { type: direct }, retry: { type: fanout } }\nqueues:\n  a: { type: classic, dead_letter: { exchange: retry }, bind: [{ exchange: in, key: a }, { exchange: again, key: a }] }\n  b: { type: classic, dead_letter: { exchange: retry }, bind: [{ exchange: in, key: b }, { exchange: again, key: b }] }\n  wait: { type: classic, message_ttl: 1s, dead_letter: { exchange: again }, bind: [{ exchange: retry }] }\n",
            vec![],
        ),
        (
            "in a chain of them, by rejection of the first",
            "exchanges: { one: { type: fanout }, two: { type: direct } }\nqueues:\n  a: { type: classic, dead_letter: { exchange: one } }\n  first: { type: classic, dead_letter: { exchange: two }, bind: [{ exchange: one }] }\n  second: { type: classic, bind: [{ exchange: two, key: a }] }\n",
            vec!["first < a rejected", "second < first rejected"],
        ),
        (
            "of a work queue with a TTL",
            "exchanges: { in: { type: direct }, dlx: { type: fanout } }\nqueues:\n  a: { type: classic, message_ttl: 1h, dead_letter: { exchange: dlx }, bind: [{ exchange: in, key: a }] }\n  bin: { type: classic, bind: [{ exchange: dlx }] }\n",
            vec!["bin < a rejected+expired"],
        ),
        (
            "none of a stream's, nor its own",
            "queues:\n  a: { type: classic, dead_letter: { exchange: '', key: a } }\n",
            vec![],
        ),
    ] {
        assert_eq!(told(text, "4.3.6"), expected, "{what}");
    }
}

#[test]
fn what_workers_park_is_seen_too() {
    for strategy in [
        "strategy: dlx, delays: [10s]",
        "strategy: backoff, delays: [1s, 10s]",
        "strategy: backoff, delays: [1s]",
        "strategy: immediate",
    ] {
        let text = format!(
            "exchanges: {{ shop: {{ type: topic }} }}\nworkers:\n  w: {{ bind: [{{ exchange: shop, key: '#' }}], retry: {{ {strategy}, max_attempts: 5 }} }}\n  unbound: {{ retry: {{ {strategy}, max_attempts: 5 }} }}\n"
        );
        for version in ["3.10.8", "4.3.6"] {
            let found = told(&text, version);
            let queues: Vec<&str> = found.iter().filter_map(|l| l.split(" < ").next()).collect();
            assert_eq!(queues, ["unbound.dlq", "w.dlq"], "{strategy}: {found:?}");
        }
    }
}

#[test]
fn an_exchange_that_is_not_there_drops_and_is_no_riddle() {
    let of = |yaml: &str| {
        let source = crate::diagnostic::Source {
            name: "t.yaml".to_owned(),
            text: format!("version: 1\n{yaml}"),
        };
        let mut topology = crate::topologyfile::parse(std::slice::from_ref(&source), &|_| None)
            .unwrap_or_else(|found| panic!("{}", crate::diagnostic::render(&found, &[source])));
        // A file must declare it; on a broker it may be gone.
        topology
            .exchanges
            .remove(&ExchangeName::new("gone").expect("name"));
        let facts = BrokerFacts::new("RabbitMQ", "4.3.6");
        feeds(&topology, Some(&facts)).unknown
    };
    let work = "queues: { work: { type: classic, dead_letter: { exchange: gone, key: k } } }\n";
    assert!(!of(&format!(
        "exchanges: {{ gone: {{ type: direct }} }}\n{work}"
    )));
}
