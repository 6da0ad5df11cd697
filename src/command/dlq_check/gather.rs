//! What is in each queue that is checked: ready messages over AMQP, because that is
//! exact at once; the rest from statistics, once they are new enough to be believed.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where waiting for statistics meets the clock"
)]

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, sleep};

use super::super::dlq_queues::{LOOKS, all_dead_letter_queues, listed, missing, named_queues};
use super::super::session::Session;
use super::Wanted;
use crate::amqp::Connection;
use crate::broker::BrokerFacts;
use crate::deadletter::{Coming, Oldest, Reading};
use crate::error::{Error, ErrorKind, Result};
use crate::management::Management;
use crate::output::{self, ListedQueue};
use crate::topology::{QueueName, QueueType, VhostName};

/// Statistics of a new queue come up to nine seconds late (measured on 3.10.8
/// and 4.0.5).
const PATIENCE: Duration = Duration::from_secs(12);

/// What has happened when the check began is in the statistics by then: queues report
/// every 5 s, and what they report is collected every 5 s (measured: up to 7.4 s on
/// 4.3.6, and once not within 7 s on 4.0.5).
const RENEWED: Duration = Duration::from_secs(11);

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(500);

/// All that was found.
pub(super) struct Gathered {
    pub(super) readings: Vec<Reading>,
    /// Whether vhosts could not be read, or queues may be missing.
    pub(super) incomplete: bool,
}

/// One queue on the way.
struct Row {
    vhost: VhostName,
    name: QueueName,
    listed: ListedQueue,
    ready: Option<u64>,
    is_exact: bool,
    consumers: Option<u64>,
    is_gone: bool,
}

impl Row {
    fn new(vhost: VhostName, name: QueueName, listed: ListedQueue) -> Self {
        Self {
            ready: listed.observed.ready,
            consumers: listed.observed.consumers,
            is_exact: false,
            is_gone: false,
            vhost,
            name,
            listed,
        }
    }

    fn unacknowledged(&self) -> Option<u64> {
        self.listed.observed.unacknowledged
    }

    /// Whether more than the limit is there, as far as is known.
    fn is_over(&self, most: u64) -> bool {
        let known = [self.ready, self.unacknowledged()];
        known.iter().flatten().sum::<u64>() > most
    }

    /// Whether the statistics lack something that they will tell soon.
    fn is_untold(&self, wanted: &Wanted) -> bool {
        let limit_matters = wanted.looks && self.listed.look == "unknown" && self.ready != Some(0);
        self.unacknowledged().is_none() || self.ready.is_none() || limit_matters
    }

    /// Whether there may be messages that the statistics do not show yet: held by a
    /// consumer, or ready where only statistics count those.
    fn may_be_more(&self) -> bool {
        !self.is_exact || self.consumers.is_some_and(|count| count > 0)
    }
}

/// Reads every queue that is wanted.
///
/// # Errors
/// When the broker does not answer, or a queue that was named does not exist.
pub(super) async fn gather(
    session: &Session,
    management: &Management,
    wanted: &Wanted,
) -> Result<Gathered> {
    let facts = management.facts().await?;
    let (mut rows, incomplete) = if wanted.queues.is_empty() {
        let found = all_dead_letter_queues(session, management, &facts, wanted.all_vhosts).await?;
        let incomplete = found.skipped || found.incomplete;
        (rows_of(found.queues)?, incomplete)
    } else {
        (
            rows_of(named_queues(session, management, &facts, &wanted.queues).await?)?,
            false,
        )
    };
    count(session, management, &mut rows).await?;
    if wait_for_statistics(session, management, &facts, wanted, &mut rows).await? {
        // Where AMQP could not be had there is no use in asking again.
        let (mut again, stale): (Vec<Row>, Vec<Row>) =
            rows.into_iter().partition(|row| row.is_exact);
        count(session, management, &mut again).await?;
        again.extend(stale);
        again.sort_by(|one, other| (&one.vhost, &one.name).cmp(&(&other.vhost, &other.name)));
        rows = again;
    }
    if let Some(gone) = rows.iter().find(|row| row.is_gone)
        && !wanted.queues.is_empty()
    {
        return Err(missing(&gone.vhost, &[&gone.name]));
    }
    rows.retain(|row| !row.is_gone);
    let uptimes = match wanted.window {
        Some(_) => management.uptimes().await?,
        None => std::collections::BTreeMap::new(),
    };
    let reading = rows.into_iter().map(async |row| {
        let oldest = if wanted.looks {
            super::head::oldest(management, &row.vhost, &row.name, &row.listed, row.ready).await
        } else {
            Oldest::NotAsked
        };
        let coming = match wanted.window {
            None => Coming::NotAsked,
            Some(window) => {
                super::head::coming(
                    management,
                    &row.vhost,
                    &row.name,
                    &row.listed,
                    row.ready.filter(|_| row.is_exact),
                    window,
                    &uptimes,
                )
                .await
            }
        };
        Reading {
            unacknowledged: row.unacknowledged(),
            vhost: row.listed.vhost,
            queue: row.listed.queue,
            ready: row.ready,
            ready_is_exact: row.is_exact,
            oldest,
            coming,
        }
    });
    let readings = stream::iter(reading).buffered(LOOKS).collect().await;
    Ok(Gathered {
        readings,
        incomplete,
    })
}

