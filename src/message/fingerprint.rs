//! A message by its content, to recognise its copy.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use crate::message::{Delivery, Properties};

/// Headers that a quorum queue adds when it hands a message out (measured on
/// 3.10.8, 4.0.5 and 4.3.6): they belong to the delivery, not to the message.
const OF_THE_DELIVERY: [&str; 2] = ["x-delivery-count", "x-acquired-count"];

/// 128 bits of routing key, properties and body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(u64, u64);

impl Fingerprint {
    /// The fingerprint of a message that has an id of its own; none of another,
    /// for two messages may have the same content.
    #[must_use]
    pub fn of(delivery: &Delivery) -> Option<Self> {
        let mut properties = without_delivery_headers(&delivery.properties);
        // A copy loses the id of a user who is not ours.
        properties.user_id = None;
        properties.message_id.as_ref().filter(|id| !id.is_empty())?;
        Some(Self::made_of(&delivery.routing_key, &properties, delivery))
    }

    /// The fingerprint of everything in a message that stays the same while it
    /// stands in one queue: only messages that are alike in all share it.
    #[must_use]
    pub fn of_content(delivery: &Delivery) -> Self {
        let place = (&delivery.exchange, &delivery.routing_key);
        Self::made_of(
            place,
            &without_delivery_headers(&delivery.properties),
            delivery,
        )
    }

    fn made_of(place: impl Hash, properties: &Properties, delivery: &Delivery) -> Self {
        let properties = format!("{properties:?}");
        let half = |seed: u8| {
            let mut hasher = DefaultHasher::new();
            seed.hash(&mut hasher);
            place.hash(&mut hasher);
            properties.hash(&mut hasher);
            delivery.body.hash(&mut hasher);
            hasher.finish()
        };
        Self(half(1), half(2))
    }
}

/// The properties without what a quorum queue adds when it hands a message out.
#[must_use]
pub fn without_delivery_headers(properties: &Properties) -> Properties {
    let mut properties = properties.clone();
    for name in OF_THE_DELIVERY {
        properties.headers.remove(name);
    }
    properties
}
