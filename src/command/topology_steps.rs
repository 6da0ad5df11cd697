//! Carrying the steps of a plan out, several at once.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt as _, stream};

use super::session::Session;
use crate::amqp::{Connection, Declared, Frames};
use crate::error::{Error, ErrorKind, Result};
use crate::management::Management;
use crate::plan::{Conflict, Done, Line, Plan, Step, Verb};
use crate::topology::VhostName;

/// The name of its connections.
pub(super) const APPLY: &str = "mq topology apply";

/// Requests under way at once, each on a channel of its own.
const AT_ONCE: usize = 16;

/// What the plan knows about each step; `None`: to be done.
pub(super) fn known_from(plan: &Plan) -> Vec<Option<Done>> {
    plan.steps
        .iter()
        .map(|planned| match &planned.verb {
            Verb::Create | Verb::Change(_) => None,
            Verb::Keep => Some(Done::Unchanged),
            Verb::Blocked(differences) => Some(Done::Conflict(Conflict {
                object: planned.step.object(),
                differences: differences.clone(),
                said: String::new(),
            })),
        })
        .collect()
}

/// The same without the management API. What exists is declared again: the
/// broker compares and changes nothing. Bindings cannot be looked at.
pub(super) async fn look(
    connection: &mut Connection,
    steps: &[Step],
    session: &Session,
) -> Result<Vec<Option<Done>>> {
    let mut known = Vec::with_capacity(steps.len());
    for step in steps {
        if connection.is_worn() {
            let fresh = session.connect(APPLY, Frames::Large).await?;
            std::mem::replace(connection, fresh).close().await;
        }
        let exists = match step {
            Step::Exchange(name, _) => connection.exchange_exists(name).await?,
            Step::Queue(name, _) => connection.queue_status(name).await?.is_some(),
            Step::Binding(_)
            | Step::Policy(..)
            | Step::Vhost(_)
            | Step::User(..)
            | Step::Permissions(..)
            | Step::TopicPermission(..) => false,
        };
        known.push(if exists {
            Some(declare(connection, step).await?)
        } else {
            None
        });
    }
    Ok(known)
}

/// Both ways to the broker.
pub(super) struct Broker<'b> {
    pub(super) connection: &'b Connection,
    pub(super) session: &'b Session,
}

/// Carries one step out.
async fn carry_out(broker: &Broker<'_>, step: &Step) -> Result<Done> {
    match step {
        Step::Exchange(..) | Step::Queue(..) => declare(broker.connection, step).await,
        Step::Binding(binding) => {
            broker.connection.bind(binding).await?;
            Ok(Done::Unchanged)
        }
        Step::Policy(..)
        | Step::Vhost(_)
        | Step::User(..)
        | Step::Permissions(..)
        | Step::TopicPermission(..) => {
            set(&broker.session.management()?, broker.session.vhost()?, step).await?;
            Ok(Done::Unchanged)
        }
    }
}

/// What goes through the management API.
async fn set(management: &Management, vhost: &VhostName, step: &Step) -> Result<()> {
    match step {
        Step::Policy(kind, name, policy) => management.set_policy(vhost, *kind, name, policy).await,
        Step::Vhost(settings) => management.set_vhost(vhost, settings).await,
        Step::User(name, user) => management.set_user(name, user).await,
        Step::Permissions(user, permissions) => {
            management.set_permissions(vhost, user, permissions).await
        }
        Step::TopicPermission(key, permission) => {
            management
                .set_topic_permission(vhost, key, permission)
                .await
        }
        Step::Exchange(..) | Step::Queue(..) | Step::Binding(_) => Ok(()),
    }
}

/// Declares an exchange or a queue; the others have no declaration that compares.
async fn declare(connection: &Connection, step: &Step) -> Result<Done> {
    let declared = match step {
        Step::Exchange(name, exchange) => connection.declare_exchange(name, exchange).await?,
        Step::Queue(name, queue) => connection.declare_queue(name, queue).await?,
        Step::Binding(_)
        | Step::Policy(..)
        | Step::Vhost(_)
        | Step::User(..)
        | Step::Permissions(..)
        | Step::TopicPermission(..) => Declared::AsAsked,
    };
    Ok(match declared {
        Declared::AsAsked => Done::Unchanged,
        Declared::Refused(said) if said.starts_with("inequivalent arg") => {
            Done::Conflict(Conflict::read(step.object(), said))
        }
        Declared::Refused(said) => {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{}: the broker says: {said}", step.object()),
            )
            .hint("correct it in the file; this version of the broker does not take it"));
        }
    })
}

pub(super) fn without_creating(steps: &[Step], existing: Vec<Option<Done>>) -> Vec<Line> {
    steps
        .iter()
        .zip(existing)
        .map(|(step, done)| Line {
            object: step.object(),
            done: done.unwrap_or(Done::NotTried),
        })
        .collect()
}

/// Creates what is missing, kind after kind, until something fails. Within a
/// kind nothing depends on another (but exchanges on their alternates), so
/// several requests are under way at once.
pub(super) async fn create(
    broker: &Broker<'_>,
    steps: &[Step],
    existing: Vec<Option<Done>>,
    plan: Option<&Plan>,
) -> Vec<Line> {
    let failed = AtomicBool::new(false);
    let mut lines = Vec::with_capacity(steps.len());
    let work: Vec<(usize, &Step, Option<Done>)> = steps
        .iter()
        .zip(existing)
        .enumerate()
        .map(|(at, (step, existing))| (at, step, existing))
        .collect();
    for kind in work.chunk_by(|(_, a, _), (_, b, _)| a.rank() == b.rank()) {
        let at_once = match kind.first() {
            Some((_, Step::Queue(..) | Step::Binding(_), _)) => AT_ONCE,
            _ => 1,
        };
        let done: Vec<Line> = stream::iter(kind)
            .map(|(at, step, existing)| {
                let verb = plan
                    .and_then(|plan| plan.steps.get(*at))
                    .map(|planned| &planned.verb);
                create_one(broker, step, existing.clone(), verb, &failed)
            })
            .buffered(at_once)
            .collect()
            .await;
        lines.extend(done);
    }
    lines
}

async fn create_one(
    broker: &Broker<'_>,
    step: &Step,
    existing: Option<Done>,
    verb: Option<&Verb>,
    failed: &AtomicBool,
) -> Line {
    let done = match existing {
        Some(done) => done,
        None if failed.load(Ordering::Relaxed) => Done::NotTried,
        None => match carry_out(broker, step).await {
            Ok(Done::Unchanged) => match (step, verb) {
                (_, Some(Verb::Change(differences))) => Done::Changed(differences.clone()),
                (Step::Binding(_), None) => Done::Ensured,
                _ => Done::Created,
            },
            // Somebody else created it otherwise between our look and now.
            Ok(Done::Conflict(conflict)) => {
                Done::Failed(Error::new(ErrorKind::Blocked, conflict.to_string()).hint(
                    "somebody else declared it otherwise meanwhile; `mq topology plan` shows what differs now",
                ))
            }
            Ok(other) => other,
            Err(error) => Done::Failed(error),
        },
    };
    if matches!(done, Done::Failed(_)) {
        failed.store(true, Ordering::Relaxed);
    }
    Line {
        object: step.object(),
        done,
    }
}
