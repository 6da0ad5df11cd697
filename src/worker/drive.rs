//! Carries out what the machine decides: one session from subscription to drain.
//!
//! No decisions about messages are made here. Whatever ends a session, every
//! running handler has ended when it returns, so the next session cannot work
//! on the same message at the same time.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the worker meets the clock"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::amqp::{Connection, Incoming, Subscription};
use crate::dedupe::{Desk, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Delivery, ResultTo};
use crate::retry::{Attempt, HandlerResult, Outcome, Trace};
use crate::worker::deduping::next_answer;
use crate::worker::drained::{DrainCheck, Emptiness};
use crate::worker::event::{Event, StopReason};
use crate::worker::machine::Machine;
use crate::worker::parker::Parker;
use crate::worker::pause::Pausing;
use crate::worker::reading::Reading;
use crate::worker::status::Link;
use crate::worker::taken::{Taken, taken};
use crate::worker::telling::{Fate, LastAttempt};
use crate::worker::wanted::{Ending, Handling, Wanted};

/// How often idleness and emptiness are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A delivery in work and what its last attempt left behind.
pub(super) struct InWork {
    pub(super) delivery: Arc<Delivery>,
    pub(super) result: Option<HandlerResult>,
    pub(super) trace: Trace,
    /// The last attempt that was started; 0 before the first.
    pub(super) attempt: u32,
    /// Where it stands in its stream.
    pub(super) offset: Option<u64>,
    pub(super) last: LastAttempt,
    /// What its ack means, if not that it is done: a copy of it is, or its like was.
    pub(super) acked_as: Option<Fate>,
}

/// One subscription being worked.
pub struct Session<'s> {
    pub(super) wanted: &'s Wanted,
    pub(super) connection: &'s Connection,
    pub(super) subscription: Subscription<'s>,
    /// What came back without an outcome may end this worker too, and who is
    /// in its hands then has come back once more: such messages are taken one
    /// by one. They are the first to be handed out.
    pub(super) on_probation: bool,
    pub(super) machine: &'s mut Machine,
    pub(super) deliveries: BTreeMap<u64, InWork>,
    pub(super) running: JoinSet<(u64, Attempt, Duration)>,
    pub(super) held: JoinSet<u64>,
    pub(super) parker: Parker,
    pub(super) answering: BTreeSet<u64>,
    /// Where it is asked and told what is done.
    pub(super) desk: Option<Desk>,
    /// Printed and not yet written.
    pub(super) page: Vec<u8>,
    /// Whose page it is.
    pub(super) printed: Vec<u64>,
    pub(super) kill: watch::Sender<bool>,
    pub(super) drain_check: DrainCheck,
    pub(super) retries_out: u64,
    pub(super) last_retry: Instant,
    pub(super) last_activity: Instant,
    pub(super) deadline: Option<Instant>,
    pub(super) subscribed: bool,
    pub(super) pausing: Pausing,
    /// What is read of a stream.
    pub(super) reading: Option<&'s mut Reading>,
}

impl<'s> Session<'s> {
    /// Subscribes.
    ///
    /// # Errors
    /// When the queue cannot be consumed.
    pub async fn open(
        wanted: &'s Wanted,
        connection: &'s Connection,
        machine: &'s mut Machine,
        mut reading: Option<&'s mut Reading>,
        limit: Duration,
    ) -> Result<Self> {
        // Widened means subscribed anew: a queue with a single active consumer
        // would hand its next message to somebody else meanwhile.
        let counts_returns = (wanted.path.as_ref())
            .is_some_and(|path| path.counts_returns && !path.single_active_consumer);
        let on_probation = counts_returns && machine.bounds_returns() && wanted.prefetch > 1;
        let takes_one = on_probation || machine.is_paused();
        let prefetch = if takes_one { 1 } else { wanted.prefetch };
        let start = reading.as_deref_mut().map(|reading| {
            reading.session_begins();
            reading.subscribes()
        });
        let subscription = Subscription::open(connection, &wanted.queue, prefetch, start).await?;
        let longest_wait = wanted
            .path
            .as_ref()
            .map_or(Duration::ZERO, |path| path.longest_wait);
        let pausing = Pausing::since(machine.is_paused().then(|| machine.paused_for()));
        Ok(Self {
            wanted,
            connection,
            subscription,
            on_probation,
            machine,
            deliveries: BTreeMap::new(),
            running: JoinSet::new(),
            held: JoinSet::new(),
            parker: Parker::start(
                connection.endpoint().clone(),
                connection.tls().clone(),
                limit,
            ),
            answering: BTreeSet::new(),
            desk: wanted.dedupe.as_ref().map(Store::desk),
            page: Vec::new(),
            printed: Vec::new(),
            kill: watch::Sender::new(false),
            drain_check: DrainCheck::new(longest_wait),
            retries_out: 0,
            last_retry: Instant::now(),
            last_activity: Instant::now(),
            deadline: None,
            subscribed: true,
            pausing,
            reading,
        })
    }

