//! `mq dlq check`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::global::duration_or_zero;
use crate::deadletter::{Limits, MaxRate};

/// Check that dead-letter queues are empty, or within limits: for CI and cron.
///
/// Without a name every dead-letter queue of the vhost is checked (see `mq dlq
/// list`); a queue that is named is checked whatever it is, and must exist.
/// Without a limit a queue must be empty: no message ready and none out for
/// delivery. What the broker does not tell is never taken for good: the exit
/// code is 3 then.
///
/// Ready messages are counted over AMQP, which is exact at once. Where a user has
/// no permissions for that they come from the broker's statistics, which are up to
/// ten seconds old, and mq says so. Messages out for delivery are only in the
/// statistics: for a queue that has consumers mq waits until those are new, eleven
/// seconds.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq dlq check
  mq dlq check orders.dlq mails.dlq --max-messages 10
  mq dlq check --all-vhosts --max-age 1h --max-rate 30/m
  mq dlq check --all-vhosts --nagios
  mq dlq check --all-vhosts --prometheus /var/lib/node_exporter/mq.prom

Exit codes:
  0 within every limit
  1 a queue is over a limit; which one, and by how much, is told
  3 none is over as far as is known, but some could not be read or judged
  65 a queue that was named does not exist
  69 management API not reachable
  74 the Prometheus file cannot be written
  77 login or permission refused
With --nagios, also when the broker cannot be reached:
  0 OK, 2 CRITICAL (a queue is over a limit), 3 UNKNOWN")]
pub struct CheckArgs {
    /// The queues [default: every dead-letter queue]
    #[arg(value_name = "QUEUE")]
    pub queues: Vec<String>,

    /// In every vhost that the user may see, whatever --vhost says
    #[arg(long, conflicts_with = "queues")]
    pub all_vhosts: bool,

    /// Most messages in a queue, those out for delivery included [default: 0,
    /// unless another limit is given]
    #[arg(long, value_name = "N")]
    pub max_messages: Option<u64>,

    /// Most time since the first message died last
    ///
    /// A message that never died is as old as its timestamp. The first message is
    /// looked at, where that is safe (see `mq dlq list`); where it is not, or
    /// nothing tells, the age is not known.
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero)]
    pub max_age: Option<Duration>,

    /// Most messages that come in: N/s, N/m or N/h
    ///
    /// Over the last minute, N/h over the last hour. Brokers do not count dead
    /// letters by queue, so it is how much more there is plus what was acked.
    #[arg(long, value_name = "RATE", value_parser = |text: &str| text.parse::<MaxRate>())]
    pub max_rate: Option<MaxRate>,

    /// Print one line for Nagios and its like, and exit as they want it
    #[arg(long)]
    pub nagios: bool,

    /// Write metrics to this file, for node_exporter's textfile collector; `-` prints them
    ///
    /// The file is replaced as a whole. It is also written when the broker cannot
    /// be reached: then mq_dlq_check_success is 0, and nothing else is told.
    #[arg(long, value_name = "FILE")]
    pub prometheus: Option<PathBuf>,
}

impl CheckArgs {
    /// What is allowed: nothing, where nothing was said.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let says_nothing = self.max_age.is_none() && self.max_rate.is_none();
        Limits {
            messages: self.max_messages.or(says_nothing.then_some(0)),
            age_seconds: self.max_age.map(|age| age.as_secs()),
            rate: self.max_rate,
        }
    }

    /// Whether metrics take the place of everything else on standard output.
    #[must_use]
    pub fn prints_metrics(&self) -> bool {
        self.prometheus
            .as_ref()
            .is_some_and(|path| path.as_os_str() == "-")
    }
}
