//! Where a nack leads: the dead-letter path of a work queue, found in its topology.
//!
//! The same question is asked of a file before it is applied and of a live
//! broker before the first message is taken. A path that would lose a message
//! has no answer but a [`PathProblem`].

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use crate::field::FieldTable;
use crate::retry::Strategy;
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
    /// Found, not chosen.
    pub strategy: Strategy,
    /// The queue's dead-letter exchange.
    pub exchange: ExchangeName,
    /// The key a nack publishes with there.
    pub key: DeadLetterKey,
    /// Wait queues a nack leads into; empty for [`Strategy::Immediate`].
    pub wait_queues: BTreeSet<QueueName>,
    /// Where dead letters rest.
    pub dead_letter_queues: BTreeSet<QueueName>,
    /// How to publish past the wait queue; `None` where a plain nack does it.
    pub park: Option<DeadLetterAddress>,
    /// The longest a retry can wait, summed over chained wait queues.
    pub longest_wait: Duration,
}

/// Why a queue cannot be worked without losing messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathProblem {
    /// The queue is not there.
    NoQueue(QueueName),
    /// It has no dead-letter exchange: a nack deletes the message.
    NoDeadLetterExchange(QueueName),
    /// The exchange is not there: dead letters vanish.
    NoExchange(ExchangeName),
    /// No binding takes the dead letter: it vanishes.
    Unrouted(ExchangeName, RoutingKey),
    /// Different keys of the queue's messages lead to different ends.
    KeysDiffer(ExchangeName),
    /// Dead letters come straight back: an endless loop without a pause.
    Loop(QueueName),
    /// One copy waits while another rests: every failure would multiply.
    Mixed(BTreeSet<QueueName>, BTreeSet<QueueName>),
    /// There is a wait queue but no place for exhausted messages.
    NoDeadLetterQueue(ExchangeName),
    /// Several queues could be that place.
    SeveralDeadLetterQueues(ExchangeName, BTreeSet<QueueName>),
    /// The named queue cannot be reached alone through the exchange.
    NotParkable(ExchangeName, QueueName),
    /// The queue can lose messages in another way than by a nack, and the
    /// broker drops such a message when the wait queue brings it back.
    DiesOtherwise(QueueName, OtherDeath),
}

/// A way to leave a queue that is no rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherDeath {
    /// A finite `delivery_limit`, or none said on a quorum queue, which means
    /// 20 on 4.x: a worker that crashes often enough reaches it.
    DeliveryLimit,
    /// A message TTL.
    Expiry,
    /// A length limit that drops the oldest message.
    DropHead,
}

impl fmt::Display for OtherDeath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeliveryLimit => "a finite delivery limit (on 4.x it is 20 where none is set)",
            Self::Expiry => "a message TTL",
            Self::DropHead => "a length limit that drops its oldest message",
        })
    }
}

impl fmt::Display for PathProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoQueue(queue) => write!(f, "queue '{queue}' does not exist"),
            Self::NoDeadLetterExchange(queue) => write!(
                f,
                "queue '{queue}' has no dead-letter exchange, so a failed message would be deleted"
            ),
            Self::NoExchange(exchange) => write!(
                f,
                "the dead-letter exchange '{exchange}' does not exist, so dead letters vanish"
            ),
            Self::Unrouted(exchange, key) => write!(
                f,
                "the dead-letter exchange '{exchange}' has no binding for key '{key}', so dead letters vanish"
            ),
            Self::KeysDiffer(exchange) => write!(
                f,
                "dead letters keep their keys, and exchange '{exchange}' leads them to different queues"
            ),
            Self::Loop(queue) => write!(
                f,
                "dead letters of queue '{queue}' come straight back to it"
            ),
            Self::Mixed(wait, rest) => write!(
                f,
                "a dead letter goes to {} to be retried and at the same time to {} to rest",
                list(wait),
                list(rest)
            ),
            Self::NoDeadLetterQueue(exchange) => write!(
                f,
                "exchange '{exchange}' leads to no dead-letter queue, so exhausted messages have no place"
            ),
            Self::SeveralDeadLetterQueues(exchange, queues) => write!(
                f,
                "exchange '{exchange}' leads to several dead-letter queues: {}",
                list(queues)
            ),
            Self::DiesOtherwise(queue, death) => write!(
                f,
                "queue '{queue}' has {death}: a message that leaves it that way goes into the wait queue, and the broker drops it without a trace when it comes back"
            ),
            Self::NotParkable(exchange, queue) => write!(
                f,
                "no key of exchange '{exchange}' leads to queue '{queue}' alone"
            ),
        }
    }
}

