//! One dead letter in words: what happened to it, and how it came.

use crate::deadletter::Letter;
use crate::output::{one_line, when};

pub(super) fn what_happened(letter: &Letter) -> String {
    let attempts = tries(letter.attempts.map(|attempts| (attempts, attempts)));
    let died = match letter.last_death {
        None => "when is not known".to_owned(),
        died => when(died),
    };
    let fate = fate(letter.reason.as_deref(), letter.origin.as_deref());
    format!("{fate}{attempts}, {died}")
}

pub(super) fn came_by(letter: &Letter) -> String {
    let exchange = match letter.exchange.as_deref() {
        None => return "it is not known where it was published".to_owned(),
        Some("") => "the default exchange".to_owned(),
        Some(exchange) => format!("exchange {}", one_line(exchange, 255)),
    };
    let keys: Vec<String> = letter
        .routing_keys
        .iter()
        .map(|key| one_line(key, 255))
        .collect();
    format!("published to {exchange} with key {}", keys.join(", "))
}

/// `rejected in orders`, as far as it is known.
#[must_use]
pub fn fate(reason: Option<&str>, origin: Option<&str>) -> String {
    let reason = reason.map(|reason| one_line(reason, 60));
    let origin = origin.map(|origin| one_line(origin, 60));
    match (reason, origin) {
        (Some(reason), Some(origin)) => format!("{reason} in {origin}"),
        (Some(reason), None) => format!("{reason} in no known queue"),
        (None, Some(origin)) => format!("failed in {origin}"),
        (None, None) => "of unknown origin".to_owned(),
    }
}

/// ` after 3 attempts`, from the fewest and the most of them.
#[must_use]
pub fn tries(attempts: Option<(u64, u64)>) -> String {
    match attempts {
        None => String::new(),
        Some((1, 1)) => " after 1 attempt".to_owned(),
        Some((least, most)) if least == most => format!(" after {least} attempts"),
        Some((least, most)) => format!(" after {least}–{most} attempts"),
    }
}
