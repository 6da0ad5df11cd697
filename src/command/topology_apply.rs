//! `mq topology apply`: first look at everything, then create what is missing.

use std::time::Duration;

use super::session::Session;
use super::topology_lint::Linted;
use super::topology_prune::{self, Prune};
use super::topology_steps::{APPLY, Broker, create, known_from, look, without_creating};
use super::{topology_blocked, topology_files, topology_plan, wait};
use crate::amqp::Frames;
use crate::broker::BrokerFacts;
use crate::cli::{Allow, ApplyArgs};
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::management::Right;
use crate::output::{apply_json, apply_text, plan_json, plan_text};
use crate::plan::{
    ApplyReport, Difference, Done, Object, Plan, Planned, ReadBack, Step, Verb, steps,
};
use crate::topology::{PolicyKind, Topology};

pub(super) async fn run(args: &ApplyArgs, mut session: Session) -> anyhow::Result<Exit> {
    let linted = Linted::load(&args.files, args.no_lint)?;
    let topology = topology_files::with_passwords(linted.topology.clone())?;
    topology_prune::must_own_something(&topology, args.prune)?;
    session.prefer_vhost(topology.vhost.as_ref());
    if args.create_vhost {
        create_vhost(args.wait, &topology, &session).await?;
    }
    if let Some(limit) = args.wait {
        wait::for_amqp_within(limit, &session).await?;
    }
    if args.dry_run {
        let (plan, broker) = topology_plan::make(&linted, &topology, &session, args.prune).await?;
        session.report(|| plan_text(&plan, &broker), || plan_json(&plan, &broker))?;
        return Ok(topology_plan::verdict(&plan, false)?);
    }
    let mut connection = session.connect(APPLY, Frames::Large).await?;
    let facts = connection.facts().clone();
    let judged = linted.judge(&facts, &session);
    let refusal = topology_plan::refusal(&topology, &facts);
    if let Some(refusal) = judged.err().or(refusal) {
        connection.close().await;
        return Err(refusal.into());
    }
    // Without the management API the broker's own comparison has to do.
    let cluster = connection.cluster().map(str::to_owned);
    let planned = match gather(args, &topology, &session, &facts, cluster.as_deref()).await {
        Ok(planned) => planned,
        Err(error) => {
            connection.close().await;
            return Err(error.into());
        }
    };
    if let Some((plan, _)) = &planned {
        must_have_rights(plan, &session).await?;
    }
    let prune = match &planned {
        Some((plan, there)) if args.prune => {
            let management = session.management_of(cluster.as_deref()).await?;
            let mut prune =
                Prune::survey(&topology, there, &connection, &session, &management).await?;
            prune.approve(args, plan, &session)?;
            Some((prune, management))
        }
        _ => None,
    };
    let plan = planned.map(|(plan, _)| plan);
    let migrating = match &plan {
        Some(plan) => topology_blocked::survey(args, &topology, plan, &session).await?,
        None => Vec::new(),
    };
    // The plan's steps carry what the file leaves open.
    let steps = match &plan {
        Some(plan) => plan
            .steps
            .iter()
            .map(|planned| planned.step.clone())
            .collect(),
        None => steps(&topology),
    };
    let mut existing = match &plan {
        Some(plan) => known_from(plan),
        None => look(&mut connection, &steps, &session).await?,
    };
    for (step, done) in steps.iter().zip(&mut existing) {
        if matches!(step, Step::Queue(name, _) if migrating.contains(name)) {
            *done = Some(Done::Unchanged);
        }
    }
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
        create(&broker, &steps, existing, plan.as_ref()).await
    };
    let mut report = ApplyReport {
        vhost: session.vhost()?.clone(),
        broker: format!("{facts} at {}", connection.endpoint()),
        lines,
        read_back: ReadBack::NotNeeded,
    };
    if let Some(plan) = &plan {
        topology_blocked::run(&migrating, &topology, plan, &mut report, &session).await;
    }
    if let Some((prune, management)) = prune {
        prune.run(&mut report, &connection, &management).await;
    }
    connection.close().await;
    if report.changed() && report.failure().is_none() {
        let again = make_plan(&topology, &session, &facts, cluster.as_deref(), args.prune).await;
        read_back(&mut report, again);
    }
    session.report(|| apply_text(&report), || apply_json(&report))?;
    verdict(&report).map_err(Into::into)
}

/// The plan and what is there, after killed migrations were brought to their
/// end; `None` where the management API does not answer and is not needed.
async fn gather(
    args: &ApplyArgs,
    topology: &Topology,
    session: &Session,
    facts: &BrokerFacts,
    cluster: Option<&str>,
) -> Result<Option<(Plan, Topology)>> {
    let mut planned = make_plan(topology, session, facts, cluster, args.prune).await;
    if let Ok((_, there)) = &planned
        && topology_blocked::resume(args, topology, there, session).await?
    {
        planned = make_plan(topology, session, facts, cluster, args.prune).await;
    }
    let needs_management =
        topology.needs_management() || args.prune || args.allow.contains(&Allow::Migrate);
    match planned {
        Ok(planned) => Ok(Some(planned)),
        Err(error) if needs_management => Err(error.during(
            "policies, vhosts, users, --prune and migrations go through the management API",
        )),
        Err(error) if error.kind() == ErrorKind::Configuration => {
            tracing::warn!(
                error = error.message(),
                "going on without the management API"
            );
            Ok(None)
        }
        Err(error) => {
            tracing::info!(error = error.message(), "the broker cannot be read");
            Ok(None)
        }
    }
}

