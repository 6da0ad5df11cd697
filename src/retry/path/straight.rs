//! Strategies whose dead letters go straight to the dead-letter queue, and what
//! each of them needs besides.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::retry::{DEFAULT_MAX_ATTEMPTS, PathProblem, RetryPolicy, Step, Strategy};
use crate::routing::Router;
use crate::topology::{
    DeadLetterKey, DelayedRetryType, DeliveryLimit, Queue, QueueName, QueueType, RoutingKey,
};

/// The limit of a quorum queue of 4.x that none is set on.
const DEFAULT_DELIVERY_LIMIT: u64 = 20;

/// The strategy that is in force and what it waits in.
pub(super) struct Straight {
    pub(super) strategy: Strategy,
    /// Of [`Strategy::Backoff`].
    pub(super) steps: Vec<Step>,
    pub(super) longest_wait: Duration,
}

/// Which strategy is in force. A queue that holds back what is rejected is
/// worked natively unless something else is asked for.
pub(super) fn strategy(
    router: &Router<'_>,
    name: &QueueName,
    work: &Queue,
    policy: &RetryPolicy,
) -> Result<Straight, PathProblem> {
    let holds_back = work
        .delayed_retry
        .filter(|delayed| delayed.kind != DelayedRetryType::Returned);
    match (policy.strategy, holds_back) {
        (Some(Strategy::Native), _) | (None, Some(_)) => native(name, work, policy),
        // Who asked for `dlx` is told by whoever compares.
        (None | Some(Strategy::Immediate | Strategy::Dlx), _) => Ok(Straight {
            strategy: Strategy::Immediate,
            steps: Vec::new(),
            longest_wait: Duration::ZERO,
        }),
        (Some(Strategy::Backoff), _) => {
            let step = |delay: &Duration| {
                Ok(Step {
                    queue: wait_queue(router, name, *delay)?,
                    delay: *delay,
                })
            };
            Ok(Straight {
                strategy: Strategy::Backoff,
                steps: policy.delays.iter().map(step).collect::<Result<_, _>>()?,
                longest_wait: policy.delays.iter().max().copied().unwrap_or_default(),
            })
        }
    }
}

/// The queue in which a copy waits that long and then comes back to `work` and
/// nowhere else; of several the first by name. The worker publishes to it
/// through the default exchange, so its own name is the key that would be kept.
fn wait_queue(
    router: &Router<'_>,
    work: &QueueName,
    delay: Duration,
) -> Result<QueueName, PathProblem> {
    let only_work = BTreeSet::from([work.clone()]);
    let ttl_by_policy = router
        .topology()
        .policies
        .values()
        .any(|policy| policy.definition.contains_key("message-ttl"));
    let leads_back = |name: &&QueueName| {
        // Asked of every queue for every step: what an argument alone rules
        // out needs no look at the policies.
        let Some(own) = router.topology().queues.get(name) else {
            return false;
        };
        let may_wait = own.message_ttl == Some(delay)
            || (ttl_by_policy && own.message_ttl.is_none_or(|own| own > delay));
        let leads_to_another = own.dead_lettering.as_ref().is_some_and(|own| {
            let straight = own.exchange.is_empty();
            straight
                && matches!(&own.key, DeadLetterKey::Replaced(key) if key.as_str() != work.as_str())
        });
        if !may_wait || leads_to_another {
            return false;
        }
        let Some(queue) = router.topology().effective_queue(name) else {
            return false;
        };
        let Some(dead_lettering) = &queue.dead_lettering else {
            return false;
        };
        let key = match &dead_lettering.key {
            DeadLetterKey::Kept => RoutingKey::of_queue(name),
            DeadLetterKey::Replaced(key) => key.clone(),
        };
        // A queue that expires takes its messages along.
        queue.message_ttl == Some(delay)
            && queue.expires.is_none()
            && router.queues(&dead_lettering.exchange, &key) == only_work
    };
    router
        .topology()
        .queues
        .keys()
        .find(leads_back)
        .cloned()
        .ok_or_else(|| PathProblem::NoWaitQueue(work.clone(), delay))
}

/// A native retry is a `basic.reject` with requeue, which raises the delivery
/// count: it makes the delay grow, and tells the attempts (measured on 4.3.6).
fn native(name: &QueueName, work: &Queue, policy: &RetryPolicy) -> Result<Straight, PathProblem> {
    let delayed = match (&work.kind, &work.delayed_retry) {
        (Some(QueueType::Quorum), Some(delayed)) if delayed.kind != DelayedRetryType::Returned => {
            delayed
        }
        _ => return Err(PathProblem::NoDelayedRetry(name.clone())),
    };
    // Without `max` the delay never grows.
    let longest = delayed.max.unwrap_or(delayed.min);
    if let (Some(first), Some(last)) = (policy.delays.first(), policy.delays.last()) {
        let kept = [(*first, delayed.min), (*last, longest)];
        if let Some((wanted, kept)) = kept.into_iter().find(|(wanted, kept)| wanted != kept) {
            return Err(PathProblem::WaitsOtherwise(name.clone(), wanted, kept));
        }
    }
    let limit = match work.delivery_limit {
        Some(DeliveryLimit::Unlimited) => None,
        Some(DeliveryLimit::Finite(limit)) => Some(u64::from(limit)),
        None => Some(DEFAULT_DELIVERY_LIMIT),
    };
    let attempts = policy.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS);
    match limit {
        Some(limit) if limit < u64::from(attempts.saturating_sub(1)) => {
            Err(PathProblem::LimitEndsFirst(name.clone(), limit, attempts))
        }
        _ => Ok(Straight {
            strategy: Strategy::Native,
            steps: Vec::new(),
            longest_wait: longest,
        }),
    }
}
