//! The worker: takes messages, has them handled, settles each exactly once.
//!
//! `machine` decides (no sockets, no clock), `drive` brings it events, `effects`
//! carries out what it says, `drained` says when nothing is left to come.

mod counts;
mod drained;
mod drive;
mod effects;
mod machine;
mod parker;

pub use counts::Counts;
pub use drained::{DrainCheck, Emptiness};
pub use drive::{Ending, Handling, Session, Wanted};
pub use machine::{Effect, Event, Limits, Machine, StopReason};
