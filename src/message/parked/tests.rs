use super::*;
use crate::message::copied::FIT_A_FRAME;
use crate::message::{Properties, copied_attempts, first_route, retry_copy};
use crate::retry::Waiting;
use crate::topology::{ExchangeName, RoutingKey};
use serde_json::json;

fn delivery() -> Delivery {
    let headers = json!({
        "app": "kept",
        "x-death": [
            {"queue": "wait", "reason": "expired", "count": 1, "time": 9, "exchange": "dlx", "routing-keys": ["retry"]},
            {"queue": "work", "reason": "rejected", "count": 1, "time": 8, "exchange": "orders", "routing-keys": ["order.created"]}
        ],
        "x-first-death-queue": "work",
        "x-delivery-count": 4,
        "CC": ["elsewhere"],
    });
    Delivery {
        exchange: String::new(),
        routing_key: "work".to_owned(),
        redelivered: false,
        properties: Properties {
            headers: crate::field::table_from_json(headers.as_object().expect("object")),
            user_id: Some("somebody".to_owned()),
            expiration: Some("1000".to_owned()),
            message_id: Some("m1".to_owned()),
            ..Properties::default()
        },
        body: vec![0, 255, 7],
    }
}

fn address() -> DeadLetterAddress {
    DeadLetterAddress {
        exchange: ExchangeName::new("dlx").expect("exchange"),
        key: RoutingKey::new("dead").expect("key"),
    }
}

#[test]
fn a_parked_copy_tells_its_story_and_counts_for_nobody() {
    let queue = QueueName::new("work").expect("queue");
    let reason = BuryReason::Exhausted {
        why: format!("é{}", "x".repeat(2000)),
    };
    let copy = park(
        &delivery(),
        &address(),
        &Parking {
            queue: &queue,
            reason: &reason,
            trace: &Trace {
                end: Some("exit 1".to_owned()),
                stderr: Some(format!("{}\nlast words", "é".repeat(2000))),
            },
            attempt: 2,
            worker: "host:7",
            now: 77,
        },
    );
    assert_eq!(copy.body, [0, 255, 7]);
    assert_eq!(copy.properties.message_id.as_deref(), Some("m1"));
    assert_eq!(copy.properties.user_id, None);
    assert_eq!(copy.properties.expiration, None);
    let headers = &copy.properties.headers;
    assert!(
        headers.keys().all(|name| !name.starts_with("x-")),
        "{headers:?}"
    );
    assert!(!headers.contains_key("CC"));
    assert_eq!(headers.get("app"), Some(&FieldValue::text("kept")));
    assert_eq!(
        headers.get("mq-expiration"),
        Some(&FieldValue::text("1000"))
    );
    let told = ParkedHeaders::from_headers(headers).expect("parked");
    assert_eq!(told.reason, "exhausted");
    assert_eq!(told.attempts, Some(2));
    assert_eq!(told.exchange.as_deref(), Some("orders"));
    assert_eq!(told.routing_key.as_deref(), Some("order.created"));
    assert_eq!(told.time, Some(77));
    assert_eq!(told.deaths.rejected_from("work"), 1);
    assert!(told.error.expect("error").len() <= 1024);
    let text = |name: &str| headers.get(name).and_then(FieldValue::as_text);
    assert_eq!(text("mq-error-stderr"), Some("last words"));
    assert_eq!(text("mq-error-exit"), Some("exit 1"));
    assert_eq!(text("mq-error-layer"), Some("downstream"));
    assert_eq!(text("mq-error-worker"), Some("host:7"));
}

#[test]
fn a_copy_that_would_not_fit_a_frame_tells_less() {
    let mut large = delivery();
    large.properties.headers.remove("x-death");
    let filler = "x".repeat(130_500);
    large
        .properties
        .headers
        .insert("large".to_owned(), FieldValue::text(filler));
    let queue = QueueName::new("work").expect("queue");
    let reason = BuryReason::Poison {
        why: "w".repeat(1000),
    };
    let trace = Trace {
        end: Some("exit 65".to_owned()),
        stderr: Some("e".repeat(2000)),
    };
    let parking = Parking {
        queue: &queue,
        reason: &reason,
        trace: &trace,
        attempt: 1,
        worker: "host:7",
        now: 7,
    };
    let copy = park(&large, &address(), &parking);
    assert!(copy.properties.encoded_bytes() <= FIT_A_FRAME);
    assert!(!copy.properties.headers.contains_key("mq-error-stderr"));
    let told = ParkedHeaders::from_headers(&copy.properties.headers).expect("parked");
    assert_eq!((told.reason.as_str(), told.attempts), ("poison", Some(1)));
    let waiting = Waiting {
        address: address(),
        expiration: None,
    };
    let again = retry_copy(&large, &waiting, 1, None);
    assert!(again.properties.encoded_bytes() <= FIT_A_FRAME);
    assert_eq!(copied_attempts(&again.properties.headers), 1);
}

#[test]
fn a_retry_copy_carries_its_attempts_and_its_first_route() {
    let waiting = Waiting {
        address: address(),
        expiration: None,
    };
    let copy = retry_copy(&delivery(), &waiting, 2, None);
    assert_eq!(copy.body, delivery().body);
    let sooner = Waiting {
        expiration: Some(std::time::Duration::from_millis(1500)),
        ..waiting
    };
    let changed = retry_copy(&delivery(), &sooner, 2, Some(b"mended".to_vec()));
    assert_eq!(changed.body, b"mended");
    assert_eq!(changed.properties.expiration.as_deref(), Some("1500"));
    let headers = &copy.properties.headers;
    assert!(!headers.contains_key("x-death"), "{headers:?}");
    assert_eq!(copied_attempts(headers), 2);
    assert_eq!(copy.properties.expiration, None);
    // Come back from the wait queue, it still knows where it came from.
    let again = Delivery {
        properties: copy.properties,
        ..delivery()
    };
    assert_eq!(
        first_route(&again, "work"),
        ("orders".to_owned(), "order.created".to_owned())
    );
    // And buried it forgets the count, so that a move by hand starts afresh.
    let queue = QueueName::new("work").expect("queue");
    let reason = BuryReason::Poison { why: "w".into() };
    let parking = Parking {
        queue: &queue,
        reason: &reason,
        trace: &Trace::default(),
        attempt: 3,
        worker: "host:7",
        now: 7,
    };
    let buried = park(&again, &address(), &parking);
    assert_eq!(copied_attempts(&buried.properties.headers), 0);
}
