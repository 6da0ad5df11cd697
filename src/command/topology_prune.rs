//! The part of an apply that deletes: opt-in, surveyed first, with destroy's guards.

use super::session::Session;
use super::topology_destroy::{Force, delete, refused};
use super::topology_survey::{Survey, survey};
use crate::amqp::Connection;
use crate::cli::{Allow, ApplyArgs};
use crate::error::{Error, ErrorKind, Result};
use crate::management::Management;
use crate::output::{plan_json, plan_text};
use crate::plan::{
    ApplyReport, DestroyReport, Done, Gone, Line, Object, Objection, Plan, prunable, pruned_objects,
};
use crate::topology::Topology;

/// Without `owns:` nothing can be told apart from what belongs to others.
pub(super) fn must_own_something(topology: &Topology, prune: bool) -> Result<()> {
    if prune && topology.owns.is_empty() {
        return Err(Error::new(
            ErrorKind::Usage,
            "--prune has nothing to go by: the files do not say which names are theirs alone",
        )
        .hint("add it to a file, for instance `owns: ['^orders\\.']`: queues, exchanges and policies with such names that no file declares are deleted then"));
    }
    Ok(())
}

/// What is to go, as it was before anything was changed.
pub(super) struct Prune {
    topology: Topology,
    survey: Survey,
    force: bool,
}

impl Prune {
    /// Looks at everything that would be deleted.
    pub(super) async fn survey(
        wanted: &Topology,
        there: &Topology,
        connection: &Connection,
        session: &Session,
        management: &Management,
    ) -> Result<Self> {
        let topology = prunable(wanted, there);
        let survey = survey(&topology, connection, session, Some(management)).await?;
        Ok(Self {
            topology,
            survey,
            force: false,
        })
    }

    /// Lets it pass only with everything that was asked for: `--yes`, and for
    /// what is in use a word of its own.
    pub(super) fn approve(
        &mut self,
        args: &ApplyArgs,
        plan: &Plan,
        session: &Session,
    ) -> Result<()> {
        self.force = args.allow.contains(&Allow::LoseMessages);
        let objections: Vec<Objection> = self
            .survey
            .objections
            .iter()
            .filter(|objection| !(self.force && matches!(objection.object, Object::Queue(_))))
            .cloned()
            .collect();
        if !objections.is_empty() {
            return Err(refused(&objections)
                .during("prune")
                .hint("stop who uses them, declare them, or for the messages in queues alone give --allow lose-messages"));
        }
        if plan.prune.is_empty() || args.yes {
            return Ok(());
        }
        let broker = session.amqp_address();
        session.report(|| plan_text(plan, &broker), || plan_json(plan, &broker))?;
        Err(Error::new(
            ErrorKind::Blocked,
            "nothing was changed: --prune would delete what the list above calls `delete`",
        )
        .hint("run this again with --yes"))
    }

    /// Deletes, unless something failed before; what came into use meanwhile is kept.
    pub(super) async fn run(
        self,
        report: &mut ApplyReport,
        connection: &Connection,
        management: &Management,
    ) {
        let stopped = report.failure().is_some() || report.conflicts().next().is_some();
        let mut result = Ok(());
        let mut lines = Vec::new();
        for object in pruned_objects(&self.topology) {
            if let Object::Binding(binding) = &object {
                let done = match (&result, stopped) {
                    (Ok(()), false) => {
                        result = management.unbind(&report.vhost, binding).await;
                        match &result {
                            Ok(()) => Done::Deleted,
                            Err(error) => Done::Failed(error.clone()),
                        }
                    }
                    _ => Done::NotTried,
                };
                lines.push(Line { object, done });
            }
        }
        let mut deletion = DestroyReport {
            vhost: report.vhost.clone(),
            broker: report.broker.clone(),
            lines: self.survey.lines,
        };
        let mut failed = None;
        if !stopped
            && result.is_ok()
            && let Err(error) = delete(
                &mut deletion,
                &self.topology,
                connection,
                Some(management),
                if self.force {
                    Force::Queues
                } else {
                    Force::Nothing
                },
            )
            .await
        {
            failed = Some(error);
        }
        for (object, gone) in deletion.lines {
            let done = match gone {
                // The first that is still to go is the one that failed.
                Gone::Planned => failed.take().map_or(Done::NotTried, Done::Failed),
                Gone::Deleted | Gone::NotThere => Done::Deleted,
                Gone::Kept(why) => Done::Kept(why),
            };
            lines.push(Line { object, done });
        }
        report.lines.extend(lines);
    }
}