    /// Works until the machine is done, the connection breaks or a second signal comes.
    pub async fn run(
        mut self,
        handling: &mut Handling<'_>,
        signals: &mut mpsc::UnboundedReceiver<u8>,
    ) -> Ending {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.wanted.board.post(self.machine, Link::Up);
            if self.machine.is_done() && !self.subscribed {
                self.close_desk().await;
                return Ending::Done;
            }
            let deadline = self.deadline;
            let rest = self.pausing.rest;
            let step = tokio::select! {
                incoming = self.subscription.next(), if self.subscribed => {
                    self.incoming(incoming, handling).await
                }
                Some(ended) = self.running.join_next() => self.ended(ended, handling).await,
                Some(Ok(tag)) = self.held.join_next() => {
                    self.apply(Event::Waited { tag }, handling).await
                }
                answer = next_answer(&mut self.desk) => self.answered(answer, handling).await,
                (tag, result) = self.parker.next() => self.published(tag, result, handling).await,
                Some(signal) = signals.recv() => {
                    if matches!(self.machine.stop_reason(), Some(StopReason::Signal)) {
                        self.kill_handlers().await;
                        self.machine.handle(Event::ConnectionLost);
                        return Ending::SecondSignal(signal);
                    }
                    tracing::info!("draining: running handlers end, the rest goes back");
                    self.apply(Event::Stop(StopReason::Signal), handling).await
                }
                () = at(deadline) => {
                    self.deadline = None;
                    self.grace_is_over(handling).await
                }
                () = at(rest) => {
                    self.pausing.rest = None;
                    self.apply(Event::Rested, handling).await
                }
                _ = looks.tick() => self.look(handling).await,
            };
            let step = match step {
                Ok(()) => self.take_what_is_ready(handling).await,
                Err(error) => Err(error),
            };
            let step = match step {
                Ok(()) => self.say_what_is_done(handling).await,
                Err(error) => Err(error),
            };
            if let Err(error) = step {
                return self.lost(error, signals).await;
            }
        }
    }

    pub(super) async fn ended(
        &mut self,
        ended: std::result::Result<(u64, Attempt, Duration), tokio::task::JoinError>,
        handling: &mut Handling<'_>,
    ) -> Result<()> {
        let (tag, attempt, took) = ended.map_err(|error| {
            Error::new(
                ErrorKind::Internal,
                format!("a handler task broke: {error}"),
            )
        })?;
        self.wanted.board.attempt_ended(&attempt.outcome, took);
        let event = self.finished(tag, attempt, took);
        self.apply(event, handling).await
    }

    pub(super) async fn incoming(
        &mut self,
        incoming: Incoming,
        handling: &mut Handling<'_>,
    ) -> Result<()> {
        match incoming {
            Incoming::Delivery(tag, delivery) => {
                self.last_activity = Instant::now();
                self.drain_check.disturbed();
                if self.passes_over(tag, &delivery)? {
                    return Ok(());
                }
                let event = self.take(tag, *delivery);
                let is_harmless = matches!(event, Event::Delivered { returns: 0, .. });
                let widens = self.machine.stop_reason().is_none()
                    && !self.machine.is_paused()
                    && !self.pausing.unsubscribes;
                if self.on_probation && is_harmless && widens {
                    self.on_probation = false;
                    self.subscription
                        .change_prefetch(self.wanted.prefetch)
                        .await?;
                }
                self.apply(event, handling).await
            }
            Incoming::Failed(error) => Err(error),
            Incoming::Cancelled if self.pausing.unsubscribes => self.unsubscribed().await,
            Incoming::Cancelled if self.machine.stop_reason().is_some() => {
                self.subscribed = false;
                Ok(())
            }
            Incoming::Cancelled => self.cancelled(handling).await,
        }
    }

    fn take(&mut self, tag: u64, delivery: Delivery) -> Event {
        let Taken {
            attempt,
            nack_is_unsafe,
            returns,
        } = taken(
            &delivery,
            self.wanted.path.as_ref(),
            self.connection.facts(),
        );
        if attempt > 1 {
            self.retries_out = self.retries_out.saturating_sub(1);
        }
        let offset = delivery.stream_offset().filter(|_| self.reading.is_some());
        self.deliveries.insert(
            tag,
            InWork {
                delivery: Arc::new(delivery),
                result: None,
                trace: Trace::default(),
                attempt: 0,
                offset,
                last: LastAttempt::to_come(attempt),
                acked_as: None,
            },
        );
        Event::Delivered {
            tag,
            attempt,
            nack_is_unsafe,
            returns,
        }
    }

    /// Keeps what the attempt left behind until its message is settled.
    fn finished(&mut self, tag: u64, attempt: Attempt, took: Duration) -> Event {
        let Attempt {
            outcome,
            result,
            trace,
        } = attempt;
        self.tell(tag, &outcome, took);
        let publishes = outcome == Outcome::Done && self.answers(tag);
        let changes = matches!(outcome, Outcome::Failed { .. }) && self.wanted.retry_with_result;
        let result = result.filter(|_| publishes || changes);
        let is_used = result.is_some();
        if let Some(in_work) = self.deliveries.get_mut(&tag) {
            in_work.result = result;
            in_work.trace = trace;
            in_work.last = LastAttempt::ended(self.machine.attempt(tag), &outcome, took);
        }
        Event::Finished {
            tag,
            outcome,
            result: is_used,
        }
    }

    async fn published(
        &mut self,
        tag: u64,
        result: Result<()>,
        handling: &mut Handling<'_>,
    ) -> Result<()> {
        match result {
            // The broker went away: that is the connection's failure, not the message's.
            Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
            Err(error)
                if matches!(error.kind(), ErrorKind::Unroutable | ErrorKind::Refused)
                    && self.wanted.results == Some(ResultTo::ReplyTo)
                    && self.answering.remove(&tag) =>
            {
                let event = if error.kind() == ErrorKind::Unroutable && self.is_direct_reply(tag) {
                    tracing::info!(
                        tag,
                        "replied directly; the broker cannot tell whether anybody heard it"
                    );
                    Event::Published {
                        tag,
                        result: Ok(()),
                    }
                } else {
                    // A copy of it must not be done again.
                    self.record(tag);
                    let why = format!("the work is done, but {}", error.message());
                    Event::NobodyToAnswer { tag, why }
                };
                self.apply(event, handling).await
            }
            result => self.apply(Event::Published { tag, result }, handling).await,
        }
    }

    /// Idle or drained?
    async fn look(&mut self, handling: &mut Handling<'_>) -> Result<()> {
        if self.look_at_the_position(handling).await? {
            return Ok(());
        }
        if self.machine.stop_reason().is_some() || self.machine.in_flight() > 0 {
            if self.machine.in_flight() > 0 {
                self.last_activity = Instant::now();
            }
            return Ok(());
        }
        if let Some(limit) = self.wanted.idle_timeout
            && self.last_activity.elapsed() >= limit
        {
            return self.apply(Event::Stop(StopReason::Idle), handling).await;
        }
        if self.wanted.until_empty && self.reading.is_some() {
            return self.look_for_the_end(handling).await;
        }
        if self.wanted.until_empty {
            let found = Emptiness {
                ready: self.ready().await?,
                in_flight: self.machine.in_flight(),
                retries_out: self.retries_out,
                since_last_retry: self.last_retry.elapsed(),
            };
            if self.drain_check.look(found) {
                return self.apply(Event::Stop(StopReason::Empty), handling).await;
            }
        }
        Ok(())
    }

    async fn ready(&self) -> Result<u64> {
        let wait_queues = self.wanted.path.iter().flat_map(|path| &path.wait_queues);
        let mut ready = 0;
        for queue in std::iter::once(&self.wanted.queue).chain(wait_queues) {
            match self.connection.queue_status(queue).await? {
                Some(status) => ready += u64::from(status.ready),
                None => {
                    return Err(Error::new(
                        ErrorKind::NotFound,
                        format!("queue '{queue}' is gone; retries that waited in it went with it"),
                    )
                    .hint("declare it again (`mq topology apply FILE`)"));
                }
            }
        }
        Ok(ready)
    }
}

pub(super) async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A moment so far away that no clock can tell it never comes.
pub(super) fn later(duration: Duration) -> Option<Instant> {
    Instant::now().checked_add(duration)
}
