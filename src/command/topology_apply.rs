//! `mq topology apply`: first look at everything, then create what is missing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use super::session::Session;
use super::{topology_files, topology_plan, wait};
use crate::amqp::{Connection, Declared, Frames};
use crate::broker::BrokerFacts;
use crate::cli::ApplyArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output::{apply_json, apply_text, plan_json, plan_text};
use crate::plan::{ApplyReport, Conflict, Done, Line, Plan, ReadBack, Step, Verb, plan, steps};
use crate::topology::{PolicyKind, Topology};

const NAME: &str = "mq topology apply";

/// Requests under way at once, each on a channel of its own.
const AT_ONCE: usize = 16;

pub(super) async fn run(args: &ApplyArgs, mut session: Session) -> anyhow::Result<Exit> {
    let topology = topology_files::load_named(&args.files)?;
    session.prefer_vhost(topology.vhost.as_ref());
    if args.create_vhost {
        create_vhost(args.wait, &topology, &session).await?;
    }
    if let Some(limit) = args.wait {
        wait::for_amqp_within(limit, &session).await?;
    }
    if args.dry_run {
        let (plan, broker) = topology_plan::make(&topology, &session).await?;
        session.report(|| plan_text(&plan, &broker), || plan_json(&plan, &broker))?;
        return Ok(topology_plan::verdict(&plan, false)?);
    }
    let mut connection = session.connect(NAME, Frames::Large).await?;
    let facts = connection.facts().clone();
    if let Some(refusal) = topology_plan::refusal(&topology, &facts) {
        connection.close().await;
        return Err(refusal.into());
    }
    // Without the management API the broker's own comparison has to do.
    let cluster = connection.cluster().map(str::to_owned);
    let planned = match planned(&topology, &session, &facts, cluster.as_deref()).await {
        Ok(plan) => Some(plan),
        // Policies have no other way than the management API.
        Err(error) if !topology.policies.is_empty() => {
            connection.close().await;
            return Err(error
                .during("policies go through the management API")
                .into());
        }
        Err(error) if error.kind() == ErrorKind::Configuration => {
            tracing::warn!(
                error = error.message(),
                "going on without the management API"
            );
            None
        }
        Err(error) => {
            tracing::info!(error = error.message(), "the broker cannot be read");
            None
        }
    };
    if let Some(plan) = &planned {
        may_set_policies(plan, &session).await?;
    }
    let steps = steps(&topology);
    let existing = match &planned {
        Some(plan) => known_from(plan),
        None => look(&mut connection, &steps, &session).await?,
    };
    let blocked = existing
        .iter()
        .any(|done| matches!(done, Some(Done::Conflict(_))));
    let lines = if blocked {
        without_creating(&steps, existing)
    } else {
        let broker = Broker {
            connection: &connection,
            session: &session,
        };
        create(&broker, &steps, existing, planned.as_ref()).await
    };
    let mut report = ApplyReport {
        vhost: session.vhost()?.clone(),
        broker: format!("{facts} at {}", connection.endpoint()),
        lines,
        read_back: ReadBack::NotNeeded,
    };
    connection.close().await;
    if report.changed() && report.failure().is_none() {
        read_back(&mut report, &topology, &session, &facts, cluster.as_deref()).await;
    }
    session.report(|| apply_text(&report), || apply_json(&report))?;
    verdict(&report).map_err(Into::into)
}

/// Asked before anything is changed, for a refusal half-way helps nobody.
async fn may_set_policies(plan: &Plan, session: &Session) -> Result<()> {
    for (_, kind) in PolicyKind::ALL {
        let sets_one = plan.steps.iter().any(|planned| {
            matches!(&planned.step, Step::Policy(its_kind, ..) if *its_kind == kind)
                && planned.verb != Verb::Keep
        });
        if sets_one {
            session.management()?.may_set_policies(kind).await?;
        }
    }
    Ok(())
}

/// Makes the vhost and lets the user work in it; both change nothing if done already.
async fn create_vhost(
    patience: Option<Duration>,
    topology: &Topology,
    session: &Session,
) -> Result<()> {
    if let Some(limit) = patience {
        wait::for_management_within(limit, session).await?;
    }
    let management = session.management()?;
    let facts = BrokerFacts::new("RabbitMQ", management.version().await?);
    if let Some(refusal) = topology_plan::refusal(topology, &facts) {
        return Err(refusal);
    }
    let vhost = session.vhost()?;
    management.create_vhost(vhost).await?;
    management.grant_if_none(vhost, session.user()?).await
}

