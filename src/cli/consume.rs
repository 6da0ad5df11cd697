//! `mq consume`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};

use crate::cli::global::{duration, duration_or_zero};
use crate::dedupe::DedupeBy;
use crate::offsets::StartAt;
use crate::topology::Jitter;

/// Work a queue: run a program or ask a URL for each message, retry, dead-letter.
///
/// The body goes to the program's standard input byte for byte, everything else
/// into MQ_* environment variables (MQ_QUEUE, MQ_EXCHANGE, MQ_ROUTING_KEY,
/// MQ_ATTEMPT, MQ_MAX_ATTEMPTS, MQ_MESSAGE_ID, MQ_HEADERS as JSON, …). What it
/// writes goes to mq's standard error, but for results. Its exit code settles the
/// message: see below; a delay written to the file MQ_RETRY_AFTER is kept before
/// the next attempt. With --exec-stream one program works many
/// messages and says what came of each.
///
/// A URL gets the body as a POST, everything else as headers of the same names
/// (MQ-Queue, MQ-Routing-Key, MQ-Attempt, …), percent-encoded where they are not
/// visible ASCII. The status of its answer settles the message.
///
/// How a message is retried is read from the broker: if the queue's dead letters
/// go into a wait queue that leads back (strategy `dlx`), a failed message is
/// nacked into it and the attempts are counted from x-death (or it is copied into
/// it, where a nack could lose it); if they go straight to the dead-letter queue
/// (strategy `immediate`), it is tried again at once; a queue that holds back what
/// failed (strategy `native`, RabbitMQ 4.3) gets it back. The strategy `backoff`
/// must be asked for, by the topology file or by --strategy, and is then proved. A
/// queue whose dead letters would vanish is not
/// worked at all.
///
/// A stream is read from where --from says; --offset-file keeps how far it was done.
#[derive(Clone, Debug, Args)]
#[command(
    group = ArgGroup::new("handling").required(true).args(["exec", "exec_stream", "http", "print"]),
    override_usage = "mq consume <QUEUE> [OPTIONS] --exec <COMMAND>...\n       mq consume <QUEUE> [OPTIONS] --exec-stream <COMMAND>...\n       mq consume <QUEUE> [OPTIONS] --http <URL>\n       mq consume <QUEUE> [OPTIONS] --print",
    after_long_help = "Exit codes of the program:
  0    done: ack
  65   poison: dead-letter now, no retry
  69   something it needs is down: the worker stops (or pauses: --pause-after), the message stays in its queue
  75, any other code, a signal or a timeout: a failed attempt, retried until --max-attempts
       are used up and then dead-lettered

Statuses of the URL:
  2xx  done: ack
  408, 425, 429, 5xx  a failed attempt
  any other 4xx  poison: dead-letter now, no retry
  3xx  a failed attempt: no redirect is followed
  no connection, or no answer within --handler-timeout: a failed attempt

Examples:
  mq consume orders.queue --topology topologies/orders.yaml --exec ./handle-order
  mq consume mails --strategy backoff --delays 1s,10s,1m --jitter 25% --exec ./send-mail
  mq consume orders.queue --prefetch 8 --until-empty --exec sh -c 'jq -e .id >/dev/null || exit 65'
  mq consume orders.queue --prefetch 4 --exec-stream python3 handle_orders.py
  mq consume orders.queue --pause-after 5 --exec ./handle-order
  mq consume orders.queue --prefetch 8 --http http://localhost:8080/orders
  mq consume orders.dlq --print --max-messages 1
  mq consume events --from first --offset-file billing.offset --dead-letter-queue events.dlq --exec ./bill

