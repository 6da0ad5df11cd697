//! `mq wait`.

use std::time::Duration;

use clap::Args;

use crate::cli::global::duration;

/// Wait until the broker really answers: AMQP login and management API.
///
/// Returns as soon as an AMQP connection can be opened with the given login and
/// vhost and the management API answers to the same user. An open port is not
/// enough. Says on standard error what it is waiting for.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq wait --for 2m
  mq wait --amqp-only -u amqp://guest:guest@broker:5672/%2f

Exit codes:
  0 both answer
  69 not within --for
  78 a URL is wrong")]
pub struct WaitArgs {
    /// Give up after this long
    #[arg(long = "for", value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub limit: Duration,

    /// Do not wait for the management API
    #[arg(long)]
    pub amqp_only: bool,
}
