//! Messages as plain data: properties, headers, body, and their death history.
//!
//! Nothing here is sent or received; `amqp` and `management` translate.

mod cloud_event;
mod content_type;
mod copied;
mod death;
mod fingerprint;
mod json;
mod jsonl;
mod nesting;
mod parked;
mod properties;
mod replacement;
mod replay;
mod result;
mod retried;
mod sendable;
mod template;
mod trace_context;
mod typed;

pub use cloud_event::{CloudEvent, is_structured};
pub use content_type::{guess_content_type, guessed_content_type};
pub use copied::first_route;
pub use death::{Death, DeathHistory};
pub use fingerprint::{Fingerprint, without_delivery_headers};
pub use json::{body_to_json, properties_to_json};
pub use jsonl::{Source, message_line, read_message_line};
pub use nesting::json_nesting;
pub use parked::{ParkedHeaders, Parking, park};
pub use properties::{DeliveryMode, Properties};
pub use replacement::{delivery_count, replacement, set_copies_aside};
pub use replay::{Replaying, replay_copy, replays, was_replayed_by};
pub use result::{ResultTo, result_of};
pub use retried::{copied_attempts, retry_copy};
pub use sendable::{DEFAULT_FRAME_BYTES, brokers_take};
pub use template::{Filling, Template};
pub use trace_context::{TraceParent, add_trace, is_trace_state};

use crate::topology::{ExchangeName, RoutingKey};

/// A message a consumer got.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The exchange of its last publish; after dead-lettering, the DLX.
    pub exchange: String,
    /// The routing key of its last publish.
    pub routing_key: String,
    /// Whether it was handed out before. Says nothing about this queue on 4.0–4.2.
    pub redelivered: bool,
    /// Properties and headers.
    pub properties: Properties,
    /// The body, byte for byte.
    pub body: Vec<u8>,
}

impl Delivery {
    /// The deaths the broker recorded in `x-death`.
    #[must_use]
    pub fn deaths(&self) -> DeathHistory {
        DeathHistory::from_headers(&self.properties.headers)
    }

    /// Where it stands in its stream, or stood in the one from which it was set
    /// aside. In a stream the broker's word replaces a publisher's (measured on
    /// 3.10.8, 4.0.5 and 4.3.6).
    #[must_use]
    pub fn stream_offset(&self) -> Option<u64> {
        let offset = self.properties.headers.get("x-stream-offset")?;
        u64::try_from(offset.as_integer()?).ok()
    }
}

/// A message to be published.
#[derive(Clone, Debug, PartialEq)]
pub struct Publication {
    /// The exchange; empty for the default one.
    pub exchange: ExchangeName,
    /// The routing key.
    pub routing_key: RoutingKey,
    /// Properties and headers.
    pub properties: Properties,
    /// The body, byte for byte.
    pub body: Vec<u8>,
}
