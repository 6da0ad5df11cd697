//! Each check as a table: what is there, and what is found.

use std::collections::BTreeMap;

use crate::deadletter::EffectiveLimit;
use crate::doctor::bench::{broker, findings, found, node, vhost};
use crate::doctor::{
    Channel, ChannelCounts, Connection, Consumer, NotTold, QueueCounts, Status, VhostSeen, examine,
};

const WORK: &str = "exchanges: { dlx: { type: direct } }
queues:
  work: { type: quorum, delivery_limit: unlimited, dead_letter: { exchange: dlx, key: dead } }
  dead: { type: quorum, delivery_limit: unlimited }
bindings: [{ source: dlx, destination: dead, key: dead }]
";

/// The same with a worker that does everything right.
fn worked() -> VhostSeen {
    let mut vhost = vhost("4.3.6", WORK);
    vhost.queue("work").consumers = Some(1);
    let clients = vhost.connected();
    clients.connections.insert("c".to_owned(), connection());
    clients
        .channels
        .insert("c (1)".to_owned(), channel(true, 0));
    clients.consumers = consumers_of(&[consumer("work", true, 20)]);
    vhost
}

fn connection() -> Connection {
    Connection {
        client_name: Some("app".to_owned()),
        product: Some("pika".to_owned()),
        protocol: "AMQP 0-9-1".to_owned(),
        user: "u".to_owned(),
        connected_at: Some(0),
    }
}

fn channel(confirms: bool, published: u64) -> Channel {
    Channel {
        connection: "c".to_owned(),
        user: "u".to_owned(),
        number: 1,
        confirms: Some(confirms),
        counts: Some(ChannelCounts {
            published,
            ..ChannelCounts::default()
        }),
        ..Channel::default()
    }
}

fn consumers_of(consumers: &[Consumer]) -> BTreeMap<String, Vec<Consumer>> {
    let mut by_queue: BTreeMap<String, Vec<Consumer>> = BTreeMap::new();
    for consumer in consumers {
        let of_queue = by_queue.entry(consumer.queue.clone()).or_default();
        of_queue.push(consumer.clone());
    }
    by_queue
}

fn consumer(queue: &str, acks: bool, prefetch: u64) -> Consumer {
    Consumer {
        queue: queue.to_owned(),
        tag: "t".to_owned(),
        channel: "c (1)".to_owned(),
        connection: "c".to_owned(),
        acks,
        prefetch,
    }
}

#[test]
fn what_is_right_passes() {
    let report = examine(&broker("4.3.6"), &[worked()], &[]);
    for check in &report.checks {
        assert_eq!(check.findings, [], "{}", check.rule.code);
    }
}

#[test]
fn exchanges_for_dead_letters() {
    for (exchanges, expected) in [
        ("dlx: { type: direct }", vec![]),
        ("dlx: { type: direct, durable: false }", vec!["fail work"]),
        (
            "dlx: { type: direct, auto_delete: true }",
            vec!["fail work"],
        ),
    ] {
        let yaml = WORK.replace("dlx: { type: direct }", exchanges);
        let vhost = vhost("4.3.6", &yaml);
        assert_eq!(
            found("MQD01", &broker("4.3.6"), &vhost),
            expected,
            "{exchanges}"
        );
    }
    let by_policy = "elsewhere: { exchanges: [gone] }\nqueues: { work: { type: classic } }\npolicies: { p: { pattern: work, definition: { dead-letter-exchange: gone } } }\n";
    let found = findings("MQD01", &broker("4.3.6"), &vhost("4.3.6", by_policy));
    assert_eq!(found.len(), 1);
    assert!(
        found[0]
            .evidence
            .contains("'gone' (by dead-letter-exchange of the policy 'p'), which does not exist"),
        "{}",
        found[0].evidence
    );
}

