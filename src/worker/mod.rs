//! The worker: takes messages, has them handled, settles each exactly once.
//!
//! `machine` decides within its `limits` (no sockets, no clock), `drive` brings it
//! each `event`, `effects` carries out what it says, `drained` says when nothing is left to
//! come, `telling` logs what became of each message, `status` is what others see of it all.
//! Of a stream a `reading` knows what is wanted. An `outage` downstream is waited out in a `pause`.

mod answering;
mod batch;
mod checking;
mod counts;
mod deduping;
mod drained;
mod drive;
mod effects;
mod ending;
mod event;
mod flights;
mod handler_times;
mod limits;
mod machine;
mod outage;
mod parker;
mod pause;
mod reading;
mod status;
mod taken;
mod telling;
mod unread;
mod wanted;

pub use counts::Counts;
pub use drained::{DrainCheck, Emptiness};
pub use drive::Session;
pub use event::{Effect, Event, LONGEST_HOLD, StopReason};
pub use handler_times::{BOUNDS, HandlerTimes, OUTCOMES, Times};
pub use limits::{DeadLetterBy, Limits, NackPath, Pausing};
pub use machine::Machine;
pub use reading::Reading;
pub use status::{Link, Phase, Status, StatusBoard};
pub use telling::Fate;
pub use wanted::{Ending, Handling, Printer, Wanted};
