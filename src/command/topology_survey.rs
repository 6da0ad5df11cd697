//! Before anything is deleted: what is there, and what stands against it.
#![expect(
    clippy::disallowed_methods,
    reason = "statistics of a broker are late by seconds, which have to pass"
)]

use std::time::{Duration, Instant};

use super::session::Session;
use crate::amqp::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::management::{Counts, Management};
use crate::plan::{self, Gone, Object, Objection, QueueUse, Unseen, exchanges_last_first};
use crate::topology::{QueueName, QueueType, Topology, UserName};

/// How old the counts of a queue can be: brokers take them every 5 seconds
/// (`collect_statistics_interval`), and once more when a queue becomes idle.
const STATISTICS_AGE: Duration = Duration::from_secs(6);

/// What would go, and what stands against it.
pub(super) struct Survey {
    pub(super) lines: Vec<(Object, Gone)>,
    pub(super) objections: Vec<Objection>,
}

/// The management API, if it answers; one of another broker is an error, for
/// what is deleted there would be somebody else's.
pub(super) async fn management_if_any(
    connection: &Connection,
    session: &Session,
) -> Result<Option<Management>> {
    match session.management_of(connection.cluster()).await {
        Ok(management) => Ok(Some(management)),
        Err(error) if error.kind() == ErrorKind::Configuration => Err(error),
        Err(error) => {
            tracing::info!(
                error = error.message(),
                "the management API does not answer"
            );
            Ok(None)
        }
    }
}

pub(super) fn required(management: Option<&Management>) -> Result<&Management> {
    management.ok_or_else(|| {
        Error::new(
            ErrorKind::Unavailable,
            "policies, users and permissions are deleted through the management API, which does not answer",
        )
        .hint("enable it on the broker (`rabbitmq-plugins enable rabbitmq_management`), or set --management-url (MQ_MANAGEMENT_URL)")
    })
}

/// Looks at everything before anything is deleted.
pub(super) async fn survey(
    topology: &Topology,
    connection: &Connection,
    session: &Session,
    management: Option<&Management>,
) -> Result<Survey> {
    let mut lines = Vec::new();
    let mut there = Vec::new();
    for name in topology.queues.keys() {
        let gone = match connection.queue_status(name).await? {
            None => Gone::NotThere,
            Some(status) => {
                there.push((name.clone(), status));
                Gone::Planned
            }
        };
        lines.push((Object::Queue(name.clone()), gone));
    }
    let kind_of = |name: &QueueName| topology.queues.get(name).and_then(|q| q.kind.as_ref());
    let all_told = there
        .iter()
        .all(|(name, _)| matches!(kind_of(name), Some(QueueType::Quorum | QueueType::Stream)));
    let counts = if all_told {
        Some(Counts::default())
    } else {
        counts(connection, session, management).await?
    };
    let mut uses = Vec::new();
    for (name, status) in there {
        let (out, unseen) = out_for_delivery(&name, kind_of(&name), counts.as_ref());
        let used = QueueUse {
            messages: u64::from(status.ready) + out,
            consumers: u64::from(status.consumers),
            unseen,
        };
        uses.push((name, used));
    }
    for name in exchanges_last_first(topology) {
        let gone = if connection.exchange_exists(&name).await? {
            Gone::Planned
        } else {
            Gone::NotThere
        };
        lines.push((Object::Exchange(name), gone));
    }
    if !topology.policies.is_empty() {
        let present = required(management)?.policies(session.vhost()?).await?;
        for (kind, name) in topology.policies.keys() {
            let gone = if present.contains_key(&(*kind, name.clone())) {
                Gone::Planned
            } else {
                Gone::NotThere
            };
            lines.push((Object::Policy(*kind, name.clone()), gone));
        }
    }
    let mut objections = survey_users(topology, session, management, &mut lines).await?;
    let present = present(connection, session, management).await;
    objections.extend(plan::objections(topology, &uses, &present));
    Ok(Survey { lines, objections })
}

/// Everything in the vhost. Without the management API foreign bindings show
/// when an exchange is deleted: the broker refuses then, and it is kept.
async fn present(
    connection: &Connection,
    session: &Session,
    management: Option<&Management>,
) -> Topology {
    let read = async {
        let (management, vhost) = (required(management)?, session.vhost()?);
        let mut present = management.declared(vhost, connection.facts()).await?;
        match management.policies(vhost).await {
            Ok(policies) => present.policies = policies,
            Err(error) => tracing::info!(error = error.message(), "policies cannot be read"),
        }
        Ok::<_, Error>(present)
    };
    match read.await {
        Ok(present) => present,
        Err(error) => {
            tracing::info!(error = error.message(), "the vhost cannot be read");
            Topology::default()
        }
    }
}

