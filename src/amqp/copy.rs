//! Copies of messages, pipelined: sent in order, then settled all together.
//!
//! lapin can hand a return to the confirm of another message of the same flush
//! (measured), so no single copy counts as routed by its own confirm: only when
//! every confirm of all that was sent is in and none carries a return does the
//! whole of it count.

use lapin::options::{BasicPublishOptions, QueueBindOptions};
use lapin::types::{FieldTable as LapinTable, ShortString};
use lapin::{Channel, Confirmation, PublisherConfirm};
use tokio::time::timeout;

use crate::amqp::Connection;
use crate::amqp::convert::{properties, short};
use crate::amqp::failure::explain;
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Delivery, without_delivery_headers};
use crate::topology::{Binding, Destination, ExchangeName};

/// Most copies that are sent and not yet settled. lapin needs time in
/// proportion to it for each confirm.
pub const WINDOW: usize = 256;

/// A confirm channel with one owner that sends copies through one exchange.
pub struct Copier<'c> {
    connection: &'c Connection,
    channel: Channel,
    exchange: ShortString,
    name: String,
    user: String,
    sent: Vec<PublisherConfirm>,
    user_ids_dropped: u64,
}

impl<'c> Copier<'c> {
    /// Opens the channel. `user` is who we are: the broker lets nobody set
    /// another `user_id`, so that one property is dropped from copies.
    ///
    /// # Errors
    /// When the channel cannot be opened.
    pub async fn open(
        connection: &'c Connection,
        exchange: &ExchangeName,
        user: &str,
    ) -> Result<Self> {
        Ok(Self {
            connection,
            channel: connection.confirm_channel().await?,
            exchange: short(exchange.as_str(), "exchange name")?,
            name: exchange.as_str().to_owned(),
            user: user.to_owned(),
            sent: Vec::new(),
            user_ids_dropped: 0,
        })
    }

    /// Sends a copy: same body, routing key, headers and properties, but for
    /// what the source queue added when it handed the message out, and for the
    /// `user_id` of somebody else. Settle before more than [`WINDOW`] are out.
    ///
    /// # Errors
    /// When the broker refused it, or cannot be reached.
    pub async fn send(&mut self, delivery: &Delivery) -> Result<()> {
        let mut kept = without_delivery_headers(&delivery.properties);
        if kept.user_id.as_ref().is_some_and(|user| *user != self.user) {
            kept.user_id = None;
            self.user_ids_dropped += 1;
        }
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let sending = self.channel.basic_publish(
            self.exchange.clone(),
            short(&delivery.routing_key, "routing key")?,
            options,
            &delivery.body,
            properties(&kept)?,
        );
        let confirm = self.connection.within(&self.doing(), sending).await?;
        self.sent.push(confirm);
        Ok(())
    }

    /// How many copies are out.
    #[must_use]
    pub fn unsettled(&self) -> usize {
        self.sent.len()
    }

    /// Waits until every copy that is out is confirmed and routed.
    ///
    /// # Errors
    /// When that cannot be said of all of them: then none counts, and no
    /// original may be acknowledged.
    pub async fn settle(&mut self) -> Result<()> {
        let sent = std::mem::take(&mut self.sent);
        let mut returned = 0;
        let mut refused = 0;
        for confirm in sent {
            match timeout(self.connection.limit(), confirm).await {
                Err(_) => return Err(self.connection.timed_out(&self.doing())),
                Ok(Err(error)) => return Err(explain(&error, &self.doing())),
                Ok(Ok(Confirmation::Ack(None))) => {}
                Ok(Ok(Confirmation::Ack(Some(_)))) => returned += 1,
                Ok(Ok(Confirmation::Nack(_))) => refused += 1,
                Ok(Ok(Confirmation::NotRequested)) => {
                    return Err(Error::new(
                        ErrorKind::Internal,
                        "a copy was sent on a channel without confirms",
                    ));
                }
            }
        }
        if returned > 0 {
            return Err(Error::new(
                ErrorKind::Unroutable,
                format!(
                    "{}: {returned} copies reached no queue; no original was removed",
                    self.doing()
                ),
            )
            .hint("somebody unbound or deleted the queue meanwhile"));
        }
        if refused > 0 {
            return Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "{}: the queue refused {refused} copies; no original was removed",
                    self.doing()
                ),
            )
            .hint("it is full, or a length limit with overflow reject-publish is in force"));
        }
        Ok(())
    }

    /// Binds on the channel of the copies: what was sent before is in its queue
    /// before the first message takes the new way, for a channel does one thing
    /// after the other.
    ///
    /// # Errors
    /// When the broker refuses it.
    pub async fn bind_behind_copies(&self, binding: &Binding) -> Result<()> {
        let Destination::Queue(queue) = &binding.destination else {
            return self.connection.bind(binding).await;
        };
        let binding_it = self.channel.queue_bind(
            short(queue.as_str(), "queue name")?,
            short(binding.source.as_str(), "exchange name")?,
            short(binding.key.as_str(), "binding key")?,
            QueueBindOptions::default(),
            LapinTable::default(),
        );
        self.connection
            .within(&format!("bind {binding}"), binding_it)
            .await
    }

    /// Copies so far that lost the `user_id` of somebody else.
    #[must_use]
    pub const fn user_ids_dropped(&self) -> u64 {
        self.user_ids_dropped
    }

    fn doing(&self) -> String {
        format!("copy messages through exchange '{}'", self.name)
    }
}
