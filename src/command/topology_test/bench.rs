//! The prepared topology in its temporary vhost: put something in, look what is
//! where, take it out.
#![expect(
    clippy::disallowed_methods,
    reason = "a message needs time to get from one queue to the next"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::super::session::Session;
use super::super::topology_steps::{Broker, create};
use crate::amqp::{Connection, Frames, Getter, Publisher, Receipt, Taken};
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Delivery, DeliveryMode, Properties, Publication};
use crate::plan::{Done, steps};
use crate::proof::{Settled, Settling};
use crate::topology::{
    ExchangeName, Queue, QueueName, QueueType, RoutingKey, RoutingTest, Topology,
};

/// The name of its connections.
const NAME: &str = "mq topology test";

/// Between two looks.
pub(super) const MOMENT: Duration = Duration::from_millis(20);

/// Most looks for a message that must be there.
const LOOKS: u32 = 150;

/// Questions under way at once, each on a channel of its own.
const AT_ONCE: usize = 8;

/// The ids of the fillers of a queue.
const FILLER: &str = "mq-test-filler";

/// A vhost with the prepared topology in it.
pub(super) struct Bench<'b> {
    connection: Connection,
    session: &'b Session,
    queues: BTreeMap<QueueName, Queue>,
}

impl<'b> Bench<'b> {
    /// Connects to the vhost and declares the topology there.
    pub(super) async fn set_up(topology: &Topology, session: &'b Session) -> Result<Self> {
        let connection = session.connect(NAME, Frames::Large).await?;
        let steps = steps(topology);
        let broker = Broker {
            connection: &connection,
            session,
        };
        for line in create(&broker, &steps, vec![None; steps.len()], None).await {
            if let Done::Failed(error) = line.done {
                return Err(error.during("declare the topology in the temporary vhost"));
            }
        }
        let names = topology.queues.keys();
        let queues = names.filter_map(|name| Some((name.clone(), topology.effective_queue(name)?)));
        Ok(Self {
            connection,
            session,
            queues: queues.collect(),
        })
    }

    /// Takes a new connection in time.
    pub(super) async fn refresh(&mut self) -> Result<()> {
        if self.connection.is_worn() {
            self.reconnect().await?;
        }
        Ok(())
    }

    /// Takes a new connection; what is under way on the old one is given up.
    pub(super) async fn reconnect(&mut self) -> Result<()> {
        let fresh = self.session.connect(NAME, Frames::Large).await?;
        std::mem::replace(&mut self.connection, fresh).close().await;
        Ok(())
    }

    /// Whether the broker takes no messages from anybody.
    pub(super) fn is_blocked(&self) -> bool {
        self.connection.is_blocked()
    }

    pub(super) async fn close(self) {
        self.connection.close().await;
    }

    /// The queue as it is declared here, its policies merged.
    pub(super) fn queue(&self, name: &QueueName) -> Option<&Queue> {
        self.queues.get(name)
    }

    pub(super) fn is_stream(&self, name: &QueueName) -> bool {
        self.queue(name)
            .is_some_and(|queue| queue.kind == Some(QueueType::Stream))
    }

