//! Many publishes with confirms under way at once, and the outcome of each.
//!
//! lapin hands a return to the first confirm that comes in after it, whichever
//! message that is of (measured, lapin 4.12.3): a confirm without a return says
//! nothing about its own message. What it hands out is complete, though: when a
//! message is confirmed, its return is already in the hands of a confirm that
//! came in before, or of one that was out at that moment. So an outcome counts
//! only once all that had been sent by then is confirmed too, and a return is
//! told by its content.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use lapin::message::BasicReturnMessage;
use lapin::options::BasicPublishOptions;
use lapin::{Channel, Confirmation, PublisherConfirm};

use crate::amqp::Connection;
use crate::amqp::alarm::Since;
use crate::amqp::convert::{from_properties, properties, short};
use crate::amqp::failure::explain;
use crate::amqp::publish::{Receipt, publishing};
use crate::amqp::returned::{Returned, which_came_back};
use crate::error::{Error, ErrorKind, Result};
use crate::message::Publication;

type Sending = Pin<Box<dyn Future<Output = lapin::Result<PublisherConfirm>> + Send>>;

/// A confirm channel with one owner that has many messages under way.
pub struct Pipeline<'c> {
    connection: &'c Connection,
    channel: Channel,
    confirm_limit: Duration,
    blocked_limit: Option<Duration>,
    window: usize,
    /// Those whose outcome is not told yet, in the order of sending.
    flights: VecDeque<Flight>,
    /// How many at the front of them are confirmed.
    confirmed: usize,
    sent: u64,
    /// When the last confirm was seen, or the first of those without one sent.
    progress: Since,
    /// Why nothing can be said any more.
    broken: Option<Error>,
}

struct Flight {
    number: u64,
    /// Shared with what sends it, so that no body is copied for that.
    message: Arc<Publication>,
    stage: Stage,
    returned: Option<String>,
}

enum Stage {
    /// Handed to lapin, and the socket may not have it yet.
    Sending(Sending),
    Waiting(PublisherConfirm),
    /// The answer, and the number of the last message that had been sent when
    /// it was seen.
    Confirmed {
        accepted: bool,
        last_sent: u64,
    },
}

impl<'c> Pipeline<'c> {
    /// Opens the channel. At most `window` messages are unconfirmed at a time,
    /// and of three times as many the outcome is open. lapin needs time in proportion
    /// to it for each confirm; a few hundred is a good number. After one confirm
    /// the next is waited for at most `confirm_limit`, however often that is
    /// interrupted.
    ///
    /// # Errors
    /// When the channel cannot be opened.
    pub async fn open(
        connection: &'c Connection,
        window: usize,
        confirm_limit: Duration,
    ) -> Result<Self> {
        Ok(Self {
            connection,
            channel: connection.confirm_channel().await?,
            confirm_limit,
            blocked_limit: None,
            window: window.max(1),
            flights: VecDeque::new(),
            confirmed: 0,
            sent: 0,
            progress: connection.alarms.now(),
            broken: None,
        })
    }

    /// Counts no time in which the broker blocks us, which may be so long at a time.
    #[must_use]
    pub const fn with_blocked_limit(mut self, limit: Duration) -> Self {
        self.blocked_limit = Some(limit);
        self
    }

