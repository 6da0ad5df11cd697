//! Nodes: running, without alarms, seeing each other.

use crate::doctor::check::NODES;
use crate::doctor::{BrokerSeen, Node, NotTold, Report, Status, SubjectKind};

pub(super) fn check(broker: &BrokerSeen, report: &mut Report) {
    let nodes = match &broker.nodes {
        Ok(nodes) => nodes,
        Err(why) => {
            report.find(NODES, broker.not_told(why));
            return;
        }
    };
    report.judged(NODES, nodes.len());
    for node in nodes {
        if node.running {
            running(node, broker, report);
        } else {
            find(
                node,
                Status::Fail,
                "it does not run".to_owned(),
                "start it, or take it out: rabbitmqctl forget_cluster_node",
                report,
            );
        }
    }
}

fn running(node: &Node, broker: &BrokerSeen, report: &mut Report) {
    if node.memory_alarm == Some(true) {
        let of = node.memory.map_or_else(String::new, |(used, limit)| {
            format!(": {used} bytes in use, {limit} allowed by the last statistics")
        });
        find(
            node,
            Status::Fail,
            format!("memory alarm{of}; all publishers are stopped"),
            "consume or delete what fills it, give it memory, or raise vm_memory_high_watermark",
            report,
        );
    }
    if node.disk_alarm == Some(true) {
        let of = node.disk.map_or_else(String::new, |(free, limit)| {
            format!(": {free} bytes free, {limit} needed by the last statistics")
        });
        find(
            node,
            Status::Fail,
            format!("disk alarm{of}; all publishers are stopped"),
            "free disk space, or lower disk_free_limit",
            report,
        );
    }
    if !node.partitions.is_empty() {
        find(
            node,
            Status::Fail,
            format!("it is cut off from {}", node.partitions.join(", ")),
            "decide which side to trust and restart the others (docs: Clustering and Network Partitions)",
            report,
        );
    }
    if node.is_drained {
        find(
            node,
            Status::Warn,
            "it is in maintenance mode: it takes no clients and leads no queues".to_owned(),
            "rabbitmq-upgrade revive",
            report,
        );
    }
    if node.memory_alarm.is_none() || node.disk_alarm.is_none() {
        let why = NotTold::yet(format!("node '{}' does not tell its alarms yet", node.name));
        report.find(NODES, broker.not_told(&why));
    }
}

fn find(node: &Node, status: Status, evidence: String, fix: &str, report: &mut Report) {
    report.find(
        NODES,
        BrokerSeen::finding(status, SubjectKind::Node, node.name.as_str(), evidence, fix),
    );
}
