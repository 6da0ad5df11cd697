//! Where a nack leads: the dead-letter path of a work queue, found in its topology.
//!
//! The same question is asked of a file before it is applied and of a live
//! broker before the first message is taken. A path that would lose a message
//! has no answer but a [`PathProblem`].

use std::collections::BTreeSet;
use std::time::Duration;

use crate::field::FieldTable;
use crate::retry::{OtherDeath, PathProblem, RetryPolicy, Strategy};
use crate::routing::route;
use crate::topology::{
    DeadLetterKey, DeliveryLimit, Destination, ExchangeName, Overflow, Queue, QueueName, QueueType,
    RoutingKey, Topology,
};

/// Exchange and key that lead to the dead-letter queue and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterAddress {
    /// The dead-letter exchange.
    pub exchange: ExchangeName,
    /// The key of the dead-letter queue's binding there.
    pub key: RoutingKey,
}

/// What happens to a message of the queue when it is nacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPath {
    /// Found, not chosen; `backoff` and `native` look like `immediate` until
    /// they are asked for, and are then proved.
    pub strategy: Strategy,
    /// The queue's dead-letter exchange.
    pub exchange: ExchangeName,
    /// The key a nack publishes with there.
    pub key: DeadLetterKey,
    /// Wait queues a nack leads into, or those of all steps of
    /// [`Strategy::Backoff`]; else empty.
    pub wait_queues: BTreeSet<QueueName>,
    /// Where dead letters rest.
    pub dead_letter_queues: BTreeSet<QueueName>,
    /// How to publish past the wait queue; `None` where a plain nack does it.
    pub park: Option<DeadLetterAddress>,
    /// The longest a retry can wait, summed over chained wait queues.
    pub longest_wait: Duration,
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
    topology: &Topology,
    queue: &QueueName,
    policy: &RetryPolicy,
) -> Result<RetryPath, PathProblem> {
    let work = &topology
        .effective_queue(queue)
        .ok_or_else(|| PathProblem::NoQueue(queue.clone()))?;
    let dead_lettering = work
        .dead_lettering
        .as_ref()
        .ok_or_else(|| PathProblem::NoDeadLetterExchange(queue.clone()))?;
    let exchange = &dead_lettering.exchange;
    let key = &dead_lettering.key;
    if topology.exchange(exchange).is_none() {
        return Err(PathProblem::NoExchange(exchange.clone()));
    }
    let targets = dead_letter_targets(topology, queue, work, exchange)?;
    if targets.contains(queue) {
        return Err(PathProblem::Loop(queue.clone()));
    }
    let (wait, rest): (BTreeSet<_>, BTreeSet<_>) = targets
        .into_iter()
        .partition(|target| wait_before(topology, target, queue).is_some());
    if wait.is_empty() {
        let (strategy, wait_queues) = straight::strategy(topology, queue, work, policy)?;
        return Ok(RetryPath {
            strategy,
            exchange: exchange.clone(),
            key: key.clone(),
            wait_queues,
            dead_letter_queues: rest,
            park: None,
            longest_wait: policy.delays.iter().max().copied().unwrap_or_default(),
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
        wait_from(topology, target, queue, &mut on_the_way);
    }
    let expires = |name: &QueueName| topology.effective_queue(name)?.expires;
    if let Some(queue) = on_the_way
        .into_iter()
        .find(|queue| expires(queue).is_some())
    {
        return Err(PathProblem::WaitQueueExpires(queue));
    }
    let park = park_address(topology, queue, exchange, policy.dead_letter_queue.as_ref())?;
    let longest_wait = wait
        .iter()
        .filter_map(|target| wait_before(topology, target, queue))
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
        strategy: Strategy::Dlx,
        exchange: exchange.clone(),
        key: key.clone(),
        wait_queues: wait,
        dead_letter_queues: BTreeSet::from([park.0]),
        park: Some(park.1),
        longest_wait,
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
    topology: &Topology,
    name: &QueueName,
    queue: &Queue,
    exchange: &ExchangeName,
) -> Result<BTreeSet<QueueName>, PathProblem> {
    let mut targets: Option<BTreeSet<QueueName>> = None;
    for key in dead_letter_keys(topology, name, queue) {
        let reached = route(topology, exchange, &key, &FieldTable::new());
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
fn dead_letter_keys(topology: &Topology, name: &QueueName, queue: &Queue) -> Vec<RoutingKey> {
    if let Some(dead_lettering) = &queue.dead_lettering
        && let DeadLetterKey::Replaced(key) = &dead_lettering.key
    {
        return vec![key.clone()];
    }
    let own = Destination::Queue(name.clone());
    let mut keys: Vec<RoutingKey> = topology
        .bindings
        .iter()
        .filter(|binding| binding.destination == own)
        .map(|binding| binding.key.clone())
        .collect();
    if keys.is_empty() {
        keys.push(RoutingKey::of_queue(name));
    }
    keys
}

/// How long a message in `from` waits until expiry brings it to `work`;
/// `None` if it never comes there that way.
fn wait_before(topology: &Topology, from: &QueueName, work: &QueueName) -> Option<Duration> {
    let mut seen = BTreeSet::new();
    wait_from(topology, from, work, &mut seen)
}

/// The same, with all queues that it passes in `seen`. No recursion: a file may
/// chain as many wait queues as it likes.
fn wait_from(
    topology: &Topology,
    from: &QueueName,
    work: &QueueName,
    seen: &mut BTreeSet<QueueName>,
) -> Option<Duration> {
    let mut longest = None;
    let mut waiting = vec![(from.clone(), Duration::ZERO)];
    while let Some((name, waited)) = waiting.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let Some(queue) = topology.effective_queue(&name) else {
            continue;
        };
        let (Some(ttl), Some(dead_lettering)) = (queue.message_ttl, &queue.dead_lettering) else {
            continue;
        };
        let exchange = &dead_lettering.exchange;
        let next: BTreeSet<QueueName> = dead_letter_keys(topology, &name, &queue)
            .iter()
            .flat_map(|key| route(topology, exchange, key, &FieldTable::new()))
            .collect();
        let waited = waited.saturating_add(ttl);
        if next.contains(work) {
            longest = longest.max(Some(waited));
        } else {
            waiting.extend(next.into_iter().rev().map(|queue| (queue, waited)));
        }
    }
    longest
}

/// The resting place for exhausted messages behind a wait queue, and the way there.
fn park_address(
    topology: &Topology,
    work: &QueueName,
    exchange: &ExchangeName,
    wanted: Option<&QueueName>,
) -> Result<(QueueName, DeadLetterAddress), PathProblem> {
    let mut resting: BTreeSet<QueueName> = topology
        .bindings
        .iter()
        .filter(|binding| binding.source == *exchange)
        .filter_map(|binding| match &binding.destination {
            Destination::Queue(queue) => Some(queue.clone()),
            Destination::Exchange(_) => None,
        })
        .filter(|queue| queue != work && wait_before(topology, queue, work).is_none())
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
    let key = topology
        .bindings
        .iter()
        .filter(|binding| {
            binding.source == *exchange && binding.destination == Destination::Queue(queue.clone())
        })
        .map(|binding| &binding.key)
        .find(|key| route(topology, exchange, key, &FieldTable::new()) == only)
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
