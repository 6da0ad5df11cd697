//! Reading a stream from its beginning, and finding its end.

use std::time::Duration;

use futures_util::StreamExt as _;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions};
use tokio::time::timeout;

use crate::amqp::Connection;
use crate::amqp::consume::{from_delivery, subscribe};
use crate::amqp::convert::{short, table};
use crate::amqp::failure::explain;
use crate::error::{Error, ErrorKind, Result};
use crate::field::{FieldTable, FieldValue};
use crate::message::Delivery;
use crate::topology::QueueName;

/// Messages of a stream that are out at once.
const PREFETCH: u16 = 100;

/// How long the first message of a stream may take; then it has none.
const FIRST_MESSAGE: Duration = Duration::from_secs(2);

/// A stream that sends nothing for so long has sent its last chunk.
const PAUSE_AFTER_CHUNK: Duration = Duration::from_millis(500);

impl Connection {
    /// The offset of the last message of a stream, as a second reader of its
    /// last chunk finds it: what the stream counts is late by seconds (see
    /// [`Self::read_stream`]). `None` if it has no message.
    ///
    /// # Errors
    /// When the stream cannot be read.
    pub async fn last_offset(&self, queue: &QueueName) -> Result<Option<u64>> {
        let doing = format!("look for the end of stream '{queue}'");
        let channel = self.channel().await?;
        let last = FieldTable::from([("x-stream-offset".to_owned(), FieldValue::text("last"))]);
        let mut consumer = subscribe(self, &channel, queue, PREFETCH, &last).await?;
        let mut found = None;
        let mut patience = FIRST_MESSAGE;
        while let Ok(next) = timeout(patience, consumer.next()).await {
            let delivery = match next {
                Some(Ok(delivery)) => delivery,
                Some(Err(error)) => return Err(explain(&error, &doing)),
                None => break,
            };
            let acking = channel.basic_ack(delivery.delivery_tag, BasicAckOptions::default());
            self.within(&doing, acking).await?;
            let headers = from_delivery(delivery).properties.headers;
            let offset = headers
                .get("x-stream-offset")
                .and_then(FieldValue::as_integer);
            found = found.max(offset);
            patience = PAUSE_AFTER_CHUNK;
        }
        let closing = channel.close(200, short("bye", "text")?);
        self.within("close a channel", closing).await?;
        Ok(found.and_then(|offset| u64::try_from(offset).ok()))
    }

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
