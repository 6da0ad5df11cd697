//! A worker's status for others: metrics for Prometheus, health for whatever starts it again.
//!
//! `text` writes a status in the text format, `server` answers over HTTP,
//! `address` reads where it listens.

mod address;
mod server;
mod text;

pub use address::Address;
pub use server::Server;
pub use text::{Labels, NAMES, metrics_text};
