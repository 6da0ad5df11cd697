//! What is in use: messages out for delivery, and who is connected.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::broker::BrokerFacts;
use crate::error::Result;
use crate::graph::{Depth, Depths};
use crate::management::Management;
use crate::management::wire::WireQueue;
use crate::topology::{QueueName, QueueType, VhostName};

/// What a broker counts in the queues of a vhost.
#[derive(Clone, Debug, Default)]
pub enum Counts {
    /// Nothing can be out for delivery, because nobody is connected.
    #[default]
    Nothing,
    /// By queue: its type and the messages out for delivery, if they are counted.
    Seen(BTreeMap<QueueName, (QueueType, Option<u64>)>),
}

impl Counts {
    /// Messages of a queue that are out for delivery; `None`: not known.
    #[must_use]
    pub fn unacknowledged(&self, queue: &QueueName) -> Option<u64> {
        match self {
            Self::Nothing => Some(0),
            Self::Seen(queues) => queues.get(queue)?.1,
        }
    }

    /// The type of a queue, if it was read.
    #[must_use]
    pub fn kind(&self, queue: &QueueName) -> Option<&QueueType> {
        match self {
            Self::Nothing => None,
            Self::Seen(queues) => queues.get(queue).map(|(kind, _)| kind),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireConnection {
    client_properties: Json,
}

impl Management {
    /// Which broker it is.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn facts(&self) -> Result<BrokerFacts> {
        Ok(BrokerFacts::new("RabbitMQ", self.version().await?))
    }

    /// What every queue of a vhost counts, as of the last statistics.
    ///
    /// # Errors
    /// When the vhost cannot be read.
    pub async fn counts(&self, vhost: &VhostName) -> Result<Counts> {
        let doing = format!("count messages in vhost '{vhost}'");
        let path = ["queues", vhost.as_str()];
        let columns = [("columns", "name,type,arguments,messages_unacknowledged")];
        let queues: Vec<WireQueue> = self.list(&path, &columns, &doing).await?;
        let counted = queues.into_iter().map(|queue| {
            let name = QueueName::new(queue.name.clone())?;
            let kind = super::queue::kind_of(&queue);
            Ok((name, (kind, queue.messages_unacknowledged)))
        });
        Ok(Counts::Seen(counted.collect::<Result<_>>()?))
    }

    /// The depth of every queue of a vhost, as of the last statistics.
    ///
    /// # Errors
    /// When the vhost cannot be read.
    pub async fn depths(&self, vhost: &VhostName) -> Result<Depths> {
        let doing = format!("count messages in vhost '{vhost}'");
        let path = ["queues", vhost.as_str()];
        let columns = [(
            "columns",
            "name,exclusive,messages_ready,messages_unacknowledged,consumers",
        )];
        let queues: Vec<WireQueue> = self.list(&path, &columns, &doing).await?;
        let depths = queues.into_iter().map(|queue| {
            let depth = Depth {
                ready: queue.messages_ready,
                unacknowledged: queue.messages_unacknowledged,
                consumers: queue.consumers,
                exclusive: queue.exclusive,
            };
            Ok((QueueName::new(queue.name)?, depth))
        });
        depths.collect()
    }

    /// The names of all queues, those of single connections included.
    ///
    /// # Errors
    /// When the vhost cannot be read.
    pub async fn queue_names(&self, vhost: &VhostName) -> Result<Vec<String>> {
        let doing = format!("list the queues of vhost '{vhost}'");
        let path = ["queues", vhost.as_str()];
        let columns = [("disable_stats", "true"), ("columns", "name")];
        let queues: Vec<WireQueue> = self.list(&path, &columns, &doing).await?;
        Ok(queues.into_iter().map(|queue| queue.name).collect())
    }

    /// Whether the user sees the connections of everybody (management.md:
    /// `monitoring` and `administrator` do).
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn sees_all_connections(&self) -> Result<bool> {
        let tags = self.own_tags().await?;
        Ok(["monitoring", "administrator"]
            .iter()
            .any(|tag| tags.iter().any(|own| own == tag)))
    }

    /// Connections to a vhost: whether one of the name `ours` is among them, and
    /// how many have another. Brokers list a connection up to five seconds late
    /// (measured on 3.10 and 4.0), all that came before with it: once ours is
    /// there, nobody is missing.
    ///
    /// # Errors
    /// When the vhost cannot be read.
    pub async fn connections(&self, vhost: &VhostName, ours: &str) -> Result<(bool, usize)> {
        let doing = format!("list the connections to vhost '{vhost}'");
        let path = ["vhosts", vhost.as_str(), "connections"];
        let columns = [("columns", "client_properties")];
        let open: Vec<WireConnection> = self.list(&path, &columns, &doing).await?;
        let is_ours = |connection: &&WireConnection| {
            connection
                .client_properties
                .get("connection_name")
                .and_then(Json::as_str)
                == Some(ours)
        };
        let own = open.iter().filter(is_ours).count();
        Ok((own > 0, open.len() - own))
    }
}
