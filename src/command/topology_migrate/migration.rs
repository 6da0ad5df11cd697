//! One migration: what it knows, what stands against it, and its loop.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;

use super::super::session::Session;
use super::super::signals;
use crate::amqp::{Connection, Intake};
use crate::deadletter::EffectiveLimit;
use crate::error::{Error, ErrorKind, Result};
use crate::field::FieldTable;
use crate::management::{Management, NamedBinding, ObservedQueue, Policies};
use crate::plan::{
    Existing, Feeder, MigrateNames, MigrateReport, MigrateStep, Next, Progress, Seen, StepLine,
    harmful_settings, migrate_objections, next, steps_from, straight_feeders,
};
use crate::topology::{
    ApplyTo, Policy, PolicyKind, PolicyName, Queue, QueueType, Topology, VhostName,
};

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

    /// What stands against it, seen before anything is touched.
    pub(super) async fn survey(&mut self, seen: &Seen) -> Result<()> {
        match next(seen) {
            Next::Done => return Ok(()),
            Next::NoQueue => {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("queue '{}' does not exist in vhost '{}'", self.names.queue, self.vhost),
                )
                .hint("`mq topology apply` creates what is missing; else check the name and the vhost"));
            }
            Next::OtherTarget => return Err(self.half_way_elsewhere()),
            Next::Take(_) => {}
        }
        let facts = self.connection.facts();
        let mut there = self.management.topology(&self.vhost, facts).await?;
        let observed = match seen.queue {
            None => None,
            Some(_) => Some(
                self.management
                    .queue(&self.vhost, &self.names.queue, facts)
                    .await?,
            ),
        };
        let policies = match self.management.policies(&self.vhost).await {
            Ok(policies) => Some(policies),
            // They may be read by policymakers only.
            Err(error) if error.kind() == ErrorKind::AccessRefused => None,
            Err(error) => return Err(error),
        };
        self.policies_unknown = policies.is_none();
        self.settle_kinds(seen, observed.as_ref()).await?;
        self.effective = self.with_policies(policies.as_ref(), observed.as_ref());
        let mut found = Vec::new();
        if let Some(policies) = &policies {
            there.policies.clone_from(policies);
            found.extend(self.harm(&there));
        }
        self.notes();
        if let Some(observed) = observed {
            self.report.changes = self.differences().await?;
            let status = self.connection.queue_status(&self.names.queue).await?;
            let ready = status.map_or(0, |status| u64::from(status.ready));
            self.showed_messages = observed.messages.is_some_and(|messages| messages > 0);
            let existing = Existing {
                messages: observed.messages.unwrap_or(0).max(ready)
                    + seen.temporary.old.unwrap_or(0)
                    + seen.temporary.new.unwrap_or(0),
                consumers: status.map_or(0, |status| u64::from(status.consumers)),
                kind: observed.kind,
                durable: observed.durable,
                auto_delete: observed.auto_delete,
                exclusive: observed.exclusive,
                arguments: observed.arguments,
                policy: observed.policy,
                message_bytes: observed.message_bytes,
            };
            found.extend(migrate_objections(
                &self.names,
                &self.effective,
                &existing,
                &there,
                self.options.with_consumers,
            ));
        }
        for feeder in self.feeders(&there).await? {
            found.push(format!(
                "queue '{}' holds {} messages whose dead letters go straight into it: while it is deleted and declared again they would vanish",
                feeder.queue, feeder.messages
            ));
        }
        if found.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Blocked,
            format!(
                "queue '{}' cannot be migrated now:\n{}",
                self.names.queue,
                found.join("\n")
            ),
        )
        .hint("no message was moved; see to what is named, then run this again"))
    }

    fn half_way_elsewhere(&self) -> Error {
        Error::new(
            ErrorKind::Blocked,
            format!(
                "queue '{}' is half-way to other arguments than those of the file",
                self.names.queue
            ),
        )
        .hint("run this with the file of that migration first, then with this one")
    }

    /// Such a queue cannot even be looked at over AMQP.
    pub(super) async fn refuse_exclusive(&self) -> Result<()> {
        let facts = self.connection.facts();
        let queue = &self.names.queue;
        match self.management.queue(&self.vhost, queue, facts).await {
            Ok(observed) if observed.exclusive => Err(Error::new(
                ErrorKind::Blocked,
                format!(
                    "queue '{queue}' is exclusive: it belongs to a connection and goes with it"
                ),
            )
            .hint("declare another queue under another name")),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The temporary queues are as safe as the queue is now, but for this: what
    /// waits is in a classic queue unless the queue has replicas. When a consumer
    /// of a quorum queue is killed while messages come in, one of them is handed
    /// out before the others (measured on 3.10.8, 4.0.5 and 4.3.6), and it hands
    /// out at the very moment at which it confirms, which leaves no gap to open
    /// the queue in. A classic queue keeps its order and hands out first.
    async fn settle_kinds(&mut self, seen: &Seen, observed: Option<&ObservedQueue>) -> Result<()> {
        if let Some(observed) = observed {
            self.old_kind = observed.kind.clone();
            if observed.kind == QueueType::Quorum && observed.members > 1 {
                self.new_kind = QueueType::Quorum;
            }
        }
        let facts = self.connection.facts();
        if seen.temporary.new.is_some() {
            let name = &self.names.new;
            self.new_kind = self.management.queue(&self.vhost, name, facts).await?.kind;
        }
        if seen.temporary.old.is_some() {
            let name = &self.names.old;
            self.old_kind = self.management.queue(&self.vhost, name, facts).await?.kind;
        }
        Ok(())
    }

    /// What a killed run held is back once none of its consumers is left: a
    /// queue forgets a consumer and takes its messages back in one step. Until
    /// then counts would say that there is nothing to move.
    pub(super) async fn let_the_dead_go(&self, seen: &Seen) -> Result<()> {
        for name in [&self.names.queue, &self.names.new, &self.names.old] {
            for _ in 0..50 {
                let status = self.connection.queue_status(name).await?;
                if status.is_none_or(|status| status.consumers == 0) {
                    break;
                }
                if *name == self.names.queue && self.options.with_consumers {
                    break;
                }
                pause(Duration::from_millis(100)).await;
            }
        }
        // A hold has no consumer any more: its messages are back when the counts
        // stand. While the queue is open its count never does, and nothing is held.
        let mut last = None;
        let mut steady = 0;
        for _ in 0..50 {
            pause(Duration::from_millis(200)).await;
            let held = if seen.entry_bound || self.options.with_consumers {
                None
            } else {
                self.ready(&self.names.queue).await?
            };
            let counts = (held, self.ready(&self.names.old).await?);
            steady = if last == Some(counts) { steady + 1 } else { 0 };
            last = Some(counts);
            if steady == 5 {
                break;
            }
        }
        Ok(())
    }

    /// The queue of the file with the policies of the broker in force. Where
    /// these cannot be read, those that the queue has now stand for them.
    fn with_policies(
        &self,
        policies: Option<&Policies>,
        observed: Option<&ObservedQueue>,
    ) -> Queue {
        let name = self.names.queue.clone();
        let mut topology = Topology::default();
        let mut wanted = self.wanted.clone();
        if let (None, Some(observed)) = (&wanted.kind, observed) {
            wanted.kind = Some(observed.kind.clone());
        }
        topology.queues.insert(name.clone(), wanted);
        match (policies, observed) {
            (Some(policies), _) => topology.policies.clone_from(policies),
            (None, Some(observed)) => {
                let all = Policy::new(".*".to_owned(), ApplyTo::All, 0, observed.policy.clone());
                if let (Ok(policy), Ok(as_now)) = (all, PolicyName::new("as now")) {
                    topology.policies.insert((PolicyKind::User, as_now), policy);
                }
            }
            (None, None) => {}
        }
        topology
            .effective_queue(&name)
            .unwrap_or_else(|| self.wanted.clone())
    }

    /// Policies that would remove messages from the temporary queues.
    fn harm(&self, there: &Topology) -> Vec<String> {
        [
            (&self.names.new, &self.new_kind),
            (&self.names.old, &self.old_kind),
        ]
        .into_iter()
        .filter_map(|(name, kind)| {
            let settings = there.policy_settings(name, Some(kind));
            harmful(name.as_str(), &settings)
        })
        .collect()
    }

    /// Queues that are not empty and whose dead letters no binding can lead aside.
    pub(super) async fn feeders(&self, there: &Topology) -> Result<Vec<Feeder>> {
        let mut found = Vec::new();
        for queue in straight_feeders(&self.names, there) {
            let ready = self.ready(&queue).await?.unwrap_or(0);
            let counted = self
                .management
                .queue(&self.vhost, &queue, self.connection.facts())
                .await?
                .messages
                .unwrap_or(0);
            let messages = ready.max(counted);
            if messages > 0 {
                found.push(Feeder { queue, messages });
            }
        }
        Ok(found)
    }

    /// A killed run's lock goes as soon as the broker saw its connection end.
    pub(super) async fn take_lock(&self) -> Result<()> {
        for _ in 0..20 {
            if self.connection.lock(&self.names.lock).await? {
                return Ok(());
            }
            pause(Duration::from_millis(150)).await;
        }
        Err(Error::new(
            ErrorKind::Blocked,
            format!(
                "another migration of queue '{}' is running",
                self.names.queue
            ),
        )
        .hint(
            "wait for it; if its machine is gone, the broker drops its lock when heartbeats fail",
        ))
    }

    /// Fills the report with what would be done.
    pub(super) fn plan(&mut self, seen: &Seen) {
        self.unexamined = seen.back_bound;
        self.report.steps = steps_from(seen)
            .into_iter()
            .map(|step| planned(step, seen))
            .collect();
    }

    /// What whoever approves it should know.
    fn notes(&mut self) {
        self.report.notes.push(format!(
            "whoever publishes straight to queue '{}' through the default exchange must pause meanwhile",
            self.names.queue
        ));
        if self.effective.message_ttl.is_some() {
            self.report.notes.push(
                "the queue has a message TTL: the age of its messages starts anew".to_owned(),
            );
        }
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
        Ok(match observed.limit {
            EffectiveLimit::None => true,
            EffectiveLimit::Finite(limit) => limit >= 2 && self.deliveries + 2 <= limit,
        })
    }

    /// What the policies of a temporary queue set, once the broker tells it.
    pub(super) async fn settings_of(
        &self,
        name: &crate::topology::QueueName,
    ) -> Result<FieldTable> {
        let facts = self.connection.facts();
        for _ in 0..40 {
            let observed = self.management.queue(&self.vhost, name, facts).await?;
            // Policies are shown with the first statistics, which take five seconds.
            if observed.messages.is_some() {
                return Ok(observed.policy);
            }
            pause(Duration::from_millis(500)).await;
        }
        Err(Error::new(
            ErrorKind::Blocked,
            format!("the management API does not tell which policies queue '{name}' has"),
        )
        .hint("use a user with the tag policymaker, or switch the broker's statistics on"))
    }
}

/// A harmful policy in words.
pub(super) fn harmful(name: &str, settings: &FieldTable) -> Option<String> {
    let settings = harmful_settings(settings);
    (!settings.is_empty()).then(|| {
        format!(
            "a policy sets {} for the temporary queue '{name}', which would remove messages from it: anchor its pattern",
            settings.join(", ")
        )
    })
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
