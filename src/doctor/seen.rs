//! What was read of a broker, as plain data.

use std::collections::BTreeMap;

use crate::broker::BrokerFacts;
use crate::deadletter::{EffectiveLimit, RestingPlaces, resting_places};
use crate::doctor::{Finding, Fix, Status, SubjectKind};
use crate::field::FieldTable;
use crate::lint::{self, lint};
use crate::topology::{QueueName, QueueType, Topology, VhostName};

/// What to do where statistics are late.
pub(super) const RUN_AGAIN: &str = "statistics come up to ten seconds late: run this again";

/// What to do where there are none.
pub(super) const SWITCH_ON: &str = "switch statistics on for the time of the check (management_agent.disable_metrics_collector, management.disable_stats, rates_mode)";

/// Something that was read, or why it was not.
pub type Told<T> = std::result::Result<T, NotTold>;

/// Why something is not known, and what would tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTold {
    /// Why.
    pub why: String,
    /// What to do.
    pub fix: String,
}

/// The broker itself.
#[derive(Clone, Debug)]
pub struct BrokerSeen {
    /// Its version.
    pub facts: BrokerFacts,
    /// What its cluster is called.
    pub cluster: Option<String>,
    /// Whether it counts what clients do (`rates_mode` and `disable_stats` of the
    /// overview); without, there are no message statistics.
    pub counts_clients: bool,
    /// Its nodes.
    pub nodes: Told<Vec<Node>>,
    /// The deprecated features in use; `Ok(None)`: a version that does not tell.
    pub deprecated: Told<Option<Vec<DeprecatedFeature>>>,
    /// Seconds since 1970.
    pub now: u64,
}

/// One node of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Whether it runs.
    pub running: bool,
    /// Whether it keeps its metadata in memory only (until 3.13).
    pub is_ram: bool,
    /// Whether it stopped publishers for want of memory; `None`: not told.
    pub memory_alarm: Option<bool>,
    /// Bytes in use and allowed.
    pub memory: Option<(u64, u64)>,
    /// Whether it stopped publishers for want of disk space.
    pub disk_alarm: Option<bool>,
    /// Bytes free and least allowed.
    pub disk: Option<(u64, u64)>,
    /// The nodes it does not see although they run.
    pub partitions: Vec<String>,
    /// Whether it is in maintenance mode.
    pub is_drained: bool,
}

/// A deprecated feature that is in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeprecatedFeature {
    /// Its name.
    pub name: String,
    /// How far it is on its way out, such as `permitted_by_default`.
    pub phase: String,
    /// Where it is described; may be empty.
    pub doc_url: String,
}

/// A vhost.
#[derive(Clone, Debug)]
pub struct VhostSeen {
    /// Its name.
    pub name: VhostName,
    /// What is in it.
    pub contents: Told<VhostContents>,
    /// Who is connected to it.
    pub clients: Told<Clients>,
}

/// What is in a vhost.
#[derive(Clone, Debug)]
pub struct VhostContents {
    /// Exchanges, queues and bindings, policies in force.
    pub topology: Topology,
    /// Each queue that belongs to no connection.
    pub queues: BTreeMap<QueueName, QueueSeen>,
    /// The dead-letter queues.
    pub resting: RestingPlaces,
    /// What the lint finds.
    pub lint: Vec<lint::Finding>,
    /// How many seconds ago the first message of a dead-letter queue died, where
    /// it could be looked at.
    pub oldest_seconds: BTreeMap<QueueName, u64>,
}

/// A queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSeen {
    /// Its type.
    pub kind: QueueType,
    /// The delivery limit in force.
    pub limit: EffectiveLimit,
    /// Whether it survives a restart.
    pub durable: bool,
    /// Whether it goes with its last consumer.
    pub auto_delete: bool,
    /// All messages; `None`: not counted (yet).
    pub messages: Option<u64>,
    /// Its consumers.
    pub consumers: Option<u64>,
    /// The arguments it was declared with.
    pub arguments: FieldTable,
    /// The settings of the policies in force; `None`: not told (yet).
    pub policy: Option<FieldTable>,
    /// The name of the policy in force.
    pub policy_name: Option<String>,
    /// The name of the operator policy in force.
    pub operator_policy_name: Option<String>,
    /// Replicas, if they are told.
    pub members: usize,
    /// What its clients did; zeros for a queue in which nothing happened.
    pub counts: QueueCounts,
}

/// What happened in a queue since the broker counts, and how often a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueCounts {
    /// Messages that clients published into it. Dead letters are not counted here
    /// (measured on 3.10.8, 4.0.5 and 4.3.6).
    pub published: u64,
    /// The same a second.
    pub publish_rate: f64,
    /// Messages delivered to consumers that ack.
    pub delivered: u64,
    /// The same a second.
    pub deliver_rate: f64,
    /// Messages handed out again, to consumers or to who gets them one by one.
    pub redelivered: u64,
    /// The same a second.
    pub redeliver_rate: f64,
    /// Messages that consumers acked; rejections are not counted.
    pub acked: u64,
    /// The same a second.
    pub ack_rate: f64,
    /// How many messages more a second it holds; negative when it shrinks.
    pub growth: f64,
}

