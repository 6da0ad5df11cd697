//! What publishers and consumers do: confirms, acks, prefetch.

use std::collections::BTreeSet;

use crate::doctor::check::{ACKS, CONFIRMS, PREFETCH};
use crate::doctor::seen::SWITCH_ON;
use crate::doctor::{
    BrokerSeen, Channel, ChannelCounts, Clients, Connection, Consumer, NotTold, Report, Status,
    SubjectKind, VhostContents, VhostSeen,
};
use crate::topology::{QueueName, QueueType};

/// A larger prefetch keeps more messages from other consumers, and in the
/// memory of one, than is good (consumer-prefetch.md speaks of hundreds).
const MOST_PREFETCH: u64 = 2000;

/// Statistics of a channel come up to so many milliseconds late.
const STATISTICS_DELAY: u64 = 10_000;

pub(super) fn check(
    vhost: &VhostSeen,
    contents: &VhostContents,
    broker: &BrokerSeen,
    report: &mut Report,
) {
    let clients = match &vhost.clients {
        Ok(clients) => clients,
        Err(why) => {
            for rule in [CONFIRMS, ACKS, PREFETCH] {
                report.find(rule, vhost.not_told(why));
            }
            return;
        }
    };
    confirms(vhost, contents, clients, broker, report);
    for consumer in clients.consumers.values().flatten() {
        let Some(kind) = judged_kind(contents, consumer) else {
            continue;
        };
        report.judged(ACKS, 1);
        report.judged(PREFETCH, 1);
        if consumer.acks && consumer.channel.is_empty() {
            // AMQP 1.0 has credit instead, which is a limit always.
        } else if consumer.acks {
            prefetch(vhost, clients, consumer, kind, broker, report);
        } else {
            auto_ack(vhost, clients, consumer, report);
        }
    }
    consumers_not_listed(vhost, contents, clients, report);
}

/// The type of a consumer's queue, unless its messages are meant to go with it:
/// queues of one connection, and those named by the broker.
fn judged_kind<'c>(contents: &'c VhostContents, consumer: &Consumer) -> Option<&'c QueueType> {
    let name = QueueName::new(consumer.queue.clone()).ok()?;
    let seen = contents.queues.get(&name)?;
    let is_temporary = seen.auto_delete || consumer.queue.starts_with("amq.gen-");
    (!is_temporary).then_some(&seen.kind)
}

/// Queues may tell of consumers that are not listed yet.
fn consumers_not_listed(
    vhost: &VhostSeen,
    contents: &VhostContents,
    clients: &Clients,
    report: &mut Report,
) {
    let missing = contents.queues.iter().filter(|(name, seen)| {
        seen.consumers > Some(0) && !clients.consumers.contains_key(name.as_str())
    });
    let not_counted = contents.queues.values();
    let not_counted = not_counted.filter(|seen| seen.consumers.is_none()).count();
    let missing = missing.count() + not_counted;
    if missing > 0 {
        let why = NotTold::yet(format!(
            "the broker does not list all consumers of {missing} queues yet"
        ));
        for rule in [ACKS, PREFETCH] {
            report.find(rule, vhost.not_told(&why));
        }
    }
}

fn confirms(
    vhost: &VhostSeen,
    contents: &VhostContents,
    clients: &Clients,
    broker: &BrokerSeen,
    report: &mut Report,
) {
    if !broker.counts_clients {
        report.find(CONFIRMS, vhost.not_told(&not_counted()));
        return;
    }
    let mut not_told = 0;
    for channel in clients.channels.values() {
        match published(channel) {
            Some(counts) => {
                report.judged(CONFIRMS, 1);
                match channel.confirms {
                    Some(true) => {}
                    _ if channel.transactional => {}
                    None => not_told += 1,
                    Some(false) => unconfirmed(vhost, clients, channel, counts, report),
                }
            }
            None => not_told += usize::from(is_new(clients, channel, broker)),
        }
    }
    let of_other_protocols = other_protocols(vhost, clients, report);
    if not_told > 0 {
        let why = NotTold::yet(format!(
            "{not_told} channels are so new that the broker does not tell yet whether they publish"
        ));
        report.find(CONFIRMS, vhost.not_told(&why));
    }
    let is_seen = clients.channels.values().any(|it| published(it).is_some());
    if !is_seen && not_told == 0 && of_other_protocols == 0 {
        gone_publishers(vhost, contents, report);
    }
}

/// Who opens a channel or a connection for each publish is gone before the broker
/// counts what was done there; only the queues tell of it.
fn gone_publishers(vhost: &VhostSeen, contents: &VhostContents, report: &mut Report) {
    let rates = contents
        .queues
        .values()
        .map(|seen| seen.counts.publish_rate);
    let rate: f64 = rates.filter(|rate| *rate > 0.0).sum();
    if rate <= 0.0 {
        return;
    }
    let rate = if rate < 0.1 {
        "less than 0.1".to_owned()
    } else {
        format!("{rate:.1}")
    };
    let why = NotTold {
        why: format!(
            "messages are published at {rate}/s, and no publisher was connected when mq looked: whether they use confirms is not known"
        ),
        fix: "run this again while they publish; publishers that open a channel or a connection for each message are never seen: let them keep one, in confirm mode (confirm.select)"
            .to_owned(),
    };
    report.find(CONFIRMS, vhost.not_told(&why));
}

