//! What applying a topology does, in which order, and what its outcome means.

mod conflict;
mod order;
mod report;

pub use conflict::{Conflict, Difference};
pub use order::{Object, Step, steps};
pub use report::{ApplyReport, Done, Line};
