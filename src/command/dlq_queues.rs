//! The dead-letter queues of a vhost or of all, with their counts: what every
//! command that shows several of them begins with.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the age of a message meets the clock"
)]

use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::{StreamExt as _, stream};

use super::dlq_guard::limit_now;
use super::session::Session;
use crate::broker::BrokerFacts;
use crate::deadletter::{
    Asked, EffectiveLimit, Letter, PeekRisk, peek_risk, refusal, resting_places,
};
use crate::error::{Error, ErrorKind, Result};
use crate::lint::Feed;
use crate::management::{Management, ObservedQueue};
use crate::output::{self, ListedQueue};
use crate::topology::{QueueName, QueueType, VhostName};

/// Looks under way at a time.
const LOOKS: usize = 8;

/// The dead-letter queues that were asked for.
pub(super) struct DeadLetterQueues {
    /// Each, by vhost and name.
    pub(super) queues: Vec<ListedQueue>,
    /// Whether vhosts could not be read, which was told on standard error.
    pub(super) skipped: bool,
}

/// Those of the session's vhost, or of all that the user may see. With `look`,
/// the first message is looked at where that is safe, to tell its age.
///
/// # Errors
/// When the broker does not answer, or the one vhost cannot be read.
pub(super) async fn dead_letter_queues(
    session: &Session,
    management: &Management,
    facts: &BrokerFacts,
    all_vhosts: bool,
    look: bool,
) -> Result<DeadLetterQueues> {
    let vhosts = if all_vhosts {
        management.vhost_names().await?
    } else {
        vec![session.vhost()?.clone()]
    };
    let mut queues = Vec::new();
    let mut skipped = false;
    for vhost in &vhosts {
        match list(management, vhost, facts, !look, session).await {
            Ok(found) => queues.extend(found),
            Err(error) if all_vhosts && is_of_the_vhost(&error) => {
                skipped = true;
                output::talk(&format!(
                    "mq: vhost '{}' is left out: {}",
                    output::one_line(vhost.as_str(), 255),
                    output::printable(error.message())
                ));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(DeadLetterQueues { queues, skipped })
}

/// Whether other vhosts can still be read: no permissions in this one, or it was
/// deleted meanwhile.
fn is_of_the_vhost(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::AccessRefused | ErrorKind::NotFound)
}

async fn list(
    management: &Management,
    vhost: &VhostName,
    facts: &BrokerFacts,
    no_look: bool,
    session: &Session,
) -> Result<Vec<ListedQueue>> {
    let counted = management.counted(vhost, facts).await?;
    let observed = counted.queues;
    let new = counted.untold;
    if new > 0 {
        session.warn(|| {
            format!(
                "mq: the broker does not tell yet which policies are in force for {new} new queues of vhost '{}'; run this again in ten seconds",
                output::one_line(vhost.as_str(), 255)
            )
        });
    }
    let consumers = |name: &QueueName| observed.get(name)?.consumers;
    let found = resting_places(&counted.topology, facts, &consumers);
    if found.incomplete {
        session.warn(|| {
            format!(
                "mq: vhost '{}' dead-letters through exchanges whose routing is not known here; queues may be missing",
                output::one_line(vhost.as_str(), 255)
            )
        });
    }
    let places = found.queues.into_iter().filter_map(|(name, feeds)| {
        let observed = observed.get(&name)?.clone();
        Some((name, observed, feeds))
    });
    let listing = places.map(|(name, observed, feeds)| {
        listed(management, vhost, facts, no_look, name, observed, feeds)
    });
    let mut listing = stream::iter(listing).buffered(LOOKS);
    let mut queues = Vec::new();
    while let Some(queue) = listing.next().await {
        queues.push(queue);
    }
    Ok(queues)
}

async fn listed(
    management: &Management,
    vhost: &VhostName,
    facts: &BrokerFacts,
    no_look: bool,
    queue: QueueName,
    mut observed: ObservedQueue,
    fed_by: Vec<Feed>,
) -> ListedQueue {
    // Statistics may tell of a policy that is gone.
    if observed.kind == QueueType::Quorum && observed.limit == EffectiveLimit::None {
        observed.limit = limit_now(management, vhost, &queue, &observed, facts)
            .await
            .unwrap_or(EffectiveLimit::Unknown);
    }
    let risk = peek_risk(&observed.kind, observed.limit, facts);
    let may_look = !no_look
        && risk == PeekRisk::Safe
        && observed.ready.is_some_and(|ready| ready > 0)
        && !observed.holds_back_returns();
    let oldest = if may_look {
        oldest(management, vhost, &queue).await
    } else {
        None
    };
    let refused = refusal(&Asked::about(vhost, &queue, &risk, facts));
    ListedQueue {
        vhost: vhost.to_string(),
        queue: queue.to_string(),
        look: risk.word(),
        look_why: refused.map(|error| error.message().to_owned()),
        oldest_seconds: oldest.map(|died| now().saturating_sub(died)),
        observed,
        fed_by,
    }
}

/// When the first message died. That it cannot be told is no reason to list
/// nothing: somebody may have taken it meanwhile, or may not be let read it.
pub(super) async fn oldest(
    management: &Management,
    vhost: &VhostName,
    queue: &QueueName,
) -> Option<u64> {
    let look = match management.look(vhost, queue, 1, 0).await {
        Ok(look) => look,
        Err(error) => {
            tracing::info!(queue = %queue, %error, "no look");
            return None;
        }
    };
    let head = look.messages.first()?;
    Letter::read(&head.message.properties).last_death
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
