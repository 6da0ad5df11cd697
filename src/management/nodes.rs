//! The broker itself: its nodes, whether it counts, what it calls deprecated.

use serde::Deserialize;
use serde_json::Value as Json;

use crate::doctor::{DeprecatedFeature, Node};
use crate::error::{ErrorKind, Result};
use crate::management::Management;

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireNode {
    name: String,
    running: bool,
    #[serde(rename = "type")]
    kind: String,
    mem_alarm: Option<bool>,
    mem_used: Option<u64>,
    mem_limit: Option<Json>,
    disk_free_alarm: Option<bool>,
    disk_free: Option<Json>,
    disk_free_limit: Option<Json>,
    partitions: Vec<String>,
    being_drained: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireFeature {
    name: String,
    deprecation_phase: String,
    doc_url: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireAlarms {
    alarms: Vec<WireAlarm>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireAlarm {
    node: String,
    resource: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireOverview {
    cluster_name: Option<String>,
    rates_mode: String,
    disable_stats: bool,
}

impl Management {
    /// What the cluster is called, and whether it counts what clients do.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn counting(&self) -> Result<(Option<String>, bool)> {
        let overview: WireOverview = self.get(&["overview"], "ask the management API").await?;
        let counts = overview.rates_mode != "none" && !overview.disable_stats;
        Ok((overview.cluster_name, counts))
    }

    /// The nodes of the cluster.
    ///
    /// # Errors
    /// When the user has not the tag `monitoring` or more.
    pub async fn nodes(&self) -> Result<Vec<Node>> {
        let columns = [(
            "columns",
            "name,running,type,mem_alarm,mem_used,mem_limit,disk_free_alarm,disk_free,disk_free_limit,partitions,being_drained",
        )];
        let nodes: Vec<WireNode> = self.list(&["nodes"], &columns, "list the nodes").await?;
        // Statistics tell of an alarm up to ten seconds late; the health check at once
        // (measured on 4.0.5).
        let path = ["health", "checks", "alarms"];
        let doing = "ask for alarms";
        let now: WireAlarms = self.get_even_if_unwell(&path, doing).await?;
        let nodes = nodes.into_iter().map(|wire| {
            let mut node = node(wire);
            let of_node = now.alarms.iter().filter(|alarm| alarm.node == node.name);
            let has = |resource: &str, told: Option<bool>| {
                let is_in_force = of_node
                    .clone()
                    .any(|one| one.resource.starts_with(resource));
                Some(is_in_force || told == Some(true))
            };
            node.memory_alarm = has("memory", node.memory_alarm);
            node.disk_alarm = has("disk", node.disk_alarm);
            node
        });
        Ok(nodes.collect())
    }

    /// The deprecated features in use; `None`: a broker that does not tell
    /// (measured: 3.10.8 does not, 4.0.5 and 4.3.6 do).
    ///
    /// # Errors
    /// When it may not be read.
    pub async fn deprecated_features(&self) -> Result<Option<Vec<DeprecatedFeature>>> {
        let path = ["deprecated-features", "used"];
        let doing = "list the deprecated features in use";
        let found: Result<Vec<WireFeature>> = self.get(&path, doing).await;
        match found {
            Ok(features) => Ok(Some(features.into_iter().map(feature).collect())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn node(wire: WireNode) -> Node {
    // Words stand there while it is not known, such as "nan" or "memory_monitoring_disabled".
    let number = |json: Option<Json>| json.as_ref().and_then(Json::as_u64);
    Node {
        name: wire.name,
        running: wire.running,
        is_ram: wire.kind == "ram",
        memory_alarm: wire.mem_alarm,
        memory: wire.mem_used.zip(number(wire.mem_limit)),
        disk_alarm: wire.disk_free_alarm,
        disk: number(wire.disk_free).zip(number(wire.disk_free_limit)),
        partitions: wire.partitions,
        is_drained: wire.being_drained,
    }
}

fn feature(wire: WireFeature) -> DeprecatedFeature {
    DeprecatedFeature {
        name: wire.name,
        phase: wire.deprecation_phase,
        doc_url: wire.doc_url,
    }
}
