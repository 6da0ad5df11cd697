//! Connections, channels and consumers.

use std::collections::BTreeMap;

use futures_util::future::try_join3;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::doctor::{Channel, ChannelCounts, Clients, Connection, Consumer};
use crate::error::{Error, ErrorKind, Result};
use crate::management::Management;
use crate::management::wire::WireMessageStats;
use crate::topology::VhostName;

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireConnection {
    name: String,
    user: String,
    vhost: String,
    protocol: Option<String>,
    connected_at: Option<u64>,
    client_properties: Json,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireChannel {
    name: String,
    number: u64,
    user: String,
    vhost: String,
    confirm: Option<bool>,
    transactional: bool,
    global_prefetch_count: Option<u64>,
    messages_unacknowledged: u64,
    connection_details: WireNamed,
    message_stats: Option<WireMessageStats>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireConsumer {
    queue: WireQueueName,
    consumer_tag: String,
    ack_required: bool,
    prefetch_count: u64,
    channel_details: WireChannelDetails,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireNamed {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireQueueName {
    name: String,
    vhost: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireChannelDetails {
    name: String,
    connection_name: String,
}

impl Management {
    /// Makes sure that the user sees the clients of everybody: others get a list of
    /// their own, which looks the same when it is empty (measured on 3.10.8, 4.0.5
    /// and 4.3.6).
    ///
    /// # Errors
    /// [`ErrorKind::AccessRefused`], naming the tag.
    pub async fn must_see_all_clients(&self) -> Result<()> {
        if self.sees_all_connections().await? {
            return Ok(());
        }
        let user = &self.endpoint().user;
        Err(Error::new(
            ErrorKind::AccessRefused,
            format!("user '{user}' sees only its own connections, channels and consumers"),
        )
        .hint(format!(
            "give it the tag monitoring: rabbitmqctl set_user_tags {user} monitoring"
        )))
    }

    /// Who is connected, by vhost: to one that the user has permissions in, or to
    /// all (`None`), those without permissions included. Connections and channels
    /// appear up to five seconds late.
    ///
    /// # Errors
    /// When the lists cannot be read.
    pub async fn clients(&self, only: Option<&VhostName>) -> Result<BTreeMap<String, Clients>> {
        let (doing, connections, channels, consumers) = match only {
            Some(vhost) => (
                format!("list the clients of vhost '{vhost}'"),
                vec!["vhosts", vhost.as_str(), "connections"],
                vec!["vhosts", vhost.as_str(), "channels"],
                vec!["consumers", vhost.as_str()],
            ),
            None => (
                "list the clients of all vhosts".to_owned(),
                vec!["connections"],
                vec!["channels"],
                vec!["consumers"],
            ),
        };
        let (connections, channels, consumers) = try_join3(
            self.list::<WireConnection>(&connections, CONNECTIONS, &doing),
            self.list::<WireChannel>(&channels, CHANNELS, &doing),
            self.list::<WireConsumer>(&consumers, CONSUMERS, &doing),
        )
        .await?;
        let mut clients: BTreeMap<String, Clients> = BTreeMap::new();
        for wire in connections {
            let vhost = clients.entry(wire.vhost.clone()).or_default();
            vhost
                .connections
                .insert(wire.name.clone(), connection(wire));
        }
        for wire in channels {
            let vhost = clients.entry(wire.vhost.clone()).or_default();
            vhost.channels.insert(wire.name.clone(), channel(wire));
        }
        for wire in consumers {
            let vhost = clients.entry(wire.queue.vhost.clone()).or_default();
            let of_queue = vhost.consumers.entry(wire.queue.name.clone()).or_default();
            of_queue.push(consumer(wire));
        }
        Ok(clients)
    }
}

const CONNECTIONS: &[(&str, &str)] = &[(
    "columns",
    "name,user,vhost,protocol,connected_at,client_properties.connection_name,client_properties.product",
)];

const CHANNELS: &[(&str, &str)] = &[(
    "columns",
    "name,number,user,vhost,confirm,transactional,global_prefetch_count,messages_unacknowledged,connection_details.name,message_stats.publish,message_stats.publish_details.rate,message_stats.redeliver,message_stats.ack",
)];

const CONSUMERS: &[(&str, &str)] = &[(
    "columns",
    "queue.name,queue.vhost,consumer_tag,ack_required,prefetch_count,channel_details.name,channel_details.connection_name",
)];

fn connection(wire: WireConnection) -> Connection {
    let text = |name: &str| {
        let value = wire.client_properties.get(name).and_then(Json::as_str);
        value.map(str::to_owned)
    };
    Connection {
        client_name: text("connection_name"),
        product: text("product"),
        protocol: wire.protocol.unwrap_or_default(),
        user: wire.user,
        connected_at: wire.connected_at,
    }
}

fn channel(wire: WireChannel) -> Channel {
    let counts = wire.message_stats.map(|stats| ChannelCounts {
        published: stats.publish,
        publish_rate: stats.publish_details.rate,
        redelivered: stats.redeliver,
        acked: stats.ack,
    });
    Channel {
        connection: wire.connection_details.name,
        user: wire.user,
        number: wire.number,
        confirms: wire.confirm,
        transactional: wire.transactional,
        channel_prefetch: wire.global_prefetch_count,
        unacknowledged: wire.messages_unacknowledged,
        counts,
    }
}

fn consumer(wire: WireConsumer) -> Consumer {
    Consumer {
        queue: wire.queue.name,
        tag: wire.consumer_tag,
        channel: wire.channel_details.name,
        connection: wire.channel_details.connection_name,
        acks: wire.ack_required,
        prefetch: wire.prefetch_count,
    }
}
