//! What a handler learns about its message: `MQ_*` environment variables.

use crate::field::table_to_json;
use crate::handler::Job;
use crate::message::{DeliveryMode, first_route};

/// Linux refuses a single environment string over 128 KiB and then starts
/// nothing; one message with large headers must not look like a bad deploy.
const MAX_VALUE_BYTES: usize = 96 * 1024;

/// Variables that depend on what the publisher set. They are taken away from
/// what mq itself inherited: a worker within a handler must not see the outer
/// message's.
pub(super) const OPTIONAL: [&str; 17] = [
    "MQ_MESSAGE_ID",
    "MQ_CORRELATION_ID",
    "MQ_REPLY_TO",
    "MQ_CONTENT_TYPE",
    "MQ_CONTENT_ENCODING",
    "MQ_TYPE",
    "MQ_APP_ID",
    "MQ_USER_ID",
    "MQ_EXPIRATION",
    "MQ_PRIORITY",
    "MQ_TIMESTAMP",
    "MQ_DELIVERY_MODE",
    "MQ_HEADERS",
    "MQ_HEADERS_OMITTED",
    "MQ_HEADERS_FILE",
    "MQ_RETRY_AFTER",
    STREAM_PROTOCOL,
];

/// Variables of one message that every program for one message gets. A program
/// that works many of them has none of these.
pub(super) const OF_A_MESSAGE: [&str; 6] = [
    "MQ_EXCHANGE",
    "MQ_ROUTING_KEY",
    "MQ_REDELIVERED",
    "MQ_ATTEMPT",
    "MQ_MAX_ATTEMPTS",
    "MQ_BODY_BYTES",
];

/// The version of the line protocol that a long-lived handler is to speak.
pub(super) const STREAM_PROTOCOL: &str = "MQ_STREAM_PROTOCOL";

/// The headers as JSON.
pub(super) fn headers(job: &Job) -> String {
    table_to_json(&job.delivery.properties.headers).to_string()
}

/// Every variable with its value; those of properties that are not set are not set.
pub(super) fn variables(job: &Job) -> Vec<(&'static str, String)> {
    let delivery = &job.delivery;
    let properties = &delivery.properties;
    // The same on every attempt: a handler that switches on the key must not
    // see the key of the retry loop.
    let (exchange, routing_key) = first_route(delivery, job.queue.as_str());
    let mut variables = vec![
        ("MQ_QUEUE", job.queue.as_str().to_owned()),
        ("MQ_EXCHANGE", exchange),
        ("MQ_ROUTING_KEY", routing_key),
        ("MQ_REDELIVERED", delivery.redelivered.to_string()),
        ("MQ_ATTEMPT", job.attempt.to_string()),
        ("MQ_MAX_ATTEMPTS", job.max_attempts.to_string()),
        ("MQ_BODY_BYTES", delivery.body.len().to_string()),
    ];
    let mut optional = |name: &'static str, value: Option<String>| {
        if let Some(value) = value {
            variables.push((name, value));
        }
    };
    optional("MQ_MESSAGE_ID", properties.message_id.clone());
    optional("MQ_CORRELATION_ID", properties.correlation_id.clone());
    optional("MQ_REPLY_TO", properties.reply_to.clone());
    optional("MQ_CONTENT_TYPE", properties.content_type.clone());
    optional("MQ_CONTENT_ENCODING", properties.content_encoding.clone());
    optional("MQ_TYPE", properties.kind.clone());
    optional("MQ_APP_ID", properties.app_id.clone());
    optional("MQ_USER_ID", properties.user_id.clone());
    optional("MQ_EXPIRATION", properties.expiration.clone());
    optional("MQ_PRIORITY", properties.priority.map(|n| n.to_string()));
    optional("MQ_TIMESTAMP", properties.timestamp.map(|n| n.to_string()));
    optional(
        "MQ_DELIVERY_MODE",
        properties.delivery_mode.map(|mode| {
            match mode {
                DeliveryMode::Transient => "1",
                DeliveryMode::Persistent => "2",
            }
            .to_owned()
        }),
    );
    let headers = headers(job);
    if headers.len() <= MAX_VALUE_BYTES {
        variables.push(("MQ_HEADERS", headers));
    } else {
        variables.push(("MQ_HEADERS_OMITTED", headers.len().to_string()));
    }
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
