//! Long-lived programs that work one message after another over a line protocol.
//!
//! Each has a process group of its own, as a program for one message has. What
//! it says on standard output are its answers; its standard error goes to ours.
//! A child that did not answer as it must is ended and replaced: which message
//! it would answer next, nobody knows.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where attempts are timed"
)]

mod child;
mod pool;
mod protocol;
mod silence;

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::error::Result;
use crate::handler::exit_status::end_of;
use crate::handler::listener::{PIPE_GRACE, last_line};
use crate::handler::program::Program;
use crate::handler::{Job, told};
use crate::retry::{Attempt, Outcome, Trace};
use child::{End, Reply, StreamChild};
use pool::Pool;
use protocol::{Answer, quote};
use silence::TOO_MANY;

/// A program that works messages as long as it runs. Clones share its processes.
#[derive(Clone, Debug)]
pub struct ExecStream {
    program: Arc<Program>,
    limit: Duration,
    pool: Arc<Pool>,
}

impl ExecStream {
    /// Finds the program (a path, or a name in `search_path`) before the first
    /// message is taken. `limit` is the longest one attempt may take.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Unavailable`] when it is not there or cannot be executed.
    pub fn find(
        command: &[OsString],
        search_path: Option<OsString>,
        limit: Duration,
    ) -> Result<Self> {
        Ok(Self {
            program: Arc::new(Program::find("--exec-stream", command, search_path)?),
            limit,
            pool: Arc::default(),
        })
    }

    /// Runs one attempt to its end with an idle child, or with a new one. Once
    /// `kill` turns true the child is ended and the outcome is
    /// [`Outcome::Interrupted`].
    pub(super) async fn run(&self, job: Job, mut kill: watch::Receiver<bool>) -> Attempt {
        let limit = sleep(self.limit);
        tokio::pin!(limit);
        loop {
            if *kill.borrow() {
                return Attempt::bare(Outcome::Interrupted);
            }
            let mut child = match self.pool.take().await {
                Some(child) => child,
                None => match StreamChild::start(&self.program, &job) {
                    Ok(child) => child,
                    Err(error) => return self.cannot_start(&error),
                },
            };
            let id = self.pool.next_id();
            let ended = tokio::select! {
                biased;
                reply = child.ask(id, &job) => Ended::Replied(reply),
                () = told(&mut kill) => Ended::Interrupted,
                () = &mut limit => Ended::TimedOut,
            };
            return match ended {
                Ended::Replied(Reply::Answer(answer)) => self.answered(child, answer),
                Ended::Replied(Reply::NotTaken) if !child.is_fresh() => {
                    tracing::info!("an idle handler process ended; another takes its place");
                    child.finish(Duration::ZERO).await;
                    continue;
                }
                ended => self.without_answer(child, ended, &job).await,
            };
        }
    }

    /// Closes the input of every child and lets it end; ends those that do not.
    pub(super) async fn close(&self) {
        self.pool.close().await;
    }

    fn cannot_start(&self, error: &std::io::Error) -> Attempt {
        Attempt::bare(Outcome::CannotStart {
            why: format!("cannot start {}: {error}", self.program.path.display()),
        })
    }

    fn answered(&self, child: StreamChild, answer: Answer) -> Attempt {
        let Answer {
            word,
            outcome,
            result,
        } = answer;
        let trace = if outcome == Outcome::Done {
            Trace::default()
        } else {
            Trace {
                end: Some(word.to_owned()),
                stderr: Some(child.said()).filter(|said| !said.is_empty()),
            }
        };
        self.pool.answered(child);
        Attempt {
            outcome,
            result,
            trace,
        }
    }

    async fn without_answer(&self, child: StreamChild, ended: Ended, job: &Job) -> Attempt {
        let is_fresh = child.is_fresh();
        let patience = match ended {
            Ended::Replied(Reply::Ended | Reply::NotTaken) => PIPE_GRACE,
            _ => Duration::ZERO,
        };
        let end = child.finish(patience).await;
        let timed_out = matches!(ended, Ended::TimedOut);
        let (why, word) = match ended {
            Ended::Interrupted => return Attempt::bare(Outcome::Interrupted),
            Ended::TimedOut => {
                let limit = humantime::format_duration(self.limit);
                let unfinished = unfinished(&end);
                let why = format!("no answer within {limit}; ended{unfinished}");
                (why, "timeout".to_owned())
            }
            Ended::Replied(Reply::NotUnderstood { why }) => (why, "wrong answer".to_owned()),
            Ended::Replied(_) => why_it_ended(&end),
        };
        // A program that listens and never speaks is a bad deploy as well; once
        // any has spoken, it is the message that takes too long.
        let counts = is_fresh && (!timed_out || self.pool.is_silent());
        let outcome = if counts && self.pool.unanswered(look(job), job.attempt) {
            let why = format!(
                "no answer from a fresh handler process to {TOO_MANY} messages in a row; the last: {why}"
            );
            Outcome::CannotStart { why }
        } else {
            Outcome::Failed { why, wait: None }
        };
        Attempt {
            outcome,
            result: None,
            trace: Trace {
                end: Some(word),
                stderr: Some(end.stderr).filter(|said| !said.is_empty()),
            },
        }
    }
}

enum Ended {
    Replied(Reply),
    TimedOut,
    Interrupted,
}

/// Why there is no answer of a child that ended, and its end in a word or two.
fn why_it_ended(end: &End) -> (String, String) {
    let word = match end.status {
        Some(status) if end.by_itself => end_of(status),
        _ => "closed its standard input or output".to_owned(),
    };
    let said = last_line(&end.stderr).map_or_else(String::new, |said| format!(": {said}"));
    let why = format!("{word} without an answer{said}{}", unfinished(end));
    (why, word)
}

/// What was said without a line end, which is no answer.
fn unfinished(end: &End) -> String {
    if end.unfinished.trim_ascii().is_empty() {
        return String::new();
    }
    format!("; it said '{}' without a line end", quote(&end.unfinished))
}

/// Tells messages apart, the same on every attempt.
fn look(job: &Job) -> u64 {
    let mut hasher = DefaultHasher::new();
    match &job.delivery.properties.message_id {
        Some(id) if !id.is_empty() => id.hash(&mut hasher),
        _ => job.delivery.body.hash(&mut hasher),
    }
    hasher.finish()
}
