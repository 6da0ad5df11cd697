//! A walk through a queue: each message once, in order, up to a count. What is
//! neither acked nor given up stays out until the end of the walk and then goes
//! back, so that nothing is met twice.

mod arriving;
mod release;

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use lapin::options::{BasicAckOptions, BasicCancelOptions, BasicGetOptions};
use lapin::{Channel, Consumer};

use crate::amqp::acks::{Acks, DueAck};
use crate::amqp::consume::subscribe_as;
use crate::amqp::convert::short;
use crate::amqp::{Connection, Taken};
use crate::error::{Error, ErrorKind, Result};
use crate::field::FieldTable;
use crate::topology::{QueueName, QueueType};

/// How many messages are on their way to us at a time, at most. So many go back in
/// their order on every version.
const MOST_AHEAD: u64 = 4096;

/// So many bytes of bodies should be on their way to us at a time, at most. The
/// sizes are known only once they are here, so that it can be more once.
const BYTES_AHEAD: usize = 32 * 1024 * 1024;

/// A broker's channel keeps commands for a quorum queue back once so many are not
/// applied (`quorum_commands_soft_limit`).
const COMMANDS: u64 = 32;

/// A queue that hands nothing out for so long is asked whether it is empty.
const QUIET: Duration = Duration::from_millis(200);

/// A consumer with as much credit as it may use up, replaced by another one when
/// all its credit is out, so that nothing is under way to it. An ack gives credit
/// back, and what comes for it is under way for a while: it is waited for. For what
/// the broker's channel is sent for an ended consumer it returns by itself, before
/// all that is here (`handle_delivery` in `rabbit_fifo_client`): before 4.3 to the
/// end of a quorum queue without a delivery limit, and else behind what came back
/// earlier. Without that wait up to 97 messages changed places in 28 of 100 replays
/// with a limit (3.10.8, 4.0.5 and 4.3.6, 2,500 and 10,000 messages), with it in none of 102.
///
/// The broker's channel keeps acks for a quorum queue back while 32 of its commands
/// are not applied yet, and forgets them when it ends: of 1,250 acks sent one by one
/// 194 were lost so on 4.3.6, and messages that were moved were in the queue again
/// (seen on 3.10.8 too). The beginning and the end of a consumer wait until all that
/// was sent before is applied, and then the channel sends on what it kept. So acks
/// are followed by one of these before the channel is closed.
pub struct Walk<'c> {
    connection: &'c Connection,
    channel: Channel,
    queue: QueueName,
    is_quorum: bool,
    source: Option<Source>,
    /// How many messages may still come.
    left: u64,
    /// The last tag that came.
    last: u64,
    /// The usual size of a body, in bytes.
    typical: usize,
    /// The largest body so far, in bytes; `None` as long as there was none.
    largest: Option<usize>,
    /// How many may be on their way, whatever their size.
    most_ahead: u64,
    acks: Acks,
    /// Acks that are to be sent now: whoever drops the sending of one loses none.
    due: VecDeque<DueAck>,
    /// Acks that were sent, as frames.
    acks_sent: u64,
    /// Whether a message more than was asked for may be taken and returned.
    may_take_more: bool,
    /// Messages that are out and not acked.
    held: u64,
    /// What a consumer had been sent when it was ended.
    behind: VecDeque<Taken>,
    /// The consumers so far, in their order.
    spans: Vec<Span>,
}

/// The tags of one consumer: those up to the next one's.
struct Span {
    /// The last tag before its own.
    after: u64,
    /// The last of its own that is kept, 0 if none is.
    kept: u64,
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

impl Source {
    /// Whether it may be given more than it was.
    fn has_credit(&self) -> bool {
        self.out < self.credit
    }
}

impl<'c> Walk<'c> {
    /// Prepares to walk over at most `count` messages from the head of the queue
    /// on, which is of this type. `typical` is the usual size of a body in bytes, 0
    /// if it is not known.
    ///
    /// # Errors
    /// When no channel can be opened. Whether the queue is there shows at the
    /// first message.
    pub async fn open(
        connection: &'c Connection,
        queue: &QueueName,
        kind: &QueueType,
        count: u64,
        typical: usize,
    ) -> Result<Self> {
        Ok(Self {
            connection,
            channel: connection.channel().await?,
            queue: queue.clone(),
            is_quorum: *kind == QueueType::Quorum,
            source: None,
            left: count,
            last: 0,
            typical,
            largest: None,
            most_ahead: MOST_AHEAD,
            acks: Acks::default(),
            due: VecDeque::new(),
            acks_sent: 0,
            may_take_more: true,
            held: 0,
            behind: VecDeque::new(),
            spans: Vec::new(),
        })
    }

    /// Takes at most so many messages ahead of what is asked for, at least one.
    pub fn ahead_at_most(&mut self, count: u64) {
        self.most_ahead = count.clamp(1, MOST_AHEAD);
    }

