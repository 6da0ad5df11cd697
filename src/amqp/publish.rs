//! Publishing with confirms: a message counts as safe only when it is confirmed *and* routed.
//!
//! A confirm alone is no proof: an unroutable mandatory message is returned
//! first and then acked (measured on all versions). One message is outstanding
//! at a time, so confirm and return cannot belong to another one.

use std::time::Duration;

use lapin::options::BasicPublishOptions;
use lapin::{Channel, Confirmation};

use crate::amqp::Connection;
use crate::amqp::alarm::{Late, still_blocked};
use crate::amqp::connect::OpenChannel;
use crate::amqp::convert::{properties, short};
use crate::amqp::failure::explain;
use crate::error::{Error, ErrorKind, Result};
use crate::message::Publication;

/// What became of one published message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// Confirmed, and at least one queue has it.
    Routed,
    /// Confirmed, but no queue took it; the broker's reason.
    Unroutable(String),
    /// Refused (nack): a full queue or a failing one.
    Refused,
    /// No answer came; the broker may or may not have it.
    Unknown(Error),
}

/// A confirm channel with exactly one owner.
pub struct Publisher<'c> {
    connection: &'c Connection,
    channel: Channel,
    confirm_limit: Duration,
    blocked_limit: Option<Duration>,
}

impl<'c> Publisher<'c> {
    /// Opens the channel and switches confirms on before anything is published.
    ///
    /// # Errors
    /// When the channel cannot be opened.
    pub async fn open(connection: &'c Connection, confirm_limit: Duration) -> Result<Self> {
        Ok(Self {
            connection,
            channel: connection.confirm_channel().await?,
            confirm_limit,
            blocked_limit: None,
        })
    }

    /// Counts no time in which the broker blocks us, which may be so long at a time.
    #[must_use]
    pub const fn with_blocked_limit(mut self, limit: Duration) -> Self {
        self.blocked_limit = Some(limit);
        self
    }

    /// Publishes no more ([`Connection::close_with`]).
    #[must_use]
    pub fn into_channel(self) -> OpenChannel {
        OpenChannel(self.channel)
    }

    /// Publishes one message, mandatory, and waits for its outcome.
    ///
    /// `&mut self`: the next message waits for this one, which is what keeps
    /// receipts with their messages.
    ///
    /// # Errors
    /// When the broker refuses it for good: no such exchange, no permission, too
    /// large. The channel is gone then.
    pub async fn publish(&mut self, message: &Publication) -> Result<Receipt> {
        let doing = publishing(message);
        let exchange = short(message.exchange.as_str(), "exchange name")?;
        let key = short(message.routing_key.as_str(), "routing key")?;
        let properties = properties(&message.properties)?;
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let sent = async {
            self.channel
                .basic_publish(exchange, key, options, &message.body, properties)
                .await?
                .await
        };
        let alarms = &self.connection.alarms;
        let (limit, blocked_limit) = (self.confirm_limit, self.blocked_limit);
        let confirmed = match alarms.wait(alarms.now(), limit, blocked_limit, sent).await {
            Err(late) => {
                return Ok(Receipt::Unknown(self.connection.late(
                    &late,
                    &doing,
                    limit,
                    blocked_limit,
                )));
            }
            Ok(Ok(confirmation)) => confirmation,
            Ok(Err(error)) => {
                let error = explain(&error, &doing);
                return match error.kind() {
                    ErrorKind::Unavailable | ErrorKind::TimedOut => Ok(Receipt::Unknown(error)),
                    _ => Err(error),
                };
            }
        };
        match confirmed {
            Confirmation::Ack(None) => Ok(Receipt::Routed),
            Confirmation::Ack(Some(returned)) => {
                Ok(Receipt::Unroutable(returned.reply_text.as_str().to_owned()))
            }
            Confirmation::Nack(_) => Ok(Receipt::Refused),
            Confirmation::NotRequested => Err(Error::new(
                ErrorKind::Internal,
                "a message was sent on a channel without confirms",
            )),
        }
    }
}

/// What is being done, for its errors.
pub(super) fn publishing(message: &Publication) -> String {
    if message.exchange.is_empty() {
        format!("publish to queue '{}'", message.routing_key)
    } else {
        format!("publish to exchange '{}'", message.exchange)
    }
}

impl Connection {
    /// No confirm came in time.
    pub(super) fn late(
        &self,
        late: &Late,
        doing: &str,
        limit: Duration,
        blocked_limit: Option<Duration>,
    ) -> Error {
        if let Late::Blocked(reason) = late {
            return still_blocked(reason, blocked_limit.unwrap_or_default()).during(doing);
        }
        let waited = humantime::format_duration(limit);
        let error = Error::new(
            ErrorKind::TimedOut,
            format!(
                "{doing}: no confirm within {waited}; the broker may or may not have the message"
            ),
        );
        if self.is_blocked() {
            error.hint("the broker blocks publishers: a memory or disk alarm is on (`rabbitmqctl list_alarms`); publish again once it is off")
        } else {
            // How it is given longer depends on the command.
            error
        }
    }
}
