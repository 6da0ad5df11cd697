//! What is done with messages, as the commands of these names do it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinError;

use super::ask::{in_vhost, trouble, trouble_of};
use crate::browse::{Doing, Job, Outcome};
use crate::command::dlq_chosen::Chosen;
use crate::command::dlq_guard::may_take;
use crate::command::dlq_purge::new_backup;
use crate::command::dlq_replay::{Repair, ReplayOrder, replay};
use crate::command::dlq_take::{Target, Wanted, take};
use crate::command::session::Session;
use crate::deadletter::{Marked, ReplayTo, Stay};
use crate::error::{Error, ErrorKind, Result};
use crate::output::{Existing, LineFile, Took, export_text, purge_text, replay_text};
use crate::topology::{QueueName, VhostName};

/// As `mq dlq replay` has them where nothing is said.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_REPLAYS: u64 = 3;

/// Carries the job out; `stop` ends it in order.
pub(super) async fn run(
    job: Job,
    session: &Session,
    stop: UnboundedReceiver<u8>,
    looked: Arc<AtomicU64>,
) -> Outcome {
    let (session, vhost, queue) = match in_vhost(session, &job.vhost, &job.queue) {
        Ok(names) => names,
        Err(error) => {
            return Outcome {
                text: String::new(),
                count: 0,
                trouble: Some(trouble(&error)),
            };
        }
    };
    let mut work = Work {
        session: &session,
        vhost: &vhost,
        queue: &queue,
        stop,
        looked,
    };
    let done = match job.doing {
        Doing::Preview(to) => work.replay(to, job.marked, true).await,
        Doing::Replay(to) => work.replay(to, job.marked, false).await,
        Doing::Export(name) => work.export(&name, job.marked).await,
        Doing::Purge => work.purge(job.marked).await,
    };
    done.unwrap_or_else(|error| Outcome {
        text: String::new(),
        count: 0,
        trouble: Some(trouble_of(vhost.as_str(), queue.as_str(), &error)),
    })
}

/// A file of this name; on a screen there is no way but another name.
fn new_file(name: &str) -> Result<LineFile> {
    LineFile::open(Path::new(name), Existing::Refuse).map_err(|error| match error.kind() {
        ErrorKind::Usage => error.hint("say another name, or none"),
        _ => error,
    })
}

/// What is known of a job that ended by a bug.
pub(super) fn broken(error: &JoinError) -> Outcome {
    let error = Error::new(ErrorKind::Internal, format!("this is a bug in mq: {error}"))
        .hint("messages under way may be in both places, all others are where they were");
    Outcome {
        text: String::new(),
        count: 0,
        trouble: Some(trouble(&error)),
    }
}

struct Work<'a> {
    session: &'a Session,
    vhost: &'a VhostName,
    queue: &'a QueueName,
    stop: UnboundedReceiver<u8>,
    looked: Arc<AtomicU64>,
}

impl Work<'_> {
    async fn replay(&mut self, to: ReplayTo, marked: Marked, dry_run: bool) -> Result<Outcome> {
        let marked_count = marked.count();
        let order = ReplayOrder {
            vhost: self.vhost.clone(),
            queue: self.queue.clone(),
            to,
            chosen: Chosen::Marked(marked),
            repair: Repair::None,
            person: None,
            dry_run,
            limit: None,
            rate: None,
            max_replays: MAX_REPLAYS,
            restore_expiration: false,
            confirm_timeout: CONFIRM_TIMEOUT,
            even_if_it_counts: false,
            looked: Arc::clone(&self.looked),
        };
        let replayed = replay(order, self.session, &mut self.stop).await?;
        let back = |queue: &QueueName| replayed.comes_back(queue);
        let mut text = replay_text(self.queue, &replayed.report, dry_run, &back);
        if let Ok(Some(_)) = replayed.ended {
            text.push_str("\nstopped at once");
        }
        let report = &replayed.report;
        let passed = report.stays.get(Stay::Unmarked.word());
        let met = report.moved + report.open + report.stay_count()
            - passed.map_or(0, |(count, _)| *count);
        if replayed.ended.is_ok() && !report.interrupted {
            text.push_str(&gone(marked_count.saturating_sub(met)));
        }
        Ok(Outcome {
            text,
            count: replayed.report.moved,
            trouble: replayed.ended.err().map(|error| trouble(&error)),
        })
    }

    async fn export(&mut self, name: &str, marked: Marked) -> Result<Outcome> {
        let file = if name.is_empty() {
            new_backup(self.queue)?
        } else {
            new_file(name)?
        };
        let (file, took, result, missing) = self.take("dlq export", file, marked, false).await?;
        let text = export_text(self.queue, &took, Some(&file));
        Ok(outcome(text, took.written, result, missing))
    }

    async fn purge(&mut self, marked: Marked) -> Result<Outcome> {
        let file = new_backup(self.queue)?;
        let (file, took, result, missing) = self.take("dlq purge", file, marked, true).await?;
        let path = (took.written > 0).then_some(file.as_path());
        let text = purge_text(self.queue, &took, path);
        Ok(outcome(text, took.removed, result, missing))
    }

    /// Writes the marked messages to the file, which goes again if it stays empty.
    async fn take(
        &mut self,
        command: &'static str,
        file: LineFile,
        marked: Marked,
        remove: bool,
    ) -> Result<(PathBuf, Took, Result<()>, u64)> {
        let count = marked.count();
        let path = file.path().to_owned();
        let mut target = Target::File(file);
        let management = self.session.management()?;
        let may = may_take(
            self.session,
            &management,
            self.vhost,
            self.queue,
            command,
            false,
        );
        let (took, result) = match may.await {
            Err(error) => (Took::default(), Err(error)),
            Ok(permit) => {
                let wanted = Wanted {
                    command: "mq dlq browse",
                    vhost: self.vhost,
                    queue: self.queue,
                    chosen: Chosen::Marked(marked),
                    limit: None,
                    remove,
                    looked: Arc::clone(&self.looked),
                };
                take(wanted, &permit, &mut target, self.session, &mut self.stop).await
            }
        };
        let mut result = result;
        if let Target::File(mut file) = target {
            if result.is_ok() {
                result = file.sync();
            }
            if took.written == 0 {
                file.discard_if_empty();
            }
        }
        let missing = match took.stopped_by {
            None => count.saturating_sub(took.written + took.unwritable),
            Some(_) => 0,
        };
        Ok((path, took, result, missing))
    }
}

/// What is to be said of marked messages that were not met.
fn gone(count: u64) -> String {
    match count {
        0 => String::new(),
        1 => "\n1 is not in the queue any more".to_owned(),
        count => format!("\n{count} are not in the queue any more"),
    }
}

/// What was done; where that is nothing, why is enough.
fn outcome(text: String, count: u64, result: Result<()>, missing: u64) -> Outcome {
    Outcome {
        text: match (&result, count) {
            (Err(_), 0) => String::new(),
            (Ok(()), _) => format!("{text}{}", gone(missing)),
            (Err(_), _) => text,
        },
        count,
        trouble: result.err().map(|error| trouble(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_asks_for_another_name() {
        for (name, kind, way_out) in [
            (".", ErrorKind::Usage, Some("say another name, or none")),
            ("/", ErrorKind::Usage, Some("say another name, or none")),
            ("/nowhere/to/be/found", ErrorKind::InputOutput, None),
        ] {
            let error = new_file(name).expect_err(name);
            assert_eq!(error.kind(), kind, "{name}");
            if way_out.is_some() {
                assert_eq!(error.way_out(), way_out, "{name}");
            }
            assert!(!error.to_string().contains("--append"), "{error}");
        }
    }
}
