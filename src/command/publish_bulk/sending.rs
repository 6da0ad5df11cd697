//! Messages are sent while there is room, and their outcomes counted.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a rate is kept by the clock"
)]

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::super::session::Session;
use super::Target;
use super::books::{Books, Open};
use super::refused::Refused;
use super::results::Told;
use super::settled::Settled;
use super::source::{Batch, Item, Source};
use crate::amqp::{Connection, Pipeline, Receipt};
use crate::error::{Error, ErrorKind, Result};
use crate::topology::ExchangeName;

/// Bytes of bodies whose outcome is open, at most; one message may be larger.
const BYTES_OPEN: usize = 16 * 1024 * 1024;

/// Bodies of so many bytes go alone: a broker that finds one too large (406,
/// 16 MiB by default) closes the channel, and nothing else must go with it.
const LARGE: usize = 1024 * 1024;

/// So far a rate is caught up with: timers are not exact.
const CATCH_UP: Duration = Duration::from_millis(20);

/// What is asked for of all messages.
pub(super) struct Rules<'s> {
    pub(super) source: &'s Source,
    pub(super) target: Target,
    pub(super) drop_user_id: bool,
    pub(super) stops_at_unroutable: bool,
    /// Most messages a second.
    pub(super) rate: Option<u32>,
    /// How long the broker may block us at a time.
    pub(super) blocked_timeout: Duration,
    /// How long the broker may refuse without taking any; none: not at all.
    pub(super) retry_refused: Option<Duration>,
    pub(super) session: &'s Session,
}

/// Messages under way.
pub(super) struct Sending<'s, 'c> {
    pub(super) pipeline: Pipeline<'c>,
    pub(super) connection: &'c Connection,
    pub(super) rules: Rules<'s>,
    /// Each message whose outcome is open, in order.
    pub(super) open: VecDeque<Open>,
    open_bytes: usize,
    /// The number of the message that is under way alone.
    alone: Option<u64>,
    pub(super) refused: Refused,
    pub(super) told_refused: bool,
    /// Exchanges that are there.
    pub(super) exchanges: BTreeSet<ExchangeName>,
    /// When the next one may be sent.
    pub(super) due: Instant,
    pub(super) books: Books<'s>,
}

/// Why nothing more is sent.
pub(super) enum Ended {
    Signal(u8),
    Unroutable,
    /// A message was refused, and what follows is not to overtake it.
    Refused,
    /// The same, after it was sent again for as long as was asked for.
    StillRefused,
}

impl<'s, 'c> Sending<'s, 'c> {
    pub(super) fn new(
        pipeline: Pipeline<'c>,
        connection: &'c Connection,
        rules: Rules<'s>,
        books: Books<'s>,
    ) -> Self {
        Self {
            pipeline,
            connection,
            refused: Refused::new(rules.retry_refused),
            told_refused: false,
            rules,
            open: VecDeque::new(),
            open_bytes: 0,
            alone: None,
            exchanges: BTreeSet::new(),
            due: Instant::now(),
            books,
        }
    }

