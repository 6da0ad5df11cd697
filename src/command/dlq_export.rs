//! `mq dlq export`: messages to lines of JSON, with or without taking them out.

use std::path::Path;
use std::sync::Arc;

use super::dlq_chosen::Chosen;
use super::dlq_guard::may_take;
use super::dlq_take::{Target, Wanted, take};
use super::session::Session;
use super::signals;
use crate::cli::DlqExportArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output::{self, Existing, Format, LineFile, export_json, export_text};
use crate::topology::QueueName;

pub(super) async fn run(args: &DlqExportArgs, session: &Session) -> anyhow::Result<Exit> {
    let queue = QueueName::of_existing(&args.queue)?;
    let chosen = Chosen::by(args.filter.as_deref())?;
    let vhost = session.vhost()?;
    must_be_a_file(args)?;
    let management = session.management()?;
    let permit = may_take(
        session,
        &management,
        vhost,
        &queue,
        "dlq export",
        args.even_if_it_counts,
    )
    .await?;
    let mut target = open(args)?;
    let wanted = Wanted {
        command: "mq dlq export",
        vhost,
        queue: &queue,
        chosen,
        limit: args.limit,
        remove: args.remove,
        looked: Arc::default(),
    };
    let mut signals = signals::listen()?;
    let (took, result) = take(wanted, &permit, &mut target, session, &mut signals).await;
    let result = result.and_then(|()| match &mut target {
        Target::File(file) if file.can_be_safe() => file.sync(),
        Target::File(file) => file.write(),
        Target::Nowhere | Target::StandardOutput => Ok(()),
    });
    let path = match &target {
        Target::File(file) => Some(file.path()),
        Target::Nowhere | Target::StandardOutput => None,
    };
    let reader_left = matches!(&result, Err(error) if error.kind() == ErrorKind::ReaderGone);
    if !reader_left {
        match (path, session.format) {
            (Some(path), Format::Json | Format::JsonLines) => {
                session.report(String::new, || export_json(&queue, &took, Some(path)))?;
            }
            _ => session.warn(|| export_text(&queue, &took, path)),
        }
    }
    result?;
    Ok(took.exit())
}

fn must_be_a_file(args: &DlqExportArgs) -> Result<()> {
    if !is_standard_output(&args.to) {
        return Ok(());
    }
    let why = if args.remove {
        "--remove needs a file: what went to standard output is not known to be safe"
    } else if args.append {
        "--append needs a file"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Usage, why).hint("name it with --to FILE"))
}

fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn open(args: &DlqExportArgs) -> Result<Target> {
    if is_standard_output(&args.to) {
        return Ok(Target::StandardOutput);
    }
    let existing = if args.append {
        Existing::Append
    } else {
        Existing::Refuse
    };
    let file = LineFile::open(&args.to, existing).map_err(|error| match error.kind() {
        ErrorKind::Usage => {
            error.hint("name another file, or add to this one with --append; - is standard output")
        }
        _ => error,
    })?;
    if args.remove && !file.can_be_safe() {
        return Err(Error::new(
            ErrorKind::Usage,
            format!(
                "{} is no file on a disk: with --remove nothing could be said to be safe in it",
                output::printable(&args.to.display().to_string())
            ),
        )
        .hint("name a file with --to FILE"));
    }
    Ok(Target::File(file))
}
