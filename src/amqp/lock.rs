//! A lock that goes with its owner: a queue exclusive to the connection.

use lapin::options::QueueDeclareOptions;
use tokio::time::timeout;

use crate::amqp::Connection;
use crate::amqp::convert::{short, table};
use crate::amqp::failure::{explain, is_locked};
use crate::error::Result;
use crate::field::{FieldTable, FieldValue};
use crate::topology::QueueName;

impl Connection {
    /// Takes the lock for as long as the connection lives. Gives `false` while
    /// another connection has it (405, measured on 3.10.8, 4.0.5 and 4.3.6).
    ///
    /// # Errors
    /// Anything else that the broker refuses.
    pub async fn lock(&self, name: &QueueName) -> Result<bool> {
        let doing = format!("take the lock '{name}'");
        let channel = self.lend().await?;
        let options = QueueDeclareOptions {
            exclusive: true,
            ..QueueDeclareOptions::default()
        };
        // Exclusive queues are classic ones, whatever the vhost's default is.
        let classic = FieldTable::from([("x-queue-type".to_owned(), FieldValue::text("classic"))]);
        let name = short(name.as_str(), "queue name")?;
        let declaring = channel.queue_declare(name, options, table(&classic)?);
        match timeout(self.limit(), declaring).await {
            Ok(Ok(_)) => {
                self.give_back(channel);
                Ok(true)
            }
            Ok(Err(error)) if is_locked(&error) => Ok(false),
            Ok(Err(error)) => Err(explain(&error, &doing)),
            Err(_) => Err(self.timed_out(&doing)),
        }
    }
}
