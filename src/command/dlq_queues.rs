//! The dead-letter queues of a vhost or of all, with their counts: what every
//! command that shows several of them begins with.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the age of a message meets the clock"
)]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, sleep};

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
pub(super) const LOOKS: usize = 8;

/// Statistics of a new queue come up to nine seconds late (measured on 3.10.8
/// and 4.0.5).
const PATIENCE: Duration = Duration::from_secs(12);

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(500);

/// The dead-letter queues that were asked for.
pub(super) struct DeadLetterQueues {
    /// Each, by vhost and name.
    pub(super) queues: Vec<ListedQueue>,
    /// Whether vhosts could not be read, which was told on standard error.
    pub(super) skipped: bool,
    /// Whether there may be more, because a way of dead letters is not known.
    pub(super) incomplete: bool,
}

/// What was found in one vhost.
struct Listed {
    vhost: VhostName,
    queues: Vec<ListedQueue>,
    /// Queues whose policies are not told yet.
    untold: usize,
    /// Whether exchanges on the way are not known.
    incomplete: bool,
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
    let (listed, skipped) = every(session, management, facts, all_vhosts, look).await?;
    Ok(together(session, listed, &skipped))
}

/// The same for whoever must not miss one: waits until the broker tells the policies
/// of queues that were just declared. Looks at no message.
///
/// # Errors
/// The same.
pub(super) async fn all_dead_letter_queues(
    session: &Session,
    management: &Management,
    facts: &BrokerFacts,
    all_vhosts: bool,
) -> Result<DeadLetterQueues> {
    let deadline = Instant::now() + PATIENCE;
    let mut is_told = false;
    loop {
        let (listed, skipped) = every(session, management, facts, all_vhosts, false).await?;
        let untold = listed.iter().any(|vhost| vhost.untold > 0);
        if !untold || Instant::now() >= deadline {
            return Ok(together(session, listed, &skipped));
        }
        if !is_told {
            is_told = true;
            session.warn(|| {
                "mq: waiting for the broker to tell the policies of new queues".to_owned()
            });
        }
        sleep(PAUSE).await;
    }
}

/// Queues of the session's vhost that were named, whatever they are. Looks at no message.
///
/// # Errors
/// [`ErrorKind::NotFound`] with all that do not exist.
pub(super) async fn named_queues(
    session: &Session,
    management: &Management,
    facts: &BrokerFacts,
    names: &[QueueName],
) -> Result<Vec<ListedQueue>> {
    let vhost = session.vhost()?;
    let asked = names.iter().map(async |name| {
        let observed = management.queue(vhost, name, facts).await;
        (name, observed)
    });
    let mut asked = stream::iter(asked).buffered(LOOKS);
    let mut queues = Vec::new();
    let mut lacking = Vec::new();
    while let Some((name, observed)) = asked.next().await {
        match observed {
            Ok(observed) => {
                let (name, no_feeds) = (name.clone(), Vec::new());
                let queue = listed(management, vhost, facts, true, name, observed, no_feeds);
                queues.push(queue.await);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => lacking.push(name),
            Err(error) => return Err(error),
        }
    }
    if lacking.is_empty() {
        Ok(queues)
    } else {
        Err(missing(vhost, &lacking))
    }
}

/// Says that these queues do not exist.
pub(super) fn missing(vhost: &VhostName, names: &[&QueueName]) -> Error {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    let (what, verb) = match names {
        [_] => ("queue", "does"),
        _ => ("queues", "do"),
    };
    Error::new(
        ErrorKind::NotFound,
        format!("{what} {} in vhost '{vhost}' {verb} not exist", quoted.join(", ")),
    )
    .hint("check the names and the vhost (4.3 also says so to users without access to the vhost); mq dlq list shows the dead-letter queues")
}

/// The same for whoever asks again and again: without a word, but with a line for each
/// vhost that could not be read. Looks at no message.
///
/// # Errors
/// The same.
pub(super) async fn dead_letter_queues_again(
    session: &Session,
    management: &Management,
    facts: &BrokerFacts,
    all_vhosts: bool,
) -> Result<(Vec<ListedQueue>, Vec<String>)> {
    let (listed, skipped) = every(session, management, facts, all_vhosts, false).await?;
    let queues = listed.into_iter().flat_map(|vhost| vhost.queues);
    Ok((queues.collect(), skipped))
}

/// Each vhost that could be read, and a line for each that could not.
async fn every(
    session: &Session,
    management: &Management,
    facts: &BrokerFacts,
    all_vhosts: bool,
    look: bool,
) -> Result<(Vec<Listed>, Vec<String>)> {
    let vhosts = if all_vhosts {
        management.vhost_names().await?
    } else {
        vec![session.vhost()?.clone()]
    };
    let mut found = Vec::new();
    let mut skipped = Vec::new();
    for vhost in &vhosts {
        match list(management, vhost, facts, !look).await {
            Ok(listed) => found.push(listed),
            Err(error) if all_vhosts && is_of_the_vhost(&error) => {
                skipped.push(format!(
                    "mq: vhost '{}' is left out: {}",
                    output::one_line(vhost.as_str(), 255),
                    output::printable(error.message())
                ));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((found, skipped))
}

/// All in one, with a word on what is missing.
fn together(session: &Session, listed: Vec<Listed>, skipped: &[String]) -> DeadLetterQueues {
    for line in skipped {
        output::talk(line);
    }
    for found in &listed {
        let vhost = output::one_line(found.vhost.as_str(), 255);
        let new = found.untold;
        if new > 0 {
            session.warn(|| {
                format!(
                    "mq: the broker does not tell yet which policies are in force for {new} new queues of vhost '{vhost}'; run this again in ten seconds"
                )
            });
        }
        if found.incomplete {
            session.warn(|| {
                format!(
                    "mq: vhost '{vhost}' dead-letters through exchanges whose routing is not known here; queues may be missing"
                )
            });
        }
    }
    DeadLetterQueues {
        skipped: !skipped.is_empty(),
        incomplete: listed.iter().any(|it| it.incomplete || it.untold > 0),
        queues: listed.into_iter().flat_map(|it| it.queues).collect(),
    }
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
) -> Result<Listed> {
    let counted = management.counted(vhost, facts).await?;
    let observed = counted.queues;
    let consumers = |name: &QueueName| observed.get(name)?.consumers;
    let found = resting_places(&counted.topology, facts, &consumers);
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
    Ok(Listed {
        vhost: vhost.clone(),
        queues,
        untold: counted.untold,
        incomplete: found.incomplete,
    })
}

/// A queue with what a look at it does, and unless `no_look` the age of its first message.
pub(super) async fn listed(
    management: &Management,
    vhost: &VhostName,
    facts: &BrokerFacts,
    no_look: bool,
    queue: QueueName,
    mut observed: ObservedQueue,
    fed_by: Vec<Feed>,
) -> ListedQueue {
    // Statistics may tell of a policy that is gone, and tell nothing of a new queue.
    let asks = match observed.limit {
        EffectiveLimit::None => true,
        EffectiveLimit::Unknown => facts.tells_limits_without_statistics(),
        EffectiveLimit::Finite(_) => false,
    };
    if observed.kind == QueueType::Quorum && asks {
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

/// Seconds since 1970.
/// The queues that were named, each once.
///
/// # Errors
/// When one of them can be no queue's name.
pub(super) fn names(typed: &[String]) -> Result<Vec<QueueName>> {
    let mut queues = typed
        .iter()
        .map(|name| QueueName::of_existing(name))
        .collect::<Result<Vec<_>>>()?;
    queues.sort();
    queues.dedup();
    Ok(queues)
}

pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
