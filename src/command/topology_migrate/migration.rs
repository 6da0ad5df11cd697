//! One migration: what it knows, what stands against it, and its loop.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;

use super::super::session::Session;
use super::super::signals;
use crate::amqp::{Connection, Intake};
use crate::deadletter::EffectiveLimit;
use crate::error::{Error, ErrorKind, Result};
use crate::management::{Management, NamedBinding};
use crate::plan::{
    MigrateNames, MigrateReport, MigrateStep, Next, Progress, Seen, StepLine, next, steps_from,
};
use crate::topology::{Queue, QueueType, Topology, VhostName};

/// What whoever asks for it decided.
#[derive(Clone, Copy, Debug)]
pub(in crate::command) struct Options {
    /// Do it; otherwise only plan.
    pub(in crate::command) approved: bool,
    /// Consumers may compete for the messages.
    pub(in crate::command) with_consumers: bool,
    /// How long to try for a moment at which nothing waits.
    pub(in crate::command) switch_for: Duration,
}

/// One migration on one connection.
pub(super) struct Migration<'m> {
    pub(super) connection: &'m Connection,
    pub(super) management: Management,
    pub(super) vhost: VhostName,
    pub(super) user: String,
    pub(super) names: MigrateNames,
    /// The queue of the file.
    pub(super) wanted: Queue,
    /// The same with the policies that will be in force for it.
    pub(super) effective: Queue,
    /// The type of the queue of what is published meanwhile.
    pub(super) new_kind: QueueType,
    /// The type of the queue of what the queue held.
    pub(super) old_kind: QueueType,
    pub(super) options: Options,
    /// The bindings of the last look, with the broker's names for them.
    pub(super) bindings: Vec<NamedBinding>,
    /// The queue was filled by an earlier run, so it must be looked through
    /// before more is put into it.
    pub(super) unexamined: bool,
    /// Messages that came into the queue past those which wait.
    pub(super) ahead: u64,
    /// What waits aside, once it was opened: it stays open, because a quorum
    /// queue mixes up its order when a consumer ends while messages come in.
    pub(super) waiting: Option<Intake<'m>>,
    /// When attempts to open the queue end.
    pub(super) switching_until: Option<tokio::time::Instant>,
    /// How many attempts there were.
    pub(super) attempts: u32,
    /// The highest delivery count that a held message carried.
    pub(super) deliveries: i64,
    /// The policies could not be read, so what they set must be looked at.
    pub(super) policies_unknown: bool,
    /// Whether the statistics showed messages in the queue before it was emptied.
    pub(super) showed_messages: bool,
    pub(super) report: MigrateReport,
    stop: UnboundedReceiver<u8>,
}

impl<'m> Migration<'m> {
    pub(super) async fn new(
        connection: &'m Connection,
        names: MigrateNames,
        topology: &Topology,
        options: Options,
        session: &Session,
    ) -> Result<Self> {
        let wanted = topology
            .queues
            .get(&names.queue)
            .cloned()
            .unwrap_or_default();
        let management = session
            .management_of(connection.cluster())
            .await
            .map_err(|error| {
                let hint = error.way_out().unwrap_or_default().to_owned();
                error.hint(format!(
                    "{hint}\nbindings can be read through the management API only"
                ))
            })?;
        let vhost = session.vhost()?.clone();
        let stop = signals::listen().map_err(|error| {
            Error::new(
                ErrorKind::InputOutput,
                format!("cannot listen for signals: {error}"),
            )
        })?;
        Ok(Self {
            connection,
            management,
            user: session.user()?.to_owned(),
            effective: wanted.clone(),
            new_kind: QueueType::Classic,
            old_kind: QueueType::Classic,
            report: MigrateReport {
                queue: names.queue.clone(),
                vhost: vhost.clone(),
                broker: format!("{} at {}", connection.facts(), connection.endpoint()),
                changes: Vec::new(),
                notes: Vec::new(),
                steps: Vec::new(),
                moved: 0,
                maybe_twice: 0,
                skipped: 0,
                out_of_order: 0,
                user_ids_dropped: 0,
                took: Duration::ZERO,
            },
            vhost,
            names,
            wanted,
            options,
            bindings: Vec::new(),
            unexamined: false,
            ahead: 0,
            waiting: None,
            switching_until: None,
            attempts: 0,
            deliveries: -1,
            policies_unknown: false,
            showed_messages: false,
            stop,
        })
    }

    /// Fills the report with what would be done.
    pub(super) fn plan(&mut self, seen: &Seen) {
        self.unexamined = seen.back_bound;
        self.report.steps = steps_from(seen)
            .into_iter()
            .map(|step| planned(step, seen))
            .collect();
    }

