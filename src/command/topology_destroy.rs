//! `mq topology destroy`: exactly what the file declares, if nobody needs it.

use super::session::Session;
use super::topology_files;
use super::topology_survey::{left_in_vhost, management_if_any, required, survey};
use crate::amqp::{Connection, Frames, QueueGuard};
use crate::cli::DestroyArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::management::Management;
use crate::output::{destroy_json, destroy_text};
use crate::plan::{DestroyReport, Gone, Object, Objection};
use crate::topology::{Destination, ExchangeName, QueueName, QueueType, Topology};

pub(super) async fn run(args: &DestroyArgs, mut session: Session) -> anyhow::Result<Exit> {
    let topology = topology_files::load_named(&args.files)?;
    session.prefer_vhost(topology.vhost.as_ref());
    let connection = session
        .connect("mq topology destroy", Frames::Small)
        .await?;
    let management = management_if_any(&connection, &session).await?;
    let management = management.as_ref();
    let survey = survey(&topology, &connection, &session, management).await?;
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
        // Better now than when everything else is gone.
        required(management)?;
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
    let force = if args.force {
        Force::Everything
    } else {
        Force::Nothing
    };
    let mut result = delete(&mut report, &topology, &connection, management, force).await;
    let name = connection.name().to_owned();
    connection.close().await;
    if args.delete_vhost
        && result.is_ok()
        && let Some(management) = management
    {
        result = delete_vhost(&mut report, &name, &session, management).await;
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

/// What is deleted although it is in use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Force {
    /// Nothing.
    Nothing,
    /// Queues, with what they hold.
    Queues,
    /// Exchanges too, whatever they feed.
    Everything,
}

/// Deletes what is planned to go; gives up at the first failure.
pub(super) async fn delete(
    report: &mut DestroyReport,
    topology: &Topology,
    connection: &Connection,
    management: Option<&Management>,
    force: Force,
) -> Result<()> {
    let vhost = &report.vhost;
    for (object, gone) in &mut report.lines {
        if *gone != Gone::Planned {
            continue;
        }
        *gone = match object {
            Object::Queue(name) if force != Force::Nothing => {
                connection.delete_queue(name, QueueGuard::None).await?;
                Gone::Deleted
            }
            Object::Queue(name) => delete_queue(topology, name, connection).await?,
            Object::Exchange(name) if force == Force::Everything => {
                connection.delete_exchange(name).await?;
                Gone::Deleted
            }
            Object::Exchange(name) => delete_exchange(topology, name, connection).await?,
            Object::Policy(kind, name) => {
                let management = required(management)?;
                gone_now(management.delete_policy(vhost, *kind, name).await)?
            }
            Object::Permissions(user) => {
                let management = required(management)?;
                gone_now(management.delete_permissions(vhost, user).await)?
            }
            Object::TopicPermission(key) => {
                let management = required(management)?;
                gone_now(management.delete_topic_permission(vhost, key).await)?
            }
            Object::User(name) => gone_now(required(management)?.delete_user(name).await)?,
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
async fn delete_vhost(
    report: &mut DestroyReport,
    connection_name: &str,
    session: &Session,
    management: &Management,
) -> Result<()> {
    let left = left_in_vhost(connection_name, session, management).await?;
    let gone = if left.is_empty() {
        management.delete_vhost(&report.vhost).await?;
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
