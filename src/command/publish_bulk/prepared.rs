//! A message is made ready: it has its place, brokers take it, and its exchange is there.

use std::sync::Arc;

use super::sending::Sending;
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Publication, brokers_take};
use crate::output;
use crate::topology::ExchangeName;

impl Sending<'_, '_> {
    /// The message as it is sent.
    pub(super) fn prepared(&mut self, message: &mut Arc<Publication>) -> Result<()> {
        let copies_aside = self.rules.target.applied_to(message)?;
        let us = &self.connection.endpoint().user;
        let properties = &message.properties;
        brokers_take(properties, self.connection.frame_bytes())?;
        if let Some(user) = properties.user_id.as_ref().filter(|user| *user != us) {
            if !self.rules.drop_user_id {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!(
                        "it has the user_id '{}', and brokers take none but that of who publishes, '{}'",
                        output::one_line(user, 60),
                        output::one_line(us, 60)
                    ),
                )
                .hint("log in as that user, or give --drop-user-id to send such messages without it"));
            }
            Arc::make_mut(message).properties.user_id = None;
            self.books.published.user_ids_dropped += 1;
        }
        self.books.published.copies_dropped += u64::from(copies_aside);
        Ok(())
    }

    /// A message to an exchange that is not there would take the outcome of all
    /// that are under way with it: the broker closes the channel.
    pub(super) async fn must_be_there(&mut self, exchange: &ExchangeName) -> Result<()> {
        if exchange.is_empty() || self.exchanges.contains(exchange) {
            return Ok(());
        }
        match self.connection.exchange_exists(exchange).await {
            Ok(false) => {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("exchange '{exchange}' does not exist"),
                )
                .hint("declare it first, or send elsewhere with -q QUEUE or -e EXCHANGE"));
            }
            Ok(true) => {}
            // Who may publish need not be allowed to ask.
            Err(error) if error.kind() == ErrorKind::AccessRefused => {}
            Err(error) => return Err(error),
        }
        self.exchanges.insert(exchange.clone());
        Ok(())
    }
}
