//! Consumers of dead-letter queues that put dead letters back for ever.
//!
//! What the statistics show was measured on 3.10.8, 4.0.5 and 4.3.6 with classic
//! and quorum queues. A message that is returned (nack or reject with requeue)
//! and delivered again counts as `redeliver` and never as `ack`, on the queue and
//! on the channel. A message that is published back into its work queue and
//! acked counts as `ack` of the dead-letter queue and `publish` of the work
//! queue; that it dies again counts nowhere as a publish, but the dead-letter
//! queue does not get shorter.

use crate::doctor::check::PUT_BACK;
use crate::doctor::clients::{described, not_counted};
use crate::doctor::{
    BrokerSeen, Channel, Clients, Consumer, NotTold, QueueSeen, Report, Status, SubjectKind,
    VhostContents, VhostSeen,
};
use crate::lint::Feed;
use crate::topology::QueueName;

/// Fewer redeliveries than these are no loop yet: a consumer may have crashed.
const LEAST_REDELIVERIES: u64 = 10;

pub(super) fn check(
    vhost: &VhostSeen,
    contents: &VhostContents,
    broker: &BrokerSeen,
    report: &mut Report,
) {
    for (name, feeds) in &contents.resting.queues {
        report.judged(PUT_BACK, 1);
        let Some(seen) = contents.queues.get(name) else {
            continue;
        };
        match seen.consumers {
            Some(0) => {}
            None => {
                let why = NotTold::yet(format!(
                    "the broker does not tell the consumers of dead-letter queue '{name}' (yet)"
                ));
                report.find(PUT_BACK, vhost.not_told(&why));
            }
            Some(_) if !broker.counts_clients => {
                report.find(PUT_BACK, vhost.not_told(&not_counted()));
            }
            Some(_) => consumed(vhost, contents, name, seen, feeds, report),
        }
    }
}

fn consumed(
    vhost: &VhostSeen,
    contents: &VhostContents,
    name: &QueueName,
    seen: &QueueSeen,
    feeds: &[Feed],
    report: &mut Report,
) {
    if is_returned(seen) {
        let evidence = format!(
            "its consumers return what they get: {:.1} redeliveries and {:.1} acks a second; {} deliveries, {} redeliveries and {} acks in all",
            seen.counts.redeliver_rate,
            seen.counts.ack_rate,
            seen.counts.delivered,
            seen.counts.redelivered,
            seen.counts.acked
        );
        report.find(PUT_BACK, returned(vhost, name, evidence));
        return;
    }
    let clients = match &vhost.clients {
        Ok(clients) => clients,
        Err(why) => {
            report.find(PUT_BACK, vhost.not_told(why));
            return;
        }
    };
    let consumers = clients.consumers.get(name.as_str());
    let consumers: Vec<&Consumer> = consumers.into_iter().flatten().collect();
    for consumer in &consumers {
        let Some(channel) = clients.channels.get(&consumer.channel) else {
            continue;
        };
        if returns(clients, &consumer.channel, channel) {
            let counts = channel.counts.unwrap_or_default();
            let evidence = format!(
                "consumer '{}' on {} returns what it gets: {} redeliveries, {} acks on its channel",
                consumer.tag,
                described(clients, &consumer.connection, &channel.user),
                counts.redelivered,
                counts.acked
            );
            report.find(PUT_BACK, returned(vhost, name, evidence));
        } else if let Some(evidence) = republished(contents, clients, consumer, seen, feeds) {
            report.find(
                PUT_BACK,
                vhost.finding(
                    Status::Fail,
                    SubjectKind::Queue,
                    name.as_str(),
                    evidence,
                    "stop that consumer; find out why they fail (`mq dlq inspect`), then send them back once with `mq dlq replay`, which counts",
                ),
            );
        }
    }
    let is_new = consumers.iter().any(|consumer| {
        clients
            .channels
            .get(&consumer.channel)
            .is_none_or(|it| it.counts.is_none())
    });
    if seen.messages > Some(0) && (consumers.is_empty() || is_new) {
        let has_no_channel = consumers.iter().any(|consumer| consumer.channel.is_empty());
        let why = if has_no_channel {
            NotTold {
                why: format!(
                    "dead-letter queue '{name}' has a consumer of AMQP 1.0, of which the broker does not show what it does"
                ),
                fix: "see that it accepts what it dealt with, and releases or modifies nothing"
                    .to_owned(),
            }
        } else {
            NotTold::yet(format!(
                "the broker does not count yet what the consumers of dead-letter queue '{name}' do"
            ))
        };
        report.find(PUT_BACK, vhost.not_told(&why));
    }
}