    /// Sends one after the other, until the end, a signal, a message that cannot
    /// be sent, or one that reached no queue where that is to end it.
    pub(super) async fn send_all(
        &mut self,
        batches: &mut mpsc::Receiver<Batch>,
        signals: &mut mpsc::UnboundedReceiver<u8>,
    ) -> Result<()> {
        let mut items = VecDeque::new();
        loop {
            if let Some(error) = self.books.unwritten.take() {
                return Err(error);
            }
            let ended = if self.refused.are_waiting() {
                self.send_again(signals).await?
            } else if matches!(items.front(), Some(Err(_)))
                && self.refused.are_sent_again()
                && !self.open.is_empty()
            {
                // Nothing more can be read; what is under way still may be refused.
                let signal = self.until_none_is_open(signals).await?;
                signal.map(Ended::Signal)
            } else if items.is_empty() {
                if self.open.is_empty() {
                    self.books.write()?;
                }
                tokio::select! {
                    biased;
                    signal = signals.recv() => Some(Ended::Signal(signal.unwrap_or(0))),
                    told = self.outcome(), if !self.open.is_empty() => {
                        let told = told?;
                        self.settled(told);
                        self.settle_told()?;
                        None
                    }
                    batch = batches.recv() => match batch {
                        None if self.refused.are_sent_again() && !self.open.is_empty() => {
                            let signal = self.until_none_is_open(signals).await?;
                            signal.map(Ended::Signal)
                        }
                        None => return Ok(()),
                        Some(batch) => {
                            items.extend(batch);
                            None
                        }
                    },
                }
            } else {
                self.when_due(is_large(items.front()), signals).await?
            };
            let stops = self.rules.stops_at_unroutable && self.books.published.unroutable.count > 0;
            let is_at_gap = (self.books.settled.as_ref()).is_some_and(Settled::is_at_gap);
            let ended = ended
                .or(stops.then_some(Ended::Unroutable))
                .or(is_at_gap.then_some(Ended::Refused));
            match ended {
                None => {}
                Some(Ended::Refused) => return Ok(()),
                Some(Ended::StillRefused) => {
                    self.books.published.stopped_at_refused = true;
                    return Ok(());
                }
                Some(Ended::Signal(number)) => {
                    self.books.published.stopped_by = Some(number);
                    return Ok(());
                }
                Some(Ended::Unroutable) => {
                    self.books.published.stopped_at_unroutable = true;
                    return Ok(());
                }
            }
            if self.has_room(is_large(items.front()))
                && self.is_due()
                && let Some(item) = items.pop_front()
            {
                self.send(item?).await?;
            }
        }
    }

    /// Whether the rate allows the next message.
    fn is_due(&self) -> bool {
        self.rules.rate.is_none() || Instant::now() >= self.due
    }

    /// Whether the next message may be sent, a large one or not.
    fn has_room(&self, is_large: bool) -> bool {
        if self.refused.are_waiting() || self.connection.is_blocked() {
            return false;
        }
        if is_large || self.alone.is_some() {
            return self.open.is_empty();
        }
        self.open_bytes <= BYTES_OPEN && self.pipeline.has_room()
    }

    /// The next outcome that is certain. Safe to drop while waiting.
    pub(super) async fn outcome(&mut self) -> Result<Option<(u64, Receipt)>> {
        let told = self.pipeline.next().await;
        self.with_place(told)
    }

    /// The broker confirms many at once: those that are certain already make room
    /// for as many, which then go to the socket together.
    fn settle_told(&mut self) -> Result<()> {
        loop {
            let told = self.pipeline.next_now();
            match self.with_place(told)? {
                None => return Ok(()),
                told => self.settled(told),
            }
        }
    }

    fn with_place<T>(&self, told: Result<T>) -> Result<T> {
        match self.alone {
            Some(number) => told.map_err(|error| match error.kind() {
                ErrorKind::InvalidInput => self.rules.source.wrong_at(number, error),
                _ => error.during(&self.rules.source.place(number)),
            }),
            None => told.map_err(|error| match self.too_large(&error) {
                Some(number) => self.rules.source.wrong_at(number, error),
                None => error,
            }),
        }
    }

    /// Waits until the next message may be sent, or something else happened.
    async fn when_due(
        &mut self,
        is_large: bool,
        signals: &mut mpsc::UnboundedReceiver<u8>,
    ) -> Result<Option<Ended>> {
        if let Ok(signal) = signals.try_recv() {
            return Ok(Some(Ended::Signal(signal)));
        }
        if self.has_room(is_large) && self.is_due() {
            return Ok(None);
        }
        let due = self.due;
        let may_wait = self.has_room(is_large);
        let (connection, limit) = (self.connection, self.rules.blocked_timeout);
        // With nothing under way there is room, unless the broker blocks us.
        let only_an_alarm = self.open.is_empty() && !may_wait;
        tokio::select! {
            biased;
            signal = signals.recv() => Ok(Some(Ended::Signal(signal.unwrap_or(0)))),
            told = self.outcome(), if !self.open.is_empty() => {
                let told = told?;
                self.settled(told);
                self.settle_told()?;
                Ok(None)
            }
            waited = connection.wait_out_alarm(limit), if only_an_alarm => waited.map(|()| None),
            () = sleep_until(due), if may_wait => Ok(None),
        }
    }

