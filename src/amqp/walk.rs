//! A walk through a queue: each message once, in order, up to a count. What is
//! neither acked nor given up stays out until the end of the walk and then goes
//! back, so that nothing is met twice.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use lapin::options::{BasicAckOptions, BasicCancelOptions, BasicNackOptions};
use lapin::{Channel, Consumer};
use tokio::time::timeout;

use crate::amqp::acks::{Acks, DueAck};
use crate::amqp::consume::{from_delivery, subscribe};
use crate::amqp::convert::short;
use crate::amqp::failure::explain;
use crate::amqp::{Connection, Taken};
use crate::error::{Error, ErrorKind, Result};
use crate::field::FieldTable;
use crate::topology::QueueName;

/// How many messages are on their way to us at a time, at most.
const MOST_AHEAD: u64 = 1024;

/// So many bytes of bodies should be on their way to us at a time, at most. The
/// sizes are known only once they are here, so that it can be more once.
const BYTES_AHEAD: usize = 64 * 1024 * 1024;

/// A queue that hands nothing out for so long is asked whether it is empty.
const QUIET: Duration = Duration::from_millis(200);

/// A consumer with as much credit as it may use up, replaced by another one when
/// all its credit is out. A quorum queue hands what was under way to an ended
/// consumer out before everything else (measured on 3.10.8, 4.0.5 and 4.3.6);
/// with no more credit than messages are wanted, nothing is.
pub struct Walk<'c> {
    connection: &'c Connection,
    channel: Channel,
    queue: QueueName,
    source: Option<Source>,
    /// How many messages may still come.
    left: u64,
    /// The last tag that came.
    last: u64,
    /// The largest body so far, in bytes.
    largest: usize,
    /// How many may be on their way, whatever their size.
    most_ahead: u64,
    acks: Acks,
    /// Acks that are to be sent now: whoever drops the sending of one loses none.
    due: VecDeque<DueAck>,
    /// Messages that are out and not acked.
    held: u64,
    /// What a consumer had been sent when it was ended.
    behind: VecDeque<Taken>,
}

struct Source {
    consumer: Consumer,
    /// How many it may have out.
    credit: u64,
    /// The last tag before it: its own are larger.
    after: u64,
    /// How many are out of those it gave.
    out: u64,
    /// How many of those may still be acked before its credit could bring more
    /// than are wanted.
    may_ack: u64,
}

impl<'c> Walk<'c> {
    /// Prepares to walk over at most `count` messages from the head of the queue
    /// on. `typical` is the usual size of a body in bytes, if it is known.
    ///
    /// # Errors
    /// When no channel can be opened. Whether the queue is there shows at the
    /// first message.
    pub async fn open(
        connection: &'c Connection,
        queue: &QueueName,
        count: u64,
        typical: usize,
    ) -> Result<Self> {
        Ok(Self {
            connection,
            channel: connection.channel().await?,
            queue: queue.clone(),
            source: None,
            left: count,
            last: 0,
            largest: typical,
            most_ahead: MOST_AHEAD,
            acks: Acks::default(),
            due: VecDeque::new(),
            held: 0,
            behind: VecDeque::new(),
        })
    }

    /// Takes at most so many messages ahead of what is asked for, at least one.
    pub fn ahead_at_most(&mut self, count: u64) {
        self.most_ahead = count.clamp(1, MOST_AHEAD);
    }

    /// The next message; `None` at the end: so many came as were asked for, or
    /// the queue is empty. Sends the acks that are due before it waits.
    ///
    /// Safe to drop while waiting.
    ///
    /// # Errors
    /// When the broker ended the subscription or cannot be reached, or when the
    /// queue has messages that it does not hand out to us. What is not acked
    /// goes back by itself.
    pub async fn next(&mut self) -> Result<Option<Taken>> {
        let mut waited = Duration::ZERO;
        let ahead = self.ahead();
        if (self.source.as_ref()).is_some_and(|source| source.credit > 2 * ahead) {
            self.end_source().await?;
        }
        loop {
            if let Some(taken) = self.next_now()? {
                return Ok(Some(taken));
            }
            self.send_acks().await?;
            if self.left == 0 {
                self.end_source().await?;
                self.send_acks().await?;
                return Ok(None);
            }
            match &self.source {
                Some(source) if source.out < source.credit => {}
                _ => {
                    self.end_source().await?;
                    self.send_acks().await?;
                    if self.behind.is_empty() {
                        self.subscribe().await?;
                    }
                    continue;
                }
            }
            if self.wait_for_one(QUIET).await? {
                continue;
            }
            waited += QUIET;
            if self.is_empty().await? {
                return Ok(None);
            }
            if waited >= self.connection.limit() {
                return Err(Error::new(
                    ErrorKind::TimedOut,
                    format!(
                        "queue '{}' has messages and hands none out to us",
                        self.queue
                    ),
                )
                .hint("another consumer may be its single active one, or have a higher priority; stop it and run this again"));
            }
        }
    }

