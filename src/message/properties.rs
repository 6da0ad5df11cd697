//! AMQP message properties.

use crate::field::{FieldTable, table_encoded_bytes};

/// Whether a message survives a broker restart in a classic queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryMode {
    /// 1, and every other number but 2.
    Transient,
    /// 2.
    Persistent,
}

/// Every property of AMQP 0-9-1; texts are at most 255 bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties {
    /// MIME type of the body.
    pub content_type: Option<String>,
    /// MIME encoding of the body.
    pub content_encoding: Option<String>,
    /// Application headers.
    pub headers: FieldTable,
    /// `None` when the publisher set none, which brokers treat as transient.
    pub delivery_mode: Option<DeliveryMode>,
    /// 0 to 255; what it means depends on the queue type.
    pub priority: Option<u8>,
    /// Application correlation id.
    pub correlation_id: Option<String>,
    /// Where an answer goes.
    pub reply_to: Option<String>,
    /// Time to live in milliseconds, as decimal text.
    pub expiration: Option<String>,
    /// Application message id.
    pub message_id: Option<String>,
    /// Seconds since 1970.
    pub timestamp: Option<u64>,
    /// The `type` property.
    pub kind: Option<String>,
    /// The publisher's user, checked by the broker.
    pub user_id: Option<String>,
    /// The publishing application.
    pub app_id: Option<String>,
    /// Unused by RabbitMQ; carried along.
    pub cluster_id: Option<String>,
}

/// Class, weight, body size, flags.
const FIXED_BYTES: usize = 14;

impl Properties {
    /// Bytes of the header frame's payload. Headers are counted as a table even where
    /// there are none.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        let texts = [
            &self.content_type,
            &self.content_encoding,
            &self.correlation_id,
            &self.reply_to,
            &self.expiration,
            &self.message_id,
            &self.kind,
            &self.user_id,
            &self.app_id,
            &self.cluster_id,
        ];
        let texts: usize = texts
            .iter()
            .filter_map(|text| text.as_ref())
            .map(|text| 1 + text.len())
            .sum();
        let numbers = usize::from(self.delivery_mode.is_some())
            + usize::from(self.priority.is_some())
            + 8 * usize::from(self.timestamp.is_some());
        FIXED_BYTES + numbers + texts + table_encoded_bytes(&self.headers)
    }
}
