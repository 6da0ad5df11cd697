//! `mq dlq browse`.

use clap::Args;

/// Browse dead letters on a full screen: queues, groups, messages, one message.
///
/// Filter as you type, mark, replay, export and purge with the same guards as
/// the commands of these names; ? shows every key. Messages are taken and put
/// back in one go, and only where that is safe. Needs a terminal of at least 40
/// columns and 8 rows; uses no colour and no mouse.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq dlq browse
  mq dlq browse orders.dlq
  mq dlq browse --all-vhosts --limit 5000

Exit codes:
  0 left with q, or by a signal
  64 no terminal, or one that can show no screen
  69 broker or management API not reachable
  77 login or permission refused")]
pub struct BrowseArgs {
    /// Open this queue at once; it need not be a dead-letter queue
    pub queue: Option<String>,

    /// Show the queues of every vhost that the user may see
    #[arg(long)]
    pub all_vhosts: bool,

    /// Most messages of a queue that are loaded at once
    ///
    /// Fewer are loaded where their bodies exceed 64 MiB together. Of each body
    /// 64 KiB are shown.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}