    /// The next message, if it is here already.
    ///
    /// # Errors
    /// Those of [`Self::next`].
    pub fn next_now(&mut self) -> Result<Option<Taken>> {
        if self.left == 0 {
            return Ok(None);
        }
        if self.behind.is_empty() {
            let source = self.source.as_mut();
            let Some(next) = source.and_then(|source| source.consumer.next().now_or_never()) else {
                return Ok(None);
            };
            self.arrived(next)?;
        }
        let Some(taken) = self.behind.pop_front() else {
            return Ok(None);
        };
        self.left -= 1;
        self.held += 1;
        self.acks.delivered(taken.tag);
        self.largest = self.largest.max(taken.delivery.body.len());
        Ok(Some(taken))
    }

    /// The message is done: it is acked with the next [`Self::send_acks`].
    pub fn ack(&mut self, tag: u64) {
        self.acks.done(tag);
    }

    /// The message stays out until the end of the walk. From then on acks are
    /// sent one by one, which takes longer.
    pub fn keep(&mut self, tag: u64) {
        self.acks.kept(tag);
    }

    /// Sends the acks that are due, but for those that would bring more messages
    /// than were asked for.
    ///
    /// # Errors
    /// When the channel is gone; the messages come back by themselves.
    pub async fn send_acks(&mut self) -> Result<()> {
        if let Some(source) = &mut self.source {
            let its_own = self.acks.waiting_after(source.after);
            if its_own > source.may_ack {
                return self.send_due().await;
            }
            source.may_ack -= its_own;
            source.out -= its_own;
        }
        self.held -= self.acks.waiting_after(0);
        self.due.extend(self.acks.due());
        self.send_due().await
    }

    async fn send_due(&mut self) -> Result<()> {
        while let Some(DueAck { tag, multiple }) = self.due.pop_front() {
            let options = BasicAckOptions { multiple };
            self.connection
                .within("acknowledge", self.channel.basic_ack(tag, options))
                .await?;
        }
        Ok(())
    }

    /// Ends the walk: sends the acks that are due, and returns what else is out
    /// to where it was. Gives how many messages were returned.
    ///
    /// On 4.3 by a nack, which does not count against a delivery limit there; on
    /// older versions, where every return counts, by closing the channel: after
    /// a nack 3.10.8 hands out what came behind first (measured; after a close no
    /// version does).
    ///
    /// # Errors
    /// When the channel is gone; what was not acked returns by itself.
    pub async fn release(mut self) -> Result<u64> {
        self.end_source().await?;
        self.send_acks().await?;
        let returned = self.held + self.behind.len() as u64;
        if returned > 0 && !self.connection.facts().requeue_counts() {
            let all = BasicNackOptions {
                multiple: true,
                requeue: true,
            };
            self.connection
                .within("nack", self.channel.basic_nack(0, all))
                .await?;
        }
        let closing = self.channel.close(200, short("bye", "text")?);
        self.connection.within("close a channel", closing).await?;
        Ok(returned)
    }

    /// How many messages may be on their way, by the largest one so far.
    fn ahead(&self) -> u64 {
        let fits = BYTES_AHEAD / self.largest.max(1);
        (fits as u64).clamp(1, self.most_ahead)
    }

    async fn subscribe(&mut self) -> Result<()> {
        let credit = self.ahead().min(self.left);
        let consumer = subscribe(
            self.connection,
            &self.channel,
            &self.queue,
            u16::try_from(credit).unwrap_or(u16::MAX),
            &FieldTable::new(),
        )
        .await?;
        self.source = Some(Source {
            consumer,
            credit,
            after: self.last,
            out: 0,
            may_ack: self.left - credit,
        });
        Ok(())
    }

    /// Ends the consumer. What it had been sent before is kept for later.
    async fn end_source(&mut self) -> Result<()> {
        let Some(mut source) = self.source.take() else {
            return Ok(());
        };
        let cancel = self
            .channel
            .basic_cancel(source.consumer.tag(), BasicCancelOptions::default());
        self.connection
            .within("cancel the consumer", cancel)
            .await?;
        while let Some(next) = source.consumer.next().await {
            self.arrived(Some(next))?;
        }
        Ok(())
    }

    /// Whether a message came within `patience`.
    async fn wait_for_one(&mut self, patience: Duration) -> Result<bool> {
        let Some(source) = &mut self.source else {
            return Ok(false);
        };
        match timeout(patience, source.consumer.next()).await {
            Err(_) => Ok(false),
            Ok(next) => self.arrived(next).map(|()| true),
        }
    }

    async fn is_empty(&self) -> Result<bool> {
        let status = self.connection.queue_status(&self.queue).await?;
        Ok(status.is_none_or(|status| status.ready == 0))
    }

    fn arrived(&mut self, next: Option<lapin::Result<lapin::message::Delivery>>) -> Result<()> {
        let delivery = match next {
            Some(Ok(delivery)) => delivery,
            Some(Err(error)) => {
                return Err(explain(&error, &format!("consume queue '{}'", self.queue)));
            }
            None => {
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    format!(
                        "the broker ended our subscription to queue '{}'",
                        self.queue
                    ),
                )
                .hint("somebody deleted the queue, or its node went away; run this again"));
            }
        };
        if let Some(source) = &mut self.source {
            source.out += 1;
        }
        self.last = delivery.delivery_tag;
        self.behind.push_back(Taken {
            tag: delivery.delivery_tag,
            delivery: from_delivery(delivery),
        });
        Ok(())
    }
}