#[test]
fn the_way_of_dead_letters() {
    let wrong_key = WORK.replace(
        "destination: dead, key: dead",
        "destination: dead, key: other",
    );
    let kept = WORK.replace("exchange: dlx, key: dead", "exchange: dlx");
    let policy = format!(
        "elsewhere: {{ exchanges: [other] }}\n{WORK}policies: {{ p: {{ pattern: work, definition: {{ dead-letter-exchange: other, dead-letter-routing-key: dead }} }} }}\n"
    );
    for (yaml, expected) in [
        (WORK, vec![]),
        (&wrong_key, vec!["fail work"]),
        (&kept, vec!["fail work"]),
        (&policy, vec!["warn work"]),
    ] {
        assert_eq!(
            found("MQD02", &broker("4.3.6"), &vhost("4.3.6", yaml)),
            expected,
            "{yaml}"
        );
    }
    let both = findings("MQD02", &broker("4.3.6"), &vhost("4.3.6", &policy));
    assert!(
        both[0].evidence.contains("'other'") && both[0].evidence.contains("'dlx' wins"),
        "{}",
        both[0].evidence
    );
}

#[test]
fn a_policy_that_is_not_told_yet_is_unknown() {
    let mut vhost = vhost("4.0.5", WORK);
    vhost.queue("work").policy = None;
    vhost.queue("work").consumers = None;
    vhost.queue("dead").messages = None;
    for code in [
        "MQD01", "MQD02", "MQD03", "MQD05", "MQD06", "MQD07", "MQD08", "MQD09", "MQD10", "MQD11",
        "MQD13",
    ] {
        let found = found(code, &broker("4.0.5"), &vhost);
        assert!(
            found.iter().any(|one| one.starts_with("unknown")),
            "{code}: {found:?}"
        );
    }
}

#[test]
fn work_without_a_dead_letter_path() {
    let of = |options: &str, consumers: Option<u64>, published: u64| {
        let mut vhost = vhost(
            "4.3.6",
            &format!("queues: {{ q: {{ type: classic{options} }} }}"),
        );
        vhost.queue("q").consumers = consumers;
        vhost.queue("q").counts.published = published;
        found("MQD03", &broker("4.3.6"), &vhost)
    };
    assert_eq!(of("", Some(1), 0), ["fail q"]);
    assert_eq!(of("", Some(0), 7), ["fail q"]);
    assert_eq!(of("", None, 0), ["unknown v"]);
    assert!(of("", Some(0), 0).is_empty());
    assert!(of(", auto_delete: true", Some(1), 1).is_empty());
    // After a restart nothing is counted but what is in it.
    for (consumers, messages, expected) in [
        (Some(0), Some(3), vec!["fail q"]),
        (None, Some(3), vec!["fail q"]),
        (Some(0), None, vec!["unknown v"]),
        (Some(0), Some(0), vec![]),
    ] {
        let mut vhost = vhost("4.3.6", "queues: { q: { type: classic } }");
        vhost.queue("q").consumers = consumers;
        vhost.queue("q").messages = messages;
        let found = found("MQD03", &broker("4.3.6"), &vhost);
        assert_eq!(found, expected, "{consumers:?} {messages:?}");
    }
    assert!(found("MQD03", &broker("4.3.6"), &worked()).is_empty());
}

#[test]
fn publishers() {
    for (confirms, transactional, published, expected) in [
        (true, false, 5, vec![]),
        (false, true, 5, vec![]),
        (false, false, 0, vec![]),
        (false, false, 5, vec!["fail c"]),
    ] {
        let mut vhost = worked();
        let mut channel = channel(confirms, published);
        channel.transactional = transactional;
        *vhost.channel() = channel;
        assert_eq!(found("MQD04", &broker("4.3.6"), &vhost), expected);
    }
    // Nothing is counted yet of a connection of three seconds.
    let mut vhost = worked();
    let mut broker = broker("4.3.6");
    vhost.channel().counts = None;
    assert!(found("MQD04", &broker, &vhost).is_empty());
    let since = (broker.now - 3) * 1000;
    let clients = vhost.connected();
    clients.connections.get_mut("c").expect("c").connected_at = Some(since);
    assert_eq!(found("MQD04", &broker, &vhost), ["unknown v"]);
    broker.counts_clients = false;
    assert_eq!(found("MQD04", &broker, &vhost), ["unknown v"]);
}

