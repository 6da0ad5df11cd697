//! What can be typed: the command line as data, and nothing else.

mod consume;
mod dlq;
mod global;
mod publish;
mod topology;
mod wait;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

pub use consume::{ConsumeArgs, StrategyArg};
pub use dlq::{DlqCommand, InspectArgs};
pub use global::{GlobalArgs, LogFormat, OutputFormat};
pub use publish::PublishArgs;
pub use topology::{ApplyArgs, Files, TopologyCommand, ValidateArgs};
pub use wait::WaitArgs;

/// Set RabbitMQ up, feed it, work it and un-jam it.
///
/// mq provisions a topology from YAML, publishes with confirms, runs a worker
/// that retries failing messages and dead-letters poison ones, and shows what is
/// in a dead-letter queue and why. No message is lost or settled before its
/// outcome is confirmed, and nothing is deleted unasked.
#[derive(Debug, Parser)]
#[command(
    name = "mq",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_long_help = crate::exit::help(),
    arg_required_else_help = true,
    subcommand_required = true,
)]
pub struct Cli {
    /// What every command understands.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// Which command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Wait until the broker really answers: AMQP login and management API.
    Wait(WaitArgs),
    /// Exchanges, queues and bindings from YAML files.
    #[command(subcommand)]
    Topology(TopologyCommand),
    /// Publish a message; done only when it is confirmed and in a queue.
    Publish(PublishArgs),
    /// Work a queue: run a program for each message, retry, dead-letter.
    Consume(ConsumeArgs),
    /// See what is in a dead-letter queue, and why.
    #[command(subcommand)]
    Dlq(DlqCommand),
    /// Print the completion script of a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page, all commands in one (roff).
    Man,
}
