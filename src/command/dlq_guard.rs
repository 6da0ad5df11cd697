//! The one check before messages of a queue are taken and put back.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where waiting for statistics meets the clock"
)]

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::session::Session;
use crate::amqp::Connection;
use crate::broker::BrokerFacts;
use crate::deadletter::{Asked, EffectiveLimit, PeekRisk, peek_risk, refusal};
use crate::error::{Error, ErrorKind, Result};
use crate::field::FieldValue;
use crate::management::{Management, ObservedQueue};
use crate::output;
use crate::topology::{DeliveryLimit, Queue, QueueName, QueueType, Topology, VhostName};

/// Statistics of a new queue come up to nine seconds late (measured on 3.10.8
/// and 4.0.5).
const PATIENCE: Duration = Duration::from_secs(12);

/// What a body is taken to have where the broker does not tell, in bytes.
const USUAL_BODY: usize = 1024 * 1024;

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(300);

/// A queue whose messages may be taken and put back.
#[derive(Clone, Debug)]
pub(super) struct Permit {
    /// What the broker says about it.
    pub(super) observed: ObservedQueue,
    /// The broker.
    pub(super) facts: BrokerFacts,
    /// What a return can do; not [`PeekRisk::Safe`] only if it was agreed to.
    pub(super) risk: PeekRisk,
}

impl Permit {
    /// Whether messages are to be taken one at a time, and without a consumer:
    /// where a return can harm them, and from a queue that goes with its last
    /// consumer, and all its messages with it (`auto-delete`).
    pub(super) fn one_by_one(&self) -> bool {
        self.risk != PeekRisk::Safe || self.observed.auto_delete
    }

    /// The usual size of a body in bytes; where the broker does not tell, much, so
    /// that not too many come at once.
    pub(super) fn typical_body(&self) -> usize {
        match (self.observed.message_bytes, self.observed.messages) {
            (Some(bytes), Some(messages)) if bytes > 0 && messages > 0 => {
                usize::try_from(bytes / messages).unwrap_or(usize::MAX)
            }
            _ => USUAL_BODY,
        }
    }
}

/// Messages of the queue that are ready now.
///
/// # Errors
/// [`ErrorKind::NotFound`] when there is no such queue.
pub(super) async fn ready_now(
    connection: &Connection,
    vhost: &VhostName,
    queue: &QueueName,
) -> Result<u64> {
    match connection.queue_status(queue).await? {
        Some(status) => Ok(status.ready.into()),
        None => Err(Error::new(
            ErrorKind::NotFound,
            format!("queue '{queue}' in vhost '{vhost}' does not exist"),
        )
        .hint("check its name and the vhost")),
    }
}

/// Whether messages of the queue may be taken and put back by `command`, such as
/// `dlq inspect`. `even_if_it_counts` agrees to the risk, which is then told on
/// standard error. Waits for the broker's statistics where they decide.
///
/// # Errors
/// [`crate::error::ErrorKind::Blocked`] with the ways out when a return could
/// lose messages and nobody agreed to that, and always for a stream;
/// [`crate::error::ErrorKind::NotFound`] when there is no such queue.
pub(super) async fn may_take(
    session: &Session,
    management: &Management,
    vhost: &VhostName,
    queue: &QueueName,
    command: &str,
    even_if_it_counts: bool,
) -> Result<Permit> {
    let facts = management.facts().await?;
    let observed = observe(session, management, vhost, queue, &facts).await?;
    let risk = peek_risk(&observed.kind, observed.limit, &facts);
    let argument = observed.arguments.get("x-delivery-limit");
    let refused = refusal(&Asked {
        command,
        vhost,
        queue,
        risk: &risk,
        facts: &facts,
        limited_by_argument: argument
            .and_then(FieldValue::as_integer)
            .is_some_and(|limit| limit >= 0),
        has_policy: !observed.policy.is_empty(),
    });
    match refused {
        None => {}
        Some(error) if even_if_it_counts && risk != PeekRisk::Impossible => {
            output::talk(&format!(
                "mq: looking all the same: {}",
                output::printable(error.message())
            ));
        }
        Some(error) => return Err(error),
    }
    Ok(Permit {
        observed,
        facts,
        risk,
    })
}

/// The queue with its limit as it is now, as far as the broker tells it.
async fn observe(
    session: &Session,
    management: &Management,
    vhost: &VhostName,
    queue: &QueueName,
    facts: &BrokerFacts,
) -> Result<ObservedQueue> {
    let mut observed = management.queue(vhost, queue, facts).await?;
    if observed.kind == QueueType::Quorum && facts.tells_limits_without_statistics() {
        (observed.limit, observed.policy) = management.limit_now(vhost, queue, facts).await?;
    }
    let deadline = Instant::now() + PATIENCE;
    let mut is_told = false;
    // A limit that is no number is taken and never told (3.10.8 and 4.0.5).
    let argument = observed.arguments.get("x-delivery-limit");
    let will_be_told = argument.is_none_or(|limit| limit.as_integer().is_some());
    while will_be_told && observed.limit == EffectiveLimit::Unknown && Instant::now() < deadline {
        if !is_told {
            is_told = true;
            session.warn(|| {
                format!("mq: waiting for the broker to tell the delivery limit of queue '{queue}'")
            });
        }
        sleep(PAUSE).await;
        observed = management.queue(vhost, queue, facts).await?;
    }
    if !facts.tells_limits_without_statistics() {
        observed.limit = limit_now(management, vhost, queue, &observed, facts).await?;
    }
    Ok(observed)
}

/// The limit in force, as far as it can be told now: `observed` may be of up to
/// nine seconds ago.
///
/// # Errors
/// When the queue is gone, or the broker does not answer.
pub(super) async fn limit_now(
    management: &Management,
    vhost: &VhostName,
    queue: &QueueName,
    observed: &ObservedQueue,
    facts: &BrokerFacts,
) -> Result<EffectiveLimit> {
    if observed.kind != QueueType::Quorum {
        return Ok(observed.limit);
    }
    if facts.tells_limits_without_statistics() {
        return Ok(management.limit_now(vhost, queue, facts).await?.0);
    }
    let now = limit_of_policies(management, vhost, queue, observed, facts).await?;
    Ok(now.map_or(observed.limit, |now| observed.limit.stricter(now)))
}

/// The limit that the policies of now amount to with the queue's argument:
/// statistics tell of a changed policy up to nine seconds late, and a look in
/// between loses messages (measured on 3.10.8 and 4.0.5). `None`: the user is no
/// policymaker, and the statistics are all there is.
async fn limit_of_policies(
    management: &Management,
    vhost: &VhostName,
    queue: &QueueName,
    observed: &ObservedQueue,
    facts: &BrokerFacts,
) -> Result<Option<EffectiveLimit>> {
    let policies = match management.policies(vhost).await {
        Ok(policies) => policies,
        Err(error) if error.kind() == ErrorKind::AccessRefused => return Ok(None),
        Err(error) => return Err(error),
    };
    let alone = Queue {
        kind: Some(observed.kind.clone()),
        ..Queue::default()
    };
    let topology = Topology {
        queues: [(queue.clone(), alone)].into(),
        policies,
        ..Topology::default()
    };
    let policy = topology
        .effective_queue(queue)
        .and_then(|queue| queue.delivery_limit)
        .map(|limit| match limit {
            DeliveryLimit::Finite(limit) => i64::from(limit),
            DeliveryLimit::Unlimited => -1,
        });
    let argument = observed.arguments.get("x-delivery-limit");
    let argument = argument.and_then(FieldValue::as_integer);
    Ok(Some(EffectiveLimit::of(argument, policy, facts)))
}
