//! A look where looks can lose messages: over AMQP, with a copy in place of each
//! message that would not survive being put back.

use super::session::Session;
use crate::amqp::{Connection, Frames, Getter, Publisher, Receipt};
use crate::deadletter::PeekRisk;
use crate::error::{Error, ErrorKind, Result};
use crate::management::{ObservedQueue, Peeked};
use crate::message::{Properties, Publication, delivery_count, replacement};
use crate::topology::{ExchangeName, QueueName, RoutingKey, VhostName};

/// What such a look showed.
pub(super) struct CarefulLook {
    /// The messages, in the order of the queue.
    pub(super) messages: Vec<Peeked>,
    /// Ready messages behind them.
    pub(super) not_shown: u64,
    /// How many were replaced by a copy, which stands at the end of the queue now.
    pub(super) replaced: usize,
}

/// Takes up to `count` messages one by one. One that would be lost when it is put
/// back is replaced at once by a copy, confirmed and routed; the others go back
/// at the end, unharmed.
///
/// A process that is killed between taking such a message and its copy's confirm
/// loses it: nothing but leaving it alone can prevent that, so that only one is
/// taken at a time.
///
/// # Errors
/// [`ErrorKind::Blocked`] before anything is taken when copies cannot be made:
/// the queue has a length limit, or the user may not publish to it.
pub(super) async fn look_carefully(
    session: &Session,
    vhost: &VhostName,
    queue: &QueueName,
    risk: &PeekRisk,
    observed: &ObservedQueue,
    count: u32,
    body_bytes: usize,
) -> Result<CarefulLook> {
    takes_copies(vhost, queue, observed)?;
    let connection = session.connect("mq dlq inspect", Frames::Large).await?;
    let result = take(&connection, session, queue, risk, count, body_bytes).await;
    connection.close().await;
    result
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

async fn take(
    connection: &Connection,
    session: &Session,
    queue: &QueueName,
    risk: &PeekRisk,
    count: u32,
    body_bytes: usize,
) -> Result<CarefulLook> {
    let user = session.user()?;
    let mut publisher = Publisher::open(connection, session.limit).await?;
    may_publish(&mut publisher, queue).await?;
    let ready = connection.queue_status(queue).await?.map_or(0, |q| q.ready);
    let getter = Getter::open(connection).await?;
    let mut messages = Vec::new();
    let mut replaced = 0;
    // Copies stand behind what was there at the beginning.
    for _ in 0..count.min(ready) {
        let Some(taken) = getter.get(queue).await? else {
            break;
        };
        if risk.is_lost_by_return(delivery_count(&taken.delivery)) {
            let copy = replacement(&taken.delivery, queue, user);
            replace(&mut publisher, &copy, queue).await?;
            getter.ack(taken.tag).await?;
            replaced += 1;
        }
        let mut message = taken.delivery;
        let whole = message.body.len();
        message.body.truncate(body_bytes);
        messages.push(Peeked {
            message,
            body_bytes: whole,
        });
    }
    getter.release().await?;
    let shown = u64::try_from(messages.len()).unwrap_or(u64::MAX);
    Ok(CarefulLook {
        messages,
        not_shown: u64::from(ready).saturating_sub(shown),
        replaced,
    })
}

async fn replace(
    publisher: &mut Publisher<'_>,
    copy: &Publication,
    queue: &QueueName,
) -> Result<()> {
    let why = match publisher.publish(copy).await? {
        Receipt::Routed => return Ok(()),
        Receipt::Unroutable(reason) => reason,
        Receipt::Refused => "the queue refused it".to_owned(),
        Receipt::Unknown(error) => return Err(error.during("replace a message by its copy")),
    };
    Err(Error::new(
        ErrorKind::Partial,
        format!("a message of queue '{queue}' could not be replaced by its copy: {why}"),
    )
    .hint("it goes back when we leave, and the broker may drop it then"))
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
