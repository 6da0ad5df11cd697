//! Messages of a queue in order, acknowledged in blocks.

use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use lapin::options::{BasicAckOptions, BasicCancelOptions};
use lapin::{Channel, Consumer};
use tokio::time::timeout;

use crate::amqp::Connection;
use crate::amqp::consume::{from_delivery, subscribe};
use crate::amqp::convert::short;
use crate::amqp::copy::WINDOW;
use crate::amqp::failure::explain;
use crate::error::{Error, ErrorKind, Result};
use crate::field::FieldTable;
use crate::message::Delivery;
use crate::topology::QueueName;

/// A message that was handed out and not acknowledged.
#[derive(Clone, Debug)]
pub struct Taken {
    /// Its number on the channel.
    pub tag: u64,
    /// The message.
    pub delivery: Delivery,
}

/// A consumer that takes everything in order.
pub struct Intake<'c> {
    connection: &'c Connection,
    channel: Channel,
    consumer: Consumer,
    queue: QueueName,
}

impl<'c> Intake<'c> {
    /// Subscribes; at most two windows are out unacknowledged.
    ///
    /// # Errors
    /// When the queue does not exist or may not be read.
    pub async fn open(connection: &'c Connection, queue: &QueueName) -> Result<Self> {
        let channel = connection.channel().await?;
        let prefetch = u16::try_from(2 * WINDOW).unwrap_or(u16::MAX);
        let consumer = subscribe(connection, &channel, queue, prefetch, &FieldTable::new()).await?;
        Ok(Self {
            connection,
            channel,
            consumer,
            queue: queue.clone(),
        })
    }

    /// Up to `most` messages: waits up to `patience` for the first, and takes
    /// what else is here already. Empty when none came.
    ///
    /// # Errors
    /// When the broker ended the subscription or cannot be reached; what is
    /// unacknowledged goes back by itself.
    pub async fn take(&mut self, most: usize, patience: Duration) -> Result<Vec<Taken>> {
        let mut taken = Vec::new();
        while taken.len() < most {
            let next = if taken.is_empty() {
                match timeout(patience, self.consumer.next()).await {
                    Ok(next) => next,
                    Err(_) => break,
                }
            } else {
                match self.consumer.next().now_or_never() {
                    Some(next) => next,
                    None => break,
                }
            };
            taken.push(understood(next, &self.queue)?);
        }
        Ok(taken)
    }

    /// Acknowledges everything up to and including `tag`.
    ///
    /// # Errors
    /// When the channel is gone; the messages come back by themselves.
    pub async fn ack_up_to(&self, tag: u64) -> Result<()> {
        ack(self.connection, &self.channel, tag, true).await
    }

    /// Ends it; what is unacknowledged goes back.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn close(self) -> Result<()> {
        let closing = self.channel.close(200, short("bye", "text")?);
        self.connection.within("close a channel", closing).await
    }
}

/// All messages of a queue that nothing is published to, held unacknowledged.
///
/// A quorum queue hands a message that was under way to an ended consumer out
/// before all others (measured on 3.10.8, 4.0.5 and 4.3.6). So a hold has
/// exactly as much credit as there are messages: with none left nothing is under
/// way when it ends, and what is returned stands in its old order before
/// whatever came behind it.
pub struct Hold<'c> {
    connection: &'c Connection,
    channel: Channel,
    held: u64,
}

impl<'c> Hold<'c> {
    /// Takes exactly `count` messages; gives each to `see`.
    ///
    /// # Errors
    /// When fewer come: somebody else takes messages too. Nothing is kept then.
    pub async fn open(
        connection: &'c Connection,
        queue: &QueueName,
        count: u64,
        mut see: impl FnMut(Taken),
    ) -> Result<Self> {
        let channel = connection.channel().await?;
        let mut hold = Self {
            connection,
            channel,
            held: 0,
        };
        let mut left = count;
        while left > 0 {
            // A consumer can have credit for this many at most.
            let part = u16::try_from(left).unwrap_or(u16::MAX);
            let mut consumer =
                subscribe(connection, &hold.channel, queue, part, &FieldTable::new()).await?;
            for _ in 0..part {
                let Ok(next) = timeout(connection.limit(), consumer.next()).await else {
                    return Err(Error::new(
                        ErrorKind::TimedOut,
                        format!("queue '{queue}' handed out fewer messages than it has"),
                    )
                    .hint("somebody else takes messages from it; stop them and run this again"));
                };
                let taken = understood(next, queue)?;
                hold.held += 1;
                see(taken);
            }
            // While it was there, copies that came later were handed out to it
            // and returned before the others, without credit (seen on 4.0.5).
            let cancel = hold
                .channel
                .basic_cancel(consumer.tag(), BasicCancelOptions::default());
            connection.within("cancel the consumer", cancel).await?;
            left -= u64::from(part);
        }
        Ok(hold)
    }

    /// Acknowledges one of the held messages.
    ///
    /// # Errors
    /// When the channel is gone; everything held comes back by itself.
    pub async fn ack(&mut self, tag: u64) -> Result<()> {
        ack(self.connection, &self.channel, tag, false).await?;
        self.held = self.held.saturating_sub(1);
        Ok(())
    }

    /// Returns what is still held to where it was; gives how many that are.
    ///
    /// By closing the channel: after a nack 3.10.8 hands out what came behind
    /// first (measured; after a close no version does).
    ///
    /// # Errors
    /// When the channel is gone; then it returns by itself.
    pub async fn release(self) -> Result<u64> {
        let closing = self.channel.close(200, short("bye", "text")?);
        self.connection.within("close a channel", closing).await?;
        Ok(self.held)
    }
}

fn understood(
    next: Option<lapin::Result<lapin::message::Delivery>>,
    queue: &QueueName,
) -> Result<Taken> {
    match next {
        Some(Ok(delivery)) => Ok(Taken {
            tag: delivery.delivery_tag,
            delivery: from_delivery(delivery),
        }),
        Some(Err(error)) => Err(explain(&error, &format!("consume queue '{queue}'"))),
        None => Err(Error::new(
            ErrorKind::Unavailable,
            format!("the broker ended our subscription to queue '{queue}'"),
        )
        .hint("somebody deleted the queue, or its node went away; run this again")),
    }
}

async fn ack(connection: &Connection, channel: &Channel, tag: u64, multiple: bool) -> Result<()> {
    let options = BasicAckOptions { multiple };
    connection
        .within("acknowledge", channel.basic_ack(tag, options))
        .await
}
