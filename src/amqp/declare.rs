//! Declarations and passive checks, one request at a time on a channel: a refusal
//! closes the channel, and with it whatever else runs there.

use lapin::ExchangeKind;
use lapin::options::{
    ExchangeBindOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable as LapinTable;
use tokio::time::timeout;

use crate::amqp::Connection;
use crate::amqp::convert::{short, table};
use crate::amqp::failure::{explain, is_not_found, precondition};
use crate::error::Result;
use crate::topology::{
    Binding, Destination, Exchange, ExchangeName, ExchangeType, Queue, QueueName,
};

/// What a passive look at a queue tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStatus {
    /// Messages ready for delivery: not those out for delivery, delayed, or
    /// held for at-least-once dead-lettering.
    pub ready: u32,
    /// Consumers of the queue.
    pub consumers: u32,
}

/// The broker's answer to a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Declared {
    /// It exists as asked for.
    AsAsked,
    /// Refused with 406: it exists otherwise, or an argument is invalid. The broker's words.
    Refused(String),
}

impl Connection {
    /// Whether the exchange exists. The predeclared ones always do.
    ///
    /// # Errors
    /// Anything but "not found".
    pub async fn exchange_exists(&self, name: &ExchangeName) -> Result<bool> {
        if name.is_empty() {
            return Ok(true);
        }
        let doing = format!("look for exchange '{name}'");
        let channel = self.lend().await?;
        let options = ExchangeDeclareOptions {
            passive: true,
            ..ExchangeDeclareOptions::default()
        };
        let asked = channel.exchange_declare(
            short(name.as_str(), "exchange name")?,
            ExchangeKind::Direct,
            options,
            LapinTable::default(),
        );
        let found = self.found(&doing, asked).await?;
        self.give_back(channel);
        Ok(found.is_some())
    }

    /// Messages and consumers of a queue, `None` if it does not exist.
    ///
    /// # Errors
    /// Anything but "not found".
    pub async fn queue_status(&self, name: &QueueName) -> Result<Option<QueueStatus>> {
        let doing = format!("look at queue '{name}'");
        let channel = self.lend().await?;
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let asked = channel.queue_declare(
            short(name.as_str(), "queue name")?,
            options,
            LapinTable::default(),
        );
        let found = self.found(&doing, asked).await?;
        self.give_back(channel);
        Ok(found.map(|queue| QueueStatus {
            ready: queue.message_count(),
            consumers: queue.consumer_count(),
        }))
    }

    /// Declares an exchange.
    ///
    /// # Errors
    /// Everything but a 406, which is an answer.
    pub async fn declare_exchange(
        &self,
        name: &ExchangeName,
        exchange: &Exchange,
    ) -> Result<Declared> {
        let doing = format!("declare exchange '{name}'");
        let channel = self.lend().await?;
        let options = ExchangeDeclareOptions {
            passive: false,
            durable: exchange.durable,
            auto_delete: exchange.auto_delete,
            internal: exchange.internal,
            nowait: false,
        };
        let kind = match &exchange.kind {
            ExchangeType::Direct => ExchangeKind::Direct,
            ExchangeType::Topic => ExchangeKind::Topic,
            ExchangeType::Fanout => ExchangeKind::Fanout,
            ExchangeType::Headers => ExchangeKind::Headers,
            ExchangeType::Plugin(name) => ExchangeKind::Custom(name.clone()),
        };
        let asked = channel.exchange_declare(
            short(name.as_str(), "exchange name")?,
            kind,
            options,
            table(&exchange.declared_arguments())?,
        );
        let declared = self.declared(&doing, asked).await?;
        self.give_back(channel);
        Ok(declared)
    }

    /// Declares a queue with the arguments this broker's version needs.
    ///
    /// # Errors
    /// Everything but a 406, which is an answer.
    pub async fn declare_queue(&self, name: &QueueName, queue: &Queue) -> Result<Declared> {
        let doing = format!("declare queue '{name}'");
        let channel = self.lend().await?;
        let options = QueueDeclareOptions {
            passive: false,
            durable: queue.durable,
            exclusive: false,
            auto_delete: queue.auto_delete,
            nowait: false,
        };
        let asked = channel.queue_declare(
            short(name.as_str(), "queue name")?,
            options,
            table(&queue.declared_arguments(self.facts()))?,
        );
        let declared = self.declared(&doing, asked).await?;
        self.give_back(channel);
        Ok(declared)
    }

    /// Binds; a binding that exists already is left as it is.
    ///
    /// # Errors
    /// What the broker refuses, naming the binding.
    pub async fn bind(&self, binding: &Binding) -> Result<()> {
        let doing = format!("bind {binding}");
        let channel = self.lend().await?;
        let source = short(binding.source.as_str(), "exchange name")?;
        let key = short(binding.key.as_str(), "binding key")?;
        let arguments = table(&binding.arguments)?;
        match &binding.destination {
            Destination::Queue(queue) => {
                let queue = short(queue.as_str(), "queue name")?;
                let options = QueueBindOptions::default();
                self.within(
                    &doing,
                    channel.queue_bind(queue, source, key, options, arguments),
                )
                .await?;
            }
            Destination::Exchange(exchange) => {
                let exchange = short(exchange.as_str(), "exchange name")?;
                let options = ExchangeBindOptions::default();
                self.within(
                    &doing,
                    channel.exchange_bind(exchange, source, key, options, arguments),
                )
                .await?;
            }
        }
        self.give_back(channel);
        Ok(())
    }

    async fn found<T>(
        &self,
        doing: &str,
        asked: impl Future<Output = lapin::Result<T>>,
    ) -> Result<Option<T>> {
        match timeout(self.limit(), asked).await {
            Ok(Ok(found)) => Ok(Some(found)),
            Ok(Err(error)) if is_not_found(&error) => Ok(None),
            Ok(Err(error)) => Err(explain(&error, doing)),
            Err(_) => Err(self.timed_out(doing)),
        }
    }

    async fn declared<T>(
        &self,
        doing: &str,
        asked: impl Future<Output = lapin::Result<T>>,
    ) -> Result<Declared> {
        match timeout(self.limit(), asked).await {
            Ok(Ok(_)) => Ok(Declared::AsAsked),
            Ok(Err(error)) => match precondition(&error) {
                Some(text) => Ok(Declared::Refused(text)),
                None => Err(explain(&error, doing)),
            },
            Err(_) => Err(self.timed_out(doing)),
        }
    }
}