#[test]
fn publishers_that_are_gone_when_mq_looks() {
    for (rate, published, expected) in [
        (0.0, 0, None),
        (2.4, 0, Some("at 2.4/s, and no publisher was connected")),
        (0.04, 0, Some("at less than 0.1/s")),
        (2.4, 5, None),
    ] {
        let mut vhost = worked();
        // It stays counted of who published long ago.
        vhost.queue("work").counts.published = 9;
        vhost.queue("work").counts.publish_rate = rate;
        *vhost.channel() = channel(true, published);
        let found = findings("MQD04", &broker("4.3.6"), &vhost);
        let told = found.first().map(|one| one.evidence.as_str());
        match expected {
            None => assert_eq!(told, None),
            Some(expected) => {
                assert!(told.is_some_and(|it| it.contains(expected)), "{told:?}");
                assert_eq!(found[0].status, Status::Unknown);
            }
        }
    }
}

#[test]
fn of_other_protocols_the_publishing_is_not_seen_and_credit_is_a_limit() {
    for (protocol, expected) in [
        ("AMQP 1-0", vec!["unknown x"]),
        ("MQTT 3.1.1", vec!["unknown x"]),
        ("AMQP 0-9-1", vec![]),
        ("stream", vec![]),
    ] {
        let mut vhost = worked();
        let mut other = connection();
        other.protocol = protocol.to_owned();
        let clients = vhost.connected();
        clients.connections.insert("x".to_owned(), other);
        let mut credit = consumer("work", true, 0);
        (credit.channel, credit.connection) = (String::new(), String::new());
        clients.consumers = consumers_of(&[credit]);
        let broker = broker("4.0.5");
        assert_eq!(found("MQD04", &broker, &vhost), expected, "{protocol}");
        assert!(found("MQD06", &broker, &vhost).is_empty(), "{protocol}");
    }
}

#[test]
fn without_statistics_running_again_is_no_advice() {
    let mut vhost = worked();
    let mut broker = broker("4.0.5");
    vhost.queue("work").policy = None;
    for (counts, advice) in [(true, "run this again"), (false, "switch statistics on")] {
        broker.counts_clients = counts;
        let found = findings("MQD01", &broker, &vhost);
        assert!(found[0].fix.words.contains(advice), "{}", found[0].fix);
    }
}

#[test]
fn consumers() {
    for (version, acks, prefetch, of_channel, acking, prefetching) in [
        ("4.3.6", true, 1, None, vec![], vec![]),
        ("4.3.6", true, 2000, None, vec![], vec![]),
        ("4.3.6", true, 2001, None, vec![], vec!["warn work"]),
        ("4.3.6", true, 0, None, vec![], vec!["fail work"]),
        ("3.10.8", true, 0, Some(5), vec![], vec!["warn work"]),
        ("3.10.8", true, 0, Some(0), vec![], vec!["fail work"]),
        ("4.3.6", false, 0, None, vec!["fail work"], vec![]),
    ] {
        let mut vhost = worked();
        vhost.connected().consumers = consumers_of(&[consumer("work", acks, prefetch)]);
        vhost.channel().channel_prefetch = of_channel;
        let broker = broker(version);
        assert_eq!(found("MQD05", &broker, &vhost), acking, "{acks} {prefetch}");
        assert_eq!(
            found("MQD06", &broker, &vhost),
            prefetching,
            "{acks} {prefetch}"
        );
    }
    let mut hidden = worked();
    hidden.connected().consumers = consumers_of(&[consumer("work", true, 0)]);
    let found = findings("MQD06", &broker("4.0.5"), &hidden);
    assert!(
        found[0]
            .evidence
            .contains("which this version does not tell")
    );
}

#[test]
fn a_consumer_that_is_not_listed_yet_is_unknown() {
    let mut vhost = worked();
    vhost.connected().consumers.clear();
    for code in ["MQD05", "MQD06"] {
        assert_eq!(found(code, &broker("4.3.6"), &vhost), ["unknown v"]);
    }
}

