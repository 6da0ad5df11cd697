//! `mq dlq export`.

use std::path::PathBuf;

use clap::Args;

/// Write messages of a queue to JSON lines, with everything they carry.
///
/// Each message becomes one line: body (text, or base64 where it is not UTF-8),
/// all properties, all headers with their types, exchange and routing key.
/// `mq publish --jsonl` sends such a file back exactly as it was. Without
/// --remove all messages are in the queue again at the end, in their order.
#[derive(Clone, Debug, Args)]
#[command(
    after_long_help = "With --remove a message is acknowledged only once its line is on disk (fsync).
Killed in between, a message is in the queue and in the file, never in neither.

Examples:
  mq dlq export orders.dlq > dead.jsonl
  mq dlq export orders.dlq --to dead.jsonl --remove
  mq dlq export orders.dlq --filter '.reason == \"rejected\" and .attempts > 2' | jq .properties
  mq dlq export orders.dlq --to dead.jsonl --remove && mq publish --jsonl dead.jsonl -q orders

Exit codes:
  0 exported
  2 taking messages could lose some (see --even-if-it-counts)
  3 stopped half-way by a signal, or some messages could not be written
  65 no such queue, or the filter failed
  69 broker or management API not reachable
  74 the file cannot be written; what is not on disk is still in the queue
  77 login or permission refused"
)]
pub struct DlqExportArgs {
    /// The queue
    pub queue: String,

    /// The file to write, which must not be there yet; - for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub to: PathBuf,

    /// Add to the file if it is there
    #[arg(long)]
    pub append: bool,

    /// Only messages that a jq program says yes to
    ///
    /// It is asked about the JSON that `mq dlq inspect --output jsonl` shows for
    /// a message, with the whole body: .origin, .reason, .attempts, .error,
    /// .properties.headers, .body (a text: `.body | fromjson | .id == 7`).
    #[arg(long, value_name = "JQ")]
    pub filter: Option<String>,

    /// Most messages to export
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,

    /// Take each message out of the queue once its line is on disk
    #[arg(long)]
    pub remove: bool,

    /// Take messages even where putting one back can lose it
    ///
    /// They are taken one by one then, and one that would be lost by going back is
    /// replaced by a confirmed copy at the end of the queue. If the connection
    /// breaks before that, it is lost.
    #[arg(long)]
    pub even_if_it_counts: bool,
}
