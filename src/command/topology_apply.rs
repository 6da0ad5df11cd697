//! `mq topology apply`: first look at everything, then create what is missing.

use super::session::Session;
use super::topology_files;
use crate::amqp::{Connection, Declared, Frames};
use crate::cli::ApplyArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output::{apply_json, apply_text};
use crate::plan::{ApplyReport, Conflict, Done, Line, Step, steps};
use crate::topology::{Binding, Topology};

pub(super) async fn run(args: &ApplyArgs, mut session: Session) -> anyhow::Result<Exit> {
    let topology = topology_files::load(args.files.all())?;
    session.prefer_vhost(topology.vhost.as_ref());
    let connection = session.connect("mq topology apply", Frames::Large).await?;
    let present = bindings_present(&topology, &session).await;
    let mut report = ApplyReport {
        vhost: session.vhost()?.clone(),
        broker: format!("{} at {}", connection.facts(), connection.endpoint()),
        lines: Vec::new(),
    };
    let steps = steps(&topology);
    let existing = look(&connection, &steps, present.as_deref()).await?;
    if existing
        .iter()
        .any(|done| matches!(done, Some(Done::Conflict(_))))
    {
        report.lines = without_creating(&steps, existing);
    } else {
        report.lines = create(&connection, &steps, existing, present.is_some()).await;
    }
    connection.close().await;
    session.report(|| apply_text(&report), || apply_json(&report))?;
    verdict(&report).map_err(Into::into)
}

fn verdict(report: &ApplyReport) -> Result<Exit> {
    let conflicts: Vec<String> = report.conflicts().map(ToString::to_string).collect();
    if !conflicts.is_empty() {
        return Err(Error::new(
            ErrorKind::Blocked,
            format!(
                "nothing was changed, because {} in vhost '{}' differ from the file:\n{}",
                if conflicts.len() == 1 {
                    "1 object".to_owned()
                } else {
                    format!("{} objects", conflicts.len())
                },
                report.vhost,
                conflicts.join("\n")
            ),
        )
        .hint("what exists cannot be changed in place; the report lists the ways out"));
    }
    match report.failure() {
        None => Ok(Exit::Done),
        Some(error) if report.changed() => Err(error.clone().as_kind(ErrorKind::Partial).during(
            "stopped half-way; the report says what was created, and applying again completes it",
        )),
        Some(error) => Err(error.clone()),
    }
}

/// The bindings that are there, as far as the management API tells. Without it
/// bindings are simply sent again, which changes nothing.
async fn bindings_present(topology: &Topology, session: &Session) -> Option<Vec<Binding>> {
    if topology.bindings.is_empty() {
        return Some(Vec::new());
    }
    let read = async {
        let vhost = session.vhost()?;
        session.management()?.topology(vhost).await
    };
    match read.await {
        Ok(observed) => Some(observed.bindings),
        Err(error) => {
            tracing::info!(
                error = error.message(),
                "bindings cannot be read; they are sent in any case"
            );
            None
        }
    }
}

/// What is known about each step before anything is changed; `None`: missing.
///
/// What exists is declared again: the broker compares and changes nothing.
async fn look(
    connection: &Connection,
    steps: &[Step],
    bindings: Option<&[Binding]>,
) -> Result<Vec<Option<Done>>> {
    let mut known = Vec::with_capacity(steps.len());
    for step in steps {
        known.push(match step {
            Step::Exchange(name, _) if connection.exchange_exists(name).await? => {
                Some(declare(connection, step).await?)
            }
            Step::Queue(name, _) if connection.queue_status(name).await?.is_some() => {
                Some(declare(connection, step).await?)
            }
            Step::Exchange(..) | Step::Queue(..) => None,
            Step::Binding(binding) => bindings
                .is_some_and(|present| present.iter().any(|there| same(there, binding)))
                .then_some(Done::Unchanged),
        });
    }
    Ok(known)
}

async fn declare(connection: &Connection, step: &Step) -> Result<Done> {
    let declared = match step {
        Step::Exchange(name, exchange) => connection.declare_exchange(name, exchange).await?,
        Step::Queue(name, queue) => connection.declare_queue(name, queue).await?,
        Step::Binding(binding) => {
            connection.bind(binding).await?;
            Declared::AsAsked
        }
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

fn without_creating(steps: &[Step], existing: Vec<Option<Done>>) -> Vec<Line> {
    steps
        .iter()
        .zip(existing)
        .map(|(step, done)| Line {
            object: step.object(),
            done: done.unwrap_or(Done::NotTried),
        })
        .collect()
}

/// Creates what is missing, in order, until something fails.
async fn create(
    connection: &Connection,
    steps: &[Step],
    existing: Vec<Option<Done>>,
    bindings_known: bool,
) -> Vec<Line> {
    let mut lines = Vec::with_capacity(steps.len());
    let mut failed = false;
    for (step, existing) in steps.iter().zip(existing) {
        let done = match existing {
            Some(done) => done,
            None if failed => Done::NotTried,
            None => match declare(connection, step).await {
                Ok(Done::Unchanged) if matches!(step, Step::Binding(_)) && !bindings_known => {
                    Done::Ensured
                }
                Ok(Done::Unchanged) => Done::Created,
                // Somebody else created it otherwise between our look and now.
                Ok(Done::Conflict(conflict)) => {
                    failed = true;
                    Done::Failed(Error::new(ErrorKind::Blocked, conflict.to_string()))
                }
                Ok(other) => other,
                Err(error) => {
                    failed = true;
                    Done::Failed(error)
                }
            },
        };
        lines.push(Line {
            object: step.object(),
            done,
        });
    }
    lines
}

/// The same binding: values compare as the broker compares them, through JSON,
/// because the management API forgets the width of numbers.
fn same(there: &Binding, wanted: &Binding) -> bool {
    there.source == wanted.source
        && there.destination == wanted.destination
        && there.key == wanted.key
        && crate::field::table_to_json(&there.arguments)
            == crate::field::table_to_json(&wanted.arguments)
}
