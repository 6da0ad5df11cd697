//! The copy of a dead letter that is sent back to be worked again.
//!
//! It is the message as it was first published: body and properties stay, what
//! its death left behind goes. A republished `x-death` would count on to the
//! next worker (3.x) or be shown to it stale (every version, measured), `CC`
//! would send it to other queues again, and a foreign `user_id` makes the broker
//! close the channel (406). It carries how often it was sent back.

use crate::field::{FieldTable, FieldValue};
use crate::message::copied::{EXPIRATION, FIT_A_FRAME, OF_A_COPY, without_broker_headers};
use crate::message::death::X_DEATH;
use crate::message::{Delivery, Publication};
use crate::topology::{ExchangeName, RoutingKey};

/// How often a message was sent back.
const COUNT: &str = "mq-replay-count";

/// Which run sent it back last, and as which message.
const ID: &str = "mq-replay-id";

/// How a copy is made.
#[derive(Clone, Copy, Debug)]
pub struct Replaying<'a> {
    /// What this run is called; no other run has the name.
    pub run: &'a str,
    /// The number of the message in this run.
    pub number: u64,
    /// Who we are: the one `user_id` that may stay.
    pub user: &'a str,
    /// Whether a message that had a time to live gets it again.
    pub restore_expiration: bool,
}

/// The copy to publish, with no exchange and key yet.
///
/// `None` when its headers do not fit into a frame, which would break the
/// connection (measured: 131,064 bytes).
#[must_use]
pub fn replay_copy(delivery: &Delivery, how: &Replaying<'_>) -> Option<Publication> {
    let mut properties = without_broker_headers(&delivery.properties);
    let expiration = original_expiration(&delivery.properties.headers);
    for name in OF_A_COPY {
        properties.headers.remove(name);
    }
    if how.restore_expiration && properties.expiration.is_none() {
        properties.expiration = expiration;
    }
    let theirs = delivery.properties.user_id.as_ref();
    properties.user_id = theirs.filter(|user| *user == how.user).cloned();
    let count = replays(&delivery.properties.headers).saturating_add(1);
    for (name, value) in [
        (
            COUNT,
            FieldValue::I64(i64::try_from(count).unwrap_or(i64::MAX)),
        ),
        (ID, FieldValue::text(format!("{}-{}", how.run, how.number))),
    ] {
        properties.headers.insert(name.to_owned(), value);
    }
    (properties.encoded_bytes() <= FIT_A_FRAME).then(|| Publication {
        exchange: ExchangeName::default_exchange(),
        routing_key: RoutingKey::empty(),
        properties,
        body: delivery.body.clone(),
    })
}

/// How often a message says it was sent back.
#[must_use]
pub fn replays(headers: &FieldTable) -> u64 {
    headers
        .get(COUNT)
        .and_then(FieldValue::as_integer)
        .and_then(|count| u64::try_from(count).ok())
        .unwrap_or(0)
}

/// Whether this run sent the message back before.
#[must_use]
pub fn was_replayed_by(headers: &FieldTable, run: &str) -> bool {
    headers
        .get(ID)
        .and_then(FieldValue::as_text)
        .and_then(|id| id.strip_prefix(run))
        .is_some_and(|rest| rest.starts_with('-'))
}

