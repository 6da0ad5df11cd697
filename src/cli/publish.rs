//! `mq publish`.

use std::time::Duration;

use clap::{ArgGroup, Args};

use crate::cli::global::duration;
use crate::cli::headers::HeaderArgs;
use crate::cli::publish_added::AddedArgs;
use crate::cli::publish_bulk::BulkArgs;
use crate::cli::publish_waits::WaitArgs;

/// Publish a message, or many; done only when confirmed and in a queue.
///
/// Every message is sent persistent, mandatory and with publisher confirms. A
/// broker also confirms what no queue takes, so a confirm alone is not enough:
/// exit code 0 means confirmed *and* routed, and of many all of them.
#[derive(Clone, Debug, Args)]
#[command(
    group = ArgGroup::new("target").required(true).multiple(true).args(["exchange", "queue", "jsonl"]),
    after_long_help = "Examples:
  mq publish -e orders.exchange -k order.created '{\"order_id\":1001}'
  mq publish -q orders.queue @order.json --content-type application/json
  gzip -c big.json | mq publish -e logs -k all --content-encoding gzip
  mq publish --jsonl dead.jsonl
  mq publish --jsonl dead.jsonl -q orders
  seq 1000 | mq publish -q numbers --lines - --results results.jsonl
  mq publish -q orders --repeat 100000 --template '{\"id\":{{seq}},\"at\":\"{{now}}\"}'
  mq publish -e orders -k order.created '{}' --dry-run
  mq publish -e orders --jsonl orders.jsonl --schema order.json --dry-run
  mq publish -e orders -k order.created @order.json --guess-content-type --ce-type order.created --ce-source /shop
  mq publish -q orders --lines big.txt --generate-message-id --retry-refused 10m

Exit codes:
  0 confirmed and routed
  3 of many, some reached no queue, or it was stopped by a signal
  67 reached no queue
  75 refused (nack), no confirm in time, or the broker blocked publishers for too long
  65 no such exchange, the message is too large or does not fit its schema, or a line that\n    cannot be read
  77 permission refused
  69 broker unavailable"
)]
pub struct PublishArgs {
    /// The body: text, @FILE for a file's bytes, or - for standard input
    ///
    /// Left out, the body is read from standard input. For a text that begins
    /// with @ use standard input.
    #[arg(value_name = "BODY")]
    pub body: Option<String>,

    /// Exchange to publish to
    #[arg(short, long, value_name = "NAME", conflicts_with = "queue")]
    pub exchange: Option<String>,

    /// Routing key
    #[arg(short, long, value_name = "KEY", conflicts_with = "queue")]
    pub key: Option<String>,

    /// Queue to publish to, through the default exchange
    #[arg(short, long, value_name = "NAME")]
    pub queue: Option<String>,

    /// Many messages.
    #[command(flatten)]
    pub bulk: BulkArgs,

    /// What is added.
    #[command(flatten)]
    pub added: AddedArgs,

    /// Its headers.
    #[command(flatten)]
    pub headers: HeaderArgs,

    /// MIME type of the body
    #[arg(long, value_name = "TYPE", help_heading = "Properties")]
    pub content_type: Option<String>,

    /// MIME encoding of the body
    #[arg(long, value_name = "ENCODING", help_heading = "Properties")]
    pub content_encoding: Option<String>,

    /// Application message id
    #[arg(long, value_name = "ID", help_heading = "Properties")]
    pub message_id: Option<String>,

    /// Application correlation id
    #[arg(long, value_name = "ID", help_heading = "Properties")]
    pub correlation_id: Option<String>,

    /// Where an answer goes
    #[arg(long, value_name = "QUEUE", help_heading = "Properties")]
    pub reply_to: Option<String>,

    /// The `type` property
    #[arg(long = "type", value_name = "TYPE", help_heading = "Properties")]
    pub kind: Option<String>,

    /// The publishing application
    #[arg(long, value_name = "NAME", help_heading = "Properties")]
    pub app_id: Option<String>,

    /// The publishing user; the broker refuses any but the one logged in
    #[arg(long, value_name = "USER", help_heading = "Properties")]
    pub user_id: Option<String>,

    /// Seconds since 1970
    #[arg(long, value_name = "SECONDS", help_heading = "Properties")]
    pub timestamp: Option<u64>,

    /// Priority, 0 to 255
    #[arg(long, value_name = "N", help_heading = "Properties")]
    pub priority: Option<u8>,

    /// Time to live of the message, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "Properties")]
    pub expiration: Option<Duration>,

    /// Send it transient: a classic queue may lose it at a broker restart
    #[arg(long, help_heading = "Properties")]
    pub transient: bool,

    /// How long it waits for the broker.
    #[command(flatten)]
    pub waits: WaitArgs,

    /// Show what would be sent, a line of JSON for each message as --jsonl reads
    /// it, and connect to no broker
    #[arg(long, conflicts_with_all = ["results", "rate"])]
    pub dry_run: bool,
}