impl PathProblem {
    /// What to do about it.
    #[must_use]
    pub fn way_out(&self) -> String {
        match self {
            Self::NoQueue(_) => "declare it, or check its name and vhost".to_owned(),
            Self::NoDeadLetterExchange(queue) => format!(
                "give queue '{queue}' a `dead_letter:` in the topology file, or set a dead-letter-exchange by policy"
            ),
            Self::NoExchange(exchange) => {
                format!("declare exchange '{exchange}' and bind a dead-letter queue to it")
            }
            Self::Unrouted(exchange, key) => {
                format!("bind a dead-letter queue to '{exchange}' with key '{key}'")
            }
            Self::KeysDiffer(_) => {
                "give the queue a `dead_letter:` with a `key` of its own".to_owned()
            }
            Self::Loop(_) => {
                "dead-letter into a wait queue with a `message_ttl`, or into a dead-letter queue"
                    .to_owned()
            }
            Self::Mixed(..) => {
                "let the dead-letter key lead to the wait queue only, or to the dead-letter queue only"
                    .to_owned()
            }
            Self::NoDeadLetterQueue(exchange) => {
                format!("bind a dead-letter queue to '{exchange}' under a key of its own")
            }
            Self::SeveralDeadLetterQueues(..) => {
                "name one: `retry: { dead_letter_queue: NAME }` in the topology file, or --dead-letter-queue NAME"
                    .to_owned()
            }
            Self::DiesOtherwise(_, OtherDeath::DeliveryLimit) => {
                "give the queue `delivery_limit: unlimited` (it must be declared anew); mq counts attempts itself"
                    .to_owned()
            }
            Self::DiesOtherwise(_, OtherDeath::Expiry) => {
                "leave `message_ttl` to the wait queue".to_owned()
            }
            Self::DiesOtherwise(_, OtherDeath::DropHead) => {
                "add `overflow: reject-publish`, so that publishers learn that the queue is full"
                    .to_owned()
            }
            Self::NotParkable(exchange, queue) => format!(
                "bind '{queue}' to '{exchange}' (direct or topic) under a key that no other queue has"
            ),
        }
    }
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

/// Finds the path. `dead_letter_queue` names the resting place where the
/// dead-letter exchange leads to several.
///
/// # Errors
/// A [`PathProblem`] for every topology in which a failed message would be
/// lost, multiplied or looped.
pub fn path(
    topology: &Topology,
    queue: &QueueName,
    dead_letter_queue: Option<&QueueName>,
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
        return Ok(RetryPath {
            strategy: Strategy::Immediate,
            exchange: exchange.clone(),
            key: key.clone(),
            wait_queues: wait,
            dead_letter_queues: rest,
            park: None,
            longest_wait: Duration::ZERO,
        });
    }
    if !rest.is_empty() {
        return Err(PathProblem::Mixed(wait, rest));
    }
    if let Some(death) = other_death(work) {
        return Err(PathProblem::DiesOtherwise(queue.clone(), death));
    }
    let park = park_address(topology, queue, exchange, dead_letter_queue)?;
    let longest_wait = wait
        .iter()
        .filter_map(|target| wait_before(topology, target, queue))
        .max()
        .unwrap_or_default();
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

fn wait_from(
    topology: &Topology,
    from: &QueueName,
    work: &QueueName,
    seen: &mut BTreeSet<QueueName>,
) -> Option<Duration> {
    if !seen.insert(from.clone()) {
        return None;
    }
    let queue = &topology.effective_queue(from)?;
    let ttl = queue.message_ttl?;
    let exchange = &queue.dead_lettering.as_ref()?.exchange;
    let next: BTreeSet<QueueName> = dead_letter_keys(topology, from, queue)
        .iter()
        .flat_map(|key| route(topology, exchange, key, &FieldTable::new()))
        .collect();
    if next.contains(work) {
        return Some(ttl);
    }
    next.iter()
        .filter_map(|queue| wait_from(topology, queue, work, seen))
        .max()
        .map(|further| ttl + further)
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

fn list(queues: &BTreeSet<QueueName>) -> String {
    let names: Vec<String> = queues.iter().map(|queue| format!("'{queue}'")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests;
