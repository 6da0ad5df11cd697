//! `mq topology test`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::files::{Files, report_file};
use crate::cli::version::version;

/// Run the `tests:` of the files: does each message go where it should?
///
/// Without --live no broker is asked: mq simulates the routing, the deaths and
/// the wait queues itself.
///
/// With --live the files are declared in a temporary vhost (mq-test-…) and every
/// test is done there for real: its message is published, rejected, left to
/// expire, pushed out of a full queue or returned until the delivery limit. The
/// vhost is deleted at the end, whatever happens; it takes a user tagged
/// administrator. So that a test takes seconds, in the temporary vhost a message
/// TTL over 300ms is 300ms in wait queues, a delivery limit or a length limit over
/// 5 is 5, delayed retries are held back 10ms, and neither `expires` nor
/// `single_active_consumer` is in force. Where the broker's answer is another one
/// than the simulation's, the test fails and both are shown.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq topology test topologies/
  mq topology test topologies/ --junit report.xml
  mq topology test topologies/orders.yaml --live

Exit codes:
  0 all tests pass
  1 a test fails
  2 with --live: the files ask for what only a newer broker does
  3 with --live: the temporary vhost could not be deleted
  65 a file is wrong, or the files hold no tests
  66 a file is missing
  69 broker or management API unavailable
  75 with --live: the broker blocks publishers, or does not answer in time
  77 login or permission refused
  128+n with --live: stopped by signal n; the temporary vhost was deleted")]
pub struct TestArgs {
    /// What is tested.
    #[command(flatten)]
    pub files: Files,

    /// Prove it on the broker, in a temporary vhost
    #[arg(long)]
    pub live: bool,

    /// Write the results to this file, as JUnit XML
    #[arg(long, value_name = "PATH", value_parser = report_file)]
    pub junit: Option<PathBuf>,

    /// The version of RabbitMQ that is simulated [default: 4.0 or newer]
    #[arg(long = "for", value_name = "VERSION", value_parser = version, conflicts_with = "live")]
    pub for_version: Option<String>,
}
