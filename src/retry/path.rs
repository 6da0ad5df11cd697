//! Where a nack leads: the dead-letter path of a work queue, found in its topology.
//!
//! The same question is asked of a file before it is applied and of a live
//! broker before the first message is taken. A path that would lose a message
//! has no answer but a [`PathProblem`].

use std::collections::BTreeSet;
use std::time::Duration;

use crate::retry::{OtherDeath, PathProblem, RetryPolicy, Strategy};
use crate::routing::Router;
use crate::topology::{
    DeadLetterKey, DeadLetterStrategy, DeliveryLimit, Destination, ExchangeName, Overflow, Queue,
    QueueName, QueueType, RoutingKey,
};

/// Exchange and key that lead to the dead-letter queue and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterAddress {
    /// The dead-letter exchange.
    pub exchange: ExchangeName,
    /// The key of the dead-letter queue's binding there.
    pub key: RoutingKey,
}

/// One step of [`Strategy::Backoff`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The wait queue.
    pub queue: QueueName,
    /// Its message TTL.
    pub delay: Duration,
}

/// What happens to a message of the queue when it is nacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPath {
    /// The work queue.
    pub queue: QueueName,
    /// Found, not chosen; `backoff` looks like `immediate` until it is asked
    /// for, and is then proved.
    pub strategy: Strategy,
    /// Whether the queue counts what comes back to it: quorum queues do.
    pub counts_returns: bool,
    /// Whether the queue has one consumer at a time, so that it is worked in
    /// order: who cancels hands the queue to the next.
    pub single_active_consumer: bool,
    /// The queue's dead-letter exchange.
    pub exchange: ExchangeName,
    /// The key a nack publishes with there.
    pub key: DeadLetterKey,
    /// Wait queues a nack leads into, or those of all steps of
    /// [`Strategy::Backoff`]; else empty.
    pub wait_queues: BTreeSet<QueueName>,
    /// The wait queues of [`Strategy::Backoff`] in the order of its steps; the
    /// last one is for every further step. Else empty.
    pub steps: Vec<Step>,
    /// Where dead letters rest.
    pub dead_letter_queues: BTreeSet<QueueName>,
    /// How to publish past the wait queue; `None` where a plain nack does it.
    pub park: Option<DeadLetterAddress>,
    /// The longest a retry can wait, summed over chained wait queues.
    pub longest_wait: Duration,
    /// Whether the queue keeps what is nacked until its next queue has it. Any
    /// other loses it with a node that is killed on the way.
    pub nack_is_confirmed: bool,
}

impl RetryPath {
    /// Where a nack of a message with this key would publish it.
    #[must_use]
    pub fn nack_address(&self, routing_key: &RoutingKey) -> DeadLetterAddress {
        DeadLetterAddress {
            exchange: self.exchange.clone(),
            key: match &self.key {
                DeadLetterKey::Replaced(key) => key.clone(),
                DeadLetterKey::Kept => routing_key.clone(),
            },
        }
    }

    /// Where a message at the end of its attempts is published.
    #[must_use]
    pub fn end_address(&self, routing_key: &RoutingKey) -> DeadLetterAddress {
        self.park
            .clone()
            .unwrap_or_else(|| self.nack_address(routing_key))
    }
}

