//! Deleting, with the broker's own guards where it has them.

use lapin::options::{ExchangeDeleteOptions, QueueDeleteOptions};

use crate::amqp::Connection;
use crate::amqp::convert::{short, table};
use crate::error::Result;
use crate::topology::{Binding, Destination, ExchangeName, QueueName};

/// What must hold for a queue to be deleted, checked by the broker in the same step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueGuard {
    /// No messages and no consumers. Classic queues only: quorum queues and
    /// streams close the connection with 540 (read in RabbitMQ's source).
    EmptyAndUnused,
    /// Nothing: whoever asks has checked.
    None,
}

impl Connection {
    /// Deletes a queue; gives the number of messages that went with it. A queue
    /// that does not exist is no error (measured on all versions).
    ///
    /// # Errors
    /// When the guard does not hold, or it may not be deleted.
    pub async fn delete_queue(&self, name: &QueueName, guard: QueueGuard) -> Result<u32> {
        let channel = self.lend().await?;
        let guarded = guard == QueueGuard::EmptyAndUnused;
        let options = QueueDeleteOptions {
            if_unused: guarded,
            if_empty: guarded,
            nowait: false,
        };
        let asked = channel.queue_delete(short(name.as_str(), "queue name")?, options);
        let messages = self
            .within(&format!("delete queue '{name}'"), asked)
            .await?;
        self.give_back(channel);
        Ok(messages)
    }

    /// Deletes an exchange that nothing is bound to any more.
    ///
    /// # Errors
    /// When bindings are left, or it may not be deleted.
    pub async fn delete_unused_exchange(&self, name: &ExchangeName) -> Result<()> {
        self.ask_to_delete_exchange(name, true).await
    }

    /// Deletes an exchange with whatever is bound to it.
    ///
    /// # Errors
    /// When it may not be deleted.
    pub async fn delete_exchange(&self, name: &ExchangeName) -> Result<()> {
        self.ask_to_delete_exchange(name, false).await
    }

    async fn ask_to_delete_exchange(&self, name: &ExchangeName, if_unused: bool) -> Result<()> {
        let channel = self.lend().await?;
        let options = ExchangeDeleteOptions {
            if_unused,
            nowait: false,
        };
        let asked = channel.exchange_delete(short(name.as_str(), "exchange name")?, options);
        self.within(&format!("delete exchange '{name}'"), asked)
            .await?;
        self.give_back(channel);
        Ok(())
    }

    /// Removes a binding; one that is not there is no error.
    ///
    /// # Errors
    /// When it may not be removed.
    pub async fn unbind(&self, binding: &Binding) -> Result<()> {
        let doing = format!("unbind {binding}");
        let channel = self.lend().await?;
        let source = short(binding.source.as_str(), "exchange name")?;
        let key = short(binding.key.as_str(), "binding key")?;
        let arguments = table(&binding.arguments)?;
        match &binding.destination {
            Destination::Queue(queue) => {
                let queue = short(queue.as_str(), "queue name")?;
                self.within(&doing, channel.queue_unbind(queue, source, key, arguments))
                    .await?;
            }
            Destination::Exchange(exchange) => {
                let exchange = short(exchange.as_str(), "exchange name")?;
                let options = lapin::options::ExchangeUnbindOptions::default();
                self.within(
                    &doing,
                    channel.exchange_unbind(exchange, source, key, options, arguments),
                )
                .await?;
            }
        }
        self.give_back(channel);
        Ok(())
    }
}