/// Asked before anything is changed, for a refusal half-way helps nobody.
async fn must_have_rights(plan: &Plan, session: &Session) -> Result<()> {
    let changing: Vec<&Planned> = plan
        .steps
        .iter()
        .filter(|step| step.verb != Verb::Keep)
        .collect();
    for planned in &changing {
        if let (Step::User(name, _) | Step::Permissions(name, _), Verb::Change(differences)) =
            (&planned.step, &planned.verb)
            && session.works_as(name)?
        {
            return Err(own_user(planned, differences));
        }
    }
    let changed = changing.iter().map(|planned| planned.step.object());
    let mut needed: Vec<Right> = Vec::new();
    for right in changed
        .chain(plan.prune.iter().cloned())
        .filter_map(|object| right_to(&object))
    {
        if !needed.contains(&right) {
            needed.push(right);
        }
    }
    for right in needed {
        session.management()?.must_have(right).await?;
    }
    Ok(())
}

/// What it takes to set or delete an object; what goes over AMQP takes
/// permissions that the broker itself checks.
const fn right_to(object: &Object) -> Option<Right> {
    match object {
        Object::Policy(PolicyKind::User, _) => Some(Right::Policies),
        Object::Policy(PolicyKind::Operator, _) => Some(Right::OperatorPolicies),
        Object::Vhost => Some(Right::Vhosts),
        Object::User(_) | Object::Permissions(_) | Object::TopicPermission(_) => Some(Right::Users),
        Object::Exchange(_) | Object::Queue(_) | Object::Binding(_) => None,
    }
}

/// Half-way through, mq could not go on as a user whose password or rights it
/// has just changed.
fn own_user(planned: &Planned, differences: &[Difference]) -> Error {
    let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
    Error::new(
        ErrorKind::Blocked,
        format!(
            "nothing was changed, because {} is what mq works as, and the file changes it: {}",
            planned.step.object(),
            differences.join("; ")
        ),
    )
    .hint("apply it as another administrator (--url, --management-url), or change it with rabbitmqctl first")
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
    // The vhost may not be there to log in to, but the greeting comes before.
    let cluster = session.greeted_by().await;
    let management = session.management_of(cluster.as_deref()).await?;
    let facts = management.facts().await?;
    if let Some(refusal) = topology_plan::refusal(topology, &facts) {
        return Err(refusal);
    }
    let vhost = session.vhost()?;
    management.create_vhost(vhost).await?;
    management.grant_if_none(vhost, session.known_user()?).await
}

/// Reads the broker and compares it with the file.
async fn make_plan(
    topology: &Topology,
    session: &Session,
    facts: &BrokerFacts,
    cluster: Option<&str>,
    prune: bool,
) -> Result<(Plan, Topology)> {
    let management = session.management_of(cluster).await?;
    topology_plan::compare(topology, &management, session.vhost()?, facts, prune).await
}

/// A successful declaration is no proof: what the broker substituted or left
/// out only shows when everything is read again.
fn read_back(report: &mut ApplyReport, again: Result<(Plan, Topology)>) {
    let plan = match again {
        Ok((plan, _)) => plan,
        Err(error) => {
            report.read_back = ReadBack::Impossible(error.message().to_owned());
            return;
        }
    };
    report.read_back = if plan.is_empty() {
        ReadBack::Proved
    } else {
        ReadBack::Differs
    };
    for line in &mut report.lines {
        if line.done == Done::Deleted && plan.prune.contains(&line.object) {
            line.done = Done::Failed(
                Error::new(
                    ErrorKind::Protocol,
                    format!("{} was deleted, but reading back shows it", line.object),
                )
                .hint("somebody else may have made it again; run `mq topology plan --prune`"),
            );
        }
    }
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
    let kept: Vec<String> = report
        .lines
        .iter()
        .filter_map(|line| match &line.done {
            Done::Kept(why) => Some(format!("{}: {why}", line.object)),
            _ => None,
        })
        .collect();
    match report.failure() {
        None if !kept.is_empty() => Err(Error::new(
            ErrorKind::Partial,
            format!("kept what should be pruned:\n{}", kept.join("\n")),
        )
        .hint("stop who uses it and run this again, or give --allow lose-messages as well")),
        None => Ok(Exit::Done),
        Some(error) if report.read_back == ReadBack::Differs => Err(error
            .clone()
            .as_kind(ErrorKind::Partial)
            .during("everything was done, but not all of it is as the file says")),
        Some(error) if report.changed() && error.kind() == ErrorKind::Blocked => Err(error
            .clone()
            .as_kind(ErrorKind::Partial)
            .during("stopped half-way; the report says what was created")),
        Some(error) if report.changed() => Err(error.clone().as_kind(ErrorKind::Partial).during(
            "stopped half-way; the report says what was created, and applying again completes it",
        )),
        Some(error) => Err(error.clone()),
    }
}
