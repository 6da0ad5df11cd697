//! Consuming with manual settlement and a prefetch limit.

use futures_util::{FutureExt as _, StreamExt as _};
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions,
    BasicRejectOptions,
};
use lapin::{Channel, Consumer};

use crate::amqp::Connection;
use crate::amqp::acks::{Acks, DueAck};
use crate::amqp::convert::{from_properties, short, table};
use crate::amqp::failure::explain;
use crate::error::{Error, ErrorKind, Result};
use crate::field::{FieldTable, FieldValue};
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
    acks: Acks,
    /// What the consumer is declared with.
    arguments: FieldTable,
}

impl<'c> Subscription<'c> {
    /// Subscribes; at most `prefetch` messages are out unsettled at any time. A
    /// stream is read from `start` on, the value of `x-stream-offset`.
    ///
    /// # Errors
    /// When the queue does not exist or may not be read.
    pub async fn open(
        connection: &'c Connection,
        queue: &QueueName,
        prefetch: u16,
        start: Option<FieldValue>,
    ) -> Result<Self> {
        let channel = connection.channel().await?;
        let arguments = arguments(start);
        let consumer = subscribe(connection, &channel, queue, prefetch, &arguments)
            .await
            .map_err(no_stream)?;
        Ok(Self {
            connection,
            channel,
            consumer,
            queue: queue.clone(),
            acks: Acks::default(),
            arguments,
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
        self.resubscribe(prefetch).await
    }

    /// Subscribes again after [`Self::cancel`], once [`Incoming::Cancelled`] has
    /// come: what was handed out before that would be forgotten.
    ///
    /// # Errors
    /// When the channel is gone or the queue is.
    pub async fn resume(&mut self, prefetch: u16, start: Option<FieldValue>) -> Result<()> {
        self.arguments = arguments(start);
        self.resubscribe(prefetch).await
    }

    async fn resubscribe(&mut self, prefetch: u16) -> Result<()> {
        self.consumer = subscribe(
            self.connection,
            &self.channel,
            &self.queue,
            prefetch,
            &self.arguments,
        )
        .await?;
        Ok(())
    }

    /// The next thing that happens. Safe to drop while waiting.
    pub async fn next(&mut self) -> Incoming {
        let next = self.consumer.next().await;
        self.incoming(next)
    }

    /// The next thing, if it has happened already.
    pub fn next_now(&mut self) -> Option<Incoming> {
        let next = self.consumer.next().now_or_never()?;
        Some(self.incoming(next))
    }

    fn incoming(
        &mut self,
        next: Option<std::result::Result<lapin::message::Delivery, lapin::Error>>,
    ) -> Incoming {
        match next {
            Some(Ok(delivery)) => {
                let tag = delivery.delivery_tag;
                self.acks.delivered(tag);
                Incoming::Delivery(tag, Box::new(from_delivery(delivery)))
            }
            Some(Err(error)) => {
                Incoming::Failed(explain(&error, &format!("consume queue '{}'", self.queue)))
            }
            None => Incoming::Cancelled,
        }
    }

    /// Settles as done, with the next [`Self::send_acks`].
    pub fn ack(&mut self, tag: u64) {
        self.acks.done(tag);
    }

    /// Sends the acks that are due.
    ///
    /// # Errors
    /// When the channel is gone; the messages come back by themselves.
    pub async fn send_acks(&mut self) -> Result<()> {
        for DueAck { tag, multiple } in self.acks.due() {
            let options = BasicAckOptions { multiple };
            self.connection
                .within("acknowledge", self.channel.basic_ack(tag, options))
                .await?;
        }
        Ok(())
    }

    /// Dead-letters. Always `basic.nack`: on 4.3 `basic.reject` raises a
    /// delivery count that survives dead-lettering and in the end loses the
    /// message (measured).
    ///
    /// # Errors
    /// When the channel is gone; the message comes back by itself.
    pub async fn dead_letter(&mut self, tag: u64) -> Result<()> {
        self.nack(tag, false).await
    }

    /// Puts back untouched.
    ///
    /// # Errors
    /// When the channel is gone; the message comes back by itself.
    pub async fn release(&mut self, tag: u64) -> Result<()> {
        self.nack(tag, true).await
    }

    /// Puts back as a failed attempt. `basic.reject`, the one that a quorum queue
    /// of 4.3 counts and holds back longer each time (measured on 4.3.6).
    ///
    /// # Errors
    /// When the channel is gone; the message comes back by itself.
    pub async fn requeue(&mut self, tag: u64) -> Result<()> {
        self.acks.settled(tag);
        let options = BasicRejectOptions { requeue: true };
        self.connection
            .within("reject", self.channel.basic_reject(tag, options))
            .await
    }

    async fn nack(&mut self, tag: u64, requeue: bool) -> Result<()> {
        self.acks.settled(tag);
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

/// A broker names the argument that it does not know of other queues (measured
/// on 3.10.8, 4.0.5 and 4.3.6).
fn no_stream(error: Error) -> Error {
    if error.message().contains("invalid arg 'x-stream-offset'") {
        error
            .as_kind(ErrorKind::Usage)
            .hint("only streams have offsets: for other queues leave out --from and --offset-file")
    } else {
        error
    }
}

fn arguments(start: Option<FieldValue>) -> FieldTable {
    let start = start.map(|start| ("x-stream-offset".to_owned(), start));
    start.into_iter().collect()
}

/// A limit of the channel is for the consumers that come after it.
pub(super) async fn subscribe(
    connection: &Connection,
    channel: &Channel,
    queue: &QueueName,
    prefetch: u16,
    arguments: &FieldTable,
) -> Result<Consumer> {
    subscribe_as("", connection, channel, queue, prefetch, arguments).await
}

/// [`subscribe`] with this consumer tag; where it is empty, the broker finds one.
pub(super) async fn subscribe_as(
    tag: &str,
    connection: &Connection,
    channel: &Channel,
    queue: &QueueName,
    prefetch: u16,
    arguments: &FieldTable,
) -> Result<Consumer> {
    let doing = format!("consume queue '{queue}'");
    let limit = channel.basic_qos(prefetch, BasicQosOptions::default());
    connection.within(&doing, limit).await?;
    let consume = channel.basic_consume(
        short(queue.as_str(), "queue name")?,
        short(tag, "consumer tag")?,
        BasicConsumeOptions::default(),
        table(arguments)?,
    );
    connection.within(&doing, consume).await
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
