//! mq: provision, publish, work and un-jam RabbitMQ.
//!
//! Bytes become checked values at the edge; pure functions turn values into
//! decisions that are themselves values; a thin shell carries the decisions out.
//! Imports point down only:
//!
//! | layer | modules | may not |
//! |---|---|---|
//! | shell | `command` (one file a command), `cli` (what can be typed) | decide |
//! | edges | `amqp` (only user of lapin), `management` and `handler::http` (only users of HTTP), `handler`, `dedupe` (only user of redb and Redis), `worker::drive`, `offsets` (files of positions), `query` (only user of jaq), `tls` (certificates and keys), `given_file` (small files that flags name), `metrics::server` (only user of hyper), `output` (only writer to stdout and stderr) | be imported by decisions |
//! | screen | `browse` (what keys do to the browser, and its cells) | do I/O, read a clock |
//! | decisions | `topologyfile`, `definitions`, `plan`, `routing`, `retry`, `lint`, `proof`, `deadletter`, `doctor`, `graph`, `contract`, `worker::machine` | do I/O, read a clock, roll dice |
//! | vocabulary | `topology`, `message`, `field`, `secret`, `broker`, `endpoint`, `diagnostic`, `printable`, `error`, `exit` | know who uses it |
//!
//! Invariants: a message is settled only after its outcome is confirmed; a
//! message counts as published only when it is confirmed *and* routed; every
//! wait has a limit; no secret can be printed. This library is unstable: it
//! exists so that tests can reach inside.

pub mod amqp;
pub mod broker;
pub mod browse;
pub mod cli;
pub mod command;
pub mod contract;
pub mod deadletter;
pub mod dedupe;
pub mod definitions;
pub mod diagnostic;
pub mod doctor;
pub mod endpoint;
pub mod error;
pub mod exit;
pub mod field;
pub mod given_file;
pub mod graph;
pub mod handler;
pub mod lint;
pub mod management;
pub mod message;
pub mod metrics;
pub mod offsets;
pub mod output;
pub mod plan;
pub mod printable;
pub mod proof;
pub mod query;
pub mod retry;
pub mod routing;
pub mod secret;
pub mod tls;
pub mod topology;
pub mod topologyfile;
pub mod worker;

use std::ffi::OsString;

/// Runs mq with a command line, program name included, and gives its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> exit::Exit {
    // Both TLS users (AMQP and HTTP) take the process-wide provider; it is
    // installed already when a test calls this twice.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    command::run(args)
}
