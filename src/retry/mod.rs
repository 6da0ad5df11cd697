//! Retries: what an attempt's outcome means and where the message goes next.
//!
//! Pure decisions. Nothing here knows a socket, a clock or a process.

mod attempt;
mod decide;
mod delays;
mod exponential;
mod outcome;
mod path;
mod problem;
mod refused;
mod wait;

pub use crate::topology::{DEFAULT_MAX_ATTEMPTS, Jitter, RetryPolicy, Strategy};
pub use attempt::{Attempt, HandlerResult, Trace};
pub use decide::{BuryReason, OnExhausted, Verdict, decide};
pub use delays::{DelaysProblem, MAX_DELAYS, check_delays};
pub use exponential::Exponential;
pub use outcome::Outcome;
pub use path::{DeadLetterAddress, RetryPath, Step, path};
pub use problem::{OtherDeath, PathProblem};
pub use refused::refused_pause;
pub use wait::Waiting;
