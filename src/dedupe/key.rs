//! What makes two messages the same.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::field::FieldValue;
use crate::message::Delivery;
use crate::topology::{QueueName, VhostName};

/// By what messages are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DedupeBy {
    /// The `message_id` property.
    MessageId,
    /// A header, whatever its type.
    Header(String),
    /// The body, byte for byte.
    Body,
}

impl FromStr for DedupeBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("header:")) {
            ("message-id", _) => Ok(Self::MessageId),
            ("body", _) => Ok(Self::Body),
            (_, Some(name)) if !name.is_empty() && name.len() <= 255 => {
                Ok(Self::Header(name.to_owned()))
            }
            _ => Err("write message-id, header:NAME or body".to_owned()),
        }
    }
}

impl fmt::Display for DedupeBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MessageId => f.write_str("message-id"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Body => f.write_str("body"),
        }
    }
}

/// Where messages are compared: within one queue of one vhost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The vhost.
    pub vhost: VhostName,
    /// The work queue.
    pub queue: QueueName,
}

impl Scope {
    /// A name for it of 32 letters, for where its own would be too long.
    #[must_use]
    pub fn digest(&self) -> DedupeKey {
        half_of_a_hash([
            self.vhost.as_str().as_bytes(),
            self.queue.as_str().as_bytes(),
        ])
    }
}

/// The half of a SHA-256 of what makes a message the same: 128 bits, in which
/// no two different messages meet by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DedupeKey([u8; 16]);

impl DedupeKey {
    /// The key of a message; `None` if it has nothing to be told apart by.
    #[must_use]
    pub fn of(delivery: &Delivery, by: &DedupeBy, scope: &Scope) -> Option<Self> {
        let properties = &delivery.properties;
        let value = match by {
            DedupeBy::MessageId => {
                let id = properties.message_id.as_ref().filter(|id| !id.is_empty())?;
                id.as_bytes().into()
            }
            DedupeBy::Header(name) => match properties.headers.get(name)? {
                FieldValue::Void => return None,
                FieldValue::LongStr(bytes) | FieldValue::Bytes(bytes) => bytes.as_slice().into(),
                other => other.to_json().to_string().into_bytes().into(),
            },
            DedupeBy::Body => delivery.body.as_slice().into(),
        };
        let value: std::borrow::Cow<'_, [u8]> = value;
        Some(half_of_a_hash([
            scope.vhost.as_str().as_bytes(),
            scope.queue.as_str().as_bytes(),
            by.to_string().as_bytes(),
            value.as_ref(),
        ]))
    }

    /// Its bytes, as stores keep them.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Of parts whose borders count.
fn half_of_a_hash<const N: usize>(parts: [&[u8]; N]) -> DedupeKey {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut half = [0; 16];
    for (to, from) in half.iter_mut().zip(hash.finalize()) {
        *to = from;
    }
    DedupeKey(half)
}

impl fmt::Display for DedupeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The key of a message with this body, for tests.
#[cfg(test)]
pub(super) fn of_body(body: &str) -> DedupeKey {
    half_of_a_hash([body.as_bytes()])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::field::table_from_json;
    use crate::message::Properties;

    fn scope(vhost: &str, queue: &str) -> Scope {
        Scope {
            vhost: VhostName::new(vhost).expect("vhost"),
            queue: QueueName::new(queue).expect("queue"),
        }
    }

    fn message(id: Option<&str>, headers: &Json, body: &str) -> Delivery {
        Delivery {
            exchange: String::new(),
            routing_key: "k".to_owned(),
            redelivered: false,
            properties: Properties {
                message_id: id.map(str::to_owned),
                headers: table_from_json(headers.as_object().expect("object")),
                ..Properties::default()
            },
            body: body.as_bytes().to_vec(),
        }
    }

    fn key(message: &Delivery, by: &str) -> Option<DedupeKey> {
        DedupeKey::of(message, &by.parse().expect("by"), &scope("/", "q"))
    }

    #[test]
    fn words_are_read_back_as_they_are_written() {
        for text in ["message-id", "body", "header:order-id", "header:a b"] {
            assert_eq!(text.parse::<DedupeBy>().expect(text).to_string(), text);
        }
        for text in ["", "messageid", "header", "header:", "Body"] {
            assert!(text.parse::<DedupeBy>().is_err(), "{text}");
        }
        assert!(
            format!("header:{}", "x".repeat(256))
                .parse::<DedupeBy>()
                .is_err()
        );
    }

    #[test]
    fn the_same_is_the_same_by_what_was_asked_for() {
        let one = message(Some("a"), &json!({"h": "x"}), "body");
        let same_id = message(Some("a"), &json!({"h": "y"}), "other");
        let same_header = message(Some("b"), &json!({"h": "x"}), "other");
        let same_body = message(None, &json!({}), "body");
        for (by, same) in [
            ("message-id", &same_id),
            ("header:h", &same_header),
            ("body", &same_body),
        ] {
            assert!(key(&one, by).is_some());
            assert_eq!(key(&one, by), key(same, by), "{by}");
            for other in [&same_id, &same_header, &same_body] {
                assert!(
                    std::ptr::eq(other, same) || key(&one, by) != key(other, by),
                    "{by}"
                );
            }
        }
    }

    #[test]
    fn headers_of_every_type_tell_messages_apart() {
        let with = |value: Json| key(&message(None, &json!({"h": value}), ""), "header:h");
        let values = [
            json!("1"),
            json!("2"),
            json!(2.5),
            json!(true),
            json!([1, 2]),
            json!({"a": 1}),
        ];
        for (at, value) in values.iter().enumerate() {
            assert!(with(value.clone()).is_some(), "{value}");
            for other in values.iter().skip(at + 1) {
                assert_ne!(with(value.clone()), with(other.clone()), "{value} {other}");
            }
        }
        // Clients send the same number in every width, and as text.
        assert_eq!(with(json!(7)), with(json!("7")));
    }

    #[test]
    fn what_says_nothing_has_no_key() {
        assert_eq!(key(&message(None, &json!({}), "b"), "message-id"), None);
        assert_eq!(key(&message(Some(""), &json!({}), "b"), "message-id"), None);
        assert_eq!(key(&message(Some("a"), &json!({}), "b"), "header:h"), None);
        let void = message(Some("a"), &json!({"h": null}), "b");
        assert_eq!(key(&void, "header:h"), None);
        assert!(key(&message(None, &json!({}), ""), "body").is_some());
    }

    #[test]
    fn queues_do_not_share_keys() {
        let message = message(Some("a"), &json!({}), "b");
        let by = DedupeBy::MessageId;
        let keys = [("/", "q"), ("/", "p"), ("v", "q"), ("v", "p"), ("/q", "p")]
            .map(|(vhost, queue)| DedupeKey::of(&message, &by, &scope(vhost, queue)));
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys.iter().skip(at + 1).any(|other| other == key));
        }
    }
}
