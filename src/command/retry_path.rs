//! Where a worker's failures go: found before the first message is taken.

use std::collections::BTreeSet;

use super::session::Session;
use crate::amqp::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::retry::{RetryPath, RetryPolicy, Strategy, path};
use crate::routing::Router;
use crate::topology::{DeadLetterKey, QueueName, Topology};

/// Where failures go.
pub(super) struct Found {
    /// The path.
    pub(super) path: RetryPath,
    /// Whether it was seen on the broker; else the file's word was taken, and
    /// each retry must be proved.
    pub(super) seen: bool,
}

/// Where failures go, as the broker has it. Without the management API the
/// file is believed, and what it names must exist.
pub(super) async fn retry_path(
    session: &Session,
    connection: &Connection,
    queue: &QueueName,
    file: Option<&Topology>,
    policy: &RetryPolicy,
) -> Result<Found> {
    let found = |topology: &Topology| {
        path(&Router::new(topology), queue, policy).map_err(|problem| {
            Error::new(
                ErrorKind::Blocked,
                format!("refusing to work queue '{queue}': {problem}"),
            )
            .hint(problem.way_out())
        })
    };
    let expected = file.map(found).transpose()?;
    let read = async {
        let management = session.management_of(connection.cluster()).await?;
        management
            .topology(session.vhost()?, connection.facts())
            .await
    };
    let live = read.await;
    let seen = live.is_ok();
    let path = match (live, expected) {
        (Ok(topology), expected) => {
            let live = found(&topology)?;
            if let Some(expected) = expected
                && !same_way(&expected, &live)
            {
                return Err(Error::new(
                    ErrorKind::Blocked,
                    format!(
                        "refusing to work queue '{queue}': on the broker its dead letters go {}, but the file says {}",
                        describe(&live),
                        describe(&expected)
                    ),
                )
                .hint("bring the broker to the file with `mq topology apply`, or use the right file"));
            }
            live
        }
        (Err(error), Some(expected)) => {
            tracing::warn!(
                error = error.message(),
                "the management API does not answer: the dead-letter path is taken from the file"
            );
            must_exist(connection, queue, &expected).await?;
            expected
        }
        (Err(error), None) => {
            let hint = error.way_out().unwrap_or_default().to_owned();
            return Err(error
                .during("find out where failed messages go")
                .hint(format!(
                    "{hint}\nor pass the topology file with --topology, which needs no management API"
                )));
        }
    };
    if let Some(wanted) = policy.strategy
        && wanted != path.strategy
    {
        return Err(Error::new(
            ErrorKind::Blocked,
            format!(
                "refusing to work queue '{queue}': the strategy `{wanted}` is asked for, but its dead letters go {}, which makes it `{}`",
                describe(&path),
                path.strategy
            ),
        )
        .hint(match wanted {
            Strategy::Dlx => {
                "`dlx` needs a wait queue with a message TTL that leads back to the queue"
            }
            Strategy::Backoff | Strategy::Immediate | Strategy::Native => {
                "all but `dlx` need dead letters that go straight to the dead-letter queue"
            }
        }));
    }
    tracing::info!(strategy = %path.strategy, dead_letters = describe(&path), "retries");
    Ok(Found { path, seen })
}

fn same_way(a: &RetryPath, b: &RetryPath) -> bool {
    a.strategy == b.strategy
        && a.exchange == b.exchange
        && a.key == b.key
        && a.wait_queues == b.wait_queues
        && a.dead_letter_queues == b.dead_letter_queues
        && a.park == b.park
}

fn describe(path: &RetryPath) -> String {
    let names = |queues: &BTreeSet<QueueName>| {
        let names: Vec<String> = queues.iter().map(|queue| format!("'{queue}'")).collect();
        names.join(", ")
    };
    let key = match &path.key {
        DeadLetterKey::Kept => "their own key".to_owned(),
        DeadLetterKey::Replaced(key) => format!("key '{key}'"),
    };
    let rest = names(&path.dead_letter_queues);
    match &path.park {
        Some(park) => format!(
            "through exchange '{}' with {key} to wait in {}, and at last with key '{}' to {rest}",
            path.exchange,
            names(&path.wait_queues),
            park.key
        ),
        None => format!(
            "through exchange '{}' with {key} straight to {rest}",
            path.exchange
        ),
    }
}

async fn must_exist(connection: &Connection, queue: &QueueName, path: &RetryPath) -> Result<()> {
    let missing = |what: String| {
        Error::new(
            ErrorKind::Blocked,
            format!("refusing to work queue '{queue}': {what} does not exist, so dead letters would vanish"),
        )
        .hint("declare it with `mq topology apply FILE`")
    };
    if !connection.exchange_exists(&path.exchange).await? {
        return Err(missing(format!(
            "the dead-letter exchange '{}'",
            path.exchange
        )));
    }
    for needed in path.wait_queues.iter().chain(&path.dead_letter_queues) {
        if connection.queue_status(needed).await?.is_none() {
            return Err(missing(format!("queue '{needed}'")));
        }
    }
    Ok(())
}
