//! What can be typed: the command line as data, and nothing else.

mod consume;
mod dlq;
mod dlq_browse;
mod dlq_check;
mod dlq_export;
mod dlq_purge;
mod dlq_replay;
mod dlq_watch;
mod doctor;
mod files;
mod global;
mod graph;
mod headers;
mod publish;
mod publish_added;
mod publish_bulk;
mod publish_waits;
mod tls;
mod topology;
mod topology_route;
mod topology_test;
mod version;
mod wait;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub use consume::{ConsumeArgs, DeadLetterArg, OnExhaustedArg, RetryBodyArg, StrategyArg};
pub use dlq::{DlqCommand, InspectArgs, ListArgs};
pub use dlq_browse::BrowseArgs;
pub use dlq_check::CheckArgs;
pub use dlq_export::DlqExportArgs;
pub use dlq_purge::DlqPurgeArgs;
pub use dlq_replay::{ReplayArgs, ReplayTarget};
pub use dlq_watch::WatchArgs;
pub use doctor::DoctorArgs;
pub use files::Files;
pub use global::{GlobalArgs, LogFormat, OutputFormat};
pub use graph::{GraphArgs, Picture};
pub use headers::HeaderArgs;
pub use publish::PublishArgs;
pub use publish_bulk::{BulkArgs, OnUnroutable};
pub use tls::TlsArgs;
pub use topology::{
    Allow, ApplyArgs, ConvertArgs, DestroyArgs, ExportArgs, MigrateArgs, PlanArgs, SchemaArgs,
    TopologyCommand, ValidateArgs,
};
pub use topology_route::RouteArgs;
pub use topology_test::TestArgs;
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
#[expect(
    missing_docs,
    reason = "clap shows the docs of each command's own struct, and a doc here would hide them"
)]
pub enum Command {
    Wait(WaitArgs),
    #[command(subcommand)]
    Topology(TopologyCommand),
    Publish(PublishArgs),
    Consume(ConsumeArgs),
    #[command(subcommand)]
    Dlq(DlqCommand),
    Doctor(DoctorArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Print the completion script of a shell.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:
  mq completions bash > /etc/bash_completion.d/mq")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Print the manual page, all commands in one (roff).
#[derive(Debug, Args)]
#[command(after_long_help = "Example:
  mq man > /usr/local/share/man/man1/mq.1")]
pub struct ManArgs {}
