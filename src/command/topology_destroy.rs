//! `mq topology destroy`: exactly what the file declares, if nobody needs it.

use super::session::Session;
use super::topology_files;
use crate::amqp::{Connection, Frames, QueueGuard};
use crate::broker::BrokerFacts;
use crate::cli::DestroyArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output::{destroy_json, destroy_text};
use crate::plan::{self, DestroyReport, Gone, Object, Objection, QueueUse, exchanges_last_first};
use crate::topology::{Destination, ExchangeName, QueueName, QueueType, Topology, UserName};

pub(super) async fn run(args: &DestroyArgs, mut session: Session) -> anyhow::Result<Exit> {
    let topology = topology_files::load_named(&args.files)?;
    session.prefer_vhost(topology.vhost.as_ref());
    let connection = session
        .connect("mq topology destroy", Frames::Small)
        .await?;
    let survey = survey(&topology, &connection, &session).await?;
    let mut report = DestroyReport {
        vhost: session.vhost()?.clone(),
        broker: format!("{} at {}", connection.facts(), connection.endpoint()),
        lines: survey.lines,
    };
    if !args.force && !survey.objections.is_empty() {
        connection.close().await;
        return Err(refused(&survey.objections).into());
    }
    if args.delete_vhost {
        report.lines.push((Object::Vhost, Gone::Planned));
    }
    let anything = report.lines.iter().any(|(_, gone)| *gone == Gone::Planned);
    if anything && !args.yes {
        connection.close().await;
        session.report(|| destroy_text(&report), || destroy_json(&report))?;
        return Err(Error::new(ErrorKind::Blocked, "nothing was deleted")
            .hint("look at the list above, then run this again with --yes")
            .into());
    }
    let mut result = delete(&mut report, &topology, &connection, &session, args.force).await;
    connection.close().await;
    if args.delete_vhost && result.is_ok() {
        result = delete_vhost(&mut report, &session).await;
    }
    session.report(|| destroy_text(&report), || destroy_json(&report))?;
    let deleted = report.lines.iter().any(|(_, gone)| *gone == Gone::Deleted);
    match result {
        Err(error) if deleted => Err(error
            .as_kind(ErrorKind::Partial)
            .during("stopped half-way; the report says what was deleted")
            .into()),
        Err(error) => Err(error.into()),
        Ok(()) => Ok(verdict(&report)?),
    }
}

fn verdict(report: &DestroyReport) -> Result<Exit> {
    let kept: Vec<String> = report
        .lines
        .iter()
        .filter_map(|(object, gone)| match gone {
            Gone::Kept(why) => Some(format!("{object}: {why}")),
            Gone::Planned | Gone::Deleted | Gone::NotThere => None,
        })
        .collect();
    if kept.is_empty() {
        return Ok(Exit::Done);
    }
    Err(
        Error::new(ErrorKind::Partial, format!("kept:\n{}", kept.join("\n")))
            .hint("stop who uses them and run this again, or give --force to lose what they hold"),
    )
}

pub(super) fn refused(objections: &[Objection]) -> Error {
    let told: Vec<String> = objections
        .iter()
        .map(|objection| format!("{}: {}", objection.object, objection.why))
        .collect();
    Error::new(
        ErrorKind::Blocked,
        format!("nothing was deleted:\n{}", told.join("\n")),
    )
    .hint("drain the queues and stop who uses them, or give --force to lose what they hold")
}

/// What would go, and what stands against it.
pub(super) struct Survey {
    pub(super) lines: Vec<(Object, Gone)>,
    pub(super) objections: Vec<Objection>,
}