/// The time to live that it was published with, in milliseconds, as decimal text.
fn original_expiration(headers: &FieldTable) -> Option<String> {
    let text = |table: &FieldTable, name: &str| {
        table
            .get(name)
            .and_then(FieldValue::as_text)
            .filter(|text| text.parse::<u64>().is_ok())
            .map(str::to_owned)
    };
    let deaths = match headers.get(X_DEATH) {
        Some(FieldValue::Array(deaths)) => deaths.as_slice(),
        _ => &[],
    };
    // The oldest death comes last; those behind it in a retry loop may have been
    // given another expiration on the way.
    let of_deaths = deaths.iter().rev().find_map(|death| match death {
        FieldValue::Table(death) => text(death, "original-expiration"),
        _ => None,
    });
    text(headers, EXPIRATION).or(of_deaths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::table_from_json;
    use crate::message::{DeliveryMode, Properties};
    use serde_json::json;

    const HOW: Replaying<'_> = Replaying {
        run: "r",
        number: 7,
        user: "me",
        restore_expiration: false,
    };

    fn dead(headers: &serde_json::Value) -> Delivery {
        Delivery {
            exchange: "dlx".to_owned(),
            routing_key: "dead".to_owned(),
            redelivered: false,
            properties: Properties {
                headers: table_from_json(headers.as_object().expect("object")),
                ..Properties::default()
            },
            body: b"body".to_vec(),
        }
    }

    fn copy(delivery: &Delivery, how: &Replaying<'_>) -> Publication {
        replay_copy(delivery, how).expect("fits")
    }

    #[test]
    fn what_its_death_left_behind_goes_and_all_else_stays() {
        let mut delivery = dead(&json!({
            "x-death": [{"queue": "work", "reason": "rejected", "count": 1}],
            "x-first-death-queue": "work", "x-last-death-reason": "rejected",
            "x-delivery-count": 3, "x-acquired-count": 4, "CC": ["other"],
            "mq-deaths": [], "mq-queue": "work", "mq-error-kind": "poison", "mq-attempt": 2,
            "mq-error-reason": "no", "mq-attempts": 3, "mq-exchange": "e", "mq-routing-key": "k",
            "mq-expiration": "500", "mq-cc": ["other"],
            "tenant": "a", "x-exception-message": "boom", "x-mine": true,
        }));
        delivery.properties.priority = Some(3);
        delivery.properties.message_id = Some("id".to_owned());
        delivery.properties.delivery_mode = Some(DeliveryMode::Transient);
        delivery.properties.user_id = Some("me".to_owned());
        let sent = copy(&delivery, &HOW);
        assert_eq!(sent.body, b"body");
        let names: Vec<&str> = sent.properties.headers.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "mq-replay-count",
                "mq-replay-id",
                "tenant",
                "x-exception-message",
                "x-mine"
            ]
        );
        let expected = Properties {
            headers: sent.properties.headers.clone(),
            ..delivery.properties.clone()
        };
        assert_eq!(sent.properties, expected);

        delivery.properties.user_id = Some("other".to_owned());
        assert_eq!(copy(&delivery, &HOW).properties.user_id, None);
    }

    #[test]
    fn it_counts_how_often_and_knows_its_own() {
        let first = dead(&json!({}));
        assert_eq!(replays(&first.properties.headers), 0);
        let mut again = first.clone();
        again.properties.headers = copy(&first, &HOW).properties.headers;
        assert_eq!(replays(&again.properties.headers), 1);
        assert!(was_replayed_by(&again.properties.headers, "r"));
        assert!(!was_replayed_by(&again.properties.headers, "s"));
        assert!(!was_replayed_by(&again.properties.headers, ""));
        assert_eq!(replays(&copy(&again, &HOW).properties.headers), 2);
        for odd in [json!("two"), json!(-1), json!(null)] {
            assert_eq!(
                replays(&dead(&json!({"mq-replay-count": odd})).properties.headers),
                0
            );
        }
    }

    #[test]
    fn a_time_to_live_comes_back_only_when_asked_for() {
        let restoring = Replaying {
            restore_expiration: true,
            ..HOW
        };
        let by_broker = dead(&json!({"x-death": [
            {"queue": "wait", "reason": "expired", "count": 1, "original-expiration": "9"},
            {"queue": "work", "reason": "expired", "count": 1, "original-expiration": "500"},
        ]}));
        let by_worker = dead(&json!({"mq-expiration": "700"}));
        let nonsense = dead(&json!({"mq-expiration": "soon"}));
        for (delivery, restored) in [
            (&by_broker, Some("500")),
            (&by_worker, Some("700")),
            (&nonsense, None),
            (&dead(&json!({})), None),
        ] {
            assert_eq!(copy(delivery, &HOW).properties.expiration, None);
            assert_eq!(
                copy(delivery, &restoring).properties.expiration.as_deref(),
                restored
            );
        }
        let mut own = by_broker.clone();
        own.properties.expiration = Some("3".to_owned());
        assert_eq!(
            copy(&own, &restoring).properties.expiration.as_deref(),
            Some("3")
        );
    }

    #[test]
    fn headers_beyond_a_frame_are_not_sent() {
        let mut delivery = dead(&json!({}));
        delivery
            .properties
            .headers
            .insert("big".to_owned(), FieldValue::LongStr(vec![b'x'; 131_000]));
        assert_eq!(replay_copy(&delivery, &HOW), None);
    }
}
