//! What a body is, by its bytes.

use serde::de::IgnoredAny;

use crate::message::{Properties, Publication};

/// The MIME type of a body by its bytes; of an empty one nothing can be said.
///
/// `application/json` for an object or a list, `text/plain; charset=utf-8` for
/// other UTF-8 without control characters but tab, line feed, form feed and
/// carriage return, `application/octet-stream` for the rest.
#[must_use]
pub fn guessed_content_type(body: &[u8]) -> Option<&'static str> {
    if body.is_empty() {
        return None;
    }
    let starts_as_json = matches!(body.trim_ascii_start().first(), Some(b'{' | b'['));
    if starts_as_json && serde_json::from_slice::<IgnoredAny>(body).is_ok() {
        return Some("application/json");
    }
    let is_text = std::str::from_utf8(body).is_ok_and(|text| {
        !text
            .chars()
            .any(|c| c.is_control() && !"\t\n\r\u{c}".contains(c))
    });
    Some(if is_text {
        "text/plain; charset=utf-8"
    } else {
        "application/octet-stream"
    })
}

/// Sets the content type by the body, unless the message says what it is: by its
/// type, or by an encoding, under which the bytes tell nothing.
pub fn guess_content_type(message: &mut Publication) {
    let Properties {
        content_type,
        content_encoding,
        ..
    } = &mut message.properties;
    if content_type.is_none() && content_encoding.is_none() {
        *content_type = guessed_content_type(&message.body).map(str::to_owned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{ExchangeName, RoutingKey};

    #[test]
    fn json_is_told_from_text_and_text_from_bytes() {
        const JSON: Option<&str> = Some("application/json");
        const TEXT: Option<&str> = Some("text/plain; charset=utf-8");
        const BYTES: Option<&str> = Some("application/octet-stream");
        for (body, expected) in [
            (&b""[..], None),
            (b"{}", JSON),
            (b" \r\n[1, {\"a\": null}]\n", JSON),
            // A number or a string alone is more often a text.
            (b"17", TEXT),
            (b"\"a\"", TEXT),
            (b"true", TEXT),
            (b"{\"a\":", TEXT),
            (b"{} {}", TEXT),
            (b"{\"a\":\xff}", BYTES),
            (b"\xef\xbb\xbf{}", TEXT),
            ("é\tü\r\n".as_bytes(), TEXT),
            (b"a\0b", BYTES),
            (b"\x1b[2J", BYTES),
            (b"\x7f", BYTES),
            (b"\x1f\x8b\x08", BYTES),
            (b"\xff", BYTES),
        ] {
            assert_eq!(guessed_content_type(body), expected, "{body:?}");
        }
    }

    #[test]
    fn what_the_message_says_of_itself_is_left() {
        let guessed = |content_type: Option<&str>, content_encoding: Option<&str>| {
            let mut message = Publication {
                exchange: ExchangeName::default_exchange(),
                routing_key: RoutingKey::new("k".to_owned()).expect("key"),
                properties: Properties {
                    content_type: content_type.map(str::to_owned),
                    content_encoding: content_encoding.map(str::to_owned),
                    ..Properties::default()
                },
                body: b"{}".to_vec(),
            };
            guess_content_type(&mut message);
            message.properties.content_type
        };
        assert_eq!(guessed(None, None).as_deref(), Some("application/json"));
        assert_eq!(guessed(Some("a/b"), None).as_deref(), Some("a/b"));
        assert_eq!(guessed(None, Some("gzip")), None);
    }
}
