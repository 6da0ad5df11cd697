//! `mq topology route`.

use clap::Args;

use crate::cli::files::Files;
use crate::cli::headers::HeaderArgs;
use crate::cli::version::version;

/// Tell which queues a message reaches, and where it goes from there when it dies.
///
/// Reads files and asks no broker. For each queue that the message reaches: by
/// which bindings and alternate exchanges it came, and for every way it can die
/// there (rejected, expired, maxlen, delivery_limit) where it goes next, through
/// wait queues, until it rests or is lost. Headers named CC and BCC are
/// further keys, as for the broker.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq topology route topologies/orders.yaml -e orders.exchange -k order.created
  mq topology route topologies/ -e events -H kind=invoice --header-json amount=5
  mq topology route topologies/ -e orders -k order.paid -o json | jq '.reached[].queue'

Exit codes:
  0 it reaches a queue
  65 a file is wrong, or there is no such exchange in the files
  66 a file is missing
  67 it reaches no queue")]
pub struct RouteArgs {
    /// What it is routed by.
    #[command(flatten)]
    pub files: Files,

    /// Exchange it is published to; '' is the default exchange
    #[arg(short, long, value_name = "NAME")]
    pub exchange: String,

    /// Routing key
    #[arg(short, long, value_name = "KEY", default_value = "")]
    pub key: String,

    /// Its headers.
    #[command(flatten)]
    pub headers: HeaderArgs,

    /// The version of RabbitMQ that is asked about [default: 4.0 or newer]
    #[arg(long = "for", value_name = "VERSION", value_parser = version)]
    pub for_version: Option<String>,
}
