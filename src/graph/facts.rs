//! What is worth knowing of a queue or an exchange, in a few words each.

use std::time::Duration;

use crate::topology::{
    DEFAULT_MAX_ATTEMPTS, DeadLetterKey, DeadLetterStrategy, DeliveryLimit, Exchange, Jitter,
    Overflow, Queue, RetryPolicy,
};

/// What is special about an exchange.
pub(super) fn of_exchange(exchange: &Exchange) -> Vec<String> {
    [
        (!exchange.durable, "transient"),
        (exchange.auto_delete, "auto-delete"),
        (exchange.internal, "internal"),
    ]
    .into_iter()
    .filter(|(is, _)| *is)
    .map(|(_, word)| word.to_owned())
    .collect()
}

/// What is special about a queue with its policies in force.
pub(super) fn of_queue(queue: &Queue) -> Vec<String> {
    let mut facts = Vec::new();
    let mut fact = |text: Option<String>| facts.extend(text);
    let when = |is: bool, word: &str| is.then(|| word.to_owned());
    fact(when(!queue.durable, "transient"));
    fact(when(queue.auto_delete, "auto-delete"));
    fact(queue.retry.as_ref().map(retries));
    fact(
        queue
            .message_ttl
            .map(|ttl| format!("TTL {}", duration(ttl))),
    );
    fact(
        queue
            .expires
            .map(|age| format!("expires {} unused", duration(age))),
    );
    fact(queue.max_length.map(|most| format!("max {most} messages")));
    fact(
        queue
            .max_length_bytes
            .map(|most| format!("max {}", bytes(most))),
    );
    let is_limited = queue.max_length.is_some() || queue.max_length_bytes.is_some();
    fact(queue.overflow.filter(|_| is_limited).map(overflow));
    fact(match queue.delivery_limit {
        Some(DeliveryLimit::Finite(limit)) => Some(format!("delivery limit {limit}")),
        Some(DeliveryLimit::Unlimited) | None => None,
    });
    fact(when(queue.single_active_consumer, "single active consumer"));
    fact(
        queue
            .max_priority
            .map(|most| format!("priorities to {most}")),
    );
    fact(queue.delayed_retry.map(|delayed| match delayed.max {
        Some(max) => format!("holds back {} to {}", duration(delayed.min), duration(max)),
        None => format!("holds back {}", duration(delayed.min)),
    }));
    fact(queue.max_age.map(|age| format!("max age {age}")));
    fact(when(
        queue.dead_letter_strategy == Some(DeadLetterStrategy::AtLeastOnce),
        "dead letters at least once",
    ));
    let returns = queue.dead_lettering.as_ref().is_some_and(|dead_lettering| {
        dead_lettering.exchange.is_empty() && dead_lettering.key == DeadLetterKey::Kept
    });
    fact(when(returns, "dead letters by their own key"));
    facts
}

fn retries(policy: &RetryPolicy) -> String {
    let attempts = policy.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS);
    let plural = if attempts == 1 { "" } else { "s" };
    let mut retries = format!("{attempts} attempt{plural}");
    if let Some(strategy) = policy.strategy {
        retries.push_str(&format!(" by {strategy}"));
    }
    if policy.jitter != Jitter::None {
        retries.push_str(&format!(" with jitter {}", policy.jitter));
    }
    retries
}

fn overflow(overflow: Overflow) -> String {
    let word = Overflow::ALL.iter().find(|(_, value)| *value == overflow);
    word.map_or_else(String::new, |(word, _)| (*word).to_owned())
}

/// Without spaces, as a topology file has it.
pub(super) fn duration(duration: Duration) -> String {
    humantime::format_duration(duration)
        .to_string()
        .replace(' ', "")
}

fn bytes(bytes: u64) -> String {
    [("GiB", 30), ("MiB", 20), ("KiB", 10)]
        .into_iter()
        .find(|(_, bits)| bytes > 0 && bytes.is_multiple_of(1 << bits))
        .map_or_else(
            || format!("{bytes} bytes"),
            |(unit, bits)| format!("{} {unit}", bytes >> bits),
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{QueueType, Strategy};

    #[test]
    fn an_ordinary_queue_has_none_and_a_special_one_all() {
        assert!(of_queue(&Queue::default()).is_empty());
        let queue = Queue {
            kind: Some(QueueType::Quorum),
            durable: false,
            auto_delete: true,
            message_ttl: Some(Duration::from_secs(90)),
            expires: Some(Duration::from_hours(24)),
            max_length: Some(9),
            max_length_bytes: Some(3 << 20),
            overflow: Some(Overflow::RejectPublish),
            delivery_limit: Some(DeliveryLimit::Finite(5)),
            single_active_consumer: true,
            max_priority: Some(3),
            retry: Some(RetryPolicy {
                strategy: Some(Strategy::Backoff),
                jitter: Jitter::Bounded(25),
                max_attempts: Some(3),
                ..RetryPolicy::default()
            }),
            ..Queue::default()
        };
        assert_eq!(
            of_queue(&queue).join("; "),
            "transient; auto-delete; 3 attempts by backoff with jitter 25%; TTL 1m30s; expires 1day unused; \
             max 9 messages; max 3 MiB; reject-publish; delivery limit 5; \
             single active consumer; priorities to 3"
        );
    }
}
