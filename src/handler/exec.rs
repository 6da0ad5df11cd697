//! One program per message: body on standard input, the rest in `MQ_*`.
//!
//! The child has a process group of its own, so that Ctrl-C in a terminal
//! drains the worker instead of killing what it is working on, and so that a
//! timeout ends the child's own children too. Its standard output and error
//! both go to our standard error: our standard output is for mq's own data.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where child processes are started, timed and ended"
)]

use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::error::Result;
use crate::handler::environment::{OPTIONAL, variables};
use crate::handler::exit_status::{end_of, outcome};
use crate::handler::process_group::ProcessGroup;
use crate::handler::program::Program;
use crate::handler::stderr::{Listener, last_line};
use crate::handler::{Job, told};
use crate::retry::{Attempt, Outcome, Trace};

/// A program to run for each message.
#[derive(Clone, Debug)]
pub struct Exec {
    program: Program,
    limit: Duration,
}

impl Exec {
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
            program: Program::find("--exec", command, search_path)?,
            limit,
        })
    }

    /// Runs one attempt to its end. Once `kill` turns true the child is ended
    /// and the outcome is [`Outcome::Interrupted`].
    pub(super) async fn run(&self, job: Job, kill: watch::Receiver<bool>) -> Attempt {
        match self.start(&job) {
            Ok(child) => self.attend(child, &job, kill).await,
            Err(error) => Attempt::bare(Outcome::CannotStart {
                why: format!("cannot start {}: {error}", self.program.path.display()),
            }),
        }
    }

    fn start(&self, job: &Job) -> io::Result<Child> {
        let mut command = Command::new(&self.program.path);
        for name in OPTIONAL {
            command.env_remove(name);
        }
        command
            .args(&self.program.arguments)
            .envs(variables(job))
            .stdin(Stdio::piped())
            .stdout(Stdio::from(io::stderr()))
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }

    async fn attend(
        &self,
        mut child: Child,
        job: &Job,
        mut kill: watch::Receiver<bool>,
    ) -> Attempt {
        let group = ProcessGroup::of(&child);
        let stdin = child.stdin.take();
        let body = Arc::clone(&job.delivery);
        let feeding = tokio::spawn(async move {
            if let Some(mut stdin) = stdin {
                // A child may ignore its input or close it early; its exit code decides.
                let _ = stdin.write_all(&body.body).await;
            }
        });
        let mut listener = Listener::start(child.stderr.take());
        let ended = tokio::select! {
            status = child.wait() => Ended::ByItself(status),
            () = sleep(self.limit) => Ended::TimedOut,
            () = told(&mut kill) => Ended::Interrupted,
        };
        if !matches!(ended, Ended::ByItself(_)) {
            group.end(&mut child).await;
        }
        feeding.abort();
        let said = listener.finish().await;
        let last = last_line(&said);
        let (outcome, end) = match ended {
            Ended::ByItself(Ok(status)) => (outcome(status, last), Some(end_of(status))),
            Ended::ByItself(Err(error)) => {
                let why = format!("its status cannot be read: {error}");
                (Outcome::Failed { why, wait: None }, None)
            }
            Ended::TimedOut => {
                let limit = humantime::format_duration(self.limit);
                let why = format!("not done within {limit}; ended");
                (
                    Outcome::Failed { why, wait: None },
                    Some("timeout".to_owned()),
                )
            }
            Ended::Interrupted => (Outcome::Interrupted, None),
        };
        Attempt {
            outcome,
            result: None,
            trace: Trace {
                end,
                stderr: Some(said).filter(|said| !said.is_empty()),
            },
        }
    }
}

enum Ended {
    ByItself(io::Result<std::process::ExitStatus>),
    TimedOut,
    Interrupted,
}
