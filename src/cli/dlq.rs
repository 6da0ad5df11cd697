//! `mq dlq …`.

use clap::{Args, Subcommand};

use crate::cli::{BrowseArgs, CheckArgs, DlqExportArgs, DlqPurgeArgs, ReplayArgs, WatchArgs};

/// See what is in a dead-letter queue and why, keep it, send it back.
#[derive(Debug, Subcommand)]
#[expect(
    missing_docs,
    reason = "clap shows the docs of each command's own struct, and a doc here would hide them"
)]
pub enum DlqCommand {
    List(ListArgs),
    Check(CheckArgs),
    Watch(WatchArgs),
    Inspect(InspectArgs),
    Browse(BrowseArgs),
    Replay(ReplayArgs),
    Export(DlqExportArgs),
    Purge(DlqPurgeArgs),
}

/// Show every dead-letter queue: how full, how old, who feeds it.
///
/// A dead-letter queue is one in which dead letters of other queues come to rest,
/// by their arguments and policies, whatever it is called; and one that gets only
/// what workers park. LOOK says what a look at its messages does: nothing (safe),
/// each one counts, it loses them at once, it loses those that came with a high
/// count (carried), or it is not known. Where it is safe, the first message is
/// looked at to tell how long it has been there.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq dlq list
  mq dlq list --all-vhosts --no-look
  mq dlq list --output json | jq '.[] | select(.ready > 0)'

Exit codes:
  0 shown, also when there is none
  3 some vhosts could not be read
  69 management API not reachable
  77 login or permission refused")]
pub struct ListArgs {
    /// In every vhost that the user may see, whatever --vhost says
    #[arg(long)]
    pub all_vhosts: bool,

    /// Look at no message; OLDEST is not known then
    #[arg(long)]
    pub no_look: bool,
}

/// Show dead letters: where each came from, why, how often it was tried.
///
/// Groups them by the queue they failed in, the reason and the error (as mq,
/// Spring, MassTransit, NServiceBus and rascal write it), then shows each on a
/// line, or with --full in all detail. Looks through the management API in one
/// request and never removes a message. Looking means taking and putting back,
/// which a quorum queue may count against its delivery limit until it drops the
/// message: where that can happen, mq refuses and says how to look safely.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq dlq inspect orders.dlq
  mq dlq inspect orders.dlq --full --limit 1
  mq dlq inspect orders.dlq --limit 200 --output json | jq '.groups'
  mq dlq inspect orders.dlq --filter '.body | fromjson? | .customer == 7'

Exit codes:
  0 shown
  2 looking could lose messages (see --even-if-it-counts)
  64 the filter is no jq program
  65 no such queue, or the filter fails on a message
  69 management API not reachable
  77 login or permission refused")]
pub struct InspectArgs {
    /// The queue
    pub queue: String,

    /// Most messages to look at, at most 1000
    ///
    /// Fewer are looked at where they are so large that 64 MiB are exceeded.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,

    /// Most bytes of each body to show [default: 256, with --full 65536]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(0..=10_485_760))]
    pub body_bytes: Option<u32>,

    /// Show all of each message: its journey, properties, headers and body
    #[arg(long)]
    pub full: bool,

    /// Show only messages that this jq program accepts
    ///
    /// It is asked about what `--output jsonl` shows of each message, with up to
    /// 1 MiB of its body. The first output decides: null, false and none are a no.
    #[arg(long, value_name = "JQ")]
    pub filter: Option<String>,

    /// Look even where each look brings messages closer to being dropped
    ///
    /// A message that would be lost when it is put back is replaced by a copy
    /// first: confirmed, at the end of the queue, without its delivery count.
    #[arg(long)]
    pub even_if_it_counts: bool,
}

impl InspectArgs {
    /// Most bytes of each body to show.
    #[must_use]
    pub fn body_bytes(&self) -> u32 {
        let default = if self.full { 65_536 } else { 256 };
        self.body_bytes.unwrap_or(default)
    }
}
