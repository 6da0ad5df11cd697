//! A look where looks can lose messages: over AMQP, with a copy in place of each
//! message that would not survive being put back.

use super::dlq_guard::Permit;
use super::dlq_replace::Replacer;
use super::session::Session;
use crate::amqp::{Connection, Frames, Getter};
use crate::error::Result;
use crate::management::Peeked;
use crate::topology::{QueueName, VhostName};

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
/// Before anything is taken when copies cannot be made: the queue has a length
/// limit, or the user may not publish to it.
pub(super) async fn look_carefully(
    session: &Session,
    vhost: &VhostName,
    queue: &QueueName,
    permit: &Permit,
    count: u32,
    body_bytes: usize,
) -> Result<CarefulLook> {
    let connection = session.connect("mq dlq inspect", Frames::Large).await?;
    let result = take(
        &connection,
        session,
        vhost,
        queue,
        permit,
        count,
        body_bytes,
    )
    .await;
    connection.close().await;
    result
}

async fn take(
    connection: &Connection,
    session: &Session,
    vhost: &VhostName,
    queue: &QueueName,
    permit: &Permit,
    count: u32,
    body_bytes: usize,
) -> Result<CarefulLook> {
    let mut replacer = Replacer::open(connection, session, vhost, queue, permit).await?;
    let ready = connection.queue_status(queue).await?.map_or(0, |q| q.ready);
    let getter = Getter::open(connection).await?;
    let mut messages = Vec::new();
    let mut replaced = 0;
    // Copies stand behind what was there at the beginning.
    for _ in 0..count.min(ready) {
        let Some(taken) = getter.get(queue).await? else {
            break;
        };
        if let Some(replacer) = &mut replacer
            && replacer.in_place_of(&taken.delivery).await?
        {
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