/// Finds the path. The policy's strategy and delays are checked against it;
/// its `dead_letter_queue` names the resting place where the dead-letter
/// exchange leads to several.
///
/// # Errors
/// A [`PathProblem`] for every topology in which a failed message would be
/// lost, multiplied or looped.
pub fn path(
    router: &Router<'_>,
    queue: &QueueName,
    policy: &RetryPolicy,
) -> Result<RetryPath, PathProblem> {
    let work = &router
        .topology()
        .effective_queue(queue)
        .ok_or_else(|| PathProblem::NoQueue(queue.clone()))?;
    let dead_lettering = work
        .dead_lettering
        .as_ref()
        .ok_or_else(|| PathProblem::NoDeadLetterExchange(queue.clone()))?;
    let exchange = &dead_lettering.exchange;
    let key = &dead_lettering.key;
    if router.topology().exchange(exchange).is_none() {
        return Err(PathProblem::NoExchange(exchange.clone()));
    }
    let targets = dead_letter_targets(router, queue, work, exchange)?;
    let nack_is_confirmed = work.kind == Some(QueueType::Quorum)
        && work.dead_letter_strategy == Some(DeadLetterStrategy::AtLeastOnce)
        && work.overflow == Some(Overflow::RejectPublish);
    if targets.contains(queue) {
        return Err(PathProblem::Loop(queue.clone()));
    }
    let (wait, rest): (BTreeSet<_>, BTreeSet<_>) = targets
        .into_iter()
        .partition(|target| wait_before(router, target, queue).is_some());
    let counts_returns = work.kind == Some(QueueType::Quorum);
    if wait.is_empty() {
        let straight = straight::strategy(router, queue, work, policy)?;
        return Ok(RetryPath {
            queue: queue.clone(),
            strategy: straight.strategy,
            counts_returns,
            single_active_consumer: work.single_active_consumer,
            exchange: exchange.clone(),
            key: key.clone(),
            wait_queues: (straight.steps.iter())
                .map(|step| step.queue.clone())
                .collect(),
            steps: straight.steps,
            dead_letter_queues: rest,
            park: None,
            longest_wait: straight.longest_wait,
            nack_is_confirmed,
        });
    }
    if !rest.is_empty() {
        return Err(PathProblem::Mixed(wait, rest));
    }
    if let Some(death) = other_death(work) {
        return Err(PathProblem::DiesOtherwise(queue.clone(), death));
    }
    let mut on_the_way = BTreeSet::new();
    for target in &wait {
        wait_from(router, target, queue, &mut on_the_way);
    }
    let expires = |name: &QueueName| router.topology().effective_queue(name)?.expires;
    if let Some(queue) = on_the_way
        .into_iter()
        .find(|queue| expires(queue).is_some())
    {
        return Err(PathProblem::WaitQueueExpires(queue));
    }
    let park = park_address(router, queue, exchange, policy.dead_letter_queue.as_ref())?;
    let longest_wait = wait
        .iter()
        .filter_map(|target| wait_before(router, target, queue))
        .max()
        .unwrap_or_default();
    if let (Some(Strategy::Dlx), [delay]) = (policy.strategy, policy.delays.as_slice())
        && *delay != longest_wait
    {
        return Err(PathProblem::WaitsOtherwise(
            queue.clone(),
            *delay,
            longest_wait,
        ));
    }
    Ok(RetryPath {
        queue: queue.clone(),
        strategy: Strategy::Dlx,
        counts_returns,
        single_active_consumer: work.single_active_consumer,
        exchange: exchange.clone(),
        key: key.clone(),
        wait_queues: wait,
        steps: Vec::new(),
        dead_letter_queues: BTreeSet::from([park.0]),
        park: Some(park.1),
        longest_wait,
        nack_is_confirmed,
    })
}

/// The broker drops a message that returns to a queue it left without having
/// been rejected since (cycle detection, measured on all versions), so a queue
/// whose dead letters come back must let them go by rejection only.
fn other_death(work: &Queue) -> Option<OtherDeath> {
    let limited = match (&work.kind, work.delivery_limit) {
        (Some(QueueType::Quorum), limit) => limit != Some(DeliveryLimit::Unlimited),
        (_, Some(DeliveryLimit::Finite(_))) => true,
        (_, _) => false,
    };
    let drops = matches!(work.overflow, None | Some(Overflow::DropHead));
    if limited {
        Some(OtherDeath::DeliveryLimit)
    } else if work.message_ttl.is_some() {
        Some(OtherDeath::Expiry)
    } else if drops && (work.max_length.is_some() || work.max_length_bytes.is_some()) {
        Some(OtherDeath::DropHead)
    } else {
        None
    }
}

/// The queues a dead letter of `queue` reaches, whichever key it came with.
fn dead_letter_targets(
    router: &Router<'_>,
    name: &QueueName,
    queue: &Queue,
    exchange: &ExchangeName,
) -> Result<BTreeSet<QueueName>, PathProblem> {
    let mut targets: Option<BTreeSet<QueueName>> = None;
    for key in dead_letter_keys(router, name, queue) {
        let reached = router.queues(exchange, &key);
        if reached.is_empty() {
            return Err(PathProblem::Unrouted(exchange.clone(), key));
        }
        match &targets {
            None => targets = Some(reached),
            Some(other) if *other == reached => {}
            Some(_) => return Err(PathProblem::KeysDiffer(exchange.clone())),
        }
    }
    targets.ok_or_else(|| PathProblem::Unrouted(exchange.clone(), RoutingKey::of_queue(name)))
}