    /// Takes step after step until nothing is left to do.
    pub(super) async fn run(&mut self, mut seen: Seen) -> Result<()> {
        let mut done: Vec<StepLine> = Vec::new();
        let resumed = !seen.temporary.is_none();
        loop {
            let step = match next(&seen) {
                Next::Take(step) => step,
                Next::Done | Next::NoQueue => {
                    self.report.steps = done;
                    return Ok(());
                }
                Next::OtherTarget => {
                    self.report.steps = done;
                    return Err(self.half_way_elsewhere());
                }
            };
            tracing::info!(step = step.word(), "taking a step");
            let taken = match self.stop_asked() {
                Ok(()) => self.take(&step, &seen).await,
                Err(error) => Err(error),
            };
            let moved = match &taken {
                Ok(moved) => *moved,
                Err(_) => 0,
            };
            let progress = match &taken {
                Ok(_) => Progress::Done,
                Err(_) => Progress::Stopped,
            };
            log(
                &mut done,
                StepLine {
                    step,
                    progress,
                    moved,
                },
            );
            if let Err(error) = taken {
                let anything = resumed || done.len() > 1;
                let rest = steps_from(&seen).into_iter().skip(1);
                done.extend(rest.map(|step| planned(step, &seen)));
                self.report.steps = done;
                return Err(stopped(error, &self.names, anything));
            }
            seen = match self.look().await {
                Ok(seen) => seen,
                Err(error) => {
                    self.report.steps = done;
                    return Err(stopped(error, &self.names, true));
                }
            };
        }
    }

    /// Gives the report.
    pub(super) fn into_report(self) -> MigrateReport {
        self.report
    }

    /// Ends at a boundary between two messages when a signal came.
    pub(super) fn stop_asked(&mut self) -> Result<()> {
        if self.stop.try_recv().is_err() {
            return Ok(());
        }
        // Whoever asks again later gets the same answer.
        self.stop.close();
        Err(Error::new(ErrorKind::Partial, "a signal came"))
    }

    /// Whether every message of the queue can be taken and given back once more.
    ///
    /// A quorum queue counts that against its delivery limit.
    pub(super) async fn may_hold(&self) -> Result<bool> {
        let status = self.connection.queue_status(&self.names.queue).await?;
        if status.is_none_or(|status| status.consumers > 0) {
            return Ok(false);
        }
        let facts = self.connection.facts();
        let observed = self
            .management
            .queue(&self.vhost, &self.names.queue, facts)
            .await?;
        Ok(match observed.likely_limit(facts) {
            EffectiveLimit::None => true,
            EffectiveLimit::Unknown => false,
            EffectiveLimit::Finite(limit) => limit >= 2 && self.deliveries + 2 <= limit,
        })
    }
}

fn planned(step: MigrateStep, seen: &Seen) -> StepLine {
    let ready = seen.queue.map_or(0, |queue| queue.ready);
    let moved = match &step {
        MigrateStep::Empty => ready,
        MigrateStep::Refill => {
            seen.temporary.old.unwrap_or(0) + if seen.back_bound { 0 } else { ready }
        }
        MigrateStep::CatchUp => seen.temporary.new.unwrap_or(0),
        MigrateStep::Declare
        | MigrateStep::Open
        | MigrateStep::MoveBindings(_)
        | MigrateStep::Close
        | MigrateStep::Delete
        | MigrateStep::Create
        | MigrateStep::BindBack
        | MigrateStep::TurnBack
        | MigrateStep::Restore(_)
        | MigrateStep::Detach
        | MigrateStep::Clear => 0,
    };
    StepLine {
        step,
        progress: Progress::Planned,
        moved,
    }
}

/// Attempts to open the queue repeat three steps: one line each is enough.
fn log(done: &mut Vec<StepLine>, line: StepLine) {
    match done
        .iter_mut()
        .rev()
        .take(3)
        .find(|earlier| earlier.step == line.step)
    {
        Some(earlier) => {
            earlier.moved += line.moved;
            earlier.progress = line.progress;
        }
        None => done.push(line),
    }
}

/// The error of a run that ended half-way: the same error if nothing was done.
fn stopped(error: Error, names: &MigrateNames, anything: bool) -> Error {
    if !anything || error.kind() == ErrorKind::Blocked {
        return error;
    }
    let kind = match error.kind() {
        ErrorKind::Refused | ErrorKind::TimedOut => ErrorKind::TimedOut,
        _ => ErrorKind::Partial,
    };
    let why = error
        .way_out()
        .map(|hint| format!("{hint}\n"))
        .unwrap_or_default();
    Error::new(
        kind,
        format!(
            "the migration of queue '{}' stopped half-way: {}",
            names.queue,
            error.message()
        ),
    )
    .hint(format!(
        "{why}no message is lost; run the same command again to go on"
    ))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this command that lets time pass"
)]
pub(super) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
