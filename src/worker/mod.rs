//! The worker: takes messages, has them handled, settles each exactly once.
//!
//! `machine` decides within its `limits` (no sockets, no clock), `drive` brings it
//! each `event`, `effects` carries out what it says, `drained` says when nothing is left to come.
//! Of a stream a `reading` knows what is wanted. An `outage` downstream is waited out in a `pause`.

mod answering;
mod batch;
mod counts;
mod drained;
mod drive;
mod effects;
mod ending;
mod event;
mod flights;
mod limits;
mod machine;
mod outage;
mod parker;
mod pause;
mod reading;
mod taken;
mod unread;
mod wanted;

pub use counts::Counts;
pub use drained::{DrainCheck, Emptiness};
pub use drive::Session;
pub use event::{Effect, Event, LONGEST_HOLD, StopReason};
pub use limits::{DeadLetterBy, Limits, NackPath, Pausing};
pub use machine::Machine;
pub use reading::Reading;
pub use wanted::{Ending, Handling, Printer, Wanted};
