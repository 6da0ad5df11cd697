//! Names: at most 255 bytes of UTF-8, one type for each kind of object.
//!
//! The limit is AMQP's short string, which RabbitMQ applies to queue and
//! exchange names and to routing keys (queues.md, "Names"; measured on 3.10,
//! 4.0 and 4.3).

use std::fmt;
use std::marker::PhantomData;

use crate::error::{Error, ErrorKind, Result};
use crate::printable::shell_word;

/// The longest name, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 255;

/// A name of the kind `K`. Ordered and compared by its bytes.
pub struct Name<K> {
    text: String,
    kind: PhantomData<fn() -> K>,
}

/// Marks a [`Name`] and words its errors.
pub trait NameKind {
    /// What the name names, as an error says it.
    const WHAT: &'static str;
}

/// Marks queue names.
#[derive(Debug)]
pub enum OfQueue {}
/// Marks exchange names.
#[derive(Debug)]
pub enum OfExchange {}
/// Marks vhost names.
#[derive(Debug)]
pub enum OfVhost {}
/// Marks policy names.
#[derive(Debug)]
pub enum OfPolicy {}
/// Marks user names.
#[derive(Debug)]
pub enum OfUser {}
/// Marks routing and binding keys.
#[derive(Debug)]
pub enum OfKey {}

impl NameKind for OfQueue {
    const WHAT: &'static str = "queue name";
}
impl NameKind for OfExchange {
    const WHAT: &'static str = "exchange name";
}
impl NameKind for OfVhost {
    const WHAT: &'static str = "vhost name";
}
impl NameKind for OfPolicy {
    const WHAT: &'static str = "policy name";
}
impl NameKind for OfUser {
    const WHAT: &'static str = "user name";
}
impl NameKind for OfKey {
    const WHAT: &'static str = "routing key";
}

/// A queue name.
pub type QueueName = Name<OfQueue>;
/// An exchange name; the empty one is the default exchange.
pub type ExchangeName = Name<OfExchange>;
/// A vhost name.
pub type VhostName = Name<OfVhost>;
/// A policy name.
pub type PolicyName = Name<OfPolicy>;
/// A user name.
pub type UserName = Name<OfUser>;
/// A routing key, or the key (pattern) of a binding.
pub type RoutingKey = Name<OfKey>;

impl<K: NameKind> Name<K> {
    /// Checks the length.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] over [`MAX_NAME_BYTES`].
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        if text.len() > MAX_NAME_BYTES {
            let start: String = text.chars().take(24).collect();
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "{} '{start}…' has {} bytes; AMQP allows {MAX_NAME_BYTES}",
                    K::WHAT,
                    text.len()
                ),
            )
            .hint("shorten it; letters outside ASCII count 2 to 4 bytes"));
        }
        Ok(Self {
            text,
            kind: PhantomData,
        })
    }
}

impl<K> Name<K> {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name as one word of a shell command, for commands that we suggest.
    #[must_use]
    pub fn shell_quoted(&self) -> String {
        shell_word(&self.text)
    }

    /// Whether the broker keeps this name for itself (`amq.` prefix).
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.text.starts_with("amq.")
    }

    /// Whether it is the empty name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

impl QueueName {
    /// A name that somebody gave for a queue that should exist.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] over [`MAX_NAME_BYTES`], and for the empty
    /// name, which no queue has.
    pub fn of_existing(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Err(
                Error::new(ErrorKind::InvalidInput, "the queue's name is empty")
                    .hint("is a variable unset?"),
            );
        }
        Self::new(text)
    }
}

impl RoutingKey {
    /// The empty key, which a fanout exchange does not look at.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            text: String::new(),
            kind: PhantomData,
        }
    }

    /// The key that the default exchange routes to `queue` by.
    #[must_use]
    pub fn of_queue(queue: &QueueName) -> Self {
        Self {
            text: queue.text.clone(),
            kind: PhantomData,
        }
    }
}

impl ExchangeName {
    /// The default exchange, whose name is empty.
    #[must_use]
    pub fn default_exchange() -> Self {
        Self {
            text: String::new(),
            kind: PhantomData,
        }
    }
}

impl<K> Clone for Name<K> {
    fn clone(&self) -> Self {
        Self {
            text: self.text.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> PartialEq for Name<K> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<K> Eq for Name<K> {}

impl<K> std::hash::Hash for Name<K> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl<K> PartialOrd for Name<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Name<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl<K> fmt::Display for Name<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<K> fmt::Debug for Name<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_bytes_not_letters() {
        assert!(QueueName::new("é".repeat(127)).is_ok());
        let error = QueueName::new("é".repeat(128)).expect_err("256 bytes");
        assert!(error.to_string().contains("256 bytes"), "{error}");
    }

    #[test]
    fn suggested_commands_survive_odd_names() {
        for (name, quoted) in [
            ("orders.dlq", "orders.dlq"),
            ("/", "/"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's; rm -rf", r"'it'\''s; rm -rf'"),
        ] {
            assert_eq!(QueueName::new(name).expect("name").shell_quoted(), quoted);
        }
    }

    #[test]
    fn knows_the_reserved_prefix() {
        let reserved = |text: &str| ExchangeName::new(text).expect("name").is_reserved();
        assert!(reserved("amq.topic"));
        assert!(!reserved("amqp.topic"));
    }
}
