//! The worker: takes messages, has them handled, settles each exactly once.
//!
//! `machine` decides (no sockets, no clock), `drive` carries out, `drained`
//! says when nothing is left to come.

mod drained;
mod drive;
mod machine;
mod parker;

pub use drained::{DrainCheck, Emptiness};
pub use drive::{Ending, Handling, Session, Wanted};
pub use machine::{Counts, Effect, Event, Limits, Machine, StopReason};
