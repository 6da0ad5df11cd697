//! Which exchanges are for dead letters alone, and which queues behind them are
//! resting places that no queue sends to by itself.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::routing::Router;
use crate::topology::{Destination, ExchangeName, Queue, QueueName};

/// The dead-letter exchanges to which no work queue is bound: nobody but dying
/// messages, and workers that park, publishes there.
pub(super) fn dedicated(
    dead_letter_exchanges: &BTreeSet<ExchangeName>,
    queues: &BTreeMap<&QueueName, Cow<'_, Queue>>,
    router: &Router<'_>,
) -> BTreeSet<ExchangeName> {
    let is_work = |queue: &Queue| queue.dead_lettering.is_some() && queue.message_ttl.is_none();
    dead_letter_exchanges
        .iter()
        .filter(|exchange| {
            !exchange.is_empty()
                && router
                    .bindings_from(exchange)
                    .iter()
                    .all(|binding| match &binding.destination {
                        Destination::Queue(name) => {
                            queues.get(name).is_none_or(|queue| !is_work(queue))
                        }
                        Destination::Exchange(_) => true,
                    })
        })
        .cloned()
        .collect()
}

/// The queues that a `retry` names for dead letters, and those bound to a
/// dedicated dead-letter exchange of a work queue. What only wait queues send to
/// is where messages come back to.
pub(super) fn resting(
    queues: &BTreeMap<&QueueName, Cow<'_, Queue>>,
    router: &Router<'_>,
    dedicated: &BTreeSet<ExchangeName>,
) -> BTreeSet<QueueName> {
    let named = queues
        .values()
        .filter_map(|queue| queue.retry.as_ref()?.dead_letter_queue.clone());
    let exchanges: BTreeSet<&ExchangeName> = queues
        .values()
        .filter(|queue| queue.message_ttl.is_none())
        .filter_map(|queue| Some(&queue.dead_lettering.as_ref()?.exchange))
        .filter(|exchange| dedicated.contains(*exchange))
        .collect();
    let bound = exchanges
        .into_iter()
        .flat_map(|exchange| router.bindings_from(exchange))
        .filter_map(|binding| match &binding.destination {
            Destination::Queue(queue) => Some(queue.clone()),
            Destination::Exchange(_) => None,
        });
    named.chain(bound).collect()
}
