//! What a worker of the topology file stands for: its queue, and everything a
//! failed message needs on its way back or to its end.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::error::Result;
use crate::topology::{
    Binding, DeadLetterKey, DeadLetterStrategy, DeadLettering, DelayedRetry, DelayedRetryType,
    DeliveryLimit, Destination, Exchange, ExchangeName, ExchangeType, Overflow, Queue, QueueName,
    QueueType, RoutingKey, Strategy, Topology,
};

/// The key of the wait queue at the worker's dead-letter exchange.
const RETRY: &str = "retry";

/// The key of the dead-letter queue there.
const DEAD: &str = "dead";

/// A worker as it is written: the name of its queue, and what the file says
/// of that queue, its retries included.
#[derive(Clone, Debug, PartialEq)]
pub struct Worker {
    /// The work queue.
    pub name: QueueName,
    /// Without dead-lettering, which follows from `retry`.
    pub queue: Queue,
}

impl Worker {
    /// The plain objects: `NAME`, the direct exchange `NAME.dlx`, the
    /// dead-letter queue `NAME.dlq`, and for `dlx` and `backoff` a wait queue
    /// for each delay, `NAME.retry` or, of several, `NAME.retry.10s`.
    ///
    /// # Errors
    /// When one of the names becomes longer than 255 bytes.
    pub fn expand(self) -> Result<Topology> {
        let mut topology = Topology::default();
        let Self { name, mut queue } = self;
        let mut retry = queue.retry.clone().unwrap_or_default();
        let exchange = ExchangeName::new(format!("{name}.dlx"))?;
        let dead_letter_queue = QueueName::new(format!("{name}.dlq"))?;
        topology
            .exchanges
            .insert(exchange.clone(), Exchange::durable(ExchangeType::Direct));
        let resting = resting(&queue);
        topology.queues.insert(
            dead_letter_queue.clone(),
            Queue {
                description: Some(format!("dead letters of {name}")),
                ..resting.clone()
            },
        );
        topology
            .bindings
            .push(bound(&exchange, &dead_letter_queue, DEAD)?);
        let mut key = DEAD;
        let delays: BTreeSet<Duration> = retry.delays.iter().copied().collect();
        match retry.strategy {
            None | Some(Strategy::Immediate) => {}
            Some(Strategy::Native) => queue.delayed_retry = delayed_retry(&delays),
            Some(strategy @ (Strategy::Dlx | Strategy::Backoff)) => {
                for delay in &delays {
                    let wait_queue = wait_queue_name(&name, *delay, delays.len() == 1)?;
                    if strategy == Strategy::Dlx {
                        key = RETRY;
                        topology
                            .bindings
                            .push(bound(&exchange, &wait_queue, RETRY)?);
                    }
                    topology
                        .queues
                        .insert(wait_queue, waiting(&resting, &name, *delay)?);
                }
            }
        }
        if retry.strategy == Some(Strategy::Dlx) {
            // Others may bind queues of theirs to the same exchange.
            retry.dead_letter_queue = Some(dead_letter_queue);
        }
        queue.dead_lettering = Some(DeadLettering {
            exchange,
            key: DeadLetterKey::Replaced(RoutingKey::new(key)?),
        });
        // Attempts are counted by who works the queue; a limit of the broker's
        // would end messages by another way than the strategy's.
        if queue.kind == Some(QueueType::Quorum) {
            queue.delivery_limit = queue.delivery_limit.or(Some(DeliveryLimit::Unlimited));
            if retry.strategy == Some(Strategy::Dlx) {
                nack_safely(&mut queue);
            }
        }
        queue.retry = Some(retry);
        topology.queues.insert(name, queue);
        Ok(topology)
    }
}

/// What is nacked into the wait queue is kept until it is there, so that the
/// broker can make every hop and count them.
fn nack_safely(queue: &mut Queue) {
    let rejects = match queue.overflow {
        Some(overflow) => overflow == Overflow::RejectPublish,
        // Whether a full queue refuses or drops is not decided unasked.
        None => queue.max_length.is_none() && queue.max_length_bytes.is_none(),
    };
    if rejects && queue.dead_letter_strategy.is_none() {
        queue.overflow = Some(Overflow::RejectPublish);
        queue.dead_letter_strategy = Some(DeadLetterStrategy::AtLeastOnce);
    }
}

/// A queue beside the work queue: of its type and size, without its limits.
/// Where returns are counted, looking at a dead letter often enough would
/// destroy it.
fn resting(work: &Queue) -> Queue {
    let replicated = work.kind == Some(QueueType::Quorum);
    Queue {
        kind: work.kind.clone(),
        delivery_limit: replicated.then_some(DeliveryLimit::Unlimited),
        leader_locator: work.leader_locator,
        initial_cluster_size: work.initial_cluster_size,
        ..Queue::default()
    }
}

/// The default exchange leads back to the one queue that failed. A quorum queue
/// whatever the work queue is: only those hand a dead letter on with a confirm.
/// Without, a node that is killed loses what is between two queues, and what a
/// classic queue got from another one for as long as that is busy (measured: all
/// of it on 4.0.5 and 4.3.6).
fn waiting(resting: &Queue, work: &QueueName, delay: Duration) -> Result<Queue> {
    Ok(Queue {
        kind: Some(QueueType::Quorum),
        delivery_limit: Some(DeliveryLimit::Unlimited),
        message_ttl: Some(delay),
        dead_lettering: Some(DeadLettering {
            exchange: ExchangeName::new("")?,
            key: DeadLetterKey::Replaced(RoutingKey::of_queue(work)),
        }),
        dead_letter_strategy: Some(DeadLetterStrategy::AtLeastOnce),
        overflow: Some(Overflow::RejectPublish),
        description: Some(format!(
            "{work}: messages wait here {} before their next attempt",
            humantime::format_duration(delay)
        )),
        ..resting.clone()
    })
}

fn wait_queue_name(work: &QueueName, delay: Duration, only_one: bool) -> Result<QueueName> {
    if only_one {
        return QueueName::new(format!("{work}.retry"));
    }
    let delay = humantime::format_duration(delay).to_string();
    QueueName::new(format!("{work}.retry.{}", delay.replace(' ', "")))
}

fn delayed_retry(delays: &BTreeSet<Duration>) -> Option<DelayedRetry> {
    Some(DelayedRetry {
        kind: DelayedRetryType::All,
        min: *delays.first()?,
        max: delays.last().copied(),
    })
}

fn bound(exchange: &ExchangeName, queue: &QueueName, key: &str) -> Result<Binding> {
    Ok(Binding {
        source: exchange.clone(),
        destination: Destination::Queue(queue.clone()),
        key: RoutingKey::new(key)?,
        arguments: crate::field::FieldTable::new(),
    })
}
