//! The line protocol, version 1: a message as one line of JSON, and what the
//! one line that answers it means.
//!
//! Strict on purpose: who says something that is not understood may have lost
//! its place in the stream, and a guess would settle the wrong message.

use std::io::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::write::EncoderWriter;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::field::table_to_json;
use crate::handler::{Job, retry_after};
use crate::message::{first_route, properties_to_json};
use crate::printable::one_line;
use crate::retry::{HandlerResult, Outcome};

/// The version of this protocol.
pub(super) const VERSION: u32 = 1;

/// The longest answer, in bytes, its line end not counted.
pub(super) const LONGEST_ANSWER: usize = 16 << 20;

/// How much of an answer that is not understood is quoted, in characters.
const QUOTED: usize = 200;

/// How much of a reason is kept, in characters: it goes into logs and headers.
const LONGEST_REASON: usize = 1024;

/// The word that settles a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Done,
    Retry,
    Poison,
    Stop,
}

impl Word {
    const fn text(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Retry => "retry",
            Self::Poison => "poison",
            Self::Stop => "stop",
        }
    }
}

/// An answer that is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The word of its outcome.
    pub(super) word: &'static str,
    /// What it means.
    pub(super) outcome: Outcome,
    /// What it gives back.
    pub(super) result: Option<HandlerResult>,
}

#[derive(Serialize)]
struct Head<'a> {
    v: u32,
    id: u64,
    queue: &'a str,
    exchange: &'a str,
    routing_key: &'a str,
    attempt: u32,
    max_attempts: u32,
    redelivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_offset: Option<u64>,
    properties: Json,
    headers: Json,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerLine {
    id: u64,
    outcome: Word,
    reason: Option<String>,
    retry_after: Option<Json>,
    result: Option<ResultField>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultField {
    body: String,
    #[serde(default)]
    body_encoding: Encoding,
    content_type: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Text,
    Base64,
}

/// Appends the line of a message, its line end included.
///
/// # Errors
/// Never for what a broker hands out: everything in it has a form in JSON.
pub(super) fn encode(line: &mut Vec<u8>, id: u64, job: &Job) -> std::io::Result<()> {
    let delivery = &job.delivery;
    let (exchange, routing_key) = first_route(delivery, job.queue.as_str());
    let mut properties = properties_to_json(&delivery.properties);
    if let Some(properties) = properties.as_object_mut() {
        properties.remove("headers");
    }
    let head = Head {
        v: VERSION,
        id,
        queue: job.queue.as_str(),
        exchange: &exchange,
        routing_key: &routing_key,
        attempt: job.attempt,
        max_attempts: job.max_attempts,
        redelivered: delivery.redelivered,
        stream_offset: delivery.stream_offset(),
        properties,
        headers: table_to_json(&delivery.properties.headers),
    };
    serde_json::to_writer(&mut *line, &head)?;
    // The body goes straight into the line: the object is closed after it.
    line.pop();
    line.extend_from_slice(b",\"body\":");
    let encoding: &[u8] = match std::str::from_utf8(&delivery.body) {
        Ok(text) => {
            serde_json::to_writer(&mut *line, text)?;
            b"text"
        }
        Err(_) => {
            line.push(b'"');
            let mut encoder = EncoderWriter::new(&mut *line, &BASE64);
            encoder.write_all(&delivery.body)?;
            encoder.finish()?;
            drop(encoder);
            line.push(b'"');
            b"base64"
        }
    };
    line.extend_from_slice(b",\"body_encoding\":\"");
    line.extend_from_slice(encoding);
    line.extend_from_slice(b"\"}\n");
    Ok(())
}

/// What a line says in answer to message `id`.
///
/// # Errors
/// Why it is not understood: what was said and what was expected.
pub(super) fn decode(line: &[u8], id: u64) -> Result<Answer, String> {
    understand(line, id).map_err(|what| format!("{what}; {}", quote_and_expect(line, id)))
}

/// What was said, and what was expected in its place.
pub(super) fn quote_and_expect(said: &[u8], id: u64) -> String {
    format!(
        "it said '{}' where {{\"id\":{id},\"outcome\":\"done\"|\"retry\"|\"poison\"|\"stop\",…}} was expected",
        quote(said)
    )
}

/// Escaped and shortened.
pub(super) fn quote(said: &[u8]) -> String {
    // A character has 4 bytes at most: what is cut off would not be shown.
    let start = said.get(..QUOTED * 4 + 4).unwrap_or(said);
    one_line(String::from_utf8_lossy(start).trim(), QUOTED)
}

fn understand(line: &[u8], id: u64) -> Result<Answer, String> {
    let answer: AnswerLine = serde_json::from_slice(line)
        .map_err(|error| one_line(&error.to_string(), QUOTED))
        .map_err(|error| format!("its answer is not understood: {error}"))?;
    if answer.id != id {
        return Err(format!("it answered message {}, not {id}", answer.id));
    }
    let wait = answer.retry_after.as_ref().map(wait).transpose()?;
    let result = answer.result.map(result).transpose()?;
    let word = answer.outcome.text();
    let why = answer
        .reason
        .filter(|reason| !reason.trim().is_empty())
        .map_or_else(
            || format!("the handler said '{word}' without a reason"),
            |reason| shorten(reason.trim()),
        );
    let outcome = match answer.outcome {
        Word::Done => Outcome::Done,
        Word::Retry => Outcome::Failed { why, wait },
        Word::Poison => Outcome::Poison { why },
        Word::Stop => Outcome::DownstreamDown { why },
    };
    Ok(Answer {
        word,
        outcome,
        result,
    })
}

fn wait(json: &Json) -> Result<Duration, String> {
    let understood = match json {
        Json::String(text) => retry_after::delay(text),
        Json::Number(seconds) => retry_after::delay(&seconds.to_string()),
        _ => None,
    };
    understood.ok_or_else(|| {
        "its retry_after is neither a duration like \"30s\" nor a number of seconds".to_owned()
    })
}

fn result(field: ResultField) -> Result<HandlerResult, String> {
    let body = match field.body_encoding {
        Encoding::Text => field.body.into_bytes(),
        Encoding::Base64 => BASE64
            .decode(&field.body)
            .map_err(|error| format!("the body of its result is not base64: {error}"))?,
    };
    Ok(HandlerResult {
        body,
        content_type: field.content_type,
    })
}

fn shorten(reason: &str) -> String {
    match reason.char_indices().nth(LONGEST_REASON) {
        Some((cut, _)) => format!("{}…", reason.get(..cut).unwrap_or(reason)),
        None => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests;