fn rows_of(queues: Vec<ListedQueue>) -> Result<Vec<Row>> {
    queues
        .into_iter()
        .map(|queue| {
            let vhost = VhostName::new(queue.vhost.clone())?;
            let name = QueueName::new(queue.queue.clone())?;
            Ok(Row::new(vhost, name, queue))
        })
        .collect()
}

/// Counts what is ready and who consumes, over AMQP, one connection a vhost.
async fn count(session: &Session, management: &Management, rows: &mut [Row]) -> Result<()> {
    for of_vhost in rows.chunk_by_mut(|one, next| one.vhost == next.vhost) {
        let Some(vhost) = of_vhost.first().map(|row| row.vhost.clone()) else {
            continue;
        };
        let connection = match session.connect_to(&vhost, "mq dlq check").await {
            Ok(connection) => connection,
            Err(error) => {
                tell_stale(session, &vhost, &error);
                continue;
            }
        };
        management.must_belong_to(connection.cluster()).await?;
        count_on(session, &connection, of_vhost).await;
        connection.close().await;
    }
    Ok(())
}

async fn count_on(session: &Session, connection: &Connection, rows: &mut [Row]) {
    let mut is_told = false;
    for row in rows {
        // A passive declaration of a stream does not tell how much is in it.
        if row.listed.observed.kind == QueueType::Stream {
            continue;
        }
        match connection.queue_status(&row.name).await {
            Ok(Some(status)) => {
                row.ready = Some(status.ready.into());
                row.consumers = Some(status.consumers.into());
                row.is_exact = true;
                row.is_gone = false;
            }
            Ok(None) => row.is_gone = true,
            Err(error) => {
                row.is_exact = false;
                if !is_told {
                    is_told = true;
                    tell_stale(session, &row.vhost, &error);
                }
            }
        }
    }
}

fn tell_stale(session: &Session, vhost: &VhostName, error: &Error) {
    session.warn(|| {
        format!(
            "mq: ready messages of vhost '{}' are from the broker's statistics, which are up to 10 s old, because they cannot be counted over AMQP: {}",
            output::one_line(vhost.as_str(), 255),
            output::printable(error.message())
        )
    });
}

/// Waits until the statistics tell what they must: everything of a new queue, what
/// consumers of a queue hold that is within the limit as far as is known, and what is
/// ready where AMQP could not be had.
/// Gives whether it waited.
async fn wait_for_statistics(
    session: &Session,
    management: &Management,
    facts: &BrokerFacts,
    wanted: &Wanted,
    rows: &mut [Row],
) -> Result<bool> {
    let start = Instant::now();
    let lacks = |row: &Row| {
        let is_over = wanted.limits.messages.is_some_and(|most| row.is_over(most));
        let elapsed = start.elapsed();
        let is_untold = row.is_untold(wanted) && elapsed < PATIENCE;
        let may_grow = wanted.limits.messages.is_some() && row.may_be_more() && elapsed < RENEWED;
        !row.is_gone && !is_over && (is_untold || may_grow)
    };
    let mut waited = false;
    while rows.iter().any(lacks) {
        if !waited {
            waited = true;
            session.warn(|| {
                "mq: waiting for the broker's statistics: of new queues, or of what consumers hold"
                    .to_owned()
            });
        }
        sleep(PAUSE).await;
        for row in rows.iter_mut().filter(|row| lacks(row)) {
            renew(management, facts, row).await?;
        }
    }
    Ok(waited)
}

async fn renew(management: &Management, facts: &BrokerFacts, row: &mut Row) -> Result<()> {
    let observed = match management.queue(&row.vhost, &row.name, facts).await {
        Ok(observed) => observed,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            row.is_gone = true;
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if !row.is_exact {
        (row.ready, row.consumers) = (observed.ready, observed.consumers);
    }
    let fed_by = std::mem::take(&mut row.listed.fed_by);
    row.listed = listed(
        management,
        &row.vhost,
        facts,
        true,
        row.name.clone(),
        observed,
        fed_by,
    )
    .await;
    Ok(())
}
