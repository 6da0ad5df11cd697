//! What brokers do not take, told before the wire: they answer it by closing the
//! channel or the connection, and with it the outcome of all that is under way.

use crate::error::{Error, ErrorKind, Result};
use crate::field::{FieldTable, FieldValue};
use crate::message::Properties;
use crate::printable::one_line;

/// The largest frame that brokers allow by default, in bytes.
pub const DEFAULT_FRAME_BYTES: usize = 131_072;

/// What a frame needs besides what is in it.
const FRAME_ENVELOPE_BYTES: usize = 8;

/// The longest short string of AMQP, in bytes.
const MOST_SHORT: usize = 255;

/// Whether brokers take these properties (each measured on 3.10.8, 4.0.5 and
/// 4.3.6): numbers in headers must be some, or the connection breaks (541);
/// `expiration` must be a number, `CC` and `BCC` lists of text (406), and all
/// properties must fit into one frame (501), of at most `frame_bytes` on the wire. AMQP itself has no place for properties
/// and names of headers over 255 bytes.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] with what is wrong.
pub fn brokers_take(properties: &Properties, frame_bytes: usize) -> Result<()> {
    let wrong = |what: String| Err(Error::new(ErrorKind::InvalidInput, what));
    if let Some((name, _)) = (properties.headers.iter()).find(|(_, value)| holds_no_number(value)) {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "the header '{}' holds NaN or infinity, at which brokers break the connection off",
                one_line(name, 60)
            ),
        )
        .hint("send it as text"));
    }
    if let Some(expiration) = &properties.expiration
        && (expiration.is_empty() || !expiration.bytes().all(|b| b.is_ascii_digit()))
    {
        let shown = one_line(expiration, 60);
        return wrong(format!(
            "its expiration '{shown}' is no number of milliseconds"
        ));
    }
    for name in ["CC", "BCC"] {
        let is_text = |value: &FieldValue| matches!(value, FieldValue::LongStr(_));
        match properties.headers.get(name) {
            None => {}
            Some(FieldValue::Array(keys)) if keys.iter().all(is_text) => {}
            Some(_) => return wrong(format!("its header '{name}' is no list of texts")),
        }
    }
    if let Some((what, bytes)) = too_long(properties) {
        return wrong(format!("{what} has {bytes} bytes; AMQP allows 255"));
    }
    let bytes = properties.encoded_bytes();
    let most = frame_bytes.saturating_sub(FRAME_ENVELOPE_BYTES);
    if bytes > most {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!("its properties and headers have {bytes} bytes; a frame holds {most}"),
        )
        .hint("make them smaller, or raise the broker's `frame_max`"));
    }
    Ok(())
}

/// A property, or the name of a header, that is no short string.
fn too_long(properties: &Properties) -> Option<(&'static str, usize)> {
    let long = |bytes: &usize| *bytes > MOST_SHORT;
    let found = [
        ("content_type", &properties.content_type),
        ("content_encoding", &properties.content_encoding),
        ("correlation_id", &properties.correlation_id),
        ("reply_to", &properties.reply_to),
        ("expiration", &properties.expiration),
        ("message_id", &properties.message_id),
        ("type", &properties.kind),
        ("user_id", &properties.user_id),
        ("app_id", &properties.app_id),
        ("cluster_id", &properties.cluster_id),
    ]
    .into_iter()
    .find_map(|(what, text)| Some((what, text.as_ref().map(String::len).filter(long)?)));
    found.or_else(|| {
        let name = longest_name(&properties.headers);
        long(&name).then_some(("the name of a header", name))
    })
}

fn longest_name(headers: &FieldTable) -> usize {
    headers
        .iter()
        .map(|(name, value)| name.len().max(longest_name_in(value)))
        .max()
        .unwrap_or(0)
}

fn longest_name_in(value: &FieldValue) -> usize {
    match value {
        FieldValue::Table(table) => longest_name(table),
        FieldValue::Array(items) => items.iter().map(longest_name_in).max().unwrap_or(0),
        _ => 0,
    }
}

/// Erlang has no such numbers.
fn holds_no_number(value: &FieldValue) -> bool {
    match value {
        FieldValue::F32(n) => !n.is_finite(),
        FieldValue::F64(n) => !n.is_finite(),
        FieldValue::Array(items) => items.iter().any(holds_no_number),
        FieldValue::Table(table) => table.values().any(holds_no_number),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_close_the_channel_is_told_before() {
        let with = |name: &str, value: FieldValue| Properties {
            headers: [(name.to_owned(), value)].into(),
            ..Properties::default()
        };
        let text = |text: &str| FieldValue::text(text);
        for (properties, expected) in [
            (Properties::default(), None),
            (
                Properties {
                    kind: Some("x".repeat(256)),
                    ..Properties::default()
                },
                Some("type has 256 bytes"),
            ),
            (
                with(
                    "t",
                    FieldValue::Table([("n".repeat(256), FieldValue::Void)].into()),
                ),
                Some("the name of a header has 256 bytes"),
            ),
            (with("n", FieldValue::F64(1.5)), None),
            (
                with("n", FieldValue::F64(f64::NAN)),
                Some("NaN or infinity"),
            ),
            (
                with("n", FieldValue::Array(vec![FieldValue::F32(f32::INFINITY)])),
                Some("NaN or infinity"),
            ),
            (with("CC", FieldValue::Array(vec![text("a")])), None),
            (with("CC", text("a")), Some("'CC' is no list")),
            (
                with("BCC", FieldValue::Array(vec![FieldValue::I32(1)])),
                Some("'BCC' is no list"),
            ),
            (with("x", text(&"y".repeat(131_064))), Some("a frame holds")),
            (
                Properties {
                    expiration: Some("1s".to_owned()),
                    ..Properties::default()
                },
                Some("'1s' is no number"),
            ),
        ] {
            let said = brokers_take(&properties, DEFAULT_FRAME_BYTES)
                .map_err(|error| error.message().to_owned());
            match expected {
                None => assert_eq!(said, Ok(())),
                Some(part) => assert!(said.clone().is_err_and(|it| it.contains(part)), "{said:?}"),
            }
        }
    }

    #[test]
    fn properties_fit_the_frame_that_was_agreed_on() {
        let of = |bytes: usize| Properties {
            headers: [("x".to_owned(), FieldValue::text("y".repeat(bytes)))].into(),
            ..Properties::default()
        };
        let empty = of(0).encoded_bytes();
        for frame in [8192, DEFAULT_FRAME_BYTES] {
            let most = frame - FRAME_ENVELOPE_BYTES - empty;
            assert_eq!(brokers_take(&of(most), frame), Ok(()));
            let error = brokers_take(&of(most + 1), frame).expect_err("one more");
            let expected = format!("a frame holds {}", frame - 8);
            assert!(error.message().contains(&expected), "{error}");
        }
    }
}
