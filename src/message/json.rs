//! Messages as JSON: the form `--output json` prints.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value as Json, json};

use crate::field::table_to_json;
use crate::message::{DeliveryMode, Properties};

/// The properties that are set, under AMQP's own names.
#[must_use]
pub fn properties_to_json(properties: &Properties) -> Json {
    let mut object = Map::new();
    set_properties(&mut object, properties);
    if !properties.headers.is_empty() {
        object.insert("headers".to_owned(), table_to_json(&properties.headers));
    }
    Json::Object(object)
}

/// The same without the headers.
pub(super) fn set_properties(object: &mut Map<String, Json>, properties: &Properties) {
    let mut text = |name: &str, value: &Option<String>| {
        if let Some(value) = value {
            object.insert(name.to_owned(), json!(value));
        }
    };
    text("content_type", &properties.content_type);
    text("content_encoding", &properties.content_encoding);
    text("correlation_id", &properties.correlation_id);
    text("reply_to", &properties.reply_to);
    text("expiration", &properties.expiration);
    text("message_id", &properties.message_id);
    text("type", &properties.kind);
    text("user_id", &properties.user_id);
    text("app_id", &properties.app_id);
    text("cluster_id", &properties.cluster_id);
    if let Some(mode) = properties.delivery_mode {
        let number = match mode {
            DeliveryMode::Transient => 1,
            DeliveryMode::Persistent => 2,
        };
        object.insert("delivery_mode".to_owned(), json!(number));
    }
    if let Some(priority) = properties.priority {
        object.insert("priority".to_owned(), json!(priority));
    }
    if let Some(timestamp) = properties.timestamp {
        object.insert("timestamp".to_owned(), json!(timestamp));
    }
}

/// At most `limit` bytes of a body: `body`, `body_encoding` (`text` or
/// `base64`), `body_bytes` (of the whole body) and `body_truncated`.
///
/// A body that is UTF-8 up to the cut is text; the cut never splits a character.
#[must_use]
pub fn body_to_json(body: &[u8], whole: usize, limit: usize) -> Map<String, Json> {
    let shown = body.get(..limit.min(body.len())).unwrap_or_default();
    let cut = shown.len() < whole;
    let text = match std::str::from_utf8(shown) {
        Ok(text) => Some(text),
        // An error at the very end of a cut body is the cut's own doing.
        Err(error) if cut && error.error_len().is_none() => shown
            .get(..error.valid_up_to())
            .and_then(|valid| std::str::from_utf8(valid).ok()),
        Err(_) => None,
    };
    let (body, encoding) = match text {
        Some(text) => (json!(text), "text"),
        None => (json!(BASE64.encode(shown)), "base64"),
    };
    let mut object = Map::new();
    object.insert("body".to_owned(), body);
    object.insert("body_encoding".to_owned(), json!(encoding));
    object.insert("body_bytes".to_owned(), json!(whole));
    object.insert("body_truncated".to_owned(), json!(cut));
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_text_when_they_can_be() {
        for (body, limit, shown, encoding, cut) in [
            (&b"abc"[..], 10, "abc", "text", false),
            (b"abc", 2, "ab", "text", true),
            ("aé".as_bytes(), 2, "a", "text", true),
            (b"\xff\x00", 10, "/wA=", "base64", false),
            (b"\xff\x00a", 2, "/wA=", "base64", true),
            (b"a\xc3", 10, "YcM=", "base64", false),
            (b"", 10, "", "text", false),
        ] {
            let json = body_to_json(body, body.len(), limit);
            assert_eq!(json.get("body"), Some(&json!(shown)), "{body:?}");
            assert_eq!(json.get("body_encoding"), Some(&json!(encoding)));
            assert_eq!(json.get("body_truncated"), Some(&json!(cut)));
            assert_eq!(json.get("body_bytes"), Some(&json!(body.len())));
        }
    }
}
