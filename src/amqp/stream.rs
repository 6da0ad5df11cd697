//! Reading a stream from its beginning.

use futures_util::StreamExt as _;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions};
use tokio::time::timeout;

use crate::amqp::Connection;
use crate::amqp::consume::from_delivery;
use crate::amqp::convert::{short, table};
use crate::amqp::failure::explain;
use crate::error::{Error, ErrorKind, Result};
use crate::field::{FieldTable, FieldValue};
use crate::message::Delivery;
use crate::topology::QueueName;

/// Messages of a stream that are out at once.
const PREFETCH: u16 = 100;

impl Connection {
    /// All messages of a stream before the first one with this message id. What
    /// a stream counts itself is late by seconds (seen on 3.10.8 and 4.3.6); a
    /// message put behind all others tells where the end is.
    ///
    /// # Errors
    /// When there is no such message, or the stream cannot be read.
    pub async fn read_stream(&self, queue: &QueueName, until: &str) -> Result<Vec<Delivery>> {
        let doing = format!("read stream '{queue}'");
        let channel = self.channel().await?;
        let limit = channel.basic_qos(PREFETCH, BasicQosOptions::default());
        self.within(&doing, limit).await?;
        let offset = FieldTable::from([("x-stream-offset".to_owned(), FieldValue::text("first"))]);
        let consume = channel.basic_consume(
            short(queue.as_str(), "queue name")?,
            short("", "consumer tag")?,
            BasicConsumeOptions::default(),
            table(&offset)?,
        );
        let mut consumer = self.within(&doing, consume).await?;
        let mut read = Vec::new();
        loop {
            let Ok(next) = timeout(self.limit(), consumer.next()).await else {
                return Err(self.timed_out(&doing));
            };
            let delivery = match next {
                Some(Ok(delivery)) => delivery,
                Some(Err(error)) => return Err(explain(&error, &doing)),
                None => {
                    return Err(Error::new(
                        ErrorKind::Unavailable,
                        format!("{doing}: the broker ended the subscription"),
                    )
                    .hint("somebody deleted the stream, or its node went away; run this again"));
                }
            };
            let acking = channel.basic_ack(delivery.delivery_tag, BasicAckOptions::default());
            self.within(&doing, acking).await?;
            let delivery = from_delivery(delivery);
            if delivery.properties.message_id.as_deref() == Some(until) {
                break;
            }
            read.push(delivery);
        }
        let closing = channel.close(200, short("bye", "text")?);
        self.within("close a channel", closing).await?;
        Ok(read)
    }
}
