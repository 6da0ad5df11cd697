//! What an apply did, object by object: complete also when it failed half-way.

use crate::error::Error;
use crate::plan::{Conflict, Difference, Object};
use crate::topology::VhostName;

/// What happened to one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Done {
    /// It was not there and now is.
    Created,
    /// It was there as the file says.
    Unchanged,
    /// It was there otherwise and now is as the file says.
    Changed(Vec<Difference>),
    /// The request was sent; whether it changed anything cannot be known
    /// without the management API.
    Ensured,
    /// It was there and the files do not want it any more: deleted.
    Deleted,
    /// It should have been deleted and was kept; why.
    Kept(String),
    /// It is there otherwise; nothing was changed.
    Conflict(Conflict),
    /// It failed.
    Failed(Error),
    /// Not reached, because something before it failed.
    NotTried,
}

/// One object of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The object.
    pub object: Object,
    /// What happened to it.
    pub done: Done,
}

/// Whether what was done was looked at afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadBack {
    /// Everything was read again and is as the file says.
    Proved,
    /// Everything was read again, and something is otherwise.
    Differs,
    /// It could not be read; why.
    Impossible(String),
    /// Nothing was created, so there is nothing to prove.
    NotNeeded,
}

/// The report of one apply.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplyReport {
    /// The vhost it was applied to.
    pub vhost: VhostName,
    /// The broker, product and version.
    pub broker: String,
    /// Every object of the file, in the order of execution.
    pub lines: Vec<Line>,
    /// Whether it was read back.
    pub read_back: ReadBack,
}

impl ApplyReport {
    /// How many objects ended that way.
    #[must_use]
    pub fn count(&self, is: impl Fn(&Done) -> bool) -> usize {
        self.lines.iter().filter(|line| is(&line.done)).count()
    }

    /// Whether anything was created, changed or deleted.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.read_back == ReadBack::Differs
            || self.count(|done| matches!(done, Done::Created | Done::Changed(_) | Done::Deleted))
                > 0
    }

    /// The conflicts that kept it from doing anything.
    pub fn conflicts(&self) -> impl Iterator<Item = &Conflict> {
        self.lines.iter().filter_map(|line| match &line.done {
            Done::Conflict(conflict) => Some(conflict),
            _ => None,
        })
    }

    /// The failure that ended it.
    #[must_use]
    pub fn failure(&self) -> Option<&Error> {
        self.lines.iter().find_map(|line| match &line.done {
            Done::Failed(error) => Some(error),
            _ => None,
        })
    }
}
