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
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::error::{Error, ErrorKind, Result};
use crate::handler::environment::variables;
use crate::handler::exit_status::{end_of, outcome};
use crate::handler::metadata::OPTIONAL;
use crate::handler::{Job, told};
use crate::retry::{Attempt, Outcome, Trace};

/// Between SIGTERM and SIGKILL for a child that must end.
const KILL_GRACE: Duration = Duration::from_secs(3);

/// How long its standard error is read after a child ended: a grandchild may
/// hold the pipe open for ever.
const STDERR_GRACE: Duration = Duration::from_millis(200);

/// How much of standard error is kept for the reason of a failure, in bytes.
const KEPT_STDERR: usize = 4096;

/// A program to run for each message.
#[derive(Clone, Debug)]
pub struct Exec {
    program: PathBuf,
    arguments: Vec<OsString>,
    limit: Duration,
}

impl Exec {
    /// Finds the program (a path, or a name in `search_path`) before the first
    /// message is taken. `limit` is the longest one attempt may take.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when it is not there or cannot be executed.
    pub fn find(
        command: &[OsString],
        search_path: Option<OsString>,
        limit: Duration,
    ) -> Result<Self> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(
                Error::new(ErrorKind::Usage, "--exec needs a program").hint("--exec PROGRAM ARG…")
            );
        };
        let named = Path::new(program);
        let candidates: Vec<PathBuf> = if named.components().count() > 1 {
            vec![named.to_path_buf()]
        } else {
            let path = search_path.unwrap_or_default();
            std::env::split_paths(&path)
                .map(|folder| folder.join(named))
                .collect()
        };
        let mut found = candidates.into_iter().filter(|path| path.is_file());
        match found.find(|path| is_executable(path)) {
            Some(program) => Ok(Self {
                program,
                arguments: arguments.to_vec(),
                limit,
            }),
            None => Err(Error::new(
                ErrorKind::Unavailable,
                format!(
                    "the handler '{}' cannot be started: no such program, or not executable",
                    named.display()
                ),
            )
            .hint("check its path and `chmod +x` it; no message was taken")),
        }
    }

    /// Runs one attempt to its end. Once `kill` turns true the child is ended
    /// and the outcome is [`Outcome::Interrupted`].
    pub(super) async fn run(&self, job: Job, kill: watch::Receiver<bool>) -> Attempt {
        match self.start(&job) {
            Ok(child) => self.attend(child, &job, kill).await,
            Err(error) => Attempt::bare(Outcome::CannotStart {
                why: format!("cannot start {}: {error}", self.program.display()),
            }),
        }
    }

    fn start(&self, job: &Job) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        // A worker within a handler must not see the outer message's.
        for name in OPTIONAL {
            command.env_remove(name);
        }
        command
            .args(&self.arguments)
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
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        let stdin = child.stdin.take();
        let body = Arc::clone(&job.delivery);
        let feeding = tokio::spawn(async move {
            if let Some(mut stdin) = stdin {
                // A child may ignore its input or close it early; its exit code decides.
                let _ = stdin.write_all(&body.body).await;
            }
        });
        let said = Arc::new(Mutex::new(Vec::new()));
        let mut listening = tokio::spawn(listen(child.stderr.take(), Arc::clone(&said)));
        let ended = tokio::select! {
            status = child.wait() => Ended::ByItself(status),
            () = sleep(self.limit) => Ended::TimedOut,
            () = told(&mut kill) => Ended::Interrupted,
        };
        if !matches!(ended, Ended::ByItself(_)) {
            end(&mut child, group).await;
        }
        feeding.abort();
        if timeout(STDERR_GRACE, &mut listening).await.is_err() {
            listening.abort();
        }
        let said = {
            let kept = said.lock().unwrap_or_else(PoisonError::into_inner);
            String::from_utf8_lossy(&kept).trim_end().to_owned()
        };
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

/// SIGTERM to the child and its own children, then SIGKILL.
async fn end(child: &mut Child, group: Option<Pid>) {
    let signal = |signal| {
        if let Some(group) = group {
            // Fails only when nobody is left in the group.
            let _ = kill_process_group(group, signal);
        }
    };
    signal(Signal::TERM);
    if timeout(KILL_GRACE, child.wait()).await.is_err() {
        signal(Signal::KILL);
        let _ = child.wait().await;
    }
    signal(Signal::KILL);
}

/// Passes standard error on and keeps its end.
async fn listen(stderr: Option<ChildStderr>, kept: Arc<Mutex<Vec<u8>>>) {
    let Some(mut stderr) = stderr else { return };
    let mut chunk = vec![0; 8192];
    while let Ok(read) = stderr.read(&mut chunk).await {
        let Some(new) = chunk.get(..read).filter(|new| !new.is_empty()) else {
            break;
        };
        crate::output::pass_to_stderr(new);
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(new);
        if kept.len() > KEPT_STDERR {
            let surplus = kept.len() - KEPT_STDERR;
            kept.drain(..surplus);
        }
    }
}

fn last_line(said: &str) -> Option<&str> {
    said.lines().map(str::trim).rfind(|line| !line.is_empty())
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
