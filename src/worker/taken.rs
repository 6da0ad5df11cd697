//! What a delivery tells about its message's past: attempts made, returns
//! without an outcome, and whether a nack could lose it.
//!
//! The broker's records count only where the broker itself wrote them last. A
//! message that somebody moved back (management UI, shovel, script) carries old
//! ones along, and starts afresh.

use crate::broker::BrokerFacts;
use crate::message::{Delivery, copied_attempts};
use crate::retry::{RetryPath, Strategy};

/// Headers, in bytes, that leave no room for what a dead-lettering adds: one
/// frame of 128 KiB must hold them all, and lapin refuses a larger one.
const FULL_HEADERS: usize = 128 * 1024 - 4096;

/// What a delivery tells about its message's past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// The attempt that is to be made; 1 for the first.
    pub(super) attempt: u32,
    /// Whether a nack could lose the message, or carry along what it must not.
    pub(super) nack_is_unsafe: bool,
    /// How often it came back to its queue without an outcome.
    pub(super) returns: u64,
}

/// Reads a delivery of a queue that is worked with this path, or only printed.
pub(super) fn taken(delivery: &Delivery, path: Option<&RetryPath>, facts: &BrokerFacts) -> Taken {
    let Some(path) = path else {
        return Taken {
            attempt: 1,
            nack_is_unsafe: false,
            returns: 0,
        };
    };
    let queue = path.queue.as_str();
    let deaths = delivery.deaths();
    let died_otherwise = deaths
        .deaths
        .iter()
        .any(|death| death.queue == queue && death.reason != "rejected");
    // A nack makes the broker add to the headers; where there is no room
    // for that the message could never be delivered again.
    let no_room = delivery.properties.encoded_bytes() > FULL_HEADERS;
    let fatal = no_room
        || (deaths.malformed && facts.malformed_x_death_is_fatal())
        || (died_otherwise && facts.older_deaths_are_fatal());
    let copied = copied_attempts(&delivery.properties.headers);
    let (failed, stale) = match path.strategy {
        // Who comes out of a wait queue has just expired there: the head of the
        // records is reliable on every version (measured).
        Strategy::Dlx => match deaths.newest() {
            None => (copied, false),
            Some(newest) if newest.reason == "expired" && newest.queue != queue => {
                (deaths.rejected_from(queue).saturating_add(copied), false)
            }
            Some(_) => (0, true),
        },
        // Every retry is a copy; a rejection is of somebody else, who moved it
        // back from the dead-letter queue.
        Strategy::Backoff if deaths.rejected_from(queue) > 0 => (0, false),
        Strategy::Backoff => (copied, false),
        // A count that came along from where it died goes on here (measured on
        // 4.3.6), so only a message that never died is counted by the queue.
        Strategy::Native if deaths.deaths.is_empty() && !deaths.malformed => {
            (copied.saturating_add(delivery_count(delivery)), false)
        }
        Strategy::Native => (0, true),
        Strategy::Immediate => (0, false),
    };
    Taken {
        attempt: u32::try_from(failed).unwrap_or(u32::MAX).saturating_add(1),
        nack_is_unsafe: fatal || stale,
        returns: returns(delivery, path, facts),
    }
}

/// How often a quorum queue counted that the message came back, without the
/// rejections that some versions count too. Classic queues count nothing.
fn returns(delivery: &Delivery, path: &RetryPath, facts: &BrokerFacts) -> u64 {
    // Under `native` a return is an attempt.
    if !path.counts_returns || path.strategy == Strategy::Native {
        return 0;
    }
    let queue = path.queue.as_str();
    let deaths = delivery.deaths();
    // A count of another queue came along, nobody knows how large.
    let died_elsewhere = deaths.deaths.iter().any(|death| {
        death.reason == "delivery_limit" || (death.reason == "rejected" && death.queue != queue)
    });
    if died_elsewhere || deaths.malformed {
        return 0;
    }
    let rejected = if facts.nacks_raise_the_delivery_count() {
        deaths.rejected_from(queue)
    } else {
        0
    };
    delivery_count(delivery).saturating_sub(rejected)
}

