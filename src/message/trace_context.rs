//! W3C Trace Context: the headers `traceparent` and `tracestate`, by which a trace
//! goes on in who consumes the message.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::field::FieldValue;
use crate::message::Properties;

/// The header that names the trace.
const TRACEPARENT: &str = "traceparent";

/// The header with what tracing systems add.
const TRACESTATE: &str = "tracestate";

/// Members of a `tracestate` at most.
const MOST_MEMBERS: usize = 32;

/// Bytes of a `tracestate` that everybody has to carry.
const MOST_STATE_BYTES: usize = 512;

/// A checked `traceparent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceParent(String);

impl TraceParent {
    /// Reads `VERSION-TRACE-PARENT-FLAGS` in lower-case hex, as in
    /// `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`. Of versions after
    /// 00 more may follow.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] with what is wrong.
    pub fn parse(text: &str) -> Result<Self> {
        match wrong(text) {
            None => Ok(Self(text.to_owned())),
            Some(what) => Err(Error::new(
                ErrorKind::Usage,
                format!("the traceparent is wrong: {what}"),
            )
            .hint(
                "write it as 00-TRACE-PARENT-FLAGS with 32, 16 and 2 digits of lower-case hex, or leave the value out for a new trace",
            )),
        }
    }

    /// That of a new trace, which asks to be recorded. Bits that are all zero are
    /// no id, and become one.
    #[must_use]
    pub fn new(trace: u128, span: u64) -> Self {
        Self(format!("00-{:032x}-{:016x}-01", trace.max(1), span.max(1)))
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is wrong with a `traceparent`.
fn wrong(text: &str) -> Option<&'static str> {
    let mut parts = text.splitn(5, '-');
    let [version, trace, parent, flags] = [(); 4].map(|()| parts.next().unwrap_or_default());
    let rest = parts.next();
    let is_hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_zero = |part: &str| part.bytes().all(|b| b == b'0');
    if !is_hex(version, 2) || version == "ff" {
        Some("its version is no two digits of lower-case hex below ff")
    } else if !is_hex(trace, 32) || is_zero(trace) {
        Some("its trace id is no 32 digits of lower-case hex, or all zero")
    } else if !is_hex(parent, 16) || is_zero(parent) {
        Some("its parent id is no 16 digits of lower-case hex, or all zero")
    } else if !is_hex(flags, 2) {
        Some("its flags are no two digits of lower-case hex")
    } else if version == "00" && rest.is_some() {
        Some("something follows the flags, which version 00 does not have")
    } else {
        None
    }
}

/// Whether a `tracestate` may be passed on: at most 32 members `KEY=VALUE` with
/// commas between them, in printable ASCII, 512 bytes in all.
#[must_use]
pub fn is_trace_state(text: &str) -> bool {
    let is_member = |member: &str| {
        let member = member.trim_matches([' ', '\t']);
        member.is_empty()
            || member.split_once('=').is_some_and(|(key, value)| {
                let is_key_byte =
                    |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-*/@".contains(&b);
                !key.is_empty()
                    && key.bytes().all(is_key_byte)
                    && !value.is_empty()
                    && value
                        .bytes()
                        .all(|b| (b' '..=b'~').contains(&b) && b != b'=')
            })
    };
    text.len() <= MOST_STATE_BYTES
        && text.contains('=')
        && text.split(',').count() <= MOST_MEMBERS
        && text.split(',').all(is_member)
}

/// Adds the headers, unless the message is part of a trace already.
pub fn add_trace(properties: &mut Properties, parent: &TraceParent, state: Option<&str>) {
    let headers = &mut properties.headers;
    if headers
        .keys()
        .any(|name| name.eq_ignore_ascii_case(TRACEPARENT))
    {
        return;
    }
    headers.insert(TRACEPARENT.to_owned(), FieldValue::text(&*parent.0));
    match state {
        Some(state) => headers.insert(TRACESTATE.to_owned(), FieldValue::text(state)),
        // One without the other belongs to no trace.
        None => headers.remove(TRACESTATE),
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_the_recommendation_forbids_is_told() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let parent = "00f067aa0ba902b7";
        for (text, expected) in [
            (GOOD.to_owned(), None),
            (format!("00-{trace}-{parent}-00"), None),
            (format!("cc-{trace}-{parent}-01"), None),
            (
                format!("cc-{trace}-{parent}-01-what-the-future-brings"),
                None,
            ),
            (String::new(), Some("version")),
            (format!("ff-{trace}-{parent}-01"), Some("version")),
            (format!("0-{trace}-{parent}-01"), Some("version")),
            (
                format!("00-{}-{parent}-01", trace.to_uppercase()),
                Some("trace id"),
            ),
            (
                format!("00-{}-{parent}-01", "0".repeat(32)),
                Some("trace id"),
            ),
            (format!("00-{trace}0-{parent}-01"), Some("trace id")),
            (
                format!("00-{trace}-{}-01", "0".repeat(16)),
                Some("parent id"),
            ),
            (format!("00-{trace}-{parent}"), Some("flags")),
            (format!("00-{trace}-{parent}-1"), Some("flags")),
            (format!("00-{trace}-{parent}-0g"), Some("flags")),
            (format!("00-{trace}-{parent}-01-more"), Some("follows")),
            (format!("00-{trace}-{parent}-01 "), Some("flags")),
        ] {
            let said = TraceParent::parse(&text)
                .map(drop)
                .map_err(|e| e.to_string());
            match expected {
                None => assert_eq!(said, Ok(()), "{text}"),
                Some(part) => assert!(said.is_err_and(|said| said.contains(part)), "{text}"),
            }
        }
    }

    #[test]
    fn a_state_that_nobody_could_read_is_not_passed_on() {
        let many = |count| vec!["a=1"; count].join(",");
        for (text, expected) in [
            ("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", true),
            ("fw529a3039@dt=FfAEI, b=2", true),
            ("a=1,,b=2", true),
            (&many(32), true),
            (&many(33), false),
            ("", false),
            ("a", false),
            ("a=", false),
            ("=1", false),
            ("A=1", false),
            ("a=1=2", false),
            ("a=\u{1b}", false),
            (&format!("a={}", "x".repeat(510)), true),
            (&format!("a={}", "x".repeat(511)), false),
        ] {
            assert_eq!(is_trace_state(text), expected, "{text}");
        }
    }

    #[test]
    fn a_message_of_a_trace_stays_in_it() {
        let of = |headers: &[(&str, &str)]| Properties {
            headers: (headers.iter())
                .map(|(name, value)| ((*name).to_owned(), FieldValue::text(*value)))
                .collect(),
            ..Properties::default()
        };
        let parent = TraceParent::parse(GOOD).expect("good");
        for (before, state, after) in [
            (of(&[]), None, of(&[("traceparent", GOOD)])),
            (
                of(&[]),
                Some("a=1"),
                of(&[("traceparent", GOOD), ("tracestate", "a=1")]),
            ),
            (
                of(&[("tracestate", "b=2")]),
                None,
                of(&[("traceparent", GOOD)]),
            ),
            (
                of(&[("traceparent", "x")]),
                Some("a=1"),
                of(&[("traceparent", "x")]),
            ),
            (
                of(&[("Traceparent", "x")]),
                None,
                of(&[("Traceparent", "x")]),
            ),
        ] {
            let mut properties = before.clone();
            add_trace(&mut properties, &parent, state);
            assert_eq!(properties, after, "{before:?}");
        }
    }

    proptest! {
        #[test]
        fn a_new_one_can_be_read(trace in any::<u128>(), span in any::<u64>()) {
            let text = TraceParent::new(trace, span).to_string();
            prop_assert_eq!(text.len(), 55);
            prop_assert!(TraceParent::parse(&text).is_ok(), "{}", text);
        }

        #[test]
        fn any_text_is_taken_as_it_is_or_refused(text in "\\PC{0,70}") {
            if let Ok(parent) = TraceParent::parse(&text) {
                prop_assert_eq!(parent.to_string(), text);
            }
        }
    }
}
