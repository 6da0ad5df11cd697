//! Copies in place of messages that would not survive being put back.

use super::dlq_guard::Permit;
use super::session::Session;
use crate::amqp::{Connection, Publisher, Receipt};
use crate::deadletter::PeekRisk;
use crate::error::{Error, ErrorKind, Result};
use crate::management::ObservedQueue;
use crate::message::{Delivery, Properties, Publication, delivery_count, replacement};
use crate::topology::{ExchangeName, QueueName, RoutingKey, VhostName};

/// Replaces messages of one queue.
pub(super) struct Replacer<'c> {
    publisher: Publisher<'c>,
    queue: QueueName,
    risk: PeekRisk,
    user: String,
}

impl<'c> Replacer<'c> {
    /// For a queue that may be taken from although that is not safe; `None` where
    /// it is safe.
    ///
    /// # Errors
    /// [`ErrorKind::Blocked`], before anything is taken, when copies cannot be made:
    /// the queue has a length limit, or the user may not publish to it.
    pub(super) async fn open(
        connection: &'c Connection,
        session: &Session,
        vhost: &VhostName,
        queue: &QueueName,
        permit: &Permit,
    ) -> Result<Option<Self>> {
        if permit.risk == PeekRisk::Safe {
            return Ok(None);
        }
        takes_copies(vhost, queue, &permit.observed)?;
        let mut publisher = Publisher::open(connection, session.limit).await?;
        may_publish(&mut publisher, queue).await?;
        Ok(Some(Self {
            publisher,
            queue: queue.clone(),
            risk: permit.risk.clone(),
            user: session.user()?.to_owned(),
        }))
    }

    /// Whether a copy stands at the end of the queue now, confirmed, so that the
    /// message must be acked; `false`: it may go back.
    ///
    /// # Errors
    /// When a copy is needed and cannot be made.
    pub(super) async fn in_place_of(&mut self, delivery: &Delivery) -> Result<bool> {
        if !self.risk.is_lost_by_return(delivery_count(delivery)) {
            return Ok(false);
        }
        let copy = replacement(delivery, &self.queue, &self.user);
        let why = match self.publisher.publish(&copy).await? {
            Receipt::Routed => return Ok(true),
            Receipt::Unroutable(reason) => reason,
            Receipt::Refused => "the queue refused it".to_owned(),
            Receipt::Unknown(error) => return Err(error.during("replace a message by its copy")),
        };
        let queue = &self.queue;
        Err(Error::new(
            ErrorKind::Partial,
            format!("a message of queue '{queue}' could not be replaced by its copy: {why}"),
        )
        .hint("it goes back when we leave, and the broker may drop it then"))
    }
}

/// A copy in a full queue would push another message out, or be refused when the
/// original is in our hands already.
fn takes_copies(vhost: &VhostName, queue: &QueueName, observed: &ObservedQueue) -> Result<()> {
    let limits = ["max-length", "max-length-bytes"];
    let limited = limits.into_iter().find(|limit| {
        observed.arguments.contains_key(&format!("x-{limit}"))
            || observed.policy.contains_key(*limit)
    });
    match limited {
        None => Ok(()),
        Some(limit) => Err(Error::new(
            ErrorKind::Blocked,
            format!(
                "queue '{queue}' has a {limit}: a copy of a message that does not survive a look could push another one out, or be refused"
            ),
        )
        .hint(format!(
            "on the broker's machine, without counting: rabbitmq-queues peek --vhost {} {} 1",
            vhost.shell_quoted(),
            queue.shell_quoted()
        ))),
    }
}

/// Publishes to no queue at all, while nothing is taken yet: whether a user may
/// publish shows only then.
async fn may_publish(publisher: &mut Publisher<'_>, queue: &QueueName) -> Result<()> {
    let nowhere = Publication {
        exchange: ExchangeName::default_exchange(),
        routing_key: RoutingKey::new(format!("mq.nowhere.{}", std::process::id()))?,
        properties: Properties::default(),
        body: Vec::new(),
    };
    match publisher.publish(&nowhere).await {
        Ok(Receipt::Unroutable(_) | Receipt::Routed) => Ok(()),
        Ok(Receipt::Refused) => Err(cannot_publish(queue, "the broker refused it")),
        Ok(Receipt::Unknown(error)) | Err(error) => Err(cannot_publish(queue, error.message())),
    }
}

fn cannot_publish(queue: &QueueName, why: &str) -> Error {
    Error::new(
        ErrorKind::Blocked,
        format!(
            "nothing was taken from queue '{queue}': a message that does not survive a look needs a copy, and publishing fails ({why})"
        ),
    )
    .hint("the user needs write permission on the default exchange (amq.default)")
}
