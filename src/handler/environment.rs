//! What a handler learns about its message: `MQ_*` environment variables.

use crate::handler::Job;
use crate::handler::metadata::{bounded_headers, headers_json, metadata};

/// Linux refuses a single environment string over 128 KiB and then starts
/// nothing; one message with large headers must not look like a bad deploy.
const MAX_VALUE_BYTES: usize = 96 * 1024;

/// The version of the line protocol that a long-lived handler is to speak.
pub(super) const STREAM_PROTOCOL: &str = "MQ_STREAM_PROTOCOL";

/// Every variable with its value; those of properties that are not set are not set.
pub(super) fn variables(job: &Job) -> Vec<(&'static str, String)> {
    let mut variables = metadata(job);
    variables.push(bounded_headers(headers_json(job), MAX_VALUE_BYTES));
    for (_, value) in &mut variables {
        // An environment string ends at a NUL; the text keeps its other letters.
        if value.contains('\0') {
            *value = value.replace('\0', "\u{fffd}");
        }
    }
    variables
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::field::FieldValue;
    use crate::message::{Delivery, Properties};
    use crate::topology::QueueName;

    fn job(headers: &[(&str, FieldValue)]) -> Job {
        Job {
            queue: QueueName::new("q").expect("queue"),
            tag: 1,
            delivery: Arc::new(Delivery {
                exchange: "e".to_owned(),
                routing_key: "a\0b".to_owned(),
                redelivered: true,
                properties: Properties {
                    message_id: Some("m".to_owned()),
                    headers: headers
                        .iter()
                        .map(|(name, value)| ((*name).to_owned(), value.clone()))
                        .collect(),
                    ..Properties::default()
                },
                body: vec![1, 2, 3],
            }),
            attempt: 2,
            max_attempts: 3,
            wants_result: false,
        }
    }

    #[test]
    fn tells_what_is_set_and_survives_hostile_values() {
        let job = job(&[("k", FieldValue::text("v\0"))]);
        let variables = variables(&job);
        let value = |name: &str| {
            variables
                .iter()
                .find(|(candidate, _)| *candidate == name)
                .map(|(_, value)| value.as_str())
        };
        assert_eq!(value("MQ_ATTEMPT"), Some("2"));
        assert_eq!(value("MQ_ROUTING_KEY"), Some("a\u{fffd}b"));
        assert_eq!(value("MQ_MESSAGE_ID"), Some("m"));
        assert_eq!(value("MQ_TYPE"), None);
        assert_eq!(value("MQ_HEADERS"), Some(r#"{"k":"v\u0000"}"#));
        assert_eq!(value("MQ_BODY_BYTES"), Some("3"));
    }

    #[test]
    fn a_retried_message_shows_the_route_it_first_came_by() {
        let death = serde_json::json!([
            {"queue": "wait", "reason": "expired", "count": 1, "exchange": "dlx", "routing-keys": ["retry"]},
            {"queue": "q", "reason": "rejected", "count": 1, "exchange": "orders", "routing-keys": ["new"]},
        ]);
        let job = job(&[("x-death", FieldValue::from_json(&death))]);
        let variables = variables(&job);
        assert!(variables.contains(&("MQ_EXCHANGE", "orders".to_owned())));
        assert!(variables.contains(&("MQ_ROUTING_KEY", "new".to_owned())));
    }

    #[test]
    fn leaves_out_headers_that_would_keep_the_program_from_starting() {
        let job = job(&[("k", FieldValue::text("x".repeat(200_000)))]);
        let variables = variables(&job);
        assert!(variables.iter().all(|(name, _)| *name != "MQ_HEADERS"));
        assert!(
            variables
                .iter()
                .any(|(name, _)| *name == "MQ_HEADERS_OMITTED")
        );
    }
}
