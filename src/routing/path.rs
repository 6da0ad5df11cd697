//! The way to a queue in words.

use std::fmt::Write as _;

use crate::field::table_to_json;
use crate::routing::Hop;
use crate::topology::{Binding, ExchangeName};

/// How a message came to a queue: `by binding 'a.*' to exchange 'x', by binding 'b'`.
#[must_use]
pub fn path_words(path: &[(ExchangeName, Hop<'_>)]) -> String {
    let next = path.iter().skip(1).map(|(exchange, _)| Some(exchange));
    let next = next.chain(std::iter::once(None));
    let hops: Vec<String> = path
        .iter()
        .zip(next)
        .map(|((_, hop), next)| match (hop, next) {
            (Hop::Default, _) => "by its name".to_owned(),
            (Hop::Alternate, Some(next)) => format!("by the alternate exchange '{next}'"),
            (Hop::Alternate, None) => "by the alternate exchange".to_owned(),
            (Hop::Binding(binding), Some(next)) => {
                format!("{} to exchange '{next}'", binding_words(binding))
            }
            (Hop::Binding(binding), None) => binding_words(binding),
        })
        .collect();
    hops.join(", ")
}

fn binding_words(binding: &Binding) -> String {
    let mut words = String::from("by binding");
    if !binding.key.is_empty() || binding.arguments.is_empty() {
        let _ = write!(words, " '{}'", binding.key);
    }
    if !binding.arguments.is_empty() {
        let _ = write!(words, " {}", table_to_json(&binding.arguments));
    }
    words
}
