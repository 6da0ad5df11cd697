//! `mq dlq replay`.

use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};

use crate::cli::global::duration;

/// Send dead letters back to be worked again; each leaves only once its copy is in a queue.
///
/// A copy is published, and only when the broker confirmed it and a queue has it,
/// the dead letter is removed. Whatever is interrupted, and however, nothing is
/// lost; at most the messages that were under way are in both places, and mq says
/// so. Run it again to go on.
///
/// A copy is the message as it was first published: body and properties stay;
/// x-death, delivery counts, CC and a foreign user_id go. It carries
/// `mq-replay-count`, how often it was sent back, and `mq-replay-id`.
///
/// Only messages that are there at the start are taken. A message stays in the
/// queue, in its order, when it would land in the same queue at once, when its
/// exchange is gone, when no queue takes its copy, or when it was sent back too
/// often.
#[derive(Clone, Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that can be given or not"
)]
#[command(
    group = ArgGroup::new("elsewhere").multiple(true).args(["exchange", "to_queue"]).conflicts_with("to"),
    after_long_help = "Examples:
  mq dlq replay orders.dlq --dry-run
  mq dlq replay orders.dlq --limit 1 && mq dlq replay orders.dlq
  mq dlq replay orders.dlq --filter '.reason == \"poison\"' --to queue
  mq dlq replay orders.dlq --transform '.price |= tonumber' --max-replays 1

Exit codes:
  0 all that were meant are back in a queue (--dry-run: would be)
  2 taking and putting back could lose messages of this queue (see --even-if-it-counts)
  3 some stay; the summary says why
  65 no such queue or exchange
  67 no queue takes any of them
  69 broker lost: nothing is lost, run it again
  75 no confirm in time, or refused
  77 permission refused"
)]
pub struct ReplayArgs {
    /// The dead-letter queue
    pub queue: String,

    /// Where each goes: the exchange and key it was first published with, or
    /// straight into the queue it failed in
    #[arg(long, value_enum, default_value_t = ReplayTarget::Original)]
    pub to: ReplayTarget,

    /// Send all to this exchange; each keeps its original key, or see --key
    #[arg(long, value_name = "NAME", conflicts_with = "to_queue")]
    pub exchange: Option<String>,

    /// With --exchange: the routing key of all
    #[arg(long, value_name = "KEY", requires = "exchange")]
    pub key: Option<String>,

    /// Send all to this queue
    #[arg(long = "queue", value_name = "NAME", id = "to_queue")]
    pub to_queue: Option<String>,

    /// Only show where each would land, and whether it would come back
    ///
    /// Messages are taken and put back in their order, and bindings and policies
    /// are followed as they are now.
    #[arg(long)]
    pub dry_run: bool,

    /// Only messages for which this jq program is true
    ///
    /// Its input is a message as `mq dlq inspect --output jsonl` prints it, with
    /// its whole body.
    #[arg(long, value_name = "JQ")]
    pub filter: Option<String>,

    /// Most messages to send back
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,

    /// Most messages a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,

    /// Leave messages that were sent back so often already
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub max_replays: u64,

    /// Give messages that had a time to live the same again
    ///
    /// They may expire straight back into the dead-letter queue.
    #[arg(long)]
    pub restore_expiration: bool,

    /// Show each message and ask what to do with it
    #[arg(long, conflicts_with_all = ["dry_run", "rate"])]
    pub interactive: bool,

    /// Open each body in $VISUAL or $EDITOR; those left as they are stay
    #[arg(long, conflicts_with_all = ["dry_run", "transform", "interactive"])]
    pub edit: bool,

    /// Change each JSON body by this jq program; `$message` is the whole message
    ///
    /// A message stays when its body is no JSON, or when the program fails.
    #[arg(long, value_name = "JQ")]
    pub transform: Option<String>,

    /// Longest wait for a confirm
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub confirm_timeout: Duration,

    /// Take messages even where putting one back can lose it
    ///
    /// They are taken one by one then, and one that would be lost by going back is
    /// replaced by a confirmed copy at the end of the queue. If the connection
    /// breaks before that, it is lost.
    #[arg(long)]
    pub even_if_it_counts: bool,
}

/// Where dead letters go by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplayTarget {
    /// The exchange and routing key of the first publish
    Original,
    /// The queue it failed in
    Queue,
}