#[test]
fn loops_of_dead_letters() {
    let to = |queue: &str| format!("dead_letter: {{ exchange: '', key: {queue} }}");
    let expiring = format!(
        "queues:\n  a: {{ type: classic, message_ttl: 1s, {} }}\n  b: {{ type: classic, message_ttl: 1s, {} }}\n",
        to("b"),
        to("a")
    );
    let at_once = format!("queues:\n  a: {{ type: classic, {} }}\n", to("a"));
    let retry = format!(
        "queues:\n  a: {{ type: classic, {} }}\n  b: {{ type: classic, message_ttl: 1s, {} }}\n",
        to("b"),
        to("a")
    );
    for (yaml, expected) in [
        (expiring, vec!["fail a"]),
        (at_once, vec!["warn a"]),
        (retry, vec![]),
    ] {
        let vhost = vhost("4.3.6", &yaml);
        assert_eq!(found("MQD07", &broker("4.3.6"), &vhost), expected, "{yaml}");
    }
}

#[test]
fn what_must_survive() {
    let classic = WORK.replace("type: quorum, delivery_limit: unlimited", "type: classic");
    let transient = WORK.replace(
        "dead: { type: quorum, delivery_limit: unlimited }",
        "dead: { type: classic, durable: false }",
    );
    let mirrored = format!(
        "{classic}policies: {{ p: {{ pattern: '.*', definition: {{ ha-mode: all }} }} }}\n"
    );
    let one = broker("4.0.5");
    let mut three = broker("4.0.5");
    three.nodes = Ok(["one", "two", "three"].map(node).into());
    let mut untold = broker("4.0.5");
    untold.nodes = Err(NotTold {
        why: "no".to_owned(),
        fix: "tag".to_owned(),
    });
    for (broker, yaml, expected) in [
        (&one, WORK, vec![]),
        (&one, &classic, vec![]),
        (&three, WORK, vec![]),
        (&three, &classic, vec!["warn dead", "warn work"]),
        (&three, &mirrored, vec![]),
        (&untold, WORK, vec![]),
        (&untold, &classic, vec!["unknown v"]),
        (&one, &transient, vec!["fail dead"]),
    ] {
        assert_eq!(
            found("MQD08", broker, &vhost("4.0.5", yaml)),
            expected,
            "{yaml}"
        );
    }
    let mut few = vhost("4.0.5", WORK);
    few.queue("work").members = 1;
    few.queue("dead").members = 3;
    assert_eq!(found("MQD08", &three, &few), ["warn work"]);
}

#[test]
fn delivery_limits() {
    let limited = WORK.replace(
        "dead: { type: quorum, delivery_limit: unlimited }",
        "dead: { type: quorum }",
    );
    let alone = "queues: { q: { type: quorum, delivery_limit: 5 } }";
    for (version, yaml, expected) in [
        ("4.0.5", WORK, vec![]),
        ("3.10.8", &limited, vec![]),
        ("4.0.5", &limited, vec!["warn dead"]),
        ("4.3.6", &limited, vec!["warn dead"]),
        ("3.10.8", alone, vec!["fail q"]),
        ("4.3.6", alone, vec!["fail q"]),
    ] {
        let vhost = vhost(version, yaml);
        assert_eq!(
            found("MQD09", &broker(version), &vhost),
            expected,
            "{version} {yaml}"
        );
    }
}

#[test]
fn how_a_delivery_limit_goes() {
    let command = Some(
        r#"rabbitmqctl set_policy --vhost v --apply-to queues unlimited-dead '^dead$' '{"delivery-limit":-1}'"#,
    );
    let limited = |options: &str| {
        WORK.replace(
            "dead: { type: quorum, delivery_limit: unlimited }",
            &format!("dead: {{ type: quorum{options} }}"),
        )
    };
    let by_nobody = limited("");
    let by_argument = limited(", delivery_limit: 5");
    let by_policy = format!(
        "{by_nobody}policies: {{ p: {{ pattern: dead, definition: {{ delivery-limit: 5 }} }} }}\n"
    );
    for (version, yaml, words, expected) in [
        ("4.0.5", &by_nobody, "lift the limit", command),
        ("4.0.5", &by_argument, "cannot be changed", None),
        ("4.0.5", &by_policy, "policy 'p' that is in force", None),
        ("3.10.8", &by_argument, "without a delivery limit", None),
        ("3.10.8", &by_policy, "out of the policy 'p'", None),
    ] {
        let mut vhost = vhost(version, yaml);
        vhost.queue("dead").limit = EffectiveLimit::Finite(5);
        let found = findings("MQD09", &broker(version), &vhost);
        assert_eq!(found.len(), 1, "{version} {yaml}");
        let fix = &found[0].fix;
        assert!(fix.words.contains(words), "{fix}");
        assert_eq!(fix.command.as_deref(), expected, "{fix}");
    }
}

