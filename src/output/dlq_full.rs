//! One dead letter with all that is known of it.

use std::fmt::Write as _;

use serde_json::Value as Json;

use crate::deadletter::Letter;
use crate::management::Peeked;
use crate::message::{Death, properties_to_json};
use crate::output::body::shown_body;
use crate::output::letter::{came_by, what_happened};
use crate::output::{json_pretty, one_line, printable, unbroken, when};

/// The longest value of a property or header that stands on one line.
const VALUE: usize = 200;

/// What happened, its journey, properties, headers and at most `limit` bytes of
/// its body; `more` says where the rest of that is.
#[must_use]
pub fn full_letter(
    number: usize,
    message: &Peeked,
    letter: &Letter,
    limit: usize,
    more: &str,
) -> String {
    let mut lines = vec![
        format!("#{number} {}", what_happened(letter)),
        format!("   {}", came_by(letter)),
    ];
    if let Some(error) = &letter.error {
        let tool = letter.tool.filter(|tool| *tool != "mq");
        lines.push(match tool {
            Some(tool) => format!("   error, as {tool} tells it:"),
            None => "   error:".to_owned(),
        });
        lines.extend(indented(&printable(error)));
    }
    lines.extend(journey(letter));
    lines.extend(properties(message));
    lines.extend(body(message, limit, more));
    lines.join("\n")
}

fn indented(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(|line| format!("     {line}"))
}

fn journey(letter: &Letter) -> Vec<String> {
    let deaths = letter.deaths.in_order();
    let mut lines = Vec::new();
    if !deaths.is_empty() {
        lines.push("   journey:".to_owned());
    }
    for (at, death) in deaths.iter().enumerate() {
        lines.push(format!("     {}. {}", at + 1, leg(death)));
    }
    if letter.deaths.malformed {
        lines.push("     x-death has entries that no broker writes; they are left out".to_owned());
    }
    lines
}

fn leg(death: &Death) -> String {
    let exchange = if death.exchange.is_empty() {
        "the default exchange".to_owned()
    } else {
        format!("exchange {}", unbroken(&death.exchange))
    };
    let keys: Vec<String> = death.routing_keys.iter().map(|key| unbroken(key)).collect();
    let why = match death.reason.as_str() {
        "rejected" => "rejected by a consumer".to_owned(),
        "expired" => "its time was over (expired)".to_owned(),
        "maxlen" => "pushed out of the full queue (maxlen)".to_owned(),
        "delivery_limit" => "returned too often (delivery_limit)".to_owned(),
        other => unbroken(other),
    };
    let often = match death.count {
        1 => String::new(),
        count => format!(", {count} times since then"),
    };
    format!(
        "{}  in {}: {why}{often}; came by {exchange}, key {}",
        when(death.time),
        unbroken(&death.queue),
        keys.join(", ")
    )
}

fn properties(message: &Peeked) -> Vec<String> {
    let Json::Object(mut properties) = properties_to_json(&message.message.properties) else {
        return Vec::new();
    };
    let headers = properties.shift_remove("headers");
    let mut lines = Vec::new();
    if !properties.is_empty() {
        lines.push("   properties:".to_owned());
        lines.extend(
            properties
                .iter()
                .flat_map(|(name, value)| entry(name, value)),
        );
    }
    if let Some(Json::Object(headers)) = headers {
        lines.push("   headers:".to_owned());
        // The journey is x-death, made readable.
        let others = headers.iter().filter(|(name, _)| *name != "x-death");
        lines.extend(others.flat_map(|(name, value)| entry(name, value)));
    }
    lines
}

/// One line, or several for a text of several lines such as a stack trace.
fn entry(name: &str, value: &Json) -> Vec<String> {
    let name = unbroken(name);
    match value {
        Json::String(text) if text.lines().nth(1).is_some() => {
            let mut lines = vec![format!("     {name}:")];
            lines.extend(indented(&printable(text)).map(|line| format!("  {line}")));
            lines
        }
        Json::String(text) => vec![format!("     {name}: {}", unbroken(text))],
        Json::Object(_) | Json::Array(_) if value.to_string().len() > VALUE => {
            let mut lines = vec![format!("     {name}:")];
            lines.extend(indented(&json_pretty(value)).map(|line| format!("  {line}")));
            lines
        }
        other => vec![format!(
            "     {name}: {}",
            one_line(&other.to_string(), VALUE)
        )],
    }
}

fn body(message: &Peeked, limit: usize, more: &str) -> Vec<String> {
    let whole = message.body_bytes;
    if whole == 0 {
        return vec!["   body: empty".to_owned()];
    }
    let shown = shown_body(&message.message.body, whole, limit);
    let plural = if whole == 1 { "" } else { "s" };
    let mut title = format!("   body ({whole} byte{plural}, {}):", shown.kind);
    if shown.shown < whole {
        let _ = write!(title, " the first {}; {more}", shown.shown);
    }
    let mut lines = vec![title];
    lines.extend(indented(&shown.lines));
    lines
}
