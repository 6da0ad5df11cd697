//! A topology that was read from files, with the places of what is in it.

use crate::diagnostic::{Diagnostic, Place, Source};
use crate::lint::Finding;
use crate::topology::Topology;
use crate::topologyfile::allow::Allows;
use crate::topologyfile::secrets::Secrets;
use crate::topologyfile::spots::Spots;

/// A topology with the places of its objects.
#[derive(Debug)]
pub struct File {
    /// What the files declare.
    pub topology: Topology,
    pub(super) spots: Spots,
    /// Where texts stand that have a `#`, which begins no comment there.
    pub(super) texts: Vec<Place>,
    pub(super) secrets: Secrets,
    pub(super) sources: Vec<Source>,
}

impl File {
    /// The texts it was read from, for showing diagnostics.
    #[must_use]
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Findings about its topology with their places, without those that a
    /// comment silences.
    #[must_use]
    pub fn locate(&self, findings: Vec<Finding>) -> Vec<Diagnostic> {
        self.located(findings, &mut Allows::of(&self.sources, &self.texts))
    }

    /// The same, and what is wrong with the comments: for who has everything
    /// that can be found.
    #[must_use]
    pub fn locate_all(&self, findings: Vec<Finding>) -> Vec<Diagnostic> {
        let mut allows = Allows::of(&self.sources, &self.texts);
        let mut located = self.located(findings, &mut allows);
        let mut useless = allows.useless();
        self.secrets.hide(&mut useless, &self.sources);
        located.extend(useless);
        located
    }

    fn located(&self, findings: Vec<Finding>, allows: &mut Allows) -> Vec<Diagnostic> {
        let nowhere = Place {
            source: usize::MAX,
            bytes: 0..0,
        };
        let mut located: Vec<Diagnostic> = findings
            .into_iter()
            .filter_map(|finding| {
                let place = self.spots.field(&finding.subject, finding.field);
                let place = place.unwrap_or(&nowhere);
                let object = self.spots.object(&finding.subject).unwrap_or(place);
                if allows.silence(finding.code, &[place, object]) {
                    return None;
                }
                let found = Diagnostic::new(finding.code, place.clone(), finding.message)
                    .level(finding.level)
                    .label(finding.label);
                Some(if finding.help.is_empty() {
                    found
                } else {
                    found.help(finding.help)
                })
            })
            .collect();
        self.secrets.hide(&mut located, &self.sources);
        located
    }
}