    pub(super) async fn getter(&self) -> Result<Getter<'_>> {
        Getter::open(&self.connection).await
    }

    /// Those that hold messages until they leave.
    fn emptied(&self) -> impl Iterator<Item = &QueueName> {
        self.queues.keys().filter(|name| !self.is_stream(name))
    }

    /// Empties every queue; streams keep what they have.
    pub(super) async fn purge(&self) -> Result<()> {
        stream::iter(self.emptied())
            .map(|name| async { self.connection.purge(name).await.map(|_| ()) })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    /// Messages by queues that have any, without streams.
    pub(super) async fn counts(&self) -> Result<BTreeMap<QueueName, u32>> {
        let counts: Vec<(QueueName, u32)> = stream::iter(self.emptied())
            .map(async |name| {
                let status = self.connection.queue_status(name).await?;
                Ok::<_, Error>((name.clone(), status.map_or(0, |status| status.ready)))
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(counts.into_iter().filter(|(_, count)| *count > 0).collect())
    }

    /// Publishes the message of a test under this id.
    pub(super) async fn publish(
        &self,
        test: &RoutingTest,
        id: &str,
        expiration: Option<Duration>,
    ) -> Result<Receipt> {
        let mut message = message(test.exchange.clone(), test.key.clone(), id);
        message.properties.headers = test.headers.clone();
        message.properties.expiration = expiration.map(|time| time.as_millis().to_string());
        let mut publisher = Publisher::open(&self.connection, self.session.limit).await?;
        publisher.publish(&message).await
    }

    /// Puts as many other messages into a queue as it may hold.
    pub(super) async fn fill(&self, name: &QueueName) -> Result<u32> {
        let limit = self.queue(name).and_then(|queue| queue.max_length);
        let limit = limit
            .and_then(|limit| u32::try_from(limit).ok())
            .unwrap_or(0);
        let key = RoutingKey::of_queue(name);
        let message = message(ExchangeName::default_exchange(), key, FILLER);
        let mut publisher = Publisher::open(&self.connection, self.session.limit).await?;
        for _ in 0..limit {
            match publisher.publish(&message).await? {
                Receipt::Unknown(error) => return Err(error),
                Receipt::Routed | Receipt::Unroutable(_) | Receipt::Refused => {}
            }
        }
        Ok(limit)
    }

    /// The message under this id, once it is in the queue.
    pub(super) async fn take(
        &self,
        getter: &Getter<'_>,
        name: &QueueName,
        id: &str,
    ) -> Result<Option<Taken>> {
        for _ in 0..LOOKS {
            match getter.get(name).await? {
                Some(taken) if taken.delivery.properties.message_id.as_deref() == Some(id) => {
                    return Ok(Some(taken));
                }
                // Left of another test.
                Some(taken) => getter.ack(taken.tag).await?,
                None => tokio::time::sleep(MOMENT).await,
            }
        }
        Ok(None)
    }

    /// Waits until a queue has no message any more.
    pub(super) async fn wait_until_empty(&self, name: &QueueName) -> Result<bool> {
        for _ in 0..LOOKS {
            let status = self.connection.queue_status(name).await?;
            if status.is_none_or(|status| status.ready == 0) {
                return Ok(true);
            }
            tokio::time::sleep(MOMENT).await;
        }
        Ok(false)
    }

    /// Looks until messages have come to rest; those of `before` do not count.
    pub(super) async fn settle(
        &self,
        mut settling: Settling,
        before: &BTreeMap<QueueName, u32>,
    ) -> Result<Settled> {
        loop {
            let mut now = self.counts().await?;
            now.retain(|name, count| {
                *count = count.saturating_sub(before.get(name).copied().unwrap_or(0));
                *count > 0
            });
            if let Some(settled) = settling.see(now) {
                return Ok(settled);
            }
            tokio::time::sleep(MOMENT).await;
        }
    }

    /// Takes everything out of these queues; tells of each copy of the message
    /// under this id where it was and how it came there.
    pub(super) async fn drain(
        &self,
        names: &BTreeSet<QueueName>,
        id: &str,
    ) -> Result<(BTreeSet<QueueName>, Vec<String>)> {
        let getter = self.getter().await?;
        let mut found = BTreeSet::new();
        let mut ways = Vec::new();
        for name in names {
            while let Some(taken) = getter.get(name).await? {
                getter.ack(taken.tag).await?;
                if taken.delivery.properties.message_id.as_deref() != Some(id) {
                    continue;
                }
                found.insert(name.clone());
                ways.push(seen(name, &death_words(&taken.delivery)));
            }
        }
        Ok((found, ways))
    }

    /// The copies of a message in streams, with the reasons it died for before.
    pub(super) async fn read_streams(&self, id: &str) -> Result<Vec<(QueueName, Vec<String>)>> {
        let mut found = Vec::new();
        for name in self.queues.keys().filter(|name| self.is_stream(name)) {
            let end = format!("{id}-end");
            let key = RoutingKey::of_queue(name);
            let last = message(ExchangeName::default_exchange(), key, &end);
            let mut publisher = Publisher::open(&self.connection, self.session.limit).await?;
            if let Receipt::Unknown(error) = publisher.publish(&last).await? {
                return Err(error);
            }
            for delivery in self.connection.read_stream(name, &end).await? {
                if delivery.properties.message_id.as_deref() == Some(id) {
                    found.push((name.clone(), death_words(&delivery)));
                }
            }
        }
        Ok(found)
    }
}

/// A small message.
fn message(exchange: ExchangeName, routing_key: RoutingKey, id: &str) -> Publication {
    Publication {
        exchange,
        routing_key,
        properties: Properties {
            message_id: Some(id.to_owned()),
            delivery_mode: Some(DeliveryMode::Persistent),
            ..Properties::default()
        },
        body: b"mq topology test".to_vec(),
    }
}

/// Whether an error is about this one message only, not about the broker.
pub(super) fn is_refusal(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::AccessRefused | ErrorKind::NotFound | ErrorKind::InvalidInput
    )
}

/// The deaths of a message, the oldest first.
fn death_words(delivery: &Delivery) -> Vec<String> {
    let deaths = delivery.deaths().deaths;
    deaths
        .iter()
        .rev()
        .map(|death| format!("{} in {}", death.reason, death.queue))
        .collect()
}

/// Where a copy was found, and how it came there.
pub(super) fn seen(name: &QueueName, deaths: &[String]) -> String {
    if deaths.is_empty() {
        format!("in {name}")
    } else {
        format!("in {name}, after it was {}", deaths.join(", then "))
    }
}