Exit codes:
  0 stopped as asked (SIGTERM, SIGINT or SIGHUP, --max-messages, --until-empty, --idle-timeout)
  2 the queue's dead letters would be lost, or the topology is not as the file says
  64 --from and the like for a queue that is no stream
  65 the queue does not exist or was deleted, or the offset file is damaged or of another stream
  67 the dead-letter queue is not bound any more
  69 the handler cannot be started or said 69, a message of a stream has nowhere to be set aside, or the broker is gone for good
  74 the offset file cannot be read or written
  77 permission refused
  128+n a second signal: handlers were killed, their messages went back"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
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
    /// "reason". Many times faster than --exec. --jobs is how many of it run at most. When
    /// its input ends, it has 3 s to end too. The README documents the protocol.
    #[arg(
        long,
        value_name = "COMMAND",
        num_args = 1..,
        allow_hyphen_values = true
    )]
    pub exec_stream: Vec<OsString>,

    /// POST each message to this URL: http or https, with USER:PASSWORD@ before the host for basic authentication
    ///
    /// It need not answer yet when the worker starts. Environment variables for
    /// proxies are not used.
    #[arg(long, value_name = "URL")]
    pub http: Option<String>,

    /// Print each message and ack it: the body and a line end, or JSON with --output
    #[arg(long)]
    pub print: bool,

    /// Most messages in work at once, each with its own run of the program or request
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub prefetch: u16,

    /// Most runs of the program at once [default: as many as --prefetch]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,

    /// Attempts for each message, the first included [default: the topology file's, else 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_attempts: Option<u32>,

    /// What happens to a message whose attempts are used up: into the dead-letter queue, or kept in its queue while the worker stops with 69
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = OnExhaustedArg::DeadLetter)]
    pub on_exhausted: OnExhaustedArg,

    /// After so many failed attempts in a row, of whatever messages, take no more and try one at growing intervals until it is done
    ///
    /// Something downstream is down then, and its outage costs the messages no attempts. An exit
    /// code 69 (or the outcome `stop`) pauses the worker at once instead of stopping it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "print")]
    pub pause_after: Option<u32>,

    /// The longest wait between two tries while paused, at most 10m; the first is 1s, and it doubles
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration, requires = "pause_after")]
    pub probe_wait: Duration,

    /// Dead-letter a message that came back this often without an outcome, because its worker crashed or lost its connection [default: 20 on RabbitMQ 4.3, else never]
    ///
    /// Only quorum queues count that; under the strategy `native` each return is an attempt. Before RabbitMQ 4.3 they also
    /// count what a worker gave back itself, so there nothing is dead-lettered for it unless this is given.
    #[arg(long, value_name = "N")]
    pub max_returns: Option<u64>,

    /// How messages get to the dead-letter queue: as a confirmed copy with mq-error-* headers, or by a plain nack, which carries no reason and loses them if that queue is unbound meanwhile
    #[arg(long, value_enum, value_name = "HOW", default_value_t = DeadLetterArg::Republish)]
    pub dead_letter: DeadLetterArg,

    /// Publish what the program writes to standard output here, confirmed and routed, before its message is acked
    #[arg(long, value_name = "EXCHANGE")]
    pub result_exchange: Option<String>,

    /// The routing key of results [default: the message's own]
    #[arg(long, value_name = "KEY", requires = "result_exchange")]
    pub result_key: Option<String>,

    /// Publish results to the queue that the message names in reply_to, if it names one
    #[arg(long, conflicts_with = "result_exchange")]
    pub reply: bool,

    /// The body of the next attempt: the same, or what the failed program wrote to standard output
    #[arg(long, value_enum, value_name = "BODY", default_value_t = RetryBodyArg::Original)]
    pub retry_body: RetryBodyArg,

    /// Ack without working it a message whose like was done before: message-id, header:NAME or body tells what is alike
    ///
    /// What is done is remembered only after the work, its result included, and before the ack:
    /// a worker that is killed in between leaves a message that is worked once more. Messages
    /// that have no such id or header are worked as they come.
    #[arg(long, value_name = "BY")]
    pub dedupe: Option<DedupeBy>,

    /// Where it is remembered what is done: a file, for this worker alone, or redis://HOST:6379/0, which workers share [default: MQ_DEDUPE_STORE, else a file for each queue in $XDG_STATE_HOME/mq or ~/.local/state/mq]
    #[arg(long, value_name = "STORE", requires = "dedupe")]
    pub dedupe_store: Option<String>,

    /// How long it is remembered
    #[arg(long, value_name = "DURATION", default_value = "1day", value_parser = duration, requires = "dedupe")]
    pub dedupe_ttl: Duration,

    /// Stop after taking this many messages; a message that comes back from a wait queue counts again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_messages: Option<u64>,

    /// Stop when the queue and the retries under way are drained
    #[arg(long)]
    pub until_empty: bool,

    /// Stop after this long without a message
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub idle_timeout: Option<Duration>,

    /// Longest run of the program or request; then it is ended, a failed attempt
    ///
    /// The default is below the 30 minutes after which brokers take a message back.
    #[arg(long, value_name = "DURATION", default_value = "25m", value_parser = duration)]
    pub handler_timeout: Duration,

    /// Longest wait for a connection to the URL: its name, TCP and TLS
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration, conflicts_with_all = ["exec", "print"])]
    pub connect_timeout: Duration,

    /// How long running programs and requests may take once the worker stops; then they are ended and their messages go back
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration_or_zero)]
    pub drain_timeout: Duration,

    /// How long to try to reconnect when the broker goes away
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration_or_zero)]
    pub reconnect_for: Duration,

    /// Topology file (or directory) with the queue's `retry:`; the broker must match it
    #[arg(long, value_name = "FILE")]
    pub topology: Vec<PathBuf>,

    /// JSON Schema that bodies must fit; a message that does not goes to the dead-letter queue, and no program sees it [default: the topology file's `schema:`]
    ///
    /// 2020-12, or draft-07 if its `$schema` says so. The reason names each path and rule that is broken.
    #[arg(long, value_name = "FILE", conflicts_with = "print")]
    pub schema: Option<PathBuf>,

    /// Refuse to work unless the queue is retried this way
    #[arg(long, value_enum, value_name = "STRATEGY")]
    pub strategy: Option<StrategyArg>,

    /// How long a message waits after each failed attempt, such as 1s,10s,1m; the last one repeats [default: the topology file's]
    ///
    /// For the strategy `backoff` each of them needs a wait queue with that TTL.
    #[arg(long, value_name = "DURATIONS", value_delimiter = ',', value_parser = duration)]
    pub delays: Vec<Duration>,

    /// By how much less it may wait, so that what failed together does not come back together: full, none or a percentage such as 25% [default: the topology file's, else none]
    ///
    /// Only the strategy `backoff` can do that.
    #[arg(long, value_name = "JITTER")]
    pub jitter: Option<Jitter>,

    /// Serve metrics at this address: /metrics for Prometheus, /healthz and /readyz
    ///
    /// HOST:PORT, or PORT for 127.0.0.1 only; with port 0 the address is told on standard error.
    /// It listens before the broker is connected, until the worker ends.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<String>,

    /// Where to start reading a stream: first, last, next, an offset or a time (2026-01-31T12:00:00Z or @SECONDS) [default: next]
    ///
    /// A position that --offset-file keeps goes before it. Brokers find a time by whole chunks, so
    /// some older messages may come first.
    #[arg(long, value_name = "WHERE")]
    pub from: Option<StartAt>,

    /// Keep the position in a stream in this file, and go on from there
    #[arg(long, value_name = "FILE")]
    pub offset_file: Option<PathBuf>,

    /// Start where --from says, whatever position is kept
    #[arg(long, requires = "from", requires = "offset_file")]
    pub rewind: bool,

    /// Where dead letters rest: of a stream, or if the dead-letter exchange leads to several such queues
    #[arg(long, value_name = "QUEUE")]
    pub dead_letter_queue: Option<String>,
}

/// The values of `--strategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StrategyArg {
    /// Through a wait queue.
    Dlx,
    /// Through the wait queue of each step.
    Backoff,
    /// At once.
    Immediate,
    /// Held back by the queue (RabbitMQ 4.3).
    Native,
}

/// The values of `--on-exhausted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnExhaustedArg {
    /// Into the dead-letter queue.
    DeadLetter,
    /// Stays in its queue; the worker stops.
    Stop,
}

/// The values of `--dead-letter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeadLetterArg {
    /// A confirmed copy.
    Republish,
    /// The broker's own way.
    Nack,
}

/// The values of `--retry-body`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RetryBodyArg {
    /// Byte for byte the same.
    Original,
    /// What the failed attempt gave back.
    Result,
}