#[test]
fn dead_letters_put_back() {
    let counts = |published, delivered, redelivered, redeliver_rate, acked, ack_rate| QueueCounts {
        published,
        delivered,
        deliver_rate: redeliver_rate,
        redelivered,
        redeliver_rate,
        acked,
        ack_rate,
        ..QueueCounts::default()
    };
    for (counts, expected) in [
        (counts(0, 5, 0, 0.0, 5, 1.0), vec![]),
        (counts(0, 800, 790, 44.0, 0, 0.0), vec!["fail dead"]),
        (counts(0, 800, 790, 44.0, 10, 44.0), vec![]),
        // It is over.
        (counts(0, 800, 790, 0.0, 10, 0.0), vec![]),
        (counts(0, 5, 4, 1.0, 0, 0.0), vec![]),
    ] {
        let mut vhost = worked();
        vhost.queue("dead").consumers = Some(1);
        vhost.queue("dead").counts = counts;
        vhost.connected().consumers = consumers_of(&[consumer("dead", true, 1)]);
        assert_eq!(
            found("MQD10", &broker("4.3.6"), &vhost),
            expected,
            "{counts:?}"
        );
    }
}

#[test]
fn looks_are_no_loop() {
    let mut vhost = worked();
    vhost.queue("dead").consumers = Some(1);
    vhost.queue("dead").counts = QueueCounts {
        redelivered: 40,
        redeliver_rate: 8.0,
        ..QueueCounts::default()
    };
    vhost.connected().consumers = consumers_of(&[consumer("dead", true, 1)]);
    assert!(found("MQD10", &broker("4.3.6"), &vhost).is_empty());
}

#[test]
fn a_channel_tells_a_loop_that_is_slow() {
    for (redelivered, acked, unacknowledged, expected) in [
        (30, 1, 1, vec!["fail dead"]),
        (30, 20, 1, vec![]),
        (30, 0, 30, vec![]),
        (9, 0, 0, vec![]),
    ] {
        let mut vhost = worked();
        vhost.queue("dead").consumers = Some(1);
        vhost.connected().consumers = consumers_of(&[consumer("dead", true, 1)]);
        vhost.channel().unacknowledged = unacknowledged;
        vhost.channel().counts = Some(ChannelCounts {
            redelivered,
            acked,
            ..ChannelCounts::default()
        });
        let found = found("MQD10", &broker("4.3.6"), &vhost);
        assert_eq!(found, expected, "{redelivered} {acked} {unacknowledged}");
    }
}

#[test]
fn dead_letters_published_back_that_die_again() {
    for (into, growth, publish_rate, drained, expected) in [
        // All that arrives in the work queue is published by who acks the dead letters.
        (18.0, 0.0, 18.0, 0.0, vec!["fail dead"]),
        // A replay: the dead-letter queue shrinks as fast as it is acked.
        (18.0, -18.0, 18.0, 0.0, vec![]),
        // Others publish as much, which may well be what dies.
        (40.0, 0.0, 18.0, 0.0, vec![]),
        // So may what the work queue held before.
        (18.0, 0.0, 18.0, -20.0, vec![]),
        // It publishes somewhere else.
        (0.0, 0.0, 18.0, 0.0, vec![]),
        (18.0, 0.0, 0.0, 0.0, vec![]),
    ] {
        let mut vhost = worked();
        vhost.queue("work").counts = QueueCounts {
            publish_rate: into,
            growth: drained,
            ..QueueCounts::default()
        };
        vhost.queue("dead").consumers = Some(1);
        vhost.queue("dead").counts = QueueCounts {
            ack_rate: 18.0,
            growth,
            ..QueueCounts::default()
        };
        vhost.connected().consumers = consumers_of(&[consumer("dead", true, 1)]);
        vhost.channel().counts = Some(ChannelCounts {
            published: 200,
            publish_rate,
            acked: 200,
            ..ChannelCounts::default()
        });
        let found = found("MQD10", &broker("4.3.6"), &vhost);
        assert_eq!(found, expected, "{into} {growth} {publish_rate} {drained}");
    }
}

