//! Handlers: what is done with each message. A program of the user's, or the printer.

mod environment;
mod exec;
mod exit_status;

pub use exec::{Exec, Job};
