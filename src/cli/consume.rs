//! `mq consume`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};

use crate::cli::global::{duration, duration_or_zero};

/// Work a queue: run a program for each message, retry, dead-letter.
///
/// The body goes to the program's standard input byte for byte, everything else
/// into MQ_* environment variables (MQ_QUEUE, MQ_EXCHANGE, MQ_ROUTING_KEY,
/// MQ_ATTEMPT, MQ_MAX_ATTEMPTS, MQ_MESSAGE_ID, MQ_HEADERS as JSON, …). Its
/// standard output and error both go to mq's standard error. Its exit code
/// settles the message: see below. With --exec-stream one program works many
/// messages and says what came of each.
///
/// How a message is retried is read from the broker: if the queue's dead letters
/// go into a wait queue that leads back (strategy `dlx`), a failed message is
/// nacked into it and the attempts are counted from x-death; if they go straight
/// to the dead-letter queue (strategy `immediate`), it is tried again at once. A
/// queue whose dead letters would vanish is not worked at all.
#[derive(Clone, Debug, Args)]
#[command(
    group = ArgGroup::new("handling").required(true).args(["exec", "exec_stream", "print"]),
    override_usage = "mq consume <QUEUE> [OPTIONS] --exec <COMMAND>...\n       mq consume <QUEUE> [OPTIONS] --exec-stream <COMMAND>...\n       mq consume <QUEUE> [OPTIONS] --print",
    after_long_help = "Exit codes of the program:
  0    done: ack
  65   poison: dead-letter now, no retry
  69   something it needs is down: the worker stops, the message stays in its queue
  75, any other code, a signal or a timeout: a failed attempt, retried until --max-attempts
       are used up and then dead-lettered

Examples:
  mq consume orders.queue --topology topologies/orders.yaml --exec ./handle-order
  mq consume orders.queue --prefetch 8 --until-empty --exec sh -c 'jq -e .id >/dev/null || exit 65'
  mq consume orders.queue --prefetch 4 --exec-stream python3 handle_orders.py
  mq consume orders.dlq --print --max-messages 1

Exit codes:
  0 stopped as asked (SIGTERM, SIGINT or SIGHUP, --max-messages, --until-empty, --idle-timeout)
  2 the queue's dead letters would be lost, or the topology is not as the file says
  65 the queue does not exist or was deleted
  67 the dead-letter queue is not bound any more
  69 the handler cannot be started or said 69, or the broker is gone for good
  77 permission refused
  128+n a second signal: handlers were killed, their messages went back"
)]
pub struct ConsumeArgs {
    /// The queue
    pub queue: String,

    /// Run this program for each message; must be the last flag, for everything after it belongs to the program
    #[arg(
        long,
        value_name = "COMMAND",
        num_args = 1..,
        allow_hyphen_values = true
    )]
    pub exec: Vec<OsString>,

    /// Run this program once and give it one message after another as lines of JSON; must be the last flag
    ///
    /// For each message it gets one line on standard input and answers with one line on standard
    /// output, {"id":N,"outcome":"done"}; the outcome is done, retry, poison or stop, with a
    /// "reason". Many times faster than --exec. --prefetch is how many of it run at most. When
    /// its input ends, it has 3 s to end too. The README documents the protocol.
    #[arg(
        long,
        value_name = "COMMAND",
        num_args = 1..,
        allow_hyphen_values = true
    )]
    pub exec_stream: Vec<OsString>,

    /// Print each message and ack it: the body and a line end, or JSON with --output
    #[arg(long)]
    pub print: bool,

    /// Most messages in work at once, each with its own run of the program
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub prefetch: u16,

    /// Attempts for each message, the first included [default: the topology file's, else 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_attempts: Option<u32>,

    /// Stop after taking this many messages; a message that comes back from a wait queue counts again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_messages: Option<u64>,

    /// Stop when the queue and the retries under way are drained
    #[arg(long)]
    pub until_empty: bool,

    /// Stop after this long without a message
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub idle_timeout: Option<Duration>,

    /// Longest run of the program; then it is ended, a failed attempt
    ///
    /// The default is below the 30 minutes after which brokers take a message back.
    #[arg(long, value_name = "DURATION", default_value = "25m", value_parser = duration)]
    pub handler_timeout: Duration,

    /// How long running programs may take once the worker stops; then they are ended and their messages go back
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration_or_zero)]
    pub grace: Duration,

    /// How long to try to reconnect when the broker goes away
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration_or_zero)]
    pub reconnect_for: Duration,

    /// Topology file (or directory) with the queue's `retry:`; the broker must match it
    #[arg(long, value_name = "FILE")]
    pub topology: Vec<PathBuf>,

    /// Refuse to work unless the queue is retried this way
    #[arg(long, value_enum, value_name = "STRATEGY")]
    pub strategy: Option<StrategyArg>,

    /// Where dead letters rest, if the dead-letter exchange leads to several such queues
    #[arg(long, value_name = "QUEUE")]
    pub dead_letter_queue: Option<String>,
}

/// The values of `--strategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StrategyArg {
    /// Through a wait queue.
    Dlx,
    /// At once.
    Immediate,
}
