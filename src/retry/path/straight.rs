//! Strategies whose dead letters go straight to the dead-letter queue, and what
//! each of them needs besides.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::retry::{PathProblem, RetryPolicy, Strategy};
use crate::routing::Router;
use crate::topology::{DeadLetterKey, Queue, QueueName, QueueType, RoutingKey};

/// The strategy that is in force and the wait queue of each of its steps.
pub(super) fn strategy(
    router: &Router<'_>,
    name: &QueueName,
    work: &Queue,
    policy: &RetryPolicy,
) -> Result<(Strategy, Vec<QueueName>), PathProblem> {
    match policy.strategy {
        // Who asked for `dlx` is told by whoever compares.
        None | Some(Strategy::Immediate | Strategy::Dlx) => Ok((Strategy::Immediate, Vec::new())),
        Some(Strategy::Backoff) => {
            let steps: Vec<QueueName> = policy
                .delays
                .iter()
                .map(|delay| wait_queue(router, name, *delay))
                .collect::<Result<_, _>>()?;
            Ok((Strategy::Backoff, steps))
        }
        Some(Strategy::Native) => {
            holds_back(name, work, &policy.delays)?;
            Ok((Strategy::Native, Vec::new()))
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

fn holds_back(name: &QueueName, work: &Queue, delays: &[Duration]) -> Result<(), PathProblem> {
    let (Some(QueueType::Quorum), Some(delayed)) = (&work.kind, &work.delayed_retry) else {
        return Err(PathProblem::NoDelayedRetry(name.clone()));
    };
    let (Some(shortest), Some(longest)) = (delays.first(), delays.last()) else {
        return Ok(());
    };
    let kept = [
        (*shortest, delayed.min),
        // Without `max` the delay never grows.
        (*longest, delayed.max.unwrap_or(delayed.min)),
    ];
    match kept.into_iter().find(|(wanted, kept)| wanted != kept) {
        None => Ok(()),
        Some((wanted, kept)) => Err(PathProblem::WaitsOtherwise(name.clone(), wanted, kept)),
    }
}