#[test]
fn consumers_of_dead_letters_that_are_not_counted_are_unknown() {
    let mut vhost = worked();
    vhost.queue("dead").consumers = Some(1);
    vhost.queue("dead").messages = Some(3);
    assert_eq!(found("MQD10", &broker("4.3.6"), &vhost), ["unknown v"]);
    vhost.queue("dead").consumers = None;
    assert_eq!(found("MQD10", &broker("4.3.6"), &vhost), ["unknown v"]);
}

#[test]
fn a_backlog_is_counted_and_dated() {
    let mut vhost = worked();
    vhost.queue("dead").messages = Some(3);
    let contents = vhost.contents.as_mut().expect("contents");
    let name = crate::topology::QueueName::new("dead").expect("name");
    contents.oldest_seconds.insert(name, 7300);
    let found = findings("MQD11", &broker("4.3.6"), &vhost);
    assert_eq!(found[0].evidence, "3 dead letters, the oldest died 2 h ago");
    assert!(
        found[0]
            .fix
            .words
            .ends_with("mq dlq inspect dead --vhost v")
    );
}

#[test]
fn nodes() {
    let mut broker = broker("4.0.5");
    let mut down = node("down");
    down.running = false;
    let mut full = node("full");
    full.memory_alarm = Some(true);
    full.memory = Some((9, 8));
    full.disk_alarm = Some(true);
    let mut cut_off = node("cut off");
    cut_off.partitions = vec!["one".to_owned()];
    let mut drained = node("drained");
    drained.is_drained = true;
    let mut new = node("new");
    new.memory_alarm = None;
    broker.nodes = Ok(vec![node("one"), down, full, cut_off, drained, new]);
    assert_eq!(
        found("MQD12", &broker, &worked()),
        [
            "fail down",
            "fail full",
            "fail full",
            "fail cut off",
            "warn drained",
            "unknown RabbitMQ 4.0.5"
        ]
    );
}

#[test]
fn deprecated_features() {
    let transient = vhost("3.10.8", "queues: { q: { type: classic, durable: false } }");
    assert_eq!(found("MQD13", &broker("3.10.8"), &transient), ["warn q"]);
    let mirrored = vhost(
        "3.10.8",
        "queues: { q: { type: classic }, r: { type: classic } }\npolicies: { p: { pattern: '.*', definition: { ha-mode: all } } }\n",
    );
    assert_eq!(found("MQD13", &broker("3.10.8"), &mirrored), ["warn p"]);
}

#[test]
fn a_vhost_that_cannot_be_read_is_unknown_and_the_others_are_judged() {
    let mut closed = worked();
    closed.contents = Err(NotTold {
        why: "not authorised".to_owned(),
        fix: "ask".to_owned(),
    });
    let broken = vhost("4.3.6", "queues: { q: { type: classic, durable: false } }");
    let report = examine(&broker("4.3.6"), &[closed, broken], &[]);
    for check in report.checks.iter().filter(|check| check.rule.of_vhosts) {
        assert!(
            check
                .findings
                .iter()
                .any(|found| found.status == Status::Unknown),
            "{}",
            check.rule.code
        );
    }
    assert!(report.has(Status::Warn));
}

#[test]
fn clients_that_are_not_told_are_unknown() {
    let mut vhost = worked();
    vhost.queue("dead").consumers = Some(1);
    vhost.clients = Err(NotTold {
        why: "sees only its own".to_owned(),
        fix: "tag".to_owned(),
    });
    for code in ["MQD04", "MQD05", "MQD06", "MQD10"] {
        assert_eq!(
            found(code, &broker("4.3.6"), &vhost),
            ["unknown v"],
            "{code}"
        );
    }
}