/// The queue's own count; on a first delivery the header is a client's
/// (measured on 4.0.5 and 4.3.6).
fn delivery_count(delivery: &Delivery) -> u64 {
    if !delivery.redelivered {
        return 0;
    }
    delivery
        .properties
        .headers
        .get("x-delivery-count")
        .and_then(crate::field::FieldValue::as_integer)
        .and_then(|count| u64::try_from(count).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use serde_json::{Value as Json, json};

    use super::*;
    use crate::message::Properties;
    use crate::topology::{DeadLetterKey, ExchangeName, QueueName};

    fn path(strategy: Strategy, counts_returns: bool) -> RetryPath {
        RetryPath {
            queue: QueueName::new("work").expect("queue"),
            strategy,
            counts_returns,
            single_active_consumer: false,
            exchange: ExchangeName::new("dlx").expect("exchange"),
            key: DeadLetterKey::Kept,
            wait_queues: BTreeSet::new(),
            steps: Vec::new(),
            dead_letter_queues: BTreeSet::new(),
            park: None,
            longest_wait: Duration::ZERO,
            nack_is_confirmed: true,
        }
    }

    fn delivery(redelivered: bool, headers: &Json) -> Delivery {
        Delivery {
            exchange: String::new(),
            routing_key: "work".to_owned(),
            redelivered,
            properties: Properties {
                headers: crate::field::table_from_json(headers.as_object().expect("object")),
                ..Properties::default()
            },
            body: Vec::new(),
        }
    }

    fn death(queue: &str, reason: &str, count: u64) -> Json {
        json!({"queue": queue, "reason": reason, "count": count, "exchange": "", "routing-keys": ["k"]})
    }

    #[test]
    fn attempts_are_counted_by_who_brought_the_message_back() {
        use Strategy::{Backoff, Dlx, Immediate, Native};
        let retried = json!([death("wait", "expired", 2), death("work", "rejected", 2)]);
        let moved_back = json!([death("work", "rejected", 5)]);
        let facts = BrokerFacts::newest_measured();
        for (strategy, headers, attempt, unsafe_nack) in [
            (Dlx, json!({}), 1, false),
            (Dlx, json!({"x-death": retried}), 3, false),
            (Dlx, json!({"mq-attempt": 2}), 3, false),
            (Dlx, json!({"x-death": retried, "mq-attempt": 2}), 5, false),
            // Moved back by hand: the old records neither count nor go on counting.
            (Dlx, json!({"x-death": moved_back}), 1, true),
            (
                Dlx,
                json!({"x-death": moved_back, "mq-attempt": 2}),
                1,
                true,
            ),
            // Out of a delay before it ever came here.
            (
                Dlx,
                json!({"x-death": [death("delay", "expired", 1)]}),
                1,
                false,
            ),
            (Backoff, json!({"x-death": retried}), 1, false),
            (Backoff, json!({"mq-attempt": 2}), 3, false),
            (
                Backoff,
                json!({"mq-attempt": 2, "x-death": [death("wait", "expired", 1)]}),
                3,
                false,
            ),
            (
                Backoff,
                json!({"x-death": moved_back, "mq-attempt": 2}),
                1,
                false,
            ),
            (
                Immediate,
                json!({"x-death": retried, "mq-attempt": 2}),
                1,
                false,
            ),
            (Native, json!({"x-delivery-count": 2}), 3, false),
            (
                Native,
                json!({"x-delivery-count": 1, "mq-attempt": 1}),
                3,
                false,
            ),
            (
                Native,
                json!({"x-delivery-count": 2, "x-death": moved_back}),
                1,
                true,
            ),
        ] {
            let taken = taken(
                &delivery(true, &headers),
                Some(&path(strategy, true)),
                &facts,
            );
            assert_eq!(
                (taken.attempt, taken.nack_is_unsafe),
                (attempt, unsafe_nack),
                "{strategy} {headers}"
            );
        }
    }

    #[test]
    fn a_count_on_a_first_delivery_is_a_clients() {
        let facts = BrokerFacts::newest_measured();
        let forged = delivery(false, &json!({"x-delivery-count": 99}));
        for strategy in [Strategy::Native, Strategy::Dlx] {
            let taken = taken(&forged, Some(&path(strategy, true)), &facts);
            assert_eq!((taken.attempt, taken.returns), (1, 0));
        }
    }

    #[test]
    fn returns_are_what_the_queue_counted_and_no_attempt_was() {
        let looped = json!({
            "x-delivery-count": 7,
            "x-death": [death("wait", "expired", 4), death("work", "rejected", 4)]
        });
        let elsewhere = json!({
            "x-delivery-count": 21, "x-death": [death("other", "delivery_limit", 1)]
        });
        let plain = json!({"x-delivery-count": 7});
        for (version, quorum, headers, returns) in [
            ("3.10.8", true, &plain, 7),
            ("3.10.8", false, &plain, 0),
            ("3.10.8", true, &looped, 7),
            // There every nack of the loop raised the count, and it came along.
            ("4.0.5", true, &looped, 3),
            ("4.3.6", true, &looped, 7),
            ("4.0.5", true, &elsewhere, 0),
            ("4.3.6", true, &elsewhere, 0),
        ] {
            let facts = BrokerFacts::new("RabbitMQ", version);
            let path = path(Strategy::Dlx, quorum);
            let taken = taken(&delivery(true, headers), Some(&path), &facts);
            assert_eq!(taken.returns, returns, "{version} {quorum} {headers}");
        }
    }
}
