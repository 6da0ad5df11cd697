//! Brokers and vhosts for the tables of the checks.

use std::collections::BTreeMap;

use crate::broker::BrokerFacts;
use crate::deadletter::EffectiveLimit;
use crate::diagnostic::Source;
use crate::doctor::{
    BrokerSeen, Channel, Clients, Finding, Node, QueueCounts, QueueSeen, VhostContents, VhostSeen,
    examine,
};
use crate::field::FieldTable;
use crate::topology::{DeliveryLimit, Queue, QueueName, QueueType, VhostName};

pub(super) fn broker(version: &str) -> BrokerSeen {
    BrokerSeen {
        facts: BrokerFacts::new("RabbitMQ", version),
        cluster: Some("test".to_owned()),
        counts_clients: true,
        nodes: Ok(vec![node("one")]),
        deprecated: Ok(Some(Vec::new())),
        now: 1_700_000_000,
    }
}

pub(super) fn node(name: &str) -> Node {
    Node {
        name: name.to_owned(),
        running: true,
        memory_alarm: Some(false),
        disk_alarm: Some(false),
        ..Node::default()
    }
}

/// The vhost that a topology file would make, with nobody connected.
pub(super) fn vhost(version: &str, yaml: &str) -> VhostSeen {
    let source = Source {
        name: "t.yaml".to_owned(),
        text: format!("version: 1\n{yaml}"),
    };
    let topology = crate::topologyfile::parse(std::slice::from_ref(&source), &|_| None)
        .unwrap_or_else(|found| panic!("{}", crate::diagnostic::render(&found, &[source])));
    let facts = BrokerFacts::new("RabbitMQ", version);
    let queues: BTreeMap<QueueName, QueueSeen> = topology
        .queues
        .iter()
        .map(|(name, queue)| {
            let policy = topology.policy_settings(name, queue.kind.as_ref());
            (name.clone(), seen(queue, policy, &facts))
        })
        .collect();
    let mut there = topology.clone();
    for (name, queue) in &mut there.queues {
        if let Some(effective) = topology.effective_queue(name) {
            *queue = effective;
        }
    }
    there.policies.clear();
    there.elsewhere.clear();
    VhostSeen {
        name: VhostName::new("v").expect("name"),
        contents: Ok(VhostContents::new(there, queues, &facts)),
        clients: Ok(Clients::default()),
    }
}

fn seen(queue: &Queue, policy: FieldTable, facts: &BrokerFacts) -> QueueSeen {
    let kind = queue.kind.clone().unwrap_or(QueueType::Classic);
    let limit = match (&kind, queue.delivery_limit) {
        (QueueType::Quorum, Some(DeliveryLimit::Finite(limit))) => {
            EffectiveLimit::Finite(limit.into())
        }
        (QueueType::Quorum, None) => EffectiveLimit::of(None, None, facts),
        _ => EffectiveLimit::None,
    };
    QueueSeen {
        kind,
        limit,
        durable: queue.durable,
        auto_delete: queue.auto_delete,
        messages: Some(0),
        consumers: Some(0),
        arguments: queue.declared_arguments(facts),
        policy_name: (!policy.is_empty()).then(|| "p".to_owned()),
        policy: Some(policy),
        operator_policy_name: None,
        members: 0,
        counts: QueueCounts::default(),
    }
}

impl VhostSeen {
    /// The queue of that name, to be changed.
    pub(super) fn queue(&mut self, name: &str) -> &mut QueueSeen {
        let name = QueueName::new(name).expect("name");
        let contents = self.contents.as_mut().expect("contents");
        contents.queues.get_mut(&name).expect("queue")
    }

    /// The only channel, to be changed.
    pub(super) fn channel(&mut self) -> &mut Channel {
        self.connected()
            .channels
            .values_mut()
            .next()
            .expect("channel")
    }

    /// Who is connected, to be changed.
    pub(super) fn connected(&mut self) -> &mut Clients {
        self.clients.as_mut().expect("clients")
    }
}

/// What a check finds, as `status subject`.
pub(super) fn found(code: &str, broker: &BrokerSeen, vhost: &VhostSeen) -> Vec<String> {
    let findings = findings(code, broker, vhost);
    let words = findings
        .iter()
        .map(|finding| format!("{} {}", finding.status.word(), finding.subject));
    words.collect()
}

/// What a check finds.
pub(super) fn findings(code: &str, broker: &BrokerSeen, vhost: &VhostSeen) -> Vec<Finding> {
    let report = examine(broker, std::slice::from_ref(vhost), &[]);
    let check = report.checks.into_iter().find(|one| one.rule.code == code);
    check.expect("check").findings
}
