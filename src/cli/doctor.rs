//! `mq doctor`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::files::report_file;
use crate::doctor::CHECKS;

/// Check a broker before a release: clients, dead-letter paths, nodes.
///
/// Reads the live broker through the management API and judges fourteen points,
/// each with a code (MQD01 to MQD14), as pass, warn, fail or unknown, with what
/// was read and what to do. Nothing is changed. What cannot be read, or is not
/// counted yet, is unknown and no pass: statistics come up to ten seconds late.
/// It takes a user with the tag monitoring to see other clients and the nodes.
/// The first message of a dead-letter queue is looked at to tell its age, where
/// nobody consumes it and a look costs nothing.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq doctor
  mq doctor --all-vhosts --check --junit doctor.xml
  mq doctor --check --strict --skip MQD11 --skip MQD14
  mq doctor --output json | jq '.checks[] | select(.status != \"pass\")'

Exit codes:
  0 shown; with --check: nothing failed
  1 with --check: something failed (with --strict: or warned)
  3 with --check: nothing failed, but something could not be judged
  69 management API not reachable
  77 login or permission refused")]
pub struct DoctorArgs {
    /// In every vhost that the user may know of, whatever --vhost says
    #[arg(long)]
    pub all_vhosts: bool,

    /// Tell the result by the exit code
    #[arg(long)]
    pub check: bool,

    /// Take a warning for a failure
    #[arg(long, requires = "check")]
    pub strict: bool,

    /// Leave this check out, such as MQD11; may be repeated
    #[arg(long, value_name = "CODE", value_parser = code)]
    pub skip: Vec<String>,

    /// Also write the result as JUnit XML
    #[arg(long, value_name = "FILE", value_parser = report_file)]
    pub junit: Option<PathBuf>,
}

fn code(text: &str) -> Result<String, String> {
    let wanted = text.to_uppercase();
    let found = CHECKS.iter().find(|rule| rule.code == wanted);
    found.map(|rule| rule.code.to_owned()).ok_or_else(|| {
        let codes: Vec<&str> = CHECKS.iter().map(|rule| rule.code).collect();
        format!("the checks are {}", codes.join(", "))
    })
}