/// What the broker counts in each queue, not older than this run. Messages that
/// are out for delivery show nowhere else, but they need a connection: where
/// there is none but ours, nothing is out and nothing has to be waited for.
/// `None`: nobody tells.
async fn counts(
    connection: &Connection,
    session: &Session,
    management: Option<&Management>,
) -> Result<Option<Counts>> {
    let Some(management) = management else {
        return Ok(None);
    };
    let vhost = session.vhost()?;
    let began = Instant::now();
    if management.sees_all_connections().await? {
        while began.elapsed() < STATISTICS_AGE {
            match management.connections(vhost, connection.name()).await? {
                (true, 0) => return Ok(Some(Counts::Nothing)),
                (true, _) => break,
                // Not even ours is listed yet, so others may be missing too.
                (false, _) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
    tracing::info!(
        "others are connected to the vhost: waiting until the broker's counts are fresh"
    );
    tokio::time::sleep(STATISTICS_AGE.saturating_sub(began.elapsed())).await;
    management.counts(vhost).await.map(Some)
}

/// Messages of a queue that are out for delivery, or why that cannot be said.
fn out_for_delivery(
    name: &QueueName,
    kind: Option<&QueueType>,
    counts: Option<&Counts>,
) -> (u64, Option<Unseen>) {
    let kind = counts.and_then(|counts| counts.kind(name)).or(kind);
    if kind == Some(&QueueType::Stream) {
        return (0, Some(Unseen::Stream));
    }
    if kind == Some(&QueueType::Quorum) {
        // Whoever holds messages of a quorum queue counts as its consumer, also
        // after basic.get or basic.cancel (measured on all versions).
        return (0, None);
    }
    match counts.map(|counts| counts.unacknowledged(name)) {
        Some(Some(out)) => (out, None),
        Some(None) | None => (0, Some(Unseen::OutForDelivery)),
    }
}

/// What a vhost holds besides what every vhost has and what is ours.
pub(super) async fn left_in_vhost(
    connection_name: &str,
    session: &Session,
    management: &Management,
) -> Result<Vec<String>> {
    let vhost = session.vhost()?;
    let facts = management.facts().await?;
    let there = management.declared(vhost, &facts).await?;
    let mut left: Vec<String> = management
        .queue_names(vhost)
        .await?
        .into_iter()
        .map(|name| format!("queue '{name}'"))
        .collect();
    let exchanges = there.exchanges.keys().filter(|name| !name.is_reserved());
    left.extend(exchanges.map(|name| format!("exchange '{name}'")));
    left.extend(
        there
            .bindings
            .iter()
            .map(|binding| format!("binding {binding}")),
    );
    let policies = management.policies(vhost).await?;
    left.extend(
        policies
            .keys()
            .map(|(kind, name)| format!("{} '{name}'", kind.word())),
    );
    for user in management.permissions(vhost).await?.keys() {
        if !session.works_as(user)? {
            left.push(format!("permissions of user '{user}'"));
        }
    }
    match management.connections(vhost, connection_name).await? {
        (_, 0) => {}
        (_, connections) => left.push(format!("{connections} connections of others")),
    }
    Ok(left)
}

/// Permissions go before users. The user that asks stays what it is, and a user
/// that is somebody elsewhere too is not deleted unasked.
async fn survey_users(
    topology: &Topology,
    session: &Session,
    management: Option<&Management>,
    lines: &mut Vec<(Object, Gone)>,
) -> Result<Vec<Objection>> {
    if topology.users.is_empty()
        && topology.permissions.is_empty()
        && topology.topic_permissions.is_empty()
    {
        return Ok(Vec::new());
    }
    let management = required(management)?;
    let vhost = session.vhost()?;
    let gone = |user: &UserName, is_there: bool| {
        Ok::<_, Error>(if session.works_as(user)? {
            Gone::Kept("it is the user we work as".to_owned())
        } else if is_there {
            Gone::Planned
        } else {
            Gone::NotThere
        })
    };
    let topics = management.topic_permissions(vhost).await?;
    for key in topology.topic_permissions.keys() {
        let gone = gone(&key.0, topics.contains_key(key))?;
        lines.push((Object::TopicPermission(key.clone()), gone));
    }
    let permissions = management.permissions(vhost).await?;
    for user in topology.permissions.keys() {
        let gone = gone(user, permissions.contains_key(user))?;
        lines.push((Object::Permissions(user.clone()), gone));
    }
    let users = management.users().await?;
    let mut objections = Vec::new();
    for name in topology.users.keys() {
        let gone = gone(name, users.contains_key(name))?;
        if gone == Gone::Planned {
            let mut elsewhere = management.vhosts_of_user(name).await?;
            elsewhere.retain(|other| other != vhost.as_str());
            if !elsewhere.is_empty() {
                objections.push(Objection {
                    object: Object::User(name.clone()),
                    why: format!(
                        "it has permissions in other vhosts: {}",
                        elsewhere.join(", ")
                    ),
                });
            }
        }
        lines.push((Object::User(name.clone()), gone));
    }
    Ok(objections)
}
