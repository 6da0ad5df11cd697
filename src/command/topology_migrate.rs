//! `mq topology migrate`: other arguments for a queue, and not a message lost.
//!
//! Looks, asks [`crate::plan::next`] for the one step that is due, takes it, and
//! looks again. Nothing is remembered between steps but counts for the report,
//! so it makes no difference whether the same run or a later one goes on.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where it is measured how long a migration takes"
)]

mod bindings;
mod fill;
mod look;
mod migration;
mod move_out;
mod open;
mod survey;

use std::time::Instant;

use super::session::Session;
use super::topology_files;
use crate::amqp::{Connection, Frames};
use crate::cli::MigrateArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output::{self, migrate_json, migrate_text};
use crate::plan::{MigrateNames, MigrateReport, Next, Progress, next};
use crate::topology::{QueueName, Topology};

pub(super) use migration::Options;

use migration::Migration;

pub(super) async fn run(args: &MigrateArgs, mut session: Session) -> anyhow::Result<Exit> {
    let topology = topology_files::load_named(&args.files)?;
    session.prefer_vhost(topology.vhost.as_ref());
    let queue = QueueName::of_existing(&format!("{}{}", args.files.prefix, args.queue))?;
    let options = Options {
        approved: args.yes,
        with_consumers: args.with_consumers,
        switch_for: args.switch_for,
    };
    let (report, result) = migrate(&queue, &topology, options, &session).await?;
    session.report(|| migrate_text(&report), || migrate_json(&report))?;
    warn(&report);
    let wanting = report
        .steps
        .iter()
        .any(|line| line.progress == Progress::Planned);
    match result {
        Err(error) => Err(error.into()),
        Ok(()) if wanting && !args.dry_run => {
            Err(Error::new(ErrorKind::Blocked, "nothing was changed")
                .hint("look at the steps above, then run this again with --yes")
                .into())
        }
        Ok(()) => Ok(Exit::Done),
    }
}

/// Migrates one queue to what `topology` declares; without
/// [`Options::approved`] it only plans. Gives the report also of a run that was
/// stopped half-way, together with its error.
///
/// # Errors
/// What stood against it before anything was touched.
pub(super) async fn migrate(
    queue: &QueueName,
    topology: &Topology,
    options: Options,
    session: &Session,
) -> Result<(MigrateReport, Result<()>)> {
    let names = MigrateNames::of(queue)?;
    if !topology.queues.contains_key(queue) {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!("the files do not declare queue '{queue}'"),
        )
        .hint("they must declare the queue as it should become"));
    }
    let connection = session
        .connect("mq topology migrate", Frames::Large)
        .await?;
    let done = on(&connection, names, topology, options, session).await;
    connection.close().await;
    done
}

async fn on(
    connection: &Connection,
    names: MigrateNames,
    topology: &Topology,
    options: Options,
    session: &Session,
) -> Result<(MigrateReport, Result<()>)> {
    let started = Instant::now();
    let approved = options.approved;
    let mut migration = Migration::new(connection, names, topology, options, session).await?;
    migration.refuse_exclusive().await?;
    let mut seen = migration.look().await?;
    if approved && !matches!(next(&seen), Next::Done | Next::NoQueue) {
        migration.take_lock().await?;
        if !seen.temporary.is_none() {
            migration.let_the_dead_go(&seen).await?;
            seen = migration.look().await?;
        }
    }
    migration.survey(&seen).await?;
    migration.plan(&seen);
    let result = if approved {
        migration.run(seen).await
    } else {
        Ok(())
    };
    let mut report = migration.into_report();
    report.took = started.elapsed();
    Ok((report, result))
}

/// What no exit code says and nobody may overlook.
/// What the copies of a migration may have done to the queue.
pub(super) fn warn(report: &MigrateReport) {
    if report.maybe_twice > 0 {
        output::talk(&format!(
            "mq: up to {} messages may be in the queue twice: an earlier run was killed between a copy and its acknowledgement, and without a message_id of their own they cannot be told apart",
            report.maybe_twice
        ));
    }
    if report.out_of_order > 0 {
        output::talk(&format!(
            "mq: up to {} messages may stand behind or before others against the order in which they were published",
            report.out_of_order
        ));
    }
}
