//! Bindings that match nothing, or something else than it seems.

use crate::field::FieldValue;
use crate::lint::rule::{BAD_HEADERS_BINDING, NEVER_MATCHES, NO_WILDCARD, NOTHING_COMPARED};
use crate::lint::survey::Survey;
use crate::lint::{Finding, Subject};
use crate::topology::{Binding, Destination, ExchangeType};

pub(super) fn check(survey: &Survey<'_>, findings: &mut Vec<Finding>) {
    for (number, binding) in survey.topology.bindings.iter().enumerate() {
        let Some(exchange) = survey.topology.exchange(&binding.source) else {
            continue;
        };
        let subject = Subject::Binding(number);
        match exchange.kind {
            ExchangeType::Direct | ExchangeType::Topic => {
                let is_topic = exchange.kind == ExchangeType::Topic;
                findings.extend(no_wildcard(binding, is_topic, &subject));
                let is_fed_otherwise = survey.dead_letter_exchanges.contains(&binding.source)
                    || survey.alternates.contains(&binding.source);
                if exchange.internal && !is_fed_otherwise {
                    findings.extend(never_matches(survey, binding, is_topic, subject));
                }
            }
            ExchangeType::Headers => findings.extend(headers(binding, subject)),
            ExchangeType::Fanout | ExchangeType::Plugin(_) => {}
        }
    }
}

/// More bindings into one exchange are not compared with each that leads out.
const MOST_FEEDERS: usize = 200;

fn no_wildcard(binding: &Binding, is_topic: bool, subject: &Subject) -> Option<Finding> {
    let key = binding.key.as_str();
    let (why, help) = if is_topic {
        let word = key
            .split('.')
            .find(|word| word.len() > 1 && word.contains(['*', '#']))?;
        (
            format!("the word '{word}' is taken as it stands: a wildcard is a word of its own"),
            "write dots around the wildcard, such as `order.*`; `*` is one word, `#` any number",
        )
    } else {
        key.split('.').find(|word| matches!(*word, "*" | "#"))?;
        (
            format!(
                "exchange '{}' is direct and takes the key as it stands",
                binding.source
            ),
            "write `type: topic` for the exchange, or the whole key",
        )
    };
    let finding = NO_WILDCARD.finding(
        subject.clone(),
        format!(
            "the key '{key}' of {} holds no wildcard: {why}",
            destination(binding)
        ),
    );
    Some(
        finding
            .at("key")
            .label("matches only this very text")
            .help(help),
    )
}

/// Into an internal exchange messages come through other exchanges only.
fn never_matches(
    survey: &Survey<'_>,
    binding: &Binding,
    is_topic: bool,
    subject: Subject,
) -> Option<Finding> {
    let into = survey
        .router
        .bindings_to(&Destination::Exchange(binding.source.clone()));
    // Into which nothing leads is told of its queues.
    if into.is_empty() || into.len() > MOST_FEEDERS {
        return None;
    }
    let can_match = into.iter().any(|feeder| {
        let keys = survey.keys_of(feeder);
        if is_topic {
            keys.and_pattern(binding.key.as_str()).is_some()
        } else {
            keys.hold(binding.key.as_str())
        }
    });
    (!can_match).then(|| {
        let keys: Vec<String> = into.iter().map(|b| format!("'{}'", b.key)).take(5).collect();
        NEVER_MATCHES
            .finding(
                subject,
                format!(
                    "the key '{}' of {} can never match: exchange '{}' is internal, and only {} come into it",
                    binding.key,
                    destination(binding),
                    binding.source,
                    keys.join(", ")
                ),
            )
            .at("key")
            .label("no message takes this way")
            .help("correct one of the keys")
    })
}

const MODES: [&str; 4] = ["all", "any", "all-with-x", "any-with-x"];

fn headers(binding: &Binding, subject: Subject) -> Option<Finding> {
    let mode = match binding.arguments.get("x-match") {
        None => "all",
        Some(value) => match value.as_text() {
            Some(mode) if MODES.contains(&mode) => mode,
            _ => {
                let shown = value.to_json();
                return Some(
                    BAD_HEADERS_BINDING
                        .finding(
                            subject,
                            format!(
                                "the binding of {} has `x-match: {shown}`",
                                destination(binding)
                            ),
                        )
                        .at("arguments")
                        .label("brokers refuse it")
                        .help(format!("write one of {}", MODES.join(", "))),
                );
            }
        },
    };
    let with_x = mode.ends_with("-with-x");
    let compared = |name: &String| name != "x-match" && (with_x || !name.starts_with("x-"));
    if binding.arguments.keys().any(compared) {
        return None;
    }
    let (what, help) = if mode.starts_with("any") {
        ("matches no message", "name at least one header")
    } else {
        (
            "matches every message",
            "name the headers, or use a fanout exchange where all are meant",
        )
    };
    let ignored = binding
        .arguments
        .iter()
        .any(|(name, value)| name != "x-match" && !matches!(value, FieldValue::Void));
    let help = if ignored {
        format!("headers that begin with `x-` are compared with `x-match: {mode}-with-x` only")
    } else {
        help.to_owned()
    };
    Some(
        NOTHING_COMPARED
            .finding(
                subject,
                format!(
                    "the binding of {} to headers exchange '{}' compares no header",
                    destination(binding),
                    binding.source
                ),
            )
            .at("arguments")
            .label(what)
            .help(help),
    )
}

fn destination(binding: &Binding) -> String {
    binding.destination.to_string()
}