    async fn send(&mut self, item: Item) -> Result<()> {
        let Item {
            number,
            mut message,
            mark,
        } = item;
        let source = self.rules.source;
        self.prepared(&mut message)
            .map_err(|error| source.wrong_at(number, error))?;
        self.must_be_there(&message.exchange)
            .await
            .map_err(|error| error.during(&source.place(number)))?;
        if !self.pipeline.is_open() {
            // Those under way tell why.
            while let Some(told) = self.outcome().await? {
                self.settled(Some(told));
            }
        }
        let bytes = message.body.len();
        let told = self.books.results.are_wanted().then(|| Told {
            exchange: message.exchange.to_string(),
            routing_key: message.routing_key.to_string(),
            message_id: message.properties.message_id.clone(),
        });
        let again = self.refused.are_sent_again().then(|| message.clone());
        self.pipeline
            .send(message)
            .map_err(|error| error.during(&source.place(number)))?;
        self.books.published.sent += 1;
        self.books.published.last_sent = Some(number);
        self.is_under_way(Open {
            number,
            bytes,
            told,
            mark,
            again,
        });
        Ok(())
    }

    /// A message was handed to the pipeline.
    pub(super) fn is_under_way(&mut self, open: Open) {
        self.alone = (open.bytes >= LARGE).then_some(open.number);
        self.open_bytes += open.bytes;
        self.open.push_back(open);
        if let Some(rate) = self.rules.rate {
            let earliest = Instant::now().checked_sub(CATCH_UP).unwrap_or(self.due);
            self.due = self.due.max(earliest) + Duration::from_secs(1) / rate;
        }
    }

    pub(super) fn settled(&mut self, told: Option<(u64, Receipt)>) {
        let (Some((_, receipt)), Some(open)) = (told, self.open.pop_front()) else {
            return;
        };
        self.open_bytes -= open.bytes;
        self.alone = None;
        if !self.refused.are_sent_again() {
            self.count(open, &receipt);
            return;
        }
        for (open, receipt) in self.refused.take(open, receipt, Instant::now()) {
            self.count(open, &receipt);
        }
    }

    pub(super) fn count(&mut self, open: Open, receipt: &Receipt) {
        let stops = self.rules.stops_at_unroutable;
        self.books.count(open, receipt, stops);
    }

    /// What becomes of all that is under way; where that is not told, it is unknown.
    ///
    /// Gives the number of a second signal, which does not wait for that.
    pub(super) async fn settle_rest(
        &mut self,
        signals: &mut mpsc::UnboundedReceiver<u8>,
    ) -> (Result<()>, Option<u8>) {
        let mut is_stopping = self.books.published.stopped_by.is_some();
        let mut hurry = None;
        let mut result = Ok(());
        while !self.open.is_empty() && result.is_ok() {
            tokio::select! {
                biased;
                Some(number) = signals.recv() => {
                    if is_stopping {
                        hurry = Some(number);
                        self.books.published.stopped_by.get_or_insert(number);
                        result = Err(Error::new(
                            ErrorKind::TimedOut,
                            "a second signal did not wait for the answer",
                        ));
                    }
                    is_stopping = true;
                }
                told = self.outcome() => match told {
                    Ok(told) => self.settled(told),
                    Err(error) => result = Err(error),
                },
            }
        }
        let unknown = match &result {
            Ok(()) => {
                self.count_rest(None);
                return (self.books.unwritten.take().map_or(Ok(()), Err), None);
            }
            // It was under way alone: the answer is to it.
            Err(error) if self.alone.is_some() && error.kind() == ErrorKind::InvalidInput => {
                Receipt::Refused
            }
            Err(error) => Receipt::Unknown(error.clone()),
        };
        self.count_rest(Some(&unknown));
        (result, hurry)
    }
}

fn is_large(item: Option<&Result<Item>>) -> bool {
    matches!(item, Some(Ok(item)) if item.message.body.len() >= LARGE)
}
