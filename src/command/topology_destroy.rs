//! `mq topology destroy`: exactly what the file declares, if nobody needs it.

use super::session::Session;
use super::topology_files;
use crate::amqp::{Connection, Frames, QueueGuard};
use crate::broker::BrokerFacts;
use crate::cli::DestroyArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output::{destroy_json, destroy_text};
use crate::plan::{
    DestroyReport, Gone, Object, Objection, QueueUse, exchanges_last_first, objections,
};
use crate::topology::{Destination, ExchangeName, QueueName, QueueType, Topology};

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
    let anything = report.lines.iter().any(|(_, gone)| *gone == Gone::Planned);
    if anything && !args.yes {
        connection.close().await;
        session.report(|| destroy_text(&report), || destroy_json(&report))?;
        return Err(Error::new(ErrorKind::Blocked, "nothing was deleted")
            .hint("look at the list above, then run this again with --yes")
            .into());
    }
    let result = delete(&mut report, &topology, &connection, &session, args.force).await;
    connection.close().await;
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

fn refused(objections: &[Objection]) -> Error {
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

struct Survey {
    lines: Vec<(Object, Gone)>,
    objections: Vec<Objection>,
}

/// Looks at everything before anything is deleted.
async fn survey(topology: &Topology, connection: &Connection, session: &Session) -> Result<Survey> {
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
    // Without the management API foreign bindings show when an exchange is
    // deleted: the broker refuses then, and it is kept.
    let read = async {
        let management = session.management_of(connection.cluster()).await?;
        management
            .topology(session.vhost()?, connection.facts())
            .await
    };
    let present = match read.await {
        Ok(observed) => observed.bindings,
        Err(error) => {
            tracing::info!(error = error.message(), "bindings cannot be read");
            Vec::new()
        }
    };
    let objections = objections(topology, &uses, &present);
    Ok(Survey { lines, objections })
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

async fn delete(
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
            Object::Binding(_) => continue,
        };
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
        if let Destination::Exchange(destination) = &binding.destination
            && connection.exchange_exists(destination).await?
        {
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
