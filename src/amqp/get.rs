//! Single messages taken by hand, and queues emptied.

use lapin::Channel;
use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicNackOptions, BasicRejectOptions, QueuePurgeOptions,
};

use crate::amqp::consume::from_delivery;
use crate::amqp::convert::short;
use crate::amqp::{Connection, Taken};
use crate::error::Result;
use crate::topology::QueueName;

/// Takes messages one by one, without a consumer.
pub struct Getter<'c> {
    connection: &'c Connection,
    channel: Channel,
}

impl<'c> Getter<'c> {
    /// Opens the channel.
    ///
    /// # Errors
    /// When the channel cannot be opened.
    pub async fn open(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            connection,
            channel: connection.channel().await?,
        })
    }

    /// The next message, if one is ready.
    ///
    /// # Errors
    /// When the queue does not exist, may not be read, or is a stream.
    pub async fn get(&self, queue: &QueueName) -> Result<Option<Taken>> {
        let getting = self.channel.basic_get(
            short(queue.as_str(), "queue name")?,
            BasicGetOptions { no_ack: false },
        );
        let doing = format!("get a message from queue '{queue}'");
        let message = self.connection.within(&doing, getting).await?;
        Ok(message.map(|message| Taken {
            tag: message.delivery.delivery_tag,
            delivery: from_delivery(message.delivery),
        }))
    }

    /// Settles as done.
    ///
    /// # Errors
    /// When the channel is gone; the message comes back by itself.
    pub async fn ack(&self, tag: u64) -> Result<()> {
        let options = BasicAckOptions { multiple: false };
        let acking = self.channel.basic_ack(tag, options);
        self.connection.within("acknowledge", acking).await
    }

    /// Dead-letters, by `basic.nack` for the reason told at
    /// [`crate::amqp::Subscription::dead_letter`].
    ///
    /// # Errors
    /// When the channel is gone; the message comes back by itself.
    pub async fn dead_letter(&self, tag: u64) -> Result<()> {
        let options = BasicNackOptions {
            multiple: false,
            requeue: false,
        };
        let nacking = self.channel.basic_nack(tag, options);
        self.connection.within("nack", nacking).await
    }

    /// Returns it so that every version counts it against the delivery limit:
    /// 4.3 counts `basic.reject` and not `basic.nack`.
    ///
    /// # Errors
    /// When the channel is gone; the message comes back by itself.
    pub async fn return_counted(&self, tag: u64) -> Result<()> {
        let options = BasicRejectOptions { requeue: true };
        let rejecting = self.channel.basic_reject(tag, options);
        self.connection.within("reject", rejecting).await
    }

    /// Returns everything that is out to where it was, as [`crate::amqp::Walk`]
    /// does it: on 4.3 by a nack, which does not count against a delivery limit
    /// there, on older versions by closing the channel, which keeps the order.
    ///
    /// # Errors
    /// When the channel is gone; what was not acked returns by itself.
    pub async fn release(self) -> Result<()> {
        if !self.connection.facts().requeue_counts() {
            let all = BasicNackOptions {
                multiple: true,
                requeue: true,
            };
            let nacking = self.channel.basic_nack(0, all);
            self.connection.within("nack", nacking).await?;
        }
        let closing = self.channel.close(200, short("bye", "text")?);
        self.connection.within("close a channel", closing).await
    }
}

impl Connection {
    /// Drops every message of a queue that is ready, and gives their number.
    ///
    /// # Errors
    /// When the queue does not exist, may not be read, or is a stream.
    pub async fn purge(&self, queue: &QueueName) -> Result<u32> {
        let channel = self.lend().await?;
        let purging = channel.queue_purge(
            short(queue.as_str(), "queue name")?,
            QueuePurgeOptions::default(),
        );
        let purged = self
            .within(&format!("purge queue '{queue}'"), purging)
            .await?;
        self.give_back(channel);
        Ok(purged)
    }
}
