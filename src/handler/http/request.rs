//! What a handler learns about its message: `MQ-*` headers of the request.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::handler::Job;
use crate::handler::metadata::{bounded_headers, headers_json, metadata};

/// Servers refuse requests with more than 8 KiB of headers in all, or 16.
const MAX_VALUE_BYTES: usize = 4096;

/// What a header cannot hold, or would lose at its ends, and the sign that tells.
const UNSAFE: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// Codings that HTTP knows. Clients put others into the property, `utf-8` above
/// all, and servers refuse what they do not know.
const CODINGS: [&str; 7] = [
    "gzip",
    "x-gzip",
    "deflate",
    "compress",
    "x-compress",
    "br",
    "zstd",
];

/// Headers of W3C Trace Context, which go on under their own names.
const TRACE_CONTEXT: [&str; 2] = ["traceparent", "tracestate"];

/// Every header of a request; those of properties that are not set are not set.
pub(super) fn headers(job: &Job) -> HeaderMap {
    let properties = &job.delivery.properties;
    let mut headers = HeaderMap::new();
    let kind = properties.content_type.as_deref().and_then(plain);
    headers.insert(
        CONTENT_TYPE,
        kind.unwrap_or(HeaderValue::from_static("application/octet-stream")),
    );
    if let Some(coding) = properties.content_encoding.as_deref()
        && CODINGS.contains(&coding.to_ascii_lowercase().as_str())
        && let Some(coding) = plain(coding)
    {
        headers.insert(CONTENT_ENCODING, coding);
    }
    for name in TRACE_CONTEXT {
        let text = properties.headers.get(name).and_then(|it| it.as_text());
        if let Some(value) = text.and_then(plain) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    let mut told: Vec<(&str, String)> = metadata(job)
        .into_iter()
        .map(|(name, value)| (name, utf8_percent_encode(&value, UNSAFE).to_string()))
        .collect();
    told.push(bounded_headers(
        ascii_json(&headers_json(job)),
        MAX_VALUE_BYTES,
    ));
    for (name, value) in told {
        let name = HeaderName::from_bytes(name.replace('_', "-").as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
            headers.insert(name, value);
        }
    }
    headers
}

/// The text as it is, if a header can hold it.
fn plain(text: &str) -> Option<HeaderValue> {
    let is_visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let fits = !text.trim().is_empty() && text.len() <= MAX_VALUE_BYTES;
    HeaderValue::from_str(text)
        .ok()
        .filter(|_| is_visible && fits)
}

/// The same JSON in ASCII alone, so that it is read without any other decoding.
fn ascii_json(json: &str) -> String {
    let mut ascii = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() && c != '\u{7f}' {
            ascii.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::field::FieldValue;
    use crate::message::{Delivery, Properties};
    use crate::topology::QueueName;

    fn job(properties: Properties) -> Job {
        Job {
            queue: QueueName::new("q é").expect("queue"),
            tag: 1,
            delivery: Arc::new(Delivery {
                exchange: String::new(),
                routing_key: " 100%\r\nEvil: é\0".to_owned(),
                redelivered: true,
                properties,
                body: vec![1, 2, 3],
            }),
            attempt: 2,
            max_attempts: 3,
            wants_result: false,
        }
    }

    fn told(job: &Job) -> impl Fn(&str) -> Option<String> + use<> {
        let headers = headers(job);
        move |name| Some(headers.get(name)?.to_str().expect("ASCII").to_owned())
    }

    fn with_headers(headers: &[(&str, FieldValue)]) -> Properties {
        let headers = headers.iter().cloned();
        Properties {
            headers: headers
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            ..Properties::default()
        }
    }

    #[test]
    fn tells_what_the_environment_tells() {
        let job = job(Properties {
            message_id: Some("m".to_owned()),
            priority: Some(7),
            timestamp: Some(1),
            ..Properties::default()
        });
        let headers = headers(&job);
        for (name, value) in metadata(&job) {
            let name = name.replace('_', "-");
            let told = headers.get(&name).expect(&name).to_str().expect("ASCII");
            let decoded = percent_encoding::percent_decode_str(told)
                .decode_utf8()
                .expect("UTF-8");
            assert_eq!(decoded, value, "{name}");
        }
        let value = told(&job);
        assert_eq!(value("MQ-Attempt").as_deref(), Some("2"));
        assert_eq!(value("MQ-Exchange").as_deref(), Some(""));
        assert_eq!(
            value("MQ-Routing-Key").as_deref(),
            Some("%20100%25%0D%0AEvil:%20%C3%A9%00")
        );
        assert_eq!(value("MQ-Type"), None);
        assert_eq!(value("MQ-Headers").as_deref(), Some("{}"));
        assert_eq!(
            value("content-type").as_deref(),
            Some("application/octet-stream")
        );
    }

    #[test]
    fn type_and_coding_go_on_where_http_knows_them() {
        for (kind, coding, expected_kind, expected_coding) in [
            (
                "text/plain; charset=utf-8",
                "GZIP",
                "text/plain; charset=utf-8",
                Some("GZIP"),
            ),
            ("application/json", "utf-8", "application/json", None),
            ("", "", "application/octet-stream", None),
            ("text/é", "gzip\r\nx: y", "application/octet-stream", None),
            ("a\r\nb: c", "gzip, br", "application/octet-stream", None),
        ] {
            let value = told(&job(Properties {
                content_type: Some(kind.to_owned()),
                content_encoding: Some(coding.to_owned()),
                ..Properties::default()
            }));
            assert_eq!(value("content-type").as_deref(), Some(expected_kind));
            assert_eq!(value("content-encoding").as_deref(), expected_coding);
            assert!(value("mq-content-type").is_some());
            assert!(value("mq-content-encoding").is_some());
        }
    }

    #[test]
    fn headers_are_json_in_ascii_or_only_counted() {
        let text = "é 😀\u{7f}% \"";
        let json = |text: &str| with_headers(&[("k", FieldValue::text(text))]);
        let value = told(&job(json(text)));
        let shown = value("MQ-Headers").expect("headers");
        let read: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(read, serde_json::json!({ "k": text }));
        let most = MAX_VALUE_BYTES - r#"{"k":""}"#.len();
        let value = told(&job(json(&"x".repeat(most))));
        assert!(value("MQ-Headers").is_some() && value("MQ-Headers-Omitted").is_none());
        let value = told(&job(json(&"x".repeat(most + 1))));
        assert_eq!(value("MQ-Headers"), None);
        assert_eq!(value("MQ-Headers-Omitted").as_deref(), Some("4097"));
    }

    #[test]
    fn the_trace_goes_on_if_it_can() {
        let value = told(&job(with_headers(&[
            ("traceparent", FieldValue::text("00-ab-cd-01")),
            ("tracestate", FieldValue::text("a=b\r\nEvil: x")),
            ("other", FieldValue::text("x")),
        ])));
        assert_eq!(value("traceparent").as_deref(), Some("00-ab-cd-01"));
        assert_eq!(value("tracestate"), None);
        assert_eq!(value("other"), None);
    }
}