/// Whether more comes back than is done, just now.
fn is_returned(seen: &QueueSeen) -> bool {
    let counts = seen.counts;
    counts.redelivered >= LEAST_REDELIVERIES
        && counts.redeliver_rate > 0.0
        && counts.redeliver_rate > counts.ack_rate
        // Looks through the management API hand out again too, but deliver nothing.
        && counts.deliver_rate >= counts.redeliver_rate / 2.0
}

fn returned(vhost: &VhostSeen, name: &QueueName, evidence: String) -> super::Finding {
    vhost.finding(
        Status::Fail,
        SubjectKind::Queue,
        name.as_str(),
        evidence,
        "let the consumer ack what it dealt with and leave the rest in the queue: nack or reject with requeue brings the same message back at once",
    )
}

/// Whether a channel with one consumer got the same messages again and again.
fn returns(clients: &Clients, name: &str, channel: &Channel) -> bool {
    let counts = channel.counts.unwrap_or_default();
    let done = counts.acked.saturating_add(channel.unacknowledged);
    let goes_round =
        counts.redelivered >= LEAST_REDELIVERIES && counts.redelivered > done.saturating_mul(2);
    let all = clients.consumers.values().flatten();
    goes_round && all.filter(|consumer| consumer.channel == name).count() == 1
}

/// Whether what a consumer acks is published again by its connection and dies
/// again: dead letters arrive as fast as they are acked, and nobody else
/// publishes or works off so many.
fn republished(
    contents: &VhostContents,
    clients: &Clients,
    consumer: &Consumer,
    seen: &QueueSeen,
    feeds: &[Feed],
) -> Option<String> {
    let same_connection = clients.channels.values();
    let same_connection = same_connection.filter(|one| one.connection == consumer.connection);
    let counts = same_connection.filter_map(|one| one.counts);
    let (published, publish_rate) = counts.fold((0_u64, 0.0), |(total, rate), counts| {
        (
            total.saturating_add(counts.published),
            rate + counts.publish_rate,
        )
    });
    let acks = seen.counts.ack_rate;
    let arriving = acks + seen.counts.growth;
    let origins = feeds.iter().filter_map(|feed| {
        let origin = contents.queues.get(&feed.queue)?;
        Some((feed.queue.as_str(), origin.counts))
    });
    let origins: Vec<_> = origins.collect();
    let into: f64 = origins.iter().map(|(_, counts)| counts.publish_rate).sum();
    let drained: f64 = origins
        .iter()
        .map(|(_, counts)| (-counts.growth).max(0.0))
        .sum();
    let others = (into - publish_rate).max(0.0) + drained;
    let loops = published >= LEAST_REDELIVERIES
        && acks > 0.0
        && publish_rate >= acks / 2.0
        && into >= acks / 2.0
        && arriving >= acks / 2.0
        && arriving > others * 2.0;
    let names: Vec<String> = origins
        .iter()
        .map(|(name, _)| format!("'{name}'"))
        .collect();
    loops.then(|| {
        format!(
            "consumer '{}' on {} publishes dead letters back and they die again: it publishes {publish_rate:.1} messages a second, {acks:.1} dead letters a second are acked and {arriving:.1} arrive, while others publish {others:.1} into {}",
            consumer.tag,
            described(clients, &consumer.connection, ""),
            names.join(", ")
        )
    })
}
