//! `mq dlq purge`: messages removed, once they are in a file and somebody said yes.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the person is asked, and the clock names a file"
)]

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::dlq_chosen::Chosen;
use super::dlq_guard::{Permit, may_take, ready_now};
use super::dlq_take::{Target, Wanted, take};
use super::session::Session;
use super::signals;
use crate::amqp::Frames;
use crate::cli::DlqPurgeArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output::{self, Existing, LineFile, Took, purge_json, purge_text, when};
use crate::topology::{QueueName, VhostName};

/// The longest part of a file's name that comes from the queue's, in bytes.
const NAME_PART: usize = 150;

pub(super) async fn run(args: &DlqPurgeArgs, session: &Session) -> anyhow::Result<Exit> {
    let queue = QueueName::of_existing(&args.queue)?;
    let chosen = Chosen::by(args.filter.as_deref())?;
    let vhost = session.vhost()?;
    if (args.backup.as_ref()).is_some_and(|path| path.as_os_str() == "-") {
        return Err(Error::new(
            ErrorKind::Usage,
            "a backup needs a file: what went to standard output is not known to be safe",
        )
        .hint("name it with --backup FILE (a file of that name is ./-), or give --no-backup")
        .into());
    }
    let is_whole = args.filter.is_none() && args.limit.is_none();
    if args.no_backup && is_whole {
        return Ok(purge_whole(args, session, vhost, &queue).await?);
    }
    let management = session.management()?;
    let permit = may_take(
        session,
        &management,
        vhost,
        &queue,
        "dlq purge",
        args.even_if_it_counts,
    )
    .await?;
    let connection = session.connect("mq dlq purge", Frames::Small).await?;
    let ready = ready_now(&connection, vhost, &queue).await;
    connection.close().await;
    let ready = ready?;
    confirm(args, &queue, ready)?;
    purge(args, session, vhost, &queue, chosen, &permit).await
}

async fn purge(
    args: &DlqPurgeArgs,
    session: &Session,
    vhost: &VhostName,
    queue: &QueueName,
    chosen: Chosen,
    permit: &Permit,
) -> anyhow::Result<Exit> {
    let mut target = if args.no_backup {
        Target::Nowhere
    } else {
        Target::File(match &args.backup {
            Some(path) => LineFile::open(path, Existing::Refuse)?,
            None => new_backup(queue)?,
        })
    };
    let wanted = Wanted {
        command: "mq dlq purge",
        vhost,
        queue,
        chosen,
        limit: args.limit,
        remove: true,
        looked: Arc::default(),
    };
    let mut signals = signals::listen()?;
    let (took, result) = take(wanted, permit, &mut target, session, &mut signals).await;
    let path = match &target {
        Target::File(file) => Some(file.path().to_owned()),
        Target::Nowhere | Target::StandardOutput => None,
    };
    if let Target::File(file) = target {
        file.discard_if_empty();
    }
    let path = path.filter(|_| took.written > 0);
    session.report(
        || purge_text(queue, &took, path.as_deref()),
        || purge_json(queue, &took, path.as_deref()),
    )?;
    result?;
    Ok(took.exit())
}

/// Without a look at any message: nothing is returned, so no limit counts.
async fn purge_whole(
    args: &DlqPurgeArgs,
    session: &Session,
    vhost: &VhostName,
    queue: &QueueName,
) -> Result<Exit> {
    let connection = session.connect("mq dlq purge", Frames::Small).await?;
    let purged = async {
        let ready = ready_now(&connection, vhost, queue).await?;
        confirm(args, queue, ready)?;
        connection.purge(queue).await
    }
    .await;
    connection.close().await;
    let purged = u64::from(purged?);
    let took = Took {
        looked_at: purged,
        removed: purged,
        ..Took::default()
    };
    session.report(
        || purge_text(queue, &took, None),
        || purge_json(queue, &took, None),
    )?;
    Ok(Exit::Done)
}

/// A yes on the command line, or the queue's name typed on a terminal.
fn confirm(args: &DlqPurgeArgs, queue: &QueueName, ready: u64) -> Result<()> {
    if args.yes {
        return Ok(());
    }
    let shown = output::one_line(queue.as_str(), 255);
    let count = match (ready, &args.filter, args.limit) {
        (_, Some(filter), _) => format!(
            "those of its {ready} messages that {} says yes to",
            output::one_line(filter, 100)
        ),
        (_, None, Some(limit)) => format!("{} messages", ready.min(limit)),
        (ready, None, None) => format!("{ready} messages"),
    };
    let what = format!("purge {count} of queue '{shown}'");
    if !std::io::stdin().is_terminal() {
        return Err(Error::new(
            ErrorKind::Blocked,
            format!("{what}: nobody said yes; nothing was removed"),
        )
        .hint("give --yes, or run it on a terminal"));
    }
    let kept = if args.no_backup {
        "no copy is kept"
    } else {
        "they are written to a file first"
    };
    output::talk(&format!(
        "mq: {what}; {kept}. Type the queue's name to go on:"
    ));
    let mut typed = String::new();
    let read = std::io::stdin().read_line(&mut typed);
    if read.is_ok() && typed.trim_end_matches(['\r', '\n']) == queue.as_str() {
        Ok(())
    } else {
        Err(Error::new(
            ErrorKind::Blocked,
            "that is not the queue's name; nothing was removed",
        )
        .hint("type it exactly, or give --yes"))
    }
}

/// A file that is named after the queue and the time.
pub(super) fn new_backup(queue: &QueueName) -> Result<LineFile> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = when(now.ok().map(|since| since.as_secs()));
    let name = format!("{}-{}", file_name(queue), now.replace([':', '-'], ""));
    let mut opened = LineFile::open(Path::new(&format!("{name}.jsonl")), Existing::Refuse);
    // Another purge in the same second.
    for number in 2..=9 {
        if !matches!(&opened, Err(error) if error.kind() == ErrorKind::Usage) {
            break;
        }
        opened = LineFile::open(
            Path::new(&format!("{name}-{number}.jsonl")),
            Existing::Refuse,
        );
    }
    opened
}

/// The queue's name as a part of a file's that no shell and no file system minds.
fn file_name(queue: &QueueName) -> String {
    let safe: String = queue
        .as_str()
        .chars()
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') => c,
            _ => '_',
        })
        .take(NAME_PART)
        .collect();
    if safe.starts_with(['.', '-']) {
        format!("_{safe}")
    } else {
        safe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_any_name_gets_a_file_of_a_harmless_one() {
        for (queue, file) in [
            ("orders.dlq", "orders.dlq"),
            ("../../etc/passwd", "_.._.._etc_passwd"),
            ("-rf", "_-rf"),
            ("a b\n\u{202e}é", "a_b___"),
        ] {
            assert_eq!(file_name(&QueueName::new(queue).expect("name")), file);
        }
        let long = QueueName::new("x".repeat(255)).expect("name");
        assert_eq!(file_name(&long).len(), NAME_PART);
    }
}
