//! Where a message goes and what becomes of it, for people and for scripts.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use crate::field::table_to_json;
use crate::output::one_line;
use crate::routing::{Death, Hop, Journey, Outlook, path_words, unknown_because};
use crate::topology::{ExchangeName, RoutingKey, Topology};

/// Most ways shown for one death.
const MOST_WAYS: usize = 20;

/// The width of the column with the death.
const DEATH_WIDTH: usize = 16;

/// Longer than any line with a name or two in it.
const LINE: usize = 2_000;

/// The message, below it the queues, below each queue its deaths.
#[must_use]
pub fn outlook_text(outlook: &Outlook<'_>, topology: &Topology) -> String {
    let mut text = shown(&message_words(outlook));
    if outlook.reached.is_empty() {
        text.push_str("\n  → no queue");
    }
    let names = outlook.reached.iter();
    let names = names.map(|reached| one_line(reached.queue.as_str(), LINE));
    let widest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    for reached in &outlook.reached {
        let name = shown(reached.queue.as_str());
        let how = shown(&path_words(&reached.path));
        let _ = write!(text, "\n  → {name:<widest$}  {how}");
        let Some(deaths) = &reached.deaths else {
            text.push_str("\n      declared elsewhere: what becomes of it there is not known here");
            continue;
        };
        for (death, journey) in deaths {
            let mut label = death.reason();
            for line in journey.told(MOST_WAYS, topology) {
                let _ = write!(text, "\n      {label:<DEATH_WIDTH$} → {}", shown(&line));
                label = "";
            }
        }
    }
    for exchange in &outlook.unknown {
        let _ = write!(
            text,
            "\n  ! {}",
            shown(&unknown_because(topology, exchange))
        );
    }
    text
}

fn shown(text: &str) -> String {
    one_line(text, LINE)
}

fn message_words(outlook: &Outlook<'_>) -> String {
    let message = &outlook.message;
    let mut words = if message.exchange.is_empty() {
        "the default exchange".to_owned()
    } else {
        message.exchange.to_string()
    };
    for key in &message.keys {
        let _ = write!(words, " / {key}");
    }
    if !message.headers.is_empty() {
        let _ = write!(words, " {}", table_to_json(&message.headers));
    }
    words
}

/// The same as JSON: `exchange`, `routing_keys`, `headers`, `reached` with
/// `queue`, `path` (`exchange`, `by`, `key`, `arguments`) and `deaths`, and
/// `unknown_exchanges`.
#[must_use]
pub fn outlook_json(outlook: &Outlook<'_>, topology: &Topology) -> Json {
    let keys = outlook.message.keys.iter().map(RoutingKey::as_str);
    let reached = outlook.reached.iter().map(|reached| {
        let path = reached.path.iter();
        let deaths = reached.deaths.as_ref();
        json!({
            "queue": reached.queue.as_str(),
            "path": path.map(|(exchange, hop)| hop_json(exchange, hop)).collect::<Vec<_>>(),
            "deaths": deaths.map(|deaths| deaths
                .iter()
                .map(|(death, journey)| journey_json(*death, journey, topology))
                .collect::<Vec<_>>()),
        })
    });
    json!({
        "exchange": outlook.message.exchange.as_str(),
        "routing_keys": keys.collect::<Vec<_>>(),
        "headers": table_to_json(&outlook.message.headers),
        "reached": reached.collect::<Vec<_>>(),
        "unknown_exchanges": names(&outlook.unknown),
    })
}

fn hop_json(exchange: &ExchangeName, hop: &Hop<'_>) -> Json {
    let exchange = exchange.as_str();
    match hop {
        Hop::Default => json!({ "exchange": exchange, "by": "name" }),
        Hop::Alternate => json!({ "exchange": exchange, "by": "alternate" }),
        Hop::Binding(binding) => json!({
            "exchange": exchange,
            "by": "binding",
            "key": binding.key.as_str(),
            "arguments": table_to_json(&binding.arguments),
        }),
    }
}

fn journey_json(death: Death, journey: &Journey, topology: &Topology) -> Json {
    let steps = journey.steps.iter().map(|step| {
        let ttl = (step.death == Death::Expired)
            .then(|| topology.effective_queue(&step.queue)?.message_ttl)
            .flatten();
        json!({
            "queue": step.queue.as_str(),
            "reason": step.death.reason(),
            "after_ms": ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            "exchange": step.to.as_ref().map(|(exchange, _)| exchange.as_str()),
            "routing_key": step.to.as_ref().map(|(_, key)| key.as_str()),
            "arrived": names(&step.arrived),
            "losses": step.losses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    });
    let losses = journey
        .losses
        .iter()
        .map(|(queue, loss)| json!({ "queue": queue.as_str(), "why": loss.to_string() }));
    json!({
        "reason": death.reason(),
        "rests": names(&journey.rests),
        "losses": losses.collect::<Vec<_>>(),
        "unknown_exchanges": names(journey.unknown()),
        "broken_off": journey.broken_off,
        "steps": steps.collect::<Vec<_>>(),
    })
}

/// Names as a list of texts.
pub(super) fn names<T: ToString>(names: impl IntoIterator<Item = T>) -> Vec<String> {
    names.into_iter().map(|name| name.to_string()).collect()
}
