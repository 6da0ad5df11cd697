//! What is written along an edge.

use crate::field::FieldValue;
use crate::topology::{Binding, DeadLetterKey, ExchangeType, RoutingKey};

/// Labels of one edge that are shown.
const SHOWN: usize = 3;

/// The argument that says how many headers must match.
const MATCH: &str = "x-match";

/// What a binding asks for; nothing where it asks for nothing. Exchanges of
/// RabbitMQ's own types other than headers do not look at arguments.
pub(super) fn of_binding(binding: &Binding, kind: Option<&ExchangeType>) -> Option<String> {
    let mut parts = Vec::new();
    let takes_all = matches!(kind, Some(ExchangeType::Fanout | ExchangeType::Headers));
    if !binding.key.is_empty() {
        parts.push(binding.key.to_string());
    } else if !takes_all {
        parts.push("\"\"".to_owned());
    }
    let of_arguments = || binding.arguments.iter().filter(|(name, _)| *name != MATCH);
    match kind {
        Some(ExchangeType::Headers) => {
            let matches = binding.arguments.get(MATCH).and_then(FieldValue::as_text);
            let values: Vec<String> = of_arguments().map(of_argument).collect();
            parts.push(format!(
                "{}: {}",
                matches.unwrap_or("all"),
                values.join(", ")
            ));
        }
        None | Some(ExchangeType::Plugin(_)) => {
            parts.extend(binding.arguments.iter().map(of_argument));
        }
        Some(ExchangeType::Direct | ExchangeType::Topic | ExchangeType::Fanout) => {}
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn of_argument((name, value): (&String, &FieldValue)) -> String {
    match value.as_text() {
        Some(text) => format!("{name}={text}"),
        None => format!("{name}={}", value.to_json()),
    }
}

/// The key that dead letters have at an exchange.
pub(super) fn of_dead_letters(key: &DeadLetterKey) -> String {
    match key {
        DeadLetterKey::Kept => "key kept".to_owned(),
        DeadLetterKey::Replaced(key) => of_key(key),
    }
}

pub(super) fn of_key(key: &RoutingKey) -> String {
    if key.is_empty() {
        "key \"\"".to_owned()
    } else {
        format!("key {key}")
    }
}

/// The first few of an edge's labels, and how many more there are.
pub(super) fn bounded(labels: &[String]) -> Vec<String> {
    let more = labels.len().saturating_sub(SHOWN);
    // One more label takes no more room than the words for it.
    if more <= 1 {
        return labels.to_vec();
    }
    let mut shown: Vec<String> = labels.iter().take(SHOWN).cloned().collect();
    shown.push(format!("+ {more} more"));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_labels_become_a_few() {
        let labels = |count: usize| -> Vec<String> { (0..count).map(|n| n.to_string()).collect() };
        assert_eq!(bounded(&labels(0)), labels(0));
        assert_eq!(bounded(&labels(4)), labels(4));
        assert_eq!(bounded(&labels(8)), ["0", "1", "2", "+ 5 more"]);
    }
}
