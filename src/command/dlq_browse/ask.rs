//! What the browser shows, asked from the broker.

use crate::amqp::{Connection, Frames, Walk};
use crate::browse::{BrowsedLetter, Listed, Loaded, Trouble};
use crate::command::dlq_guard::{Permit, may_take, ready_now};
use crate::command::dlq_queues::dead_letter_queues;
use crate::command::session::Session;
use crate::deadletter::most_to_look_at;
use crate::error::{Error, ErrorKind, Result};
use crate::topology::{QueueName, VhostName};

/// Bytes of each body that are kept.
const BODY_BYTES: usize = 64 * 1024;

/// Bytes of bodies that are read at most, where the broker does not tell their
/// size beforehand.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// An error as the browser shows it.
pub(super) fn trouble(error: &Error) -> Trouble {
    Trouble {
        text: error.to_string(),
        is_gone: false,
    }
}

/// The same, where a queue was asked about that need not be there any more.
pub(super) fn trouble_of(vhost: &str, queue: &str, error: &Error) -> Trouble {
    if error.kind() != ErrorKind::NotFound {
        return trouble(error);
    }
    // 4.3 says so too to users who may not see the vhost.
    let text = format!(
        "queue '{queue}' in vhost '{vhost}' does not exist, or you may not see it\n  help: the list shows the queues there are"
    );
    Trouble {
        text,
        is_gone: true,
    }
}

/// The dead-letter queues.
pub(super) async fn list(session: &Session, all_vhosts: bool) -> Result<Listed> {
    let management = session.management()?;
    let facts = management.facts().await?;
    let found = dead_letter_queues(session, &management, &facts, all_vhosts, true).await?;
    Ok(Listed {
        queues: found.queues,
        skipped: found.skipped,
    })
}

/// The session in the vhost of a queue, and both names.
pub(super) fn in_vhost(
    session: &Session,
    vhost: &str,
    queue: &str,
) -> Result<(Session, VhostName, QueueName)> {
    let vhost = VhostName::new(vhost)?;
    let queue = QueueName::of_existing(queue)?;
    let mut session = session.clone();
    session.use_vhost(&vhost);
    Ok((session, vhost, queue))
}

/// The first messages of a queue, over AMQP: as it carries them, types of headers
/// included, they are met again when something is done with them. They stay out
/// until all are read, and go back in their order; also as soon as nobody wants to
/// see them any more, which `is_stale` says.
pub(super) async fn load(
    session: &Session,
    vhost: &str,
    queue: &str,
    limit: u32,
    is_stale: &(dyn Fn() -> bool + Send + Sync),
) -> Result<Loaded> {
    let (session, vhost, queue) = in_vhost(session, vhost, queue)?;
    let connection = session.connect("mq dlq browse", Frames::Large).await?;
    let loaded = async {
        let management = session.management_of(connection.cluster()).await?;
        // Whoever wants to look all the same has a command for that.
        let may = may_take(&session, &management, &vhost, &queue, "dlq inspect", false);
        let permit = may.await?;
        let ready = ready_now(&connection, &vhost, &queue).await?;
        read(&connection, &queue, &permit, ready, limit, is_stale).await
    }
    .await;
    connection.close().await;
    loaded
}

async fn read(
    connection: &Connection,
    queue: &QueueName,
    permit: &Permit,
    ready: u64,
    limit: u32,
    is_stale: &(dyn Fn() -> bool + Send + Sync),
) -> Result<Loaded> {
    let observed = &permit.observed;
    let messages = observed.messages.map(|messages| messages.max(ready));
    let most = most_to_look_at(limit, BODY_BYTES, messages, observed.message_bytes);
    let count = u64::from(most).min(ready);
    let typical = permit.typical_body();
    let mut walk = Walk::open(connection, queue, &observed.kind, count, typical).await?;
    if permit.one_by_one() {
        walk.one_by_one();
    }
    let mut letters = Vec::new();
    let mut bytes = 0;
    let mut is_cut_by_size = count < u64::from(limit).min(ready);
    while let Some(taken) = walk.next().await? {
        bytes += taken.delivery.body.len();
        walk.keep(taken.tag);
        letters.push(BrowsedLetter::new(taken.delivery, BODY_BYTES));
        if is_stale() {
            break;
        }
        if bytes >= MOST_BYTES && (letters.len() as u64) < count {
            is_cut_by_size = true;
            break;
        }
    }
    walk.release().await?;
    Ok(Loaded {
        ready: ready.max(letters.len() as u64),
        letters,
        is_cut_by_size,
    })
}