/// Looks at everything before anything is deleted.
pub(super) async fn survey(
    topology: &Topology,
    connection: &Connection,
    session: &Session,
) -> Result<Survey> {
    let mut lines = Vec::new();
    let mut uses = Vec::new();
    for name in topology.queues.keys() {
        let gone = match queue_use(name, connection, session).await? {
            None => Gone::NotThere,
            Some(used) => {
                uses.push((name.clone(), used));
                Gone::Planned
            }
        };
        lines.push((Object::Queue(name.clone()), gone));
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
        let present = session.management()?.policies(session.vhost()?).await?;
        for (kind, name) in topology.policies.keys() {
            let gone = if present.contains_key(&(*kind, name.clone())) {
                Gone::Planned
            } else {
                Gone::NotThere
            };
            lines.push((Object::Policy(*kind, name.clone()), gone));
        }
    }
    let mut objections = survey_users(topology, session, &mut lines).await?;
    // Without the management API foreign bindings show when an exchange is
    // deleted: the broker refuses then, and it is kept.
    let read = async {
        let management = session.management_of(connection.cluster()).await?;
        management
            .declared(session.vhost()?, connection.facts())
            .await
    };
    let present = match read.await {
        Ok(observed) => observed.bindings,
        Err(error) => {
            tracing::info!(error = error.message(), "bindings cannot be read");
            Vec::new()
        }
    };
    objections.extend(plan::objections(topology, &uses, &present));
    Ok(Survey { lines, objections })
}