/// The keys dead letters can have. Kept keys are those of the queue's own
/// bindings, each wildcard standing for one word.
fn dead_letter_keys(router: &Router<'_>, name: &QueueName, queue: &Queue) -> Vec<RoutingKey> {
    if let Some(dead_lettering) = &queue.dead_lettering
        && let DeadLetterKey::Replaced(key) = &dead_lettering.key
    {
        return vec![key.clone()];
    }
    let own = Destination::Queue(name.clone());
    let mut keys: Vec<RoutingKey> = router
        .bindings_to(&own)
        .iter()
        .map(|binding| binding.key.clone())
        .collect();
    if keys.is_empty() {
        keys.push(RoutingKey::of_queue(name));
    }
    keys
}

/// How long a message in `from` waits until expiry brings it to `work`;
/// `None` if it never comes there that way.
fn wait_before(router: &Router<'_>, from: &QueueName, work: &QueueName) -> Option<Duration> {
    let mut seen = BTreeSet::new();
    wait_from(router, from, work, &mut seen)
}

fn wait_from(
    router: &Router<'_>,
    from: &QueueName,
    work: &QueueName,
    seen: &mut BTreeSet<QueueName>,
) -> Option<Duration> {
    let mut longest = None;
    // No recursion: chains of wait queues may be thousands long.
    let mut waiting = vec![(from.clone(), Duration::ZERO)];
    while let Some((name, before)) = waiting.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let Some(queue) = router.topology().effective_queue(&name) else {
            continue;
        };
        let (Some(ttl), Some(dead_lettering)) = (queue.message_ttl, &queue.dead_lettering) else {
            continue;
        };
        let waited = before + ttl;
        let next: BTreeSet<QueueName> = dead_letter_keys(router, &name, &queue)
            .iter()
            .flat_map(|key| router.queues(&dead_lettering.exchange, key))
            .collect();
        if next.contains(work) {
            longest = longest.max(Some(waited));
        } else {
            waiting.extend(next.into_iter().map(|name| (name, waited)));
        }
    }
    longest
}

/// The resting place for exhausted messages behind a wait queue, and the way there.
fn park_address(
    router: &Router<'_>,
    work: &QueueName,
    exchange: &ExchangeName,
    wanted: Option<&QueueName>,
) -> Result<(QueueName, DeadLetterAddress), PathProblem> {
    let mut resting: BTreeSet<QueueName> = router
        .bindings_from(exchange)
        .iter()
        .filter_map(|binding| match &binding.destination {
            Destination::Queue(queue) => Some(queue.clone()),
            Destination::Exchange(_) => None,
        })
        .filter(|queue| queue != work && wait_before(router, queue, work).is_none())
        .collect();
    if let Some(wanted) = wanted {
        resting.retain(|queue| queue == wanted);
        if resting.is_empty() {
            return Err(PathProblem::NotParkable(exchange.clone(), wanted.clone()));
        }
    }
    let mut candidates = resting.iter();
    let queue = match (candidates.next(), candidates.next()) {
        (None, _) => return Err(PathProblem::NoDeadLetterQueue(exchange.clone())),
        (Some(queue), None) => queue.clone(),
        (Some(_), Some(_)) => {
            return Err(PathProblem::SeveralDeadLetterQueues(
                exchange.clone(),
                resting,
            ));
        }
    };
    let only = BTreeSet::from([queue.clone()]);
    let key = router
        .bindings_to(&Destination::Queue(queue.clone()))
        .iter()
        .filter(|binding| binding.source == *exchange)
        .map(|binding| &binding.key)
        .find(|key| router.queues(exchange, key) == only)
        .cloned()
        .ok_or_else(|| PathProblem::NotParkable(exchange.clone(), queue.clone()))?;
    let address = DeadLetterAddress {
        exchange: exchange.clone(),
        key,
    };
    Ok((queue, address))
}

mod straight;
#[cfg(test)]
mod tests;
