//! Consuming with manual settlement and a prefetch limit.

use futures_util::StreamExt as _;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions,
    BasicRejectOptions,
};
use lapin::types::FieldTable as LapinTable;
use lapin::{Channel, Consumer};

use crate::amqp::Connection;
use crate::amqp::convert::{from_properties, short};
use crate::amqp::failure::explain;
use crate::error::{Error, Result};
use crate::message::Delivery;
use crate::topology::QueueName;

/// What comes out of a subscription.
#[derive(Debug)]
pub enum Incoming {
    /// A message, to be settled by its tag on this subscription.
    Delivery(u64, Box<Delivery>),
    /// The broker ended the subscription (queue deleted, consumer timeout), or we did.
    Cancelled,
    /// The channel or connection broke; every unsettled message goes back by itself.
    Failed(Error),
}

/// One consumer on a channel of its own.
pub struct Subscription<'c> {
    connection: &'c Connection,
    channel: Channel,
    consumer: Consumer,
    queue: QueueName,
}

impl<'c> Subscription<'c> {
    /// Subscribes; at most `prefetch` messages are out unsettled at any time.
    ///
    /// # Errors
    /// When the queue does not exist or may not be read.
    pub async fn open(
        connection: &'c Connection,
        queue: &QueueName,
        prefetch: u16,
    ) -> Result<Self> {
        let channel = connection.channel().await?;
        let consumer = subscribe(connection, &channel, queue, prefetch).await?;
        Ok(Self {
            connection,
            channel,
            consumer,
            queue: queue.clone(),
        })
    }

    /// Goes on with another prefetch. What is out stays out and is settled as
    /// before; nothing may be on its way to the old consumer, so as many
    /// messages must be out as it may have.
    ///
    /// # Errors
    /// When the channel is gone or the queue is.
    pub async fn change_prefetch(&mut self, prefetch: u16) -> Result<()> {
        self.cancel().await?;
        self.consumer = subscribe(self.connection, &self.channel, &self.queue, prefetch).await?;
        Ok(())
    }

    /// The next thing that happens. Safe to drop while waiting.
    pub async fn next(&mut self) -> Incoming {
        match self.consumer.next().await {
            Some(Ok(delivery)) => {
                let tag = delivery.delivery_tag;
                Incoming::Delivery(tag, Box::new(from_delivery(delivery)))
            }
            Some(Err(error)) => {
                Incoming::Failed(explain(&error, &format!("consume queue '{}'", self.queue)))
            }
            None => Incoming::Cancelled,
        }
    }

    /// Settles as done.
    ///
    /// # Errors
    /// When the channel is gone; the message comes back by itself.
    pub async fn ack(&self, tag: u64) -> Result<()> {
        let options = BasicAckOptions { multiple: false };
        self.connection
            .within("acknowledge", self.channel.basic_ack(tag, options))
            .await
    }

    /// Dead-letters. Always `basic.nack`: on 4.3 `basic.reject` raises a
    /// delivery count that survives dead-lettering and in the end loses the
    /// message (measured).
    ///
    /// # Errors
    /// When the channel is gone; the message comes back by itself.
    pub async fn dead_letter(&self, tag: u64) -> Result<()> {
        self.nack(tag, false).await
    }

    /// Puts back untouched.
    ///
    /// # Errors
    /// When the channel is gone; the message comes back by itself.
    pub async fn release(&self, tag: u64) -> Result<()> {
        self.nack(tag, true).await
    }

    /// Puts back as a failed attempt. `basic.reject`, the one that a quorum queue
    /// of 4.3 counts and holds back longer each time (measured on 4.3.6).
    ///
    /// # Errors
    /// When the channel is gone; the message comes back by itself.
    pub async fn requeue(&self, tag: u64) -> Result<()> {
        let options = BasicRejectOptions { requeue: true };
        self.connection
            .within("reject", self.channel.basic_reject(tag, options))
            .await
    }

    async fn nack(&self, tag: u64, requeue: bool) -> Result<()> {
        let options = BasicNackOptions {
            multiple: false,
            requeue,
        };
        self.connection
            .within("nack", self.channel.basic_nack(tag, options))
            .await
    }

    /// Stops the flow of messages; those already here can still be settled.
    ///
    /// # Errors
    /// When the channel is gone.
    pub async fn cancel(&self) -> Result<()> {
        self.connection
            .within(
                "cancel the consumer",
                self.channel
                    .basic_cancel(self.consumer.tag(), BasicCancelOptions::default()),
            )
            .await
    }
}

/// A limit of the channel is for the consumers that come after it.
async fn subscribe(
    connection: &Connection,
    channel: &Channel,
    queue: &QueueName,
    prefetch: u16,
) -> Result<Consumer> {
    let doing = format!("consume queue '{queue}'");
    connection
        .within(
            &doing,
            channel.basic_qos(prefetch, BasicQosOptions::default()),
        )
        .await?;
    connection
        .within(
            &doing,
            channel.basic_consume(
                short(queue.as_str(), "queue name")?,
                short("", "consumer tag")?,
                BasicConsumeOptions::default(),
                LapinTable::default(),
            ),
        )
        .await
}

/// lapin's delivery as ours.
pub(super) fn from_delivery(delivery: lapin::message::Delivery) -> Delivery {
    Delivery {
        exchange: delivery.exchange.as_str().to_owned(),
        routing_key: delivery.routing_key.as_str().to_owned(),
        redelivered: delivery.redelivered,
        properties: from_properties(&delivery.properties),
        body: delivery.data,
    }
}