/// Connections without channels, whose publishes the broker does not show: those
/// of AMQP 1.0 (measured on 4.0.5 and 4.3.6). Publishers of the stream protocol
/// always get confirms. Gives how many.
fn other_protocols(vhost: &VhostSeen, clients: &Clients, report: &mut Report) -> usize {
    let with_channels: BTreeSet<&str> = clients
        .channels
        .values()
        .map(|channel| channel.connection.as_str())
        .collect();
    let unseen = clients.connections.iter().filter(|(name, connection)| {
        let protocol = connection.protocol.to_lowercase();
        let is_judged =
            protocol.is_empty() || protocol.starts_with("amqp 0") || protocol.contains("stream");
        !is_judged && !with_channels.contains(name.as_str())
    });
    let mut count = 0;
    for (name, connection) in unseen {
        count += 1;
        report.find(
            CONFIRMS,
            vhost.finding(
                Status::Unknown,
                SubjectKind::Connection,
                name.as_str(),
                format!(
                    "{} speaks {}: whether it publishes, and waits for outcomes, the broker does not tell",
                    described(clients, name, &connection.user),
                    connection.protocol
                ),
                "see that it sends unsettled (AMQP 1.0) or with QoS 1 (MQTT) and waits for the outcome",
            ),
        );
    }
    count
}

fn published(channel: &Channel) -> Option<ChannelCounts> {
    channel.counts.filter(|counts| counts.published > 0)
}

/// Whether nothing of a channel was counted yet although it may have done much.
fn is_new(clients: &Clients, channel: &Channel, broker: &BrokerSeen) -> bool {
    let connection = clients.connections.get(&channel.connection);
    let since = connection.and_then(|it| it.connected_at);
    let now = broker.now.saturating_mul(1000);
    channel.counts.is_none()
        && (channel.confirms.is_none()
            || since.is_some_and(|since| now.saturating_sub(since) < STATISTICS_DELAY))
}

pub(super) fn not_counted() -> NotTold {
    NotTold {
        why: "the broker does not count what clients do".to_owned(),
        fix: SWITCH_ON.to_owned(),
    }
}

fn unconfirmed(
    vhost: &VhostSeen,
    clients: &Clients,
    channel: &Channel,
    counts: ChannelCounts,
    report: &mut Report,
) {
    report.find(
        CONFIRMS,
        vhost.finding(
            Status::Fail,
            SubjectKind::Connection,
            channel.connection.as_str(),
            format!(
                "channel {} of {} published {} messages without confirms or transactions: what the broker loses or refuses, the publisher never learns",
                channel.number,
                described(clients, &channel.connection, &channel.user),
                counts.published
            ),
            "put the channel into confirm mode (confirm.select) and wait for the confirms before a message counts as sent; `mq publish` does",
        ),
    );
}

fn auto_ack(vhost: &VhostSeen, clients: &Clients, consumer: &Consumer, report: &mut Report) {
    report.find(
        ACKS,
        finding(
            vhost,
            clients,
            consumer,
            Status::Fail,
            "acks automatically (no_ack): a message counts as done when it is sent, and is lost if the consumer fails",
            "consume with manual acks (no_ack=false, auto_ack=False) and ack when the work is done",
        ),
    );
}

fn prefetch(
    vhost: &VhostSeen,
    clients: &Clients,
    consumer: &Consumer,
    kind: &QueueType,
    broker: &BrokerSeen,
    report: &mut Report,
) {
    let channel = clients.channels.get(&consumer.channel);
    let of_channel = channel.and_then(|channel| channel.channel_prefetch);
    let fix = "set a prefetch with basic.qos (global=false) before consuming: a few dozen for quick work, 1 for slow work";
    let (status, evidence) = match (consumer.prefetch, of_channel.filter(|limit| *limit > 0)) {
        (0, Some(limit)) => (
            Status::Warn,
            format!(
                "has no prefetch of its own; its channel has one of {limit} for all its consumers together (global QoS, which newer brokers ignore or refuse)"
            ),
        ),
        (0, None) => {
            let maybe = if broker.facts.hides_channel_prefetch() {
                ", unless it is set for the whole channel (global QoS), which this version does not tell"
            } else {
                ""
            };
            (
                Status::Fail,
                format!(
                    "has prefetch 0, which is no limit: it is sent everything that is ready, and holds all of that in memory{maybe}"
                ),
            )
        }
        // A stream is read in large steps, and nobody else waits for them.
        (limit, _) if limit > MOST_PREFETCH && *kind != QueueType::Stream => (
            Status::Warn,
            format!(
                "has prefetch {limit} (more than {MOST_PREFETCH}): so many messages wait in one client while others idle, and all are redelivered when it fails"
            ),
        ),
        _ => return,
    };
    report.find(
        PREFETCH,
        finding(vhost, clients, consumer, status, &evidence, fix),
    );
}

fn finding(
    vhost: &VhostSeen,
    clients: &Clients,
    consumer: &Consumer,
    status: Status,
    what: &str,
    fix: &str,
) -> super::Finding {
    let user = clients
        .connections
        .get(&consumer.connection)
        .map_or("", |connection| connection.user.as_str());
    vhost.finding(
        status,
        SubjectKind::Consumer,
        consumer.queue.as_str(),
        format!(
            "consumer '{}' of queue '{}' on {} {what}",
            consumer.tag,
            consumer.queue,
            described(clients, &consumer.connection, user)
        ),
        fix,
    )
}

/// A connection by all that tells whose it is.
pub(super) fn described(clients: &Clients, name: &str, user: &str) -> String {
    if name.is_empty() {
        return "a connection that the broker does not name (AMQP 1.0)".to_owned();
    }
    let known = clients.connections.get(name);
    let called = known.and_then(|it: &Connection| it.client_name.as_ref());
    let called = called.map_or_else(String::new, |called| format!(" '{called}'"));
    let product = known.and_then(|it| it.product.as_ref());
    let product = product.map_or_else(String::new, |product| format!(", {product}"));
    let user = known.map_or(user, |it| it.user.as_str());
    format!("connection{called} ({name}, user '{user}'{product})")
}