/// Permissions go before users. The user that asks stays what it is, and a user
/// that is somebody elsewhere too is not deleted unasked.
async fn survey_users(
    topology: &Topology,
    session: &Session,
    lines: &mut Vec<(Object, Gone)>,
) -> Result<Vec<Objection>> {
    if topology.users.is_empty()
        && topology.permissions.is_empty()
        && topology.topic_permissions.is_empty()
    {
        return Ok(Vec::new());
    }
    let management = session.management()?;
    let vhost = session.vhost()?;
    let ours = [session.user()?, &management.endpoint().user].map(str::to_owned);
    let gone = |user: &UserName, is_there: bool| {
        if ours.iter().any(|name| name == user.as_str()) {
            Gone::Kept("it is the user we work as".to_owned())
        } else if is_there {
            Gone::Planned
        } else {
            Gone::NotThere
        }
    };
    let topics = management.topic_permissions(vhost).await?;
    for key in topology.topic_permissions.keys() {
        let gone = gone(&key.0, topics.contains_key(key));
        lines.push((Object::TopicPermission(key.clone()), gone));
    }
    let permissions = management.permissions(vhost).await?;
    for user in topology.permissions.keys() {
        let gone = gone(user, permissions.contains_key(user));
        lines.push((Object::Permissions(user.clone()), gone));
    }
    let users = management.users().await?;
    let mut objections = Vec::new();
    for name in topology.users.keys() {
        let gone = gone(name, users.contains_key(name));
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

/// What a queue holds: ready messages and consumers as AMQP tells them at once,
/// and messages out for delivery if the management API knows them.
async fn queue_use(
    name: &QueueName,
    connection: &Connection,
    session: &Session,
) -> Result<Option<QueueUse>> {
    let Some(status) = connection.queue_status(name).await? else {
        return Ok(None);
    };
    let facts: &BrokerFacts = connection.facts();
    let out = match session
        .management()?
        .queue(session.vhost()?, name, facts)
        .await
    {
        Ok(observed) => observed.unacknowledged.unwrap_or(0),
        Err(_) => 0,
    };
    Ok(Some(QueueUse {
        messages: u64::from(status.ready) + out,
        consumers: u64::from(status.consumers),
    }))
}

/// Deletes what is planned to go; gives up at the first failure.
pub(super) async fn delete(
    report: &mut DestroyReport,
    topology: &Topology,
    connection: &Connection,
    session: &Session,
    force: bool,
) -> Result<()> {
    for (object, gone) in &mut report.lines {
        if *gone != Gone::Planned {
            continue;
        }
        *gone = match object {
            Object::Queue(name) if force => {
                connection.delete_queue(name, QueueGuard::None).await?;
                Gone::Deleted
            }
            Object::Queue(name) => delete_queue(topology, name, connection).await?,
            Object::Exchange(name) if force => {
                connection.delete_exchange(name).await?;
                Gone::Deleted
            }
            Object::Exchange(name) => delete_exchange(topology, name, connection).await?,
            Object::Policy(kind, name) => {
                let vhost = session.vhost()?;
                session
                    .management()?
                    .delete_policy(vhost, *kind, name)
                    .await?;
                Gone::Deleted
            }
            Object::Permissions(user) => {
                let management = session.management()?;
                gone_now(management.delete_permissions(session.vhost()?, user).await)?
            }
            Object::TopicPermission(key) => {
                let management = session.management()?;
                let vhost = session.vhost()?;
                gone_now(management.delete_topic_permission(vhost, key).await)?
            }
            Object::User(name) => gone_now(session.management()?.delete_user(name).await)?,
            Object::Binding(_) | Object::Vhost => continue,
        };
    }
    Ok(())
}

/// What is not there any more went with something else: 4.3 deletes the topic
/// permissions of an exchange with it, earlier brokers do not (measured).
fn gone_now(deleted: Result<()>) -> Result<Gone> {
    match deleted {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(Gone::Deleted),
    }
}

/// Deletes the vhost if nothing is left in it but what every vhost has.
async fn delete_vhost(report: &mut DestroyReport, session: &Session) -> Result<()> {
    let management = session.management()?;
    let vhost = session.vhost()?;
    let facts = BrokerFacts::new("RabbitMQ", management.version().await?);
    let left = management.declared(vhost, &facts).await?;
    let names = left.queues.keys().map(|name| format!("queue '{name}'"));
    let exchanges = left.exchanges.keys().filter(|name| !name.is_reserved());
    let left: Vec<String> = names
        .chain(exchanges.map(|name| format!("exchange '{name}'")))
        .collect();
    let gone = if left.is_empty() {
        management.delete_vhost(vhost).await?;
        Gone::Deleted
    } else {
        Gone::Kept(format!("it still holds {}", left.join(", ")))
    };
    for (object, was) in &mut report.lines {
        if *object == Object::Vhost {
            *was = gone.clone();
        }
    }
    Ok(())
}

/// Deletes an exchange once its bindings of the file are gone; any other keeps it.
async fn delete_exchange(
    topology: &Topology,
    name: &ExchangeName,
    connection: &Connection,
) -> Result<Gone> {
    for binding in topology.bindings.iter().filter(|b| b.source == *name) {
        let there = match &binding.destination {
            Destination::Exchange(name) => connection.exchange_exists(name).await?,
            Destination::Queue(name) => connection.queue_status(name).await?.is_some(),
        };
        if there {
            connection.unbind(binding).await?;
        }
    }
    match connection.delete_unused_exchange(name).await {
        Ok(()) => Ok(Gone::Deleted),
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            Ok(Gone::Kept("something is still bound to it".to_owned()))
        }
        Err(error) => Err(error),
    }
}

/// Deletes a queue only if it is empty and unused at that very moment.
///
/// Classic queues have a guard of their own. The others have none, so first
/// nothing may flow in any more, then it is looked at, then deleted; if it turns
/// out to be in use its bindings are put back. What is published to it through
/// the default exchange within those milliseconds cannot be held off.
async fn delete_queue(
    topology: &Topology,
    name: &QueueName,
    connection: &Connection,
) -> Result<Gone> {
    let queue = topology.queues.get(name);
    if queue.and_then(|queue| queue.kind.as_ref()) == Some(&QueueType::Classic) {
        return match connection
            .delete_queue(name, QueueGuard::EmptyAndUnused)
            .await
        {
            Ok(_) => Ok(Gone::Deleted),
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                Ok(Gone::Kept("it came into use meanwhile".to_owned()))
            }
            Err(error) => Err(error),
        };
    }
    let inward: Vec<_> = topology
        .bindings
        .iter()
        .filter(|binding| binding.destination == Destination::Queue(name.clone()))
        .collect();
    for binding in &inward {
        if connection.exchange_exists(&binding.source).await? {
            connection.unbind(binding).await?;
        }
    }
    match connection.queue_status(name).await? {
        None => Ok(Gone::NotThere),
        Some(status) if status.ready == 0 && status.consumers == 0 => {
            connection.delete_queue(name, QueueGuard::None).await?;
            Ok(Gone::Deleted)
        }
        Some(_) => {
            for binding in inward {
                connection.bind(binding).await?;
            }
            Ok(Gone::Kept("it came into use meanwhile".to_owned()))
        }
    }
}
