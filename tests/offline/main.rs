//! What needs no broker: the command line, files, wrong addresses, and the house rules.

#[path = "../support/mod.rs"]
mod support;

mod addresses;
mod command_line;
mod convert;
mod help;
mod house;
mod readme;
mod route;
mod routing_tests;
mod topology_files;
