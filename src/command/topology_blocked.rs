//! Queues that cannot be changed in place: `apply --allow migrate` migrates them.

use std::time::Duration;

use super::session::Session;
use super::topology_migrate::{Options, migrate, warn};
use crate::cli::{Allow, ApplyArgs};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{ApplyReport, Done, MigrateNames, Object, Plan, Planned, Step, Verb};
use crate::topology::{QueueName, Topology};

/// How long to try for a moment at which nothing waits, as `mq topology migrate` does.
const SWITCH_FOR: Duration = Duration::from_mins(1);

const fn options(approved: bool) -> Options {
    Options {
        approved,
        with_consumers: false,
        switch_for: SWITCH_FOR,
    }
}

/// Goes on with migrations that were killed: what they left must not be taken
/// for a queue that is missing. Gives whether there were any.
///
/// # Errors
/// [`ErrorKind::Blocked`] without `--allow migrate`, and what the migrations say.
pub(super) async fn resume(
    args: &ApplyArgs,
    topology: &Topology,
    there: &Topology,
    session: &Session,
) -> Result<bool> {
    let mut killed = Vec::new();
    for queue in topology.queues.keys() {
        // A name that is too long for it was never migrated.
        if let Ok(names) = MigrateNames::of(queue)
            && [&names.old, &names.new]
                .iter()
                .any(|name| there.queues.contains_key(name))
        {
            killed.push(queue);
        }
    }
    if let Some(queue) = killed.first()
        && !args.allow.contains(&Allow::Migrate)
    {
        return Err(Error::new(
            ErrorKind::Blocked,
            format!(
                "nothing was changed: a migration of queue '{queue}' was stopped half-way, and its messages are in queues of that"
            ),
        )
        .hint(format!(
            "go on with it: mq topology migrate {} FILE --yes, or give --allow migrate",
            queue.shell_quoted()
        )));
    }
    for queue in &killed {
        migrate_one(queue, topology, session).await?;
    }
    Ok(!killed.is_empty())
}

/// The queues to migrate, each of which could be: nothing is changed yet.
///
/// # Errors
/// What stands against a migration.
pub(super) async fn survey(
    args: &ApplyArgs,
    topology: &Topology,
    plan: &Plan,
    session: &Session,
) -> Result<Vec<QueueName>> {
    if !args.allow.contains(&Allow::Migrate) {
        return Ok(Vec::new());
    }
    let blocked: Vec<&Planned> = plan
        .steps
        .iter()
        .filter(|planned| matches!(planned.verb, Verb::Blocked(_)))
        .collect();
    let queues: Vec<QueueName> = blocked
        .iter()
        .filter_map(|planned| match &planned.step {
            Step::Queue(name, _) => Some(name.clone()),
            _ => None,
        })
        .collect();
    if queues.len() < blocked.len() {
        // Something else stands in the way, and the report says what.
        return Ok(Vec::new());
    }
    for queue in &queues {
        let (_, result) = migrate(queue, topology, options(false), session).await?;
        result?;
    }
    Ok(queues)
}

/// Migrates the queues, once everything that they need is there.
pub(super) async fn run(
    queues: &[QueueName],
    topology: &Topology,
    plan: &Plan,
    report: &mut ApplyReport,
    session: &Session,
) {
    for queue in queues {
        let done = if report.failure().is_some() {
            Done::NotTried
        } else {
            match migrate_one(queue, topology, session).await {
                Ok(()) => Done::Changed(differences(plan, queue)),
                Err(error) => Done::Failed(error),
            }
        };
        for line in &mut report.lines {
            if line.object == Object::Queue(queue.clone()) {
                line.done = done.clone();
            }
        }
    }
}

async fn migrate_one(queue: &QueueName, topology: &Topology, session: &Session) -> Result<()> {
    let (report, result) = migrate(queue, topology, options(true), session).await?;
    warn(&report);
    result.map_err(|error| error.during(&format!("migrate queue '{queue}'")))
}

fn differences(plan: &Plan, queue: &QueueName) -> Vec<crate::plan::Difference> {
    plan.steps
        .iter()
        .find(|planned| planned.step.object() == Object::Queue(queue.clone()))
        .map(|planned| match &planned.verb {
            Verb::Blocked(differences) | Verb::Change(differences) => differences.clone(),
            Verb::Create | Verb::Keep => Vec::new(),
        })
        .unwrap_or_default()
}
