//! `${NAME}` and `${NAME:-default}` in any text of the file.
//!
//! `$${` writes a plain `${`. Keys are left alone except the names of objects,
//! which are texts like any other.

use crate::diagnostic::{Diagnostic, Place};
use crate::topologyfile::Environment;
use crate::topologyfile::fields::Reader;
use crate::topologyfile::tree::{Node, Value};

/// Replaces every variable below `node`; unset ones without default are reported.
pub(super) fn substitute(node: &mut Node, environment: Environment<'_>, reader: &mut Reader) {
    let place = node.place();
    match &mut node.value {
        Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Unreadable => {}
        Value::Text(text) => {
            if !replace(text, place, environment, reader) {
                node.value = Value::Unreadable;
            }
        }
        Value::List(items) => {
            for item in items {
                substitute(item, environment, reader);
            }
        }
        Value::Map(entries) => {
            for (key, value) in entries {
                let place = key.place.clone();
                // An unreadable key keeps its text: the mistake is told already.
                let _ = replace(&mut key.text, place, environment, reader);
                substitute(value, environment, reader);
            }
        }
    }
}

/// False if it could not be replaced, which is reported then.
fn replace(
    text: &mut String,
    place: Place,
    environment: Environment<'_>,
    reader: &mut Reader,
) -> bool {
    if !text.contains("${") {
        return true;
    }
    let problem = match expand(text, environment) {
        Ok(expanded) => {
            *text = expanded;
            return true;
        }
        Err(problem) => problem,
    };
    reader.report(match problem {
        Problem::Unset(name) => {
            Diagnostic::new("MQ108", place, format!("the variable {name} is not set"))
                .label("no value and no default")
                .help(format!("set {name}, or write ${{{name}:-default}}"))
        }
        Problem::Malformed => Diagnostic::new("MQ108", place, "a `${` that is no variable")
            .label("expected ${NAME} or ${NAME:-default}")
            .help("write $${ for a plain ${"),
    });
    false
}

#[derive(Debug, PartialEq, Eq)]
enum Problem {
    Unset(String),
    Malformed,
}

fn expand(text: &str, environment: Environment<'_>) -> Result<String, Problem> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = from.get(2..).unwrap_or_default();
            continue;
        }
        expanded.push_str(before);
        let (inside, after) = from
            .get(2..)
            .and_then(|inside| inside.split_once('}'))
            .ok_or(Problem::Malformed)?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let is_name = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name {
            return Err(Problem::Malformed);
        }
        // As in a shell, `:-` also replaces an empty value.
        let value = match (environment(name), default) {
            (Some(value), Some(default)) if value.is_empty() => default.to_owned(),
            (Some(value), _) => value,
            (None, Some(default)) => default.to_owned(),
            (None, None) => return Err(Problem::Unset(name.to_owned())),
        };
        expanded.push_str(&value);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_like_a_shell() {
        let environment = |name: &str| match name {
            "A" => Some("x".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let unset = |name: &str| Err(Problem::Unset(name.to_owned()));
        for (text, expected) in [
            ("${A}", Ok("x".to_owned())),
            ("p.${A}.${B:-y z}", Ok("p.x.y z".to_owned())),
            ("${EMPTY:-d}|${EMPTY}", Ok("d|".to_owned())),
            ("${B:-}", Ok(String::new())),
            ("$${A} ${A}", Ok("${A} x".to_owned())),
            ("${B}", unset("B")),
            ("${A", Err(Problem::Malformed)),
            ("${}", Err(Problem::Malformed)),
            ("${1}", Err(Problem::Malformed)),
        ] {
            assert_eq!(expand(text, &environment), expected, "{text}");
        }
    }
}