    /// Whether another message may be sent now.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.flights.len() - self.confirmed < self.window && self.flights.len() < 3 * self.window
    }

    /// Whether anything can still be sent.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.broken.is_none() && self.channel.status().connected()
    }

    /// How many messages have an open outcome.
    #[must_use]
    pub fn open_outcomes(&self) -> usize {
        self.flights.len()
    }

    /// Sends a message, mandatory, and gives its number: 1, 2, 3, in the order
    /// of sending. Send only while there is room ([`Self::has_room`]).
    ///
    /// # Errors
    /// When a name or property is too long for AMQP, or the channel is gone;
    /// the message was not sent then. The error of [`Self::next`] if that failed.
    pub fn send(&mut self, message: impl Into<Arc<Publication>>) -> Result<u64> {
        self.not_broken()?;
        let message = message.into();
        let exchange = short(message.exchange.as_str(), "exchange name")?;
        let key = short(message.routing_key.as_str(), "routing key")?;
        let wire = properties(&message.properties)?;
        if !self.channel.status().connected() {
            return Err(channel_is_gone(&message));
        }
        let channel = self.channel.clone();
        let sent = Arc::clone(&message);
        let mut sending: Sending = Box::pin(async move {
            let options = BasicPublishOptions {
                mandatory: true,
                ..BasicPublishOptions::default()
            };
            channel
                .basic_publish(exchange, key, options, &sent.body, wire)
                .await
        });
        // The first poll takes the message's place in the channel's order; what
        // remains is to wait until the socket has it.
        let stage = match sending.as_mut().poll(&mut nobody()) {
            Poll::Pending => Stage::Sending(sending),
            Poll::Ready(Ok(confirm)) => Stage::Waiting(confirm),
            Poll::Ready(Err(error)) => return Err(explain(&error, &publishing(&message))),
        };
        if self.confirmed == self.flights.len() {
            self.progress = self.connection.alarms.now();
        }
        self.sent += 1;
        self.flights.push_back(Flight {
            number: self.sent,
            message,
            stage,
            returned: None,
        });
        Ok(self.sent)
    }

    /// The number of the next message whose outcome is certain, and the outcome;
    /// in the order of sending. `None`: no outcome is open.
    ///
    /// Safe to drop while waiting.
    ///
    /// # Errors
    /// When the channel or the connection is gone, or a confirm did not come in
    /// time, or a message came back that is none of those sent. The outcome of
    /// all that are open is unknown then, and stays so: the same error is given
    /// from then on.
    pub async fn next(&mut self) -> Result<Option<(u64, Receipt)>> {
        loop {
            if let Poll::Ready(told) = self.poll_next(&mut nobody()) {
                return told;
            }
            self.confirm_one().await;
        }
    }

    /// The same, if it is certain already.
    ///
    /// # Errors
    /// Those of [`Self::next`].
    pub fn next_now(&mut self) -> Result<Option<(u64, Receipt)>> {
        match self.poll_next(&mut nobody()) {
            Poll::Ready(told) => told,
            Poll::Pending => Ok(None),
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<(u64, Receipt)>>> {
        loop {
            self.not_broken()?;
            if let Some(told) = self.front_if_certain() {
                return Poll::Ready(Ok(Some(told)));
            }
            if self.flights.is_empty() {
                return Poll::Ready(Ok(None));
            }
            if let Err(error) = ready!(self.poll_confirm(cx)) {
                self.broken = Some(error);
            }
        }
    }

    /// Waits for the confirm of the first message that has none. Timers are made
    /// here, for a wait, and not for each message of those that are confirmed together.
    async fn confirm_one(&mut self) {
        let (since, limit, blocked_limit) = (self.progress, self.confirm_limit, self.blocked_limit);
        let connection = self.connection;
        let confirmed = poll_fn(|cx| self.poll_confirm(cx));
        let waited = connection
            .alarms
            .wait(since, limit, blocked_limit, confirmed)
            .await;
        let confirmed = waited.unwrap_or_else(|late| {
            let doing = self
                .flights
                .get(self.confirmed)
                .map_or_else(String::new, |flight| publishing(&flight.message));
            Err(connection.late(&late, &doing, limit, blocked_limit))
        });
        if let Err(error) = confirmed {
            self.broken = Some(error);
        }
    }

    fn not_broken(&self) -> Result<()> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    fn front_if_certain(&mut self) -> Option<(u64, Receipt)> {
        let last_confirmed = self
            .confirmed
            .checked_sub(1)
            .and_then(|at| self.flights.get(at))?
            .number;
        let Stage::Confirmed {
            accepted,
            last_sent,
        } = self.flights.front()?.stage
        else {
            return None;
        };
        if last_sent > last_confirmed {
            return None;
        }
        let flight = self.flights.pop_front()?;
        self.confirmed -= 1;
        let receipt = match (flight.returned, accepted) {
            (_, false) => Receipt::Refused,
            (Some(said), true) => Receipt::Unroutable(said),
            (None, true) => Receipt::Routed,
        };
        Some((flight.number, receipt))
    }

    /// The confirm of the first message that has none.
    fn poll_confirm(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let last_sent = self.sent;
        let Some(flight) = self.flights.get_mut(self.confirmed) else {
            return Poll::Ready(Ok(()));
        };
        let answered = loop {
            match &mut flight.stage {
                Stage::Sending(sending) => match ready!(sending.as_mut().poll(cx)) {
                    Ok(confirm) => flight.stage = Stage::Waiting(confirm),
                    Err(error) => break Err(error),
                },
                Stage::Waiting(confirm) => break ready!(Pin::new(confirm).poll(cx)),
                Stage::Confirmed { .. } => return Poll::Ready(Ok(())),
            }
        };
        let answer = match answered {
            Ok(answer) => answer,
            Err(error) => {
                return Poll::Ready(Err(explain(&error, &publishing(&flight.message))));
            }
        };
        let (accepted, returned) = match answer {
            Confirmation::Ack(returned) => (true, returned),
            Confirmation::Nack(returned) => (false, returned),
            Confirmation::NotRequested => {
                return Poll::Ready(Err(Error::new(
                    ErrorKind::Internal,
                    "a message was sent on a channel without confirms",
                )));
            }
        };
        flight.stage = Stage::Confirmed {
            accepted,
            last_sent,
        };
        self.confirmed += 1;
        self.progress = self.connection.alarms.now();
        Poll::Ready(returned.map_or(Ok(()), |returned| self.was_returned(&returned)))
    }

    fn was_returned(&mut self, returned: &BasicReturnMessage) -> Result<()> {
        let back = &returned.delivery;
        let found = which_came_back(
            Returned {
                exchange: back.exchange.as_str(),
                routing_key: back.routing_key.as_str(),
                properties: &from_properties(&back.properties),
                body: &back.data,
            },
            (self.flights.iter().enumerate())
                .filter(|(_, flight)| flight.returned.is_none())
                .map(|(at, flight)| (at, flight.message.as_ref())),
        );
        let flight = found.and_then(|at| self.flights.get_mut(at));
        match flight {
            Some(flight) => {
                flight.returned = Some(returned.reply_text.as_str().to_owned());
                Ok(())
            }
            None => Err(Error::new(
                ErrorKind::Protocol,
                format!(
                    "the broker returned a message to exchange '{}' with key '{}': which of those sent it was cannot be told",
                    back.exchange, back.routing_key
                ),
            )
            .hint("nothing of what is under way was settled; run this again")),
        }
    }
}

/// Nobody waits.
fn nobody() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn channel_is_gone(message: &Publication) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the channel to the broker was closed",
    )
    .hint("run this again")
    .during(&publishing(message))
}
