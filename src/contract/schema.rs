//! One compiled JSON Schema, and whether a body fits it.

use std::fmt;

use jsonschema::{PatternOptions, Retrieve, Uri, ValidationError, Validator};
use serde_json::Value as Json;

use crate::contract::words::{Reason, location, place, rule_broken, value, violation};
use crate::printable::one_line;

/// Of larger bodies only the first violation is looked for: all of them could
/// be millions, each many times as large as what it is about.
const ALL_VIOLATIONS_BYTES: usize = 256 * 1024;

/// How much of a schema's name is told.
const NAME_WIDTH: usize = 80;

/// A schema that was read and compiled.
#[derive(Clone, Debug)]
pub struct Schema {
    name: String,
    validator: Validator,
}

/// Why a text is no schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSchema {
    /// Where in it, as a path of keys; `None`: nowhere in particular.
    pub path: Option<String>,
    /// What is wrong there.
    pub why: String,
}

impl fmt::Display for InvalidSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{path}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

impl Schema {
    /// Compiles a schema of the draft that its `$schema` names, else 2020-12.
    /// `name` is what reasons call it.
    ///
    /// # Errors
    /// When it is no JSON or no schema of its draft, when a `$ref` of it leads
    /// out of it or to nothing, and when a pattern looks around or back.
    pub fn compile(name: &str, text: &[u8]) -> Result<Self, InvalidSchema> {
        let json = parsed(text).map_err(|why| InvalidSchema { path: None, why })?;
        let validator = jsonschema::options()
            .with_retriever(Nowhere)
            // Its time grows with the text only. The engine that looks around
            // took 35 s for 6 KB of bad strings, with its limit of steps.
            .with_pattern_options(PatternOptions::regex())
            .build(&json)
            .map_err(|error| invalid(&error))?;
        Ok(Self {
            name: one_line(name, NAME_WIDTH),
            validator,
        })
    }

    /// Why a body does not fit, in at most 1000 bytes on one line.
    #[must_use]
    pub fn broken_by(&self, body: &[u8], encoding: Option<&str>) -> Option<String> {
        let json = match parsed(body) {
            Ok(json) => json,
            Err(why) => {
                let mut reason = Reason::new(&self.name);
                reason.add(&format!("the body is no JSON: {why}{}", encoded(encoding)));
                return Some(reason.finish());
            }
        };
        if self.validator.is_valid(&json) {
            return None;
        }
        let mut reason = Reason::new(&self.name);
        if body.len() > ALL_VIOLATIONS_BYTES {
            if let Err(error) = self.validator.validate(&json) {
                reason.add(&violation(&error));
            }
            reason.add("of a body this large no more is looked for");
        } else {
            for error in self.validator.iter_errors(&json) {
                reason.add_with(|| violation(&error));
            }
        }
        Some(reason.finish())
    }
}

/// Reads JSON, of which the last of equal keys counts, as in most languages.
fn parsed(text: &[u8]) -> Result<Json, String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    let text = std::str::from_utf8(text).map_err(|error| {
        let before = text.get(..error.valid_up_to()).unwrap_or_default();
        let (line, column) = location(std::str::from_utf8(before).unwrap_or_default());
        format!("not UTF-8 at line {line} column {column}")
    })?;
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The usual cause of a body that cannot be read.
fn encoded(encoding: Option<&str>) -> String {
    match encoding {
        None => String::new(),
        // Clients put the character set there.
        Some(set) if ["utf-8", "utf8", "identity"].contains(&set.to_ascii_lowercase().as_str()) => {
            String::new()
        }
        Some(encoding) => format!(
            " (its content_encoding is {}; what is encoded cannot be checked)",
            one_line(encoding, 40)
        ),
    }
}

fn invalid(error: &ValidationError<'_>) -> InvalidSchema {
    use jsonschema::ReferencingError as Broken;
    use jsonschema::error::ValidationErrorKind as Kind;
    if let Kind::Referencing(broken) = error.kind() {
        let why = match broken {
            // What the library calls a text without an address.
            Broken::Unretrievable { uri, .. } => format!(
                "its $ref leads to {}, out of the file",
                one_line(uri.trim_start_matches("json-schema:///"), 200)
            ),
            Broken::UnknownSpecification { specification } => format!(
                "its $schema, {}, is no draft that mq knows",
                one_line(specification, 200)
            ),
            other => one_line(&other.to_string(), 200),
        };
        return InvalidSchema { path: None, why };
    }
    let why = match error.kind() {
        Kind::Format { format } if format == "regex" => format!(
            "{} is no pattern that mq takes: without look-around and back-references",
            value(error.instance())
        ),
        _ => rule_broken(error),
    };
    InvalidSchema {
        path: Some(place(error.instance_path().as_str())),
        why,
    }
}

/// No file and no address is read for a schema.
struct Nowhere;

impl Retrieve for Nowhere {
    fn retrieve(
        &self,
        _uri: &Uri<String>,
    ) -> Result<Json, Box<dyn std::error::Error + Send + Sync>> {
        Err("nothing is fetched".into())
    }
}