    /// Takes one message at a time, and none that is not asked for: some of these
    /// messages may go back, and every one that does is harmed.
    pub fn one_by_one(&mut self) {
        self.may_take_more = false;
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
        if !self.may_take_more {
            return self.get().await;
        }
        let mut waited = Duration::ZERO;
        if self.is_out_of_proportion() {
            self.wind_up_source().await?;
        }
        loop {
            if let Some(taken) = self.next_now()? {
                return Ok(Some(taken));
            }
            self.send_acks().await?;
            if self.left == 0 {
                return Ok(None);
            }
            match &self.source {
                Some(source) if source.has_credit() => {}
                _ => {
                    self.wind_up_source().await?;
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
                return self.next_now();
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

    /// The next message, without a consumer: nothing else is under way then.
    async fn get(&mut self) -> Result<Option<Taken>> {
        self.send_acks().await?;
        if self.left == 0 {
            return Ok(None);
        }
        let getting = self.channel.basic_get(
            short(self.queue.as_str(), "queue name")?,
            BasicGetOptions { no_ack: false },
        );
        let doing = format!("get a message from queue '{}'", self.queue);
        let Some(message) = self.connection.within(&doing, getting).await? else {
            return Ok(None);
        };
        self.arrived(Some(Ok(message.delivery)))?;
        self.next_now()
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
        self.largest = self.largest.max(Some(taken.delivery.body.len()));
        Ok(Some(taken))
    }

    /// The message is done: it is acked with the next [`Self::send_acks`].
    pub fn ack(&mut self, tag: u64) {
        self.acks.done(tag);
    }

    /// Whether the message is done, by [`Self::ack`].
    #[must_use]
    pub fn is_acked(&self, tag: u64) -> bool {
        self.acks.is_done(tag)
    }

    /// The message stays out until the end of the walk. From then on acks are
    /// sent one by one, which takes longer.
    pub fn keep(&mut self, tag: u64) {
        self.acks.kept(tag);
        let of_it = |span: &&mut Span| span.after < tag;
        if let Some(span) = self.spans.iter_mut().rev().find(of_it) {
            span.kept = span.kept.max(tag);
        }
    }

    /// Sends the acks that are due, but for that of the very last message. Where
    /// they would bring more messages than were asked for, the consumer is ended
    /// first, and another one brings the rest.
    ///
    /// # Errors
    /// When the channel is gone; the messages come back by themselves.
    pub async fn send_acks(&mut self) -> Result<()> {
        let mut up_to = u64::MAX;
        let is_last = self.left == 0 && self.leaves_the_last();
        if let Some(source) = &mut self.source {
            let its_own = self.acks.waiting_after(source.after);
            if its_own <= source.may_ack {
                source.may_ack -= its_own;
                source.out -= its_own;
            } else if is_last {
                up_to = source.after;
            } else {
                self.wind_up_source().await?;
            }
        }
        self.held -= self.acks.waiting_after(0) - self.acks.waiting_after(up_to);
        self.due.extend(self.acks.due_up_to(up_to));
        self.send_due().await
    }

    async fn send_due(&mut self) -> Result<()> {
        while let Some(DueAck { tag, multiple }) = self.due.pop_front() {
            self.acks_sent += 1;
            let options = BasicAckOptions { multiple };
            self.connection
                .within("acknowledge", self.channel.basic_ack(tag, options))
                .await?;
        }
        Ok(())
    }

    /// How many messages may be on their way, by the largest one so far.
    fn ahead(&self) -> u64 {
        let fits = BYTES_AHEAD / self.largest.unwrap_or(self.typical).max(1);
        (fits as u64).clamp(1, self.most_ahead)
    }

    /// Whether the consumer takes much more, or much less, than bodies of their
    /// size allow: they were expected to have another one.
    fn is_out_of_proportion(&self) -> bool {
        let ahead = self.ahead();
        self.source.as_ref().is_some_and(|source| {
            source.credit > 2 * ahead || source.credit * 4 < ahead.min(self.left)
        })
    }

    async fn subscribe(&mut self) -> Result<()> {
        let others = self.left - u64::from(self.leaves_the_last());
        self.subscribe_for(self.ahead().min(others).max(1)).await
    }

    async fn subscribe_for(&mut self, credit: u64) -> Result<()> {
        let consumer = subscribe_as(
            // In the order of the consumers: a broker that takes back by consumer goes by it.
            &format!("mq-{:06}", self.spans.len()),
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
            may_ack: (self.left - u64::from(self.leaves_the_last())).saturating_sub(credit),
        });
        self.spans.push(Span {
            after: self.last,
            kept: 0,
        });
        Ok(())
    }

    /// Ends the consumer once all its credit is out, so that nothing is under way to it.
    async fn wind_up_source(&mut self) -> Result<()> {
        self.have_what_is_under_way().await?;
        self.end_source().await
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
}
