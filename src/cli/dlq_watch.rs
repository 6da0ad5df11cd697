//! `mq dlq watch`.

use std::time::Duration;

use clap::Args;

use crate::cli::global::duration;

/// Watch dead-letter queues fill and empty.
///
/// On a terminal a table that is drawn again in its place, until q or Ctrl-C:
/// messages ready and out for delivery, how many come in and go out in a second,
/// the change since the start, and the trend. Elsewhere, with --output json or
/// jsonl, and with TERM=dumb, a line of JSON for each queue and interval.
///
/// Numbers are of the broker's statistics, which are up to ten seconds old;
/// messages a second are over the last ten seconds or more. What comes in is how
/// much more there is plus what was acked: what expires or is purged meanwhile
/// lessens it.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq dlq watch
  mq dlq watch orders.dlq --interval 1s
  mq dlq watch --all-vhosts --output jsonl --count 12 | jq .ready

Exit codes:
  0 ended by q, Ctrl-C, SIGTERM or --count, or the reader of the lines went away
  65 a queue that was named does not exist at the start
  69 management API not reachable at the start; later mq goes on trying
  77 login or permission refused")]
pub struct WatchArgs {
    /// The queues [default: every dead-letter queue]
    #[arg(value_name = "QUEUE")]
    pub queues: Vec<String>,

    /// In every vhost that the user may see, whatever --vhost says
    #[arg(long, conflicts_with = "queues")]
    pub all_vhosts: bool,

    /// Between two looks, at least 1s
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = interval)]
    pub interval: Duration,

    /// End after so many looks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}

fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        interval if interval < Duration::from_secs(1) => {
            Err("must be at least 1s: brokers count every 5 s".to_owned())
        }
        interval => Ok(interval),
    }
}
