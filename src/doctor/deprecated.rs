//! What a newer broker will refuse.
//!
//! Since 3.13 brokers tell themselves what is in use of it (measured: 3.10.8 has
//! no `/api/deprecated-features`, 4.0.5 and 4.3.6 do); 4.0.5 names queues that
//! are not durable there, but no global QoS. So what can be seen is looked for
//! on every version.

use crate::doctor::check::DEPRECATED;
use crate::doctor::{BrokerSeen, QueueSeen, Report, Status, SubjectKind, VhostContents, VhostSeen};
use crate::field::FieldTable;
use crate::topology::QueueName;

/// What the broker calls queues that are neither durable nor exclusive.
const TRANSIENT_QUEUES: &str = "transient_nonexcl_queues";

/// Settings of queues that are gone or going, as policies call them, with the
/// version that ends them (release notes of 4.0.1 and 4.3.0; deprecated features
/// of 4.0.5).
const SETTINGS: [(&str, &str); 5] = [
    (
        "ha-mode",
        "mirrored classic queues are gone since 4.0: use quorum queues",
    ),
    (
        "ha-params",
        "mirrored classic queues are gone since 4.0: use quorum queues",
    ),
    (
        "ha-sync-mode",
        "mirrored classic queues are gone since 4.0: use quorum queues",
    ),
    (
        "queue-mode",
        "lazy mode does nothing since 3.12, and 4.3 refuses the argument: leave it out",
    ),
    ("queue-master-locator", "replaced by queue-leader-locator"),
];

pub(super) fn check_vhost(vhost: &VhostSeen, contents: &VhostContents, report: &mut Report) {
    report.judged(DEPRECATED, contents.queues.len());
    for (name, seen) in &contents.queues {
        transient(vhost, name, seen, report);
        arguments(vhost, name, seen, report);
    }
    policies(vhost, contents, report);
    let Ok(clients) = &vhost.clients else {
        return;
    };
    for channel in clients.channels.values() {
        if let Some(limit) = channel.channel_prefetch.filter(|limit| *limit > 0) {
            report.find(
                DEPRECATED,
                vhost.finding(
                    Status::Warn,
                    SubjectKind::Connection,
                    channel.connection.as_str(),
                    format!("channel {} has a prefetch of {limit} for all its consumers together (global QoS), which 4.3 refuses by default", channel.number),
                    "set the prefetch for each consumer: basic.qos with global=false",
                ),
            );
        }
    }
}

fn transient(vhost: &VhostSeen, name: &QueueName, seen: &QueueSeen, report: &mut Report) {
    if seen.durable {
        return;
    }
    report.find(
        DEPRECATED,
        vhost.finding(
            Status::Warn,
            SubjectKind::Queue,
            name.as_str(),
            format!("queue '{name}' is neither durable nor exclusive ({TRANSIENT_QUEUES})"),
            "declare it durable, or exclusive if it belongs to one connection",
        ),
    );
}

fn arguments(vhost: &VhostSeen, name: &QueueName, seen: &QueueSeen, report: &mut Report) {
    for (setting, why) in SETTINGS {
        let argument = format!("x-{setting}");
        if let Some(value) = seen.arguments.get(&argument) {
            report.find(
                DEPRECATED,
                vhost.finding(
                    Status::Warn,
                    SubjectKind::Queue,
                    name.as_str(),
                    format!(
                        "queue '{name}' has the argument {argument}: {}",
                        value.to_json()
                    ),
                    format!("{why} (`mq topology migrate`)"),
                ),
            );
        }
    }
}

/// Each policy once, however many queues it is in force for.
fn policies(vhost: &VhostSeen, contents: &VhostContents, report: &mut Report) {
    let mut seen_policies: Vec<(&str, &FieldTable)> = Vec::new();
    for seen in contents.queues.values() {
        let names = [&seen.policy_name, &seen.operator_policy_name];
        let name = names.into_iter().flatten().next();
        if let (Some(name), Some(policy)) = (name, &seen.policy)
            && !seen_policies.iter().any(|(known, _)| known == name)
        {
            seen_policies.push((name, policy));
        }
    }
    for (name, policy) in seen_policies {
        for (setting, why) in SETTINGS {
            if let Some(value) = policy.get(setting) {
                report.find(
                    DEPRECATED,
                    vhost.finding(
                        Status::Warn,
                        SubjectKind::Policy,
                        name,
                        format!("policy '{name}' sets {setting}: {}", value.to_json()),
                        why,
                    ),
                );
            }
        }
    }
}

pub(super) fn check_broker(broker: &BrokerSeen, report: &mut Report) {
    for node in broker.nodes.iter().flatten().filter(|node| node.is_ram) {
        report.find(
            DEPRECATED,
            BrokerSeen::finding(
                Status::Warn,
                SubjectKind::Node,
                node.name.as_str(),
                "it is a RAM node: its metadata is on no disk, and 4.x has none such",
                "rabbitmqctl change_cluster_node_type disc",
            ),
        );
    }
    let features = match &broker.deprecated {
        Ok(Some(features)) => features,
        Ok(None) => return,
        Err(why) => {
            report.find(DEPRECATED, broker.not_told(why));
            return;
        }
    };
    for feature in features {
        let see = if feature.doc_url.is_empty() {
            "see \"Deprecated Features\" in RabbitMQ's documentation".to_owned()
        } else {
            format!("see {}", feature.doc_url)
        };
        report.find(
            DEPRECATED,
            BrokerSeen::finding(
                Status::Warn,
                SubjectKind::Feature,
                feature.name.as_str(),
                format!(
                    "the broker says that it is in use somewhere ({})",
                    feature.phase
                ),
                see,
            ),
        );
    }
}
