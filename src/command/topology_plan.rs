//! `mq topology plan`: what apply would do, without doing it.

use super::session::Session;
use super::topology_lint::Linted;
use super::{topology_files, topology_prune};
use crate::broker::BrokerFacts;
use crate::cli::PlanArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::management::Management;
use crate::output::{plan_json, plan_text};
use crate::plan::{Plan, Unsupported, Verb, plan, prunable, pruned_objects, unsupported};
use crate::topology::{Topology, VhostName};

pub(super) async fn run(args: &PlanArgs, mut session: Session) -> anyhow::Result<Exit> {
    let linted = Linted::load(&args.files, args.no_lint)?;
    let topology = topology_files::with_passwords(linted.topology.clone())?;
    topology_prune::must_own_something(&topology, args.prune)?;
    session.prefer_vhost(topology.vhost.as_ref());
    let (plan, broker) = make(&linted, &topology, &session, args.prune).await?;
    session.report(|| plan_text(&plan, &broker), || plan_json(&plan, &broker))?;
    Ok(verdict(&plan, args.check)?)
}

/// Reads the broker and compares; shared with `apply --dry-run`.
pub(super) async fn make(
    linted: &Linted,
    topology: &Topology,
    session: &Session,
    prune: bool,
) -> Result<(Plan, String)> {
    let management = session.management()?;
    let read = async {
        let facts = management.facts().await?;
        if let Err(found) = linted.judge(&facts, session) {
            return Ok(Err(found));
        }
        if let Some(refusal) = refusal(topology, &facts) {
            return Ok(Err(refusal));
        }
        let (plan, _) = compare(topology, &management, session.vhost()?, &facts, prune).await?;
        Ok(Ok((plan, facts)))
    };
    let read: Result<Result<(Plan, BrokerFacts)>> = read.await;
    let (plan, facts) = read.map_err(|error: Error| {
        let hint = error.way_out().unwrap_or_default().to_owned();
        error.hint(format!(
            "{hint}\na plan is read through the management API; `mq topology apply` works without it"
        ))
    })??;
    Ok((plan, format!("{facts} at {}", management.endpoint())))
}

/// The plan, and what it was compared with.
pub(super) async fn compare(
    topology: &Topology,
    management: &Management,
    vhost: &VhostName,
    facts: &BrokerFacts,
    prune: bool,
) -> Result<(Plan, Topology)> {
    let there = there(topology, management, vhost, facts, prune).await?;
    let mut plan = plan(vhost.clone(), topology, &there, facts);
    if prune {
        plan.prune = pruned_objects(&prunable(topology, &there));
    }
    Ok((plan, there))
}

/// What this version of the broker would refuse or silently leave out is
/// refused as a whole, before anything is changed.
pub(super) fn refusal(topology: &Topology, facts: &BrokerFacts) -> Option<Error> {
    let lacking = unsupported(topology, facts);
    if lacking.is_empty() {
        return None;
    }
    let lines: Vec<String> = lacking.iter().map(Unsupported::to_string).collect();
    let mut ways_out: Vec<String> = Vec::new();
    for one in &lacking {
        let way_out = format!("{}: {}", one.what, one.way_out);
        if !ways_out.contains(&way_out) {
            ways_out.push(way_out);
        }
    }
    let error = Error::new(
        ErrorKind::Blocked,
        format!(
            "nothing was changed, because {facts} does not do what the file asks for:\n{}",
            lines.join("\n")
        ),
    );
    Some(error.hint(ways_out.join("\n")))
}

/// What the broker has, as far as the file is about it: policies may be read by
/// policymakers only, users by administrators, so they are left alone if the
/// file has none and nothing is to be pruned.
async fn there(
    wanted: &Topology,
    management: &Management,
    vhost: &VhostName,
    facts: &BrokerFacts,
    prune: bool,
) -> Result<Topology> {
    let mut there = management.declared(vhost, facts).await?;
    if !wanted.policies.is_empty() || prune {
        there.policies = management.policies(vhost).await?;
    }
    if wanted.vhost_settings.is_some() {
        there.vhost_settings = Some(management.vhost_settings(vhost).await?);
    }
    if !wanted.users.is_empty() {
        there.users = management.users().await?;
    }
    if !wanted.permissions.is_empty() {
        there.permissions = management.permissions(vhost).await?;
    }
    if !wanted.topic_permissions.is_empty() {
        there.topic_permissions = management.topic_permissions(vhost).await?;
    }
    Ok(there)
}

/// With `--check` any difference is a no; without it a plan is an answer,
/// unless something in it cannot be done.
pub(super) fn verdict(plan: &Plan, check: bool) -> Result<Exit> {
    if check {
        return Ok(if plan.is_empty() {
            Exit::Done
        } else {
            Exit::No
        });
    }
    match plan.count(|verb| matches!(verb, Verb::Blocked(_))) {
        0 => Ok(Exit::Done),
        blocked => Err(Error::new(
            ErrorKind::Blocked,
            format!(
                "{blocked} of {} objects in vhost '{}' are there otherwise and cannot be changed in place",
                plan.steps.len(),
                plan.vhost
            ),
        )
        .hint("`mq topology apply` lists the ways out of each; it would change nothing either")),
    }
}
