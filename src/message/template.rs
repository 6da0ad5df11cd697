//! Texts with places that each message fills differently: `{{seq}}`, `{{uuid}}`,
//! `{{now}}`, `{{file}}` and `{{env.NAME}}`.

use crate::error::{Error, ErrorKind, Result};

/// What a template can name, for messages to people.
const KNOWN: &str = "seq, uuid, now, file and env.NAME";

/// A text with places to be filled; `{{{{` stands for two braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Seq,
    Uuid,
    Now,
    File,
}

/// What fills the places of one message; the same in all of its texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    /// Its number, from 1.
    pub seq: u64,
    /// An id that no other message has.
    pub uuid: String,
    /// The time, as RFC 3339 in UTC.
    pub now: String,
    /// The name of the file that the body is from; empty if it is from none.
    pub file: String,
}

impl Template {
    /// A text without places.
    #[must_use]
    pub fn literal(text: &str) -> Self {
        Self {
            parts: vec![Part::Text(text.to_owned())],
        }
    }

    /// Reads a template. Variables of the environment are filled in at once.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when braces are not closed, a name is not known, or a
    /// variable is not set.
    pub fn parse(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{") {
            plain.push_str(before);
            if let Some(behind) = behind.strip_prefix("{{") {
                plain.push_str("{{");
                rest = behind;
                continue;
            }
            let Some((name, behind)) = behind.split_once("}}") else {
                return Err(wrong("a '{{' of the template has no '}}'".to_owned()));
            };
            rest = behind;
            let part = match name.trim() {
                "seq" => Part::Seq,
                "uuid" => Part::Uuid,
                "now" => Part::Now,
                "file" => Part::File,
                name => {
                    plain.push_str(&variable(name, environment)?);
                    continue;
                }
            };
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(part);
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self { parts })
    }

    /// The text of one message.
    #[must_use]
    pub fn fill(&self, with: &Filling) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Seq => text.push_str(&with.seq.to_string()),
                Part::Uuid => text.push_str(&with.uuid),
                Part::Now => text.push_str(&with.now),
                Part::File => text.push_str(&with.file),
            }
        }
        text
    }
}

fn variable(name: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String> {
    let Some(variable) = name.strip_prefix("env.") else {
        return Err(wrong(format!(
            "the template asks for '{name}', which is not known"
        )));
    };
    environment(variable).ok_or_else(|| {
        wrong(format!(
            "the template asks for the environment variable '{variable}', which is not set"
        ))
    })
}

fn wrong(what: String) -> Error {
    Error::new(ErrorKind::Usage, what).hint(format!(
        "there are {KNOWN}; write {{{{{{{{ for two braces, or leave --template out"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> std::result::Result<String, String> {
        let environment = |name: &str| (name == "HOME").then(|| "/h {{seq}}".to_owned());
        let filling = Filling {
            seq: 7,
            uuid: "u".to_owned(),
            now: "n".to_owned(),
            file: "f".to_owned(),
        };
        Template::parse(text, &environment)
            .map(|template| template.fill(&filling))
            .map_err(|error| error.message().to_owned())
    }

    #[test]
    fn places_are_filled_and_nothing_else_is_touched() {
        for (text, expected) in [
            ("", ""),
            ("plain { } }} text", "plain { } }} text"),
            ("{\"id\":{{seq}}}", "{\"id\":7}"),
            ("{{ seq }}{{uuid}} {{now}}/{{file}}", "7u n/f"),
            // What a variable holds is not read again.
            ("a {{env.HOME}} b", "a /h {{seq}} b"),
            ("{{{{seq}}", "{{seq}}"),
            ("{{{{{{seq}}", "{{7"),
            ("é{{seq}}é", "é7é"),
        ] {
            assert_eq!(filled(text), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_filled_is_said_before_anything_is_sent() {
        for (text, expected) in [
            ("{{seq", "a '{{' of the template has no '}}'"),
            ("{{number}}", "asks for 'number'"),
            ("{{}}", "asks for ''"),
            ("{{env.NOT}}", "environment variable 'NOT'"),
        ] {
            let error = filled(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
