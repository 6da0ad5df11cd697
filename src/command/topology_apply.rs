//! `mq topology apply`: first look at everything, then create what is missing.

use std::time::Duration;

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

pub(super) async fn run(args: &ApplyArgs, mut session: Session) -> anyhow::Result<Exit> {
    let topology = topology_files::load_named(&args.files)?;
    session.prefer_vhost(topology.vhost.as_ref());
    if args.create_vhost {
        create_vhost(args.wait, &session).await?;
    }
    if let Some(limit) = args.wait {
        wait::for_amqp_within(limit, &session).await?;
    }
    if args.dry_run {
        let (plan, broker) = topology_plan::make(&topology, &session).await?;
        session.report(|| plan_text(&plan, &broker), || plan_json(&plan, &broker))?;
        return Ok(topology_plan::verdict(&plan, false)?);
    }
    let connection = session.connect("mq topology apply", Frames::Large).await?;
    let facts = connection.facts().clone();
    // Without the management API the broker's own comparison has to do.
    let planned = match planned(&topology, &session, &facts).await {
        Ok(plan) => Some(plan),
        // Policies have no other way than the management API.
        Err(error) if !topology.policies.is_empty() => {
            connection.close().await;
            return Err(error
                .during("policies go through the management API")
                .into());
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
    let existing = look(&connection, &steps, planned.as_ref()).await?;
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
        read_back(&mut report, &topology, &session, &facts).await;
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
async fn create_vhost(patience: Option<Duration>, session: &Session) -> Result<()> {
    if let Some(limit) = patience {
        wait::for_management_within(limit, session).await?;
    }
    let management = session.management()?;
    let vhost = session.vhost()?;
    management.create_vhost(vhost).await?;
    management.grant_if_none(vhost, session.user()?).await
}

/// Reads the broker and compares it with the file.
async fn planned(topology: &Topology, session: &Session, facts: &BrokerFacts) -> Result<Plan> {
    let vhost = session.vhost()?.clone();
    let there = topology_plan::there(topology, &session.management()?, &vhost).await?;
    Ok(plan(vhost, topology, &there, facts))
}

/// A successful declaration is no proof: what the broker substituted or left
/// out only shows when everything is read again.
async fn read_back(
    report: &mut ApplyReport,
    topology: &Topology,
    session: &Session,
    facts: &BrokerFacts,
) {
    let plan = match planned(topology, session, facts).await {
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

/// What is known about each step before anything is changed; `None`: missing.
///
/// What exists is declared again: the broker compares and changes nothing. The
/// plan, if there is one, knows every difference where the broker names only
/// the first, and those that the broker accepts and ignores.
async fn look(
    connection: &Connection,
    steps: &[Step],
    plan: Option<&Plan>,
) -> Result<Vec<Option<Done>>> {
    let mut known = Vec::with_capacity(steps.len());
    for (at, step) in steps.iter().enumerate() {
        let verb = plan
            .and_then(|plan| plan.steps.get(at))
            .map(|planned| &planned.verb);
        let exists = match step {
            Step::Exchange(name, _) => connection.exchange_exists(name).await?,
            Step::Queue(name, _) => connection.queue_status(name).await?.is_some(),
            Step::Binding(_) | Step::Policy(..) => {
                known.push((verb == Some(&Verb::Keep)).then_some(Done::Unchanged));
                continue;
            }
        };
        known.push(if exists {
            Some(with_plan(declare(connection, step).await?, step, verb))
        } else {
            None
        });
    }
    Ok(known)
}

fn with_plan(done: Done, step: &Step, verb: Option<&Verb>) -> Done {
    let Some(Verb::Blocked(differences)) = verb else {
        return done;
    };
    let said = match done {
        Done::Conflict(conflict) => conflict.said,
        _ => String::new(),
    };
    Done::Conflict(Conflict {
        object: step.object(),
        differences: differences.clone(),
        said,
    })
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

/// Creates what is missing, in order, until something fails.
async fn create(
    broker: &Broker<'_>,
    steps: &[Step],
    existing: Vec<Option<Done>>,
    plan: Option<&Plan>,
) -> Vec<Line> {
    let mut lines = Vec::with_capacity(steps.len());
    let mut failed = false;
    for (at, (step, existing)) in steps.iter().zip(existing).enumerate() {
        let verb = plan
            .and_then(|plan| plan.steps.get(at))
            .map(|planned| &planned.verb);
        let done = match existing {
            Some(done) => done,
            None if failed => Done::NotTried,
            None => match carry_out(broker, step).await {
                Ok(Done::Unchanged) => match (step, verb) {
                    (_, Some(Verb::Change(differences))) => Done::Changed(differences.clone()),
                    (Step::Binding(_), None) => Done::Ensured,
                    _ => Done::Created,
                },
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