/// Reads the broker and compares it with the file.
async fn planned(
    topology: &Topology,
    session: &Session,
    facts: &BrokerFacts,
    cluster: Option<&str>,
) -> Result<Plan> {
    let vhost = session.vhost()?.clone();
    let management = session.management_of(cluster).await?;
    let there = topology_plan::there(topology, &management, &vhost, facts).await?;
    Ok(plan(vhost, topology, &there, facts))
}

/// A successful declaration is no proof: what the broker substituted or left
/// out only shows when everything is read again.
async fn read_back(
    report: &mut ApplyReport,
    topology: &Topology,
    session: &Session,
    facts: &BrokerFacts,
    cluster: Option<&str>,
) {
    let plan = match planned(topology, session, facts, cluster).await {
        Ok(plan) => plan,
        Err(error) => {
            report.read_back = ReadBack::Impossible(error.message().to_owned());
            return;
        }
    };
    report.read_back = ReadBack::Proved;
    for (line, planned) in report.lines.iter_mut().zip(plan.steps) {
        let found = match planned.verb {
            Verb::Keep => continue,
            Verb::Create => "it is not there".to_owned(),
            Verb::Blocked(differences) | Verb::Change(differences) => {
                let differences: Vec<String> =
                    differences.iter().map(ToString::to_string).collect();
                differences.join("; ")
            }
        };
        line.done = Done::Failed(
            Error::new(
                ErrorKind::Protocol,
                format!(
                    "{} was declared, but reading it back shows: {found}",
                    line.object
                ),
            )
            .hint("the broker substituted or ignored something, or somebody else changed it meanwhile; run `mq topology plan`"),
        );
    }
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
        .hint("what exists cannot be changed in place; the report lists the ways out of each"));
    }
    match report.failure() {
        None => Ok(Exit::Done),
        Some(error) if report.changed() => Err(error.clone().as_kind(ErrorKind::Partial).during(
            "stopped half-way; the report says what was created, and applying again completes it",
        )),
        Some(error) => Err(error.clone()),
    }
}

/// What the plan knows about each step; `None`: to be done.
fn known_from(plan: &Plan) -> Vec<Option<Done>> {
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
async fn look(
    connection: &mut Connection,
    steps: &[Step],
    session: &Session,
) -> Result<Vec<Option<Done>>> {
    let mut known = Vec::with_capacity(steps.len());
    for step in steps {
        if connection.is_worn() {
            let fresh = session.connect(NAME, Frames::Large).await?;
            std::mem::replace(connection, fresh).close().await;
        }
        let exists = match step {
            Step::Exchange(name, _) => connection.exchange_exists(name).await?,
            Step::Queue(name, _) => connection.queue_status(name).await?.is_some(),
            Step::Binding(_) | Step::Policy(..) => false,
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
struct Broker<'b> {
    connection: &'b Connection,
    session: &'b Session,
}

/// Carries one step out.
async fn carry_out(broker: &Broker<'_>, step: &Step) -> Result<Done> {
    match step {
        Step::Exchange(..) | Step::Queue(..) => declare(broker.connection, step).await,
        Step::Binding(binding) => {
            broker.connection.bind(binding).await?;
            Ok(Done::Unchanged)
        }
        Step::Policy(kind, name, policy) => {
            let vhost = broker.session.vhost()?;
            let management = broker.session.management()?;
            management.set_policy(vhost, *kind, name, policy).await?;
            Ok(Done::Unchanged)
        }
    }
}

/// Declares an exchange or a queue; the others have no declaration that compares.
async fn declare(connection: &Connection, step: &Step) -> Result<Done> {
    let declared = match step {
        Step::Exchange(name, exchange) => connection.declare_exchange(name, exchange).await?,
        Step::Queue(name, queue) => connection.declare_queue(name, queue).await?,
        Step::Binding(_) | Step::Policy(..) => Declared::AsAsked,
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

/// Creates what is missing, kind after kind, until something fails. Within a
/// kind nothing depends on another (but exchanges on their alternates), so
/// several requests are under way at once.
async fn create(
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
    for kind in work.chunk_by(|(_, a, _), (_, b, _)| rank(a) == rank(b)) {
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

fn rank(step: &Step) -> u8 {
    match step {
        Step::Exchange(..) => 0,
        Step::Policy(..) => 1,
        Step::Queue(..) => 2,
        Step::Binding(_) => 3,
    }
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
                Done::Failed(Error::new(ErrorKind::Blocked, conflict.to_string()))
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
