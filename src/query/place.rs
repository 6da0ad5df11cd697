//! Where in a program the mistake is.

use jaq_core::compile::{self, Undefined};
use jaq_core::load;

use crate::error::{Error, ErrorKind};
use crate::printable::one_line;

/// Longest line of a program that is shown with a mark below it, in characters.
const SHOWN: usize = 120;

/// A mistake and the part of the program it begins with; empty at the end.
pub(super) struct Found<'c> {
    what: String,
    part: &'c str,
}

/// The first mistake of those that loading found.
pub(super) fn of_loading<'c>(errors: &load::Errors<&'c str, ()>) -> Found<'c> {
    let first = errors.first().and_then(|(_, error)| match error {
        load::Error::Io(all) => all.first().map(|(path, why)| Found {
            what: why.clone(),
            part: path,
        }),
        load::Error::Lex(all) => all.first().map(|(expected, part)| Found {
            what: format!("expected {}", expected.as_str()),
            part,
        }),
        load::Error::Parse(all) => all.first().map(|(expected, part)| Found {
            what: format!("expected {}", expected.as_str()),
            part,
        }),
    });
    first.unwrap_or_else(unknown)
}

/// The first mistake of those that compiling found.
pub(super) fn of_compiling<'c>(errors: &compile::Errors<&'c str, ()>) -> Found<'c> {
    let first = errors.first().and_then(|(_, all)| all.first());
    first.map_or_else(unknown, |(name, undefined)| Found {
        what: match undefined {
            Undefined::Filter(arguments) if *arguments > 0 => {
                format!(
                    "undefined filter '{}' with {arguments} arguments",
                    one_line(name, 60)
                )
            }
            other => format!("undefined {} '{}'", other.as_str(), one_line(name, 60)),
        },
        part: name,
    })
}

fn unknown<'c>() -> Found<'c> {
    Found {
        what: "it is no jq program".to_owned(),
        part: "",
    }
}

/// The mistake with its place, counted in characters from 1.
pub(super) fn error(flag: &str, code: &str, found: &Found<'_>) -> Error {
    let before = before(code, found.part);
    let place = match before {
        Some(before) if before.len() < code.len() => {
            format!("at character {}", before.chars().count() + 1)
        }
        _ => "after its end".to_owned(),
    };
    let error = Error::new(
        ErrorKind::Usage,
        format!(
            "{flag} '{}' is no jq program: {place}: {}",
            one_line(code, SHOWN),
            found.what
        ),
    );
    let plain = code.chars().all(|c| !c.is_control()) && code.chars().count() <= SHOWN;
    match before {
        Some(before) if plain => {
            error.hint(format!("{code}\n{}^", " ".repeat(before.chars().count())))
        }
        _ => error.hint("for the language see https://jqlang.org/manual"),
    }
}

/// What stands before `part`, if it is a part of `code`.
fn before<'c>(code: &'c str, part: &str) -> Option<&'c str> {
    let start = (part.as_ptr() as usize).checked_sub(code.as_ptr() as usize)?;
    code.get(..start)
}
