//! One dead letter as the browser keeps it.

use std::fmt::Write as _;

use crate::deadletter::Letter;
use crate::management::Peeked;
use crate::message::{Delivery, Fingerprint, properties_to_json};

/// A dead letter of a queue that is browsed.
#[derive(Clone, Debug)]
pub struct BrowsedLetter {
    /// The message, with the beginning of its body.
    pub message: Peeked,
    /// What its headers tell.
    pub letter: Letter,
    /// What it is recognised by: of its whole body.
    pub fingerprint: Fingerprint,
    /// All of it that can be filtered by, in lower case.
    pub text: String,
}

impl BrowsedLetter {
    /// Keeps at most `body_bytes` of the body.
    #[must_use]
    pub fn new(mut message: Delivery, body_bytes: usize) -> Self {
        let fingerprint = Fingerprint::of_content(&message);
        let whole = message.body.len();
        message.body.truncate(body_bytes);
        message.body.shrink_to_fit();
        let letter = Letter::read(&message.properties);
        Self {
            text: text(&message, &letter),
            message: Peeked {
                message,
                body_bytes: whole,
            },
            letter,
            fingerprint,
        }
    }
}

fn text(message: &Delivery, letter: &Letter) -> String {
    let mut text = String::new();
    let known = [&letter.origin, &letter.reason, &letter.error];
    for part in known.into_iter().chain([&letter.exchange]).flatten() {
        let _ = writeln!(text, "{part}");
    }
    for key in &letter.routing_keys {
        let _ = writeln!(text, "{key}");
    }
    let _ = writeln!(text, "{}\n{}", message.exchange, message.routing_key);
    let _ = writeln!(text, "{}", properties_to_json(&message.properties));
    text.push_str(&String::from_utf8_lossy(&message.body));
    text.to_lowercase()
}
