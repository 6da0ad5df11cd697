//! The management API: the only module that knows the HTTP client.
//!
//! Replies are read leniently: only the fields that are needed, each of which
//! may be missing (a queue just declared has no counts for five seconds; with
//! statistics switched off it never has).

mod bindings;
mod client;
mod clients;
mod contents;
mod counts;
mod history;
mod messages;
mod nodes;
mod observe;
mod policies;
mod queue;
mod reach;
mod rights;
mod routes;
mod users;
mod vhosts;
mod wire;

pub use client::Management;
pub use counts::Counts;
pub use history::{FINE, Remembered};
pub use messages::{Look, Peeked};
pub use observe::CountedTopology;
pub use policies::Policies;
pub use queue::ObservedQueue;
pub use rights::Right;
pub use routes::{NamedBinding, Routes};
