//! What the broker remembers of the last minute or hour.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::deadletter::{History, Sample};
use crate::error::{ErrorKind, Result};
use crate::management::Management;
use crate::topology::{QueueName, VhostName};

/// So long is remembered every 5 s.
pub const FINE: Duration = Duration::from_mins(10);

/// What is remembered of one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Its numbers; empty while there are none, or where none are kept.
    pub history: History,
    /// The node that its leader is on.
    pub node: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireHistory {
    node: Option<String>,
    messages_details: Option<WireDetails>,
    message_stats: Option<WireTaken>,
}

/// Acks count once for each message; deliveries without acks are their own end.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WireTaken {
    #[serde(rename = "ack_details")]
    acked: Option<WireDetails>,
    #[serde(rename = "deliver_no_ack_details")]
    delivered: Option<WireDetails>,
    #[serde(rename = "get_no_ack_details")]
    got: Option<WireDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireDetails {
    samples: Vec<WireSample>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireSample {
    sample: i64,
    timestamp: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireNode {
    name: String,
    uptime: Option<u64>,
}

impl Management {
    /// The numbers of one queue over this long: every 5 s for at most ten minutes, and
    /// every minute for at most an hour; longer or finer ones are not kept by default
    /// (management.md, `sample_retention_policies`).
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it does not exist.
    pub async fn history(
        &self,
        vhost: &VhostName,
        queue: &QueueName,
        window: Duration,
    ) -> Result<Remembered> {
        let doing = format!("read the statistics of queue '{queue}' in vhost '{vhost}'");
        let age = window.as_secs().to_string();
        let step = if window > FINE { "60" } else { "5" };
        let parameters = [
            ("lengths_age", age.as_str()),
            ("lengths_incr", step),
            ("msg_rates_age", &age),
            ("msg_rates_incr", step),
            ("columns", "node,messages_details,message_stats"),
        ];
        let path = ["queues", vhost.as_str(), queue.as_str()];
        let wire: WireHistory = self.get_with(&path, &parameters, &doing).await?;
        Ok(remembered(wire))
    }

    /// How long each node has been up; empty when the user may not know.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn uptimes(&self) -> Result<BTreeMap<String, Duration>> {
        let columns = [("columns", "name,uptime")];
        let nodes = self.list(&["nodes"], &columns, "list the nodes").await;
        let nodes: Vec<WireNode> = match nodes {
            Ok(nodes) => nodes,
            Err(error) if error.kind() == ErrorKind::AccessRefused => Vec::new(),
            Err(error) => return Err(error),
        };
        let up = nodes
            .into_iter()
            .filter_map(|node| Some((node.name, Duration::from_millis(node.uptime?))));
        Ok(up.collect())
    }
}

fn remembered(wire: WireHistory) -> Remembered {
    let taken = wire.message_stats.unwrap_or_default();
    let taken = [taken.acked, taken.delivered, taken.got];
    Remembered {
        history: History {
            messages: wire.messages_details.map(oldest_first).unwrap_or_default(),
            taken: taken.into_iter().flatten().map(oldest_first).collect(),
        },
        node: wire.node,
    }
}

/// The broker gives the newest first.
fn oldest_first(details: WireDetails) -> Vec<Sample> {
    let mut samples: Vec<Sample> = details
        .samples
        .into_iter()
        .map(|wire| Sample {
            at: wire.timestamp,
            value: u64::try_from(wire.sample).unwrap_or(0),
        })
        .collect();
    samples.sort_by_key(|sample| sample.at);
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_the_api_really_sends() {
        let wire = serde_json::from_str(
            r#"{"node":"rabbit@a","messages_details":{"avg_rate":0.4,"rate":0.0,"samples":[
                 {"sample":25,"timestamp":1796036645000},{"sample":0,"timestamp":1796036640000}]},
                "message_stats":{"ack":3,"ack_details":{"samples":[{"sample":3,"timestamp":1796036645000}]},
                 "publish_details":{"samples":[{"sample":9,"timestamp":1796036645000}]}}}"#,
        )
        .expect("wire");
        let found = remembered(wire);
        let values = |series: &[Sample]| series.iter().map(|it| it.value).collect::<Vec<_>>();
        assert_eq!(values(&found.history.messages), [0, 25]);
        assert_eq!(found.history.taken.len(), 1);
        assert_eq!(values(&found.history.taken[0]), [3]);
        // Without statistics.
        let wire = serde_json::from_str(r#"{"node":"rabbit@a","messages_details":null}"#);
        assert_eq!(remembered(wire.expect("wire")).history, History::default());
    }
}
