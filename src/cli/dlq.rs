//! `mq dlq …`.

use clap::{Args, Subcommand};

use crate::cli::{DlqExportArgs, DlqPurgeArgs};

/// See what is in a dead-letter queue, and why.
#[derive(Debug, Subcommand)]
#[expect(
    missing_docs,
    reason = "clap shows the docs of each command's own struct, and a doc here would hide them"
)]
pub enum DlqCommand {
    Inspect(InspectArgs),
    Export(DlqExportArgs),
    Purge(DlqPurgeArgs),
}

/// Show dead letters: where each came from, why, how often it was tried.
///
/// Looks through the management API and never removes a message. Looking means
/// taking and putting back, which a quorum queue may count against its delivery
/// limit until it drops the message: where that can happen, mq refuses and says
/// how to look safely.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq dlq inspect orders.dlq
  mq dlq inspect orders.dlq --limit 200 --output json | jq '.groups'

Exit codes:
  0 shown
  2 looking could lose messages (see --even-if-it-counts)
  65 no such queue
  69 management API not reachable
  77 login or permission refused")]
pub struct InspectArgs {
    /// The queue
    pub queue: String,

    /// Most messages to look at, at most 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,

    /// Most bytes of each body to show
    #[arg(long, value_name = "BYTES", default_value_t = 256, value_parser = clap::value_parser!(u32).range(0..=10_485_760))]
    pub body_bytes: u32,

    /// Look even where each look brings messages closer to being dropped
    #[arg(long)]
    pub even_if_it_counts: bool,
}