/// Who is connected to a vhost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clients {
    /// Connections by the broker's name for them.
    pub connections: BTreeMap<String, Connection>,
    /// Every channel by the broker's name for it.
    pub channels: BTreeMap<String, Channel>,
    /// Every consumer by its queue.
    pub consumers: BTreeMap<String, Vec<Consumer>>,
}

/// A client's connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// What the client calls it.
    pub client_name: Option<String>,
    /// The client library.
    pub product: Option<String>,
    /// The protocol it speaks, such as `AMQP 0-9-1`; empty: not told.
    pub protocol: String,
    /// Who logged in.
    pub user: String,
    /// Since when, in milliseconds since 1970.
    pub connected_at: Option<u64>,
}

/// A channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Channel {
    /// Its connection.
    pub connection: String,
    /// Who logged in.
    pub user: String,
    /// Its number on the connection.
    pub number: u64,
    /// Whether publishes are confirmed; `None`: not told.
    pub confirms: Option<bool>,
    /// Whether publishes are transactions.
    pub transactional: bool,
    /// A limit for all consumers of the channel together, where it is told.
    pub channel_prefetch: Option<u64>,
    /// Messages out for delivery.
    pub unacknowledged: u64,
    /// What it did; `None`: nothing, or not counted yet.
    pub counts: Option<ChannelCounts>,
}

/// What happened on a channel since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChannelCounts {
    /// Messages published.
    pub published: u64,
    /// The same a second.
    pub publish_rate: f64,
    /// Messages delivered before and delivered again.
    pub redelivered: u64,
    /// Messages acked.
    pub acked: u64,
}

/// A consumer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consumer {
    /// Its queue.
    pub queue: String,
    /// Its tag.
    pub tag: String,
    /// Its channel; empty for AMQP 1.0, which has none (measured on 4.0.5 and 4.3.6).
    pub channel: String,
    /// The channel's connection; empty as well.
    pub connection: String,
    /// Whether it must ack.
    pub acks: bool,
    /// Most messages out for delivery; 0: no limit of its own.
    pub prefetch: u64,
}

impl VhostContents {
    /// With what follows from it: the dead-letter queues, and what the lint finds.
    #[must_use]
    pub fn new(
        topology: Topology,
        queues: BTreeMap<QueueName, QueueSeen>,
        facts: &BrokerFacts,
    ) -> Self {
        let consumers = |name: &QueueName| queues.get(name)?.consumers;
        let resting = resting_places(&topology, facts, &consumers);
        let lint = lint(&topology, Some(facts));
        Self {
            topology,
            queues,
            resting,
            lint,
            oldest_seconds: BTreeMap::new(),
        }
    }

    /// What the lint finds by one rule, about queues.
    pub(super) fn linted<'f>(
        &'f self,
        code: &'f str,
    ) -> impl Iterator<Item = (&'f QueueName, &'f lint::Finding)> {
        let of_rule = self.lint.iter().filter(move |found| found.code == code);
        of_rule.filter_map(|found| match &found.subject {
            lint::Subject::Queue(name) => Some((name, found)),
            _ => None,
        })
    }

    /// Whether it is a dead-letter queue.
    pub(super) fn is_dead_letter_queue(&self, name: &QueueName) -> bool {
        self.resting.queues.contains_key(name)
    }
}

impl VhostSeen {
    pub(super) fn finding(
        &self,
        status: Status,
        kind: SubjectKind,
        subject: impl Into<String>,
        evidence: impl Into<String>,
        fix: impl Into<Fix>,
    ) -> Finding {
        Finding {
            status,
            vhost: Some(self.name.clone()),
            kind,
            subject: subject.into(),
            evidence: evidence.into(),
            fix: fix.into(),
        }
    }

    /// That something of this vhost is not known.
    pub(super) fn not_told(&self, why: &NotTold) -> Finding {
        self.finding(
            Status::Unknown,
            SubjectKind::Vhost,
            self.name.to_string(),
            why.why.clone(),
            why.fix.clone(),
        )
    }
}

impl NotTold {
    /// Statistics come up to nine seconds late (measured on 3.10.8 and 4.0.5).
    pub(super) fn yet(what: impl Into<String>) -> Self {
        Self {
            why: what.into(),
            fix: RUN_AGAIN.to_owned(),
        }
    }
}

impl BrokerSeen {
    /// That something of the broker is not as it should be.
    pub(super) fn finding(
        status: Status,
        kind: SubjectKind,
        subject: impl Into<String>,
        evidence: impl Into<String>,
        fix: impl Into<Fix>,
    ) -> Finding {
        Finding {
            status,
            vhost: None,
            kind,
            subject: subject.into(),
            evidence: evidence.into(),
            fix: fix.into(),
        }
    }

    /// That something of the broker is not known.
    pub(super) fn not_told(&self, why: &NotTold) -> Finding {
        let subject = self.facts.to_string();
        Self::finding(
            Status::Unknown,
            SubjectKind::Broker,
            subject,
            why.why.clone(),
            why.fix.clone(),
        )
    }
}
