//! `mq dlq check`: a build fails and a pager rings by its exit code.

mod gather;
mod head;

use std::time::Duration;

use super::dlq_queues::{names, now};
use super::session::Session;
use crate::cli::CheckArgs;
use crate::deadletter::{Limits, MaxRate, Verdict};
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::management::Management;
use crate::output::{
    self, CheckReport, Format, check_advice, check_json, check_lines_json, check_metrics,
    check_nagios, check_text, failed_check_metrics, failed_check_nagios,
};
use crate::topology::QueueName;

use gather::gather;

/// What has to be found out.
struct Wanted {
    /// Empty: every dead-letter queue.
    queues: Vec<QueueName>,
    all_vhosts: bool,
    limits: Limits,
    /// Whether first messages are to be looked at.
    looks: bool,
    /// Over how long it matters what comes in.
    window: Option<Duration>,
}

impl Wanted {
    fn new(args: &CheckArgs) -> Result<Self> {
        let queues = names(&args.queues)?;
        let limits = args.limits();
        let for_metrics = args.prometheus.is_some();
        let usual = for_metrics.then_some(Duration::from_mins(1));
        Ok(Self {
            queues,
            all_vhosts: args.all_vhosts,
            limits,
            looks: limits.age_seconds.is_some() || for_metrics,
            window: limits.rate.map(MaxRate::window).or(usual),
        })
    }
}

/// Takes what became of the session: whoever watches mq must also hear that there
/// is none.
pub(super) async fn run(args: &CheckArgs, session: Result<Session>) -> anyhow::Result<Exit> {
    if args.nagios && args.prints_metrics() {
        return Err(Error::new(
            ErrorKind::Usage,
            "--nagios and --prometheus - both want standard output",
        )
        .hint("write the metrics to a file: --prometheus FILE (a file of that name is ./-)")
        .into());
    }
    let checked = match &session {
        Ok(session) => check(args, session).await,
        Err(error) => Err(error.clone()),
    };
    let vhost = match &session {
        Ok(session) if !args.all_vhosts => session.vhost()?.to_string(),
        _ => String::new(),
    };
    match (checked, session) {
        (Ok(report), Ok(session)) => Ok(tell(args, &session, &vhost, &report)?),
        (Ok(_), Err(error)) | (Err(error), _) => Ok(fail(args, &vhost, error)?),
    }
}

async fn check(args: &CheckArgs, session: &Session) -> Result<CheckReport> {
    let wanted = Wanted::new(args)?;
    let management: Management = session.management()?;
    let gathered = gather(session, &management, &wanted).await?;
    let queues = gathered.readings.into_iter().map(|reading| {
        let verdict = Verdict::of(&reading, &wanted.limits);
        (reading, verdict)
    });
    Ok(CheckReport {
        queues: queues.collect(),
        incomplete: gathered.incomplete,
        limits: wanted.limits,
    })
}

fn tell(args: &CheckArgs, session: &Session, vhost: &str, report: &CheckReport) -> Result<Exit> {
    let written = metrics(args, &check_metrics(report, vhost, now()));
    if args.nagios {
        return match written {
            Ok(()) => {
                output::data(&check_nagios(report))?;
                Ok(exit(args, report))
            }
            Err(error) => unknown_to_nagios(&error),
        };
    }
    if !args.prints_metrics() {
        match session.format {
            Format::Table => output::data(&check_text(report, args.all_vhosts))?,
            Format::Json => output::data(&output::json_pretty(&check_json(report)))?,
            Format::JsonLines => {
                for line in check_lines_json(report) {
                    output::data(&output::json_line(&line))?;
                }
            }
        }
    }
    for line in check_advice(report) {
        output::talk(&line);
    }
    written?;
    Ok(exit(args, report))
}

fn exit(args: &CheckArgs, report: &CheckReport) -> Exit {
    match (args.nagios, report.is_over(), report.is_ok()) {
        // Nagios' CRITICAL is 2 and its UNKNOWN 3 (plugin guidelines).
        (true, true, _) => Exit::Blocked,
        (false, true, _) => Exit::No,
        (_, false, true) => Exit::Done,
        (_, false, false) => Exit::Partial,
    }
}

/// No check is no good news, and old news must not be taken for it.
fn fail(args: &CheckArgs, vhost: &str, error: Error) -> Result<Exit> {
    if let Err(unwritten) = metrics(args, &failed_check_metrics(vhost, now())) {
        output::talk(&format!(
            "mq: {}",
            output::printable(&unwritten.to_string())
        ));
    }
    if args.nagios {
        return unknown_to_nagios(&error);
    }
    Err(error)
}

fn unknown_to_nagios(error: &Error) -> Result<Exit> {
    output::data(&failed_check_nagios(error))?;
    Ok(Exit::Partial)
}

fn metrics(args: &CheckArgs, text: &str) -> Result<()> {
    match &args.prometheus {
        None => Ok(()),
        Some(_) if args.prints_metrics() => output::data(text.trim_end()),
        Some(path) => output::replace_file(path, text),
    }
}
