//! What a migration did or would do.

use std::time::Duration;

use crate::plan::migrate::MigrateStep;
use crate::topology::{QueueName, VhostName};

/// How far a step came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It would be taken.
    Planned,
    /// It was taken.
    Done,
    /// It was cut short; running again goes on from here.
    Stopped,
}

/// One step of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct StepLine {
    /// The step.
    pub step: MigrateStep,
    /// How far it came.
    pub progress: Progress,
    /// Messages that it moved.
    pub moved: u64,
}

/// The report of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrateReport {
    /// The queue.
    pub queue: QueueName,
    /// Its vhost.
    pub vhost: VhostName,
    /// The broker, product and version.
    pub broker: String,
    /// What the file changes, in words; empty when a run is resumed behind that.
    pub changes: Vec<String>,
    /// What whoever approves this should know.
    pub notes: Vec<String>,
    /// The steps in their order.
    pub steps: Vec<StepLine>,
    /// Messages that were in the queue and are in it again.
    pub moved: u64,
    /// Up to so many messages may be there twice, because an earlier run was
    /// killed between a copy and its acknowledgement.
    pub maybe_twice: u64,
    /// Copies that an earlier run had made and that were recognised.
    pub skipped: u64,
    /// Messages that stand behind others which were published later.
    pub out_of_order: u64,
    /// Messages whose `user_id` was dropped.
    pub user_ids_dropped: u64,
    /// How long it took.
    pub took: Duration,
}

impl MigrateReport {
    /// Whether all of it was done: there is nothing to do, or nothing left.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.steps
            .iter()
            .all(|line| line.progress == Progress::Done)
    }
}
