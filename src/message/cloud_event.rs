//! CloudEvents 1.0 in the binary content mode: attributes in headers, the data in
//! the body as it is.
//!
//! There is no binding for AMQP 0-9-1. The one for AMQP (1.0) names the attributes
//! `cloudEvents:NAME` or `cloudEvents_NAME`, and every reader of it has to take
//! both; clients of RabbitMQ write the first, and a broker hands headers to
//! consumers of AMQP 1.0 under the same name. `ce-NAME` is what Knative uses.

use crate::error::{Error, ErrorKind, Result};
use crate::field::FieldValue;
use crate::message::Properties;

/// How headers begin that hold attributes of an event.
const PREFIX: &str = "cloudEvents:";

/// All prefixes that are in use.
const KNOWN_PREFIXES: [&str; 3] = [PREFIX, "cloudEvents_", "ce-"];

/// The content type of events that are whole in the body.
const STRUCTURED: &str = "application/cloudevents";

/// The attributes that differ from event to event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudEvent {
    /// What happened.
    pub kind: String,
    /// Where: a URI or a path of one.
    pub source: String,
    /// To what.
    pub subject: Option<String>,
    /// When, as RFC 3339.
    pub time: String,
}

impl CloudEvent {
    /// Whether the attributes are what the specification asks for.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when one is empty, or the source has a space.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::new(ErrorKind::InvalidInput, what));
        if self.kind.is_empty() {
            return wrong("the type of the event (--ce-type) is empty");
        }
        if self.source.is_empty() {
            return wrong("the source of the event (--ce-source) is empty");
        }
        if self
            .source
            .contains(|c: char| c.is_whitespace() || c.is_control())
        {
            return wrong("the source of the event (--ce-source) is no URI: it has spaces");
        }
        if self.subject.as_deref() == Some("") {
            return wrong("the subject of the event (--ce-subject) is empty");
        }
        Ok(())
    }

    /// Makes an event of a message that is none. Its id is the message id, which is
    /// made by `new_id` if there is none; its `datacontenttype` is the content type.
    pub fn describe(&self, properties: &mut Properties, new_id: impl FnOnce() -> String) {
        if is_event(properties) {
            return;
        }
        let id = properties.message_id.get_or_insert_with(new_id).clone();
        let attributes = [
            ("specversion", Some("1.0")),
            ("id", Some(&*id)),
            ("source", Some(&*self.source)),
            ("type", Some(&*self.kind)),
            ("subject", self.subject.as_deref()),
            ("time", Some(&*self.time)),
        ];
        for (name, value) in attributes {
            // What was given as a header is meant.
            if let Some(value) = value {
                (properties.headers.entry(format!("{PREFIX}{name}")))
                    .or_insert_with(|| FieldValue::text(value));
            }
        }
    }
}

/// Whether a message is an event already, in either mode.
fn is_event(properties: &Properties) -> bool {
    let has_version = KNOWN_PREFIXES.iter().any(|prefix| {
        properties
            .headers
            .contains_key(&format!("{prefix}specversion"))
    });
    has_version
        || properties
            .content_type
            .as_deref()
            .is_some_and(is_structured)
}

/// Whether a body of this content type is a whole event, attributes and data.
#[must_use]
pub fn is_structured(content_type: &str) -> bool {
    content_type.to_ascii_lowercase().starts_with(STRUCTURED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> CloudEvent {
        CloudEvent {
            kind: "order.created".to_owned(),
            source: "/shop".to_owned(),
            subject: Some("1001".to_owned()),
            time: "2026-11-30T15:00:00Z".to_owned(),
        }
    }

    fn described(mut properties: Properties) -> Vec<(String, String)> {
        event().describe(&mut properties, || "new".to_owned());
        let mut told: Vec<_> = (properties.headers.iter())
            .map(|(name, value)| {
                let value = value.as_text().unwrap_or_default().to_owned();
                (name.clone(), value)
            })
            .collect();
        told.push((
            "message_id".to_owned(),
            properties.message_id.unwrap_or_default(),
        ));
        told
    }

    fn with_header(name: &str, value: &str) -> Properties {
        Properties {
            headers: [(name.to_owned(), FieldValue::text(value))].into(),
            ..Properties::default()
        }
    }

    #[test]
    fn a_message_becomes_an_event() {
        let text = |id: &str| {
            [
                ("cloudEvents:specversion", "1.0"),
                ("cloudEvents:id", id),
                ("cloudEvents:source", "/shop"),
                ("cloudEvents:type", "order.created"),
                ("cloudEvents:subject", "1001"),
                ("cloudEvents:time", "2026-11-30T15:00:00Z"),
                ("message_id", id),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
        };
        let all = |properties| described(properties).into_iter().collect();
        assert_eq!(text("new"), all(Properties::default()));
        let known = Properties {
            message_id: Some("m1".to_owned()),
            ..Properties::default()
        };
        assert_eq!(text("m1"), all(known));
    }

    #[test]
    fn an_event_stays_what_it_is_and_a_header_that_was_given_too() {
        for name in [
            "cloudEvents:specversion",
            "cloudEvents_specversion",
            "ce-specversion",
        ] {
            let told = described(with_header(name, "1.0"));
            assert_eq!(told.len(), 2, "{told:?}");
        }
        let structured = Properties {
            content_type: Some("application/cloudevents+json; charset=utf-8".to_owned()),
            ..Properties::default()
        };
        assert_eq!(described(structured).len(), 1);
        let told = described(with_header("cloudEvents:time", "2020-01-01T00:00:00Z"));
        assert!(told.contains(&(
            "cloudEvents:time".to_owned(),
            "2020-01-01T00:00:00Z".to_owned()
        )));
    }

    #[test]
    fn attributes_are_checked() {
        assert_eq!(event().check(), Ok(()));
        for (wrong, expected) in [
            (
                CloudEvent {
                    kind: String::new(),
                    ..event()
                },
                "--ce-type",
            ),
            (
                CloudEvent {
                    source: String::new(),
                    ..event()
                },
                "--ce-source",
            ),
            (
                CloudEvent {
                    source: "a b".to_owned(),
                    ..event()
                },
                "no URI",
            ),
            (
                CloudEvent {
                    subject: Some(String::new()),
                    ..event()
                },
                "--ce-subject",
            ),
        ] {
            let said = wrong.check().expect_err(expected).to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}
