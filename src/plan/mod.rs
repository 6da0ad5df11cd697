//! What applying a topology does, in which order, and what its outcome means.

mod compute;
mod conflict;
mod destroy;
mod difference;
mod migrate;
mod order;
mod prune;
mod report;
mod support;

pub use compute::{Plan, Planned, Verb, plan};
pub use conflict::Conflict;
pub use destroy::{
    DestroyReport, Gone, Objection, QueueUse, Unseen, exchanges_last_first, objections,
};
pub use difference::{Difference, queue_differences};
pub use migrate::{
    Existing, Feeder, MigrateNames, MigrateReport, MigrateStep, Next, Overlap, Progress, Seen,
    SeenQueue, StepLine, Temporary, harmful_settings, next, objections as migrate_objections,
    overlap, spellings, steps_from, straight_feeders,
};
pub use order::{Object, Step, steps};
pub use prune::{prunable, pruned_objects};
pub use report::{ApplyReport, Done, Line, ReadBack};
pub use support::{Unsupported, unsupported};
