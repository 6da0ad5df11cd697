//! What needs no broker: the command line, files, wrong addresses, and the house rules.

#[path = "../support/mod.rs"]
mod support;

mod addresses;
mod command_line;
mod convert;
mod graph;
mod help;
mod house;
mod http_handler;
mod lint;
mod metrics;
mod publish_dry_run;
mod readme;
mod route;
mod routing_tests;
mod schema;
mod tls_files;
mod topology_files;
mod watching;
