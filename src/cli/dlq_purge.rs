//! `mq dlq purge`.

use std::path::PathBuf;

use clap::Args;

/// Remove messages of a queue, after writing them to a file.
///
/// Writes the messages as `mq dlq export --remove` does, so that
/// `mq publish --jsonl` can bring them back. Asks first: on a terminal the
/// queue's name must be typed; anywhere else --yes must be given.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq dlq purge orders.dlq
  mq dlq purge orders.dlq --yes --backup dead.jsonl --filter '.reason == \"expired\"'
  mq dlq purge orders.dlq --yes --no-backup

Exit codes:
  0 purged
  2 not confirmed, or taking messages could lose some; nothing was removed
  3 stopped half-way by a signal, or some messages could not be written
  65 no such queue, or the filter failed
  69 broker or management API not reachable
  74 the backup cannot be written; what is not on disk is still in the queue
  77 login or permission refused")]
pub struct DlqPurgeArgs {
    /// The queue
    pub queue: String,

    /// Only messages that a jq program says yes to (see `mq dlq export --help`)
    #[arg(long, value_name = "JQ")]
    pub filter: Option<String>,

    /// Most messages to remove
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,

    /// The file to write them to, which must not be there yet
    /// [default: QUEUE-TIME.jsonl in this folder]
    #[arg(long, value_name = "FILE")]
    pub backup: Option<PathBuf>,

    /// Keep no copy
    #[arg(long, conflicts_with = "backup")]
    pub no_backup: bool,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,

    /// Take messages even where putting one back can lose it
    ///
    /// They are taken one by one then, and one that would be lost by going back is
    /// replaced by a confirmed copy at the end of the queue. If the connection
    /// breaks before that, it is lost.
    #[arg(long)]
    pub even_if_it_counts: bool,
}
