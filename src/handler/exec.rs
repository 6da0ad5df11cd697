//! One program per message: body on standard input, the rest in `MQ_*`.
//!
//! The child has a process group of its own, so that Ctrl-C in a terminal
//! drains the worker instead of killing what it is working on, and so that a
//! timeout ends the child's own children too. What it says goes to our standard
//! error, each line with its message's id: our standard output is for mq's own
//! data. Where results are wanted its standard output is the result.
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
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::error::{Error, ErrorKind, Result};
use crate::handler::environment::variables;
use crate::handler::exit_status::{end_of, outcome};
use crate::handler::folder::{self, Folder};
use crate::handler::metadata::{OPTIONAL, headers_json};
use crate::handler::retry_after;
use crate::handler::{Job, told};
use crate::printable::one_line;
use crate::retry::{Attempt, HandlerResult, Outcome, Trace};

/// Between SIGTERM and SIGKILL for a child that must end.
const KILL_GRACE: Duration = Duration::from_secs(3);

/// How long its pipes are read after a child ended: a grandchild may
/// hold the pipe open for ever.
const PIPE_GRACE: Duration = Duration::from_millis(200);

/// How much of standard error is kept for the reason of a failure, in bytes.
const KEPT_STDERR: usize = 4096;

/// A longer line is passed on in pieces, in bytes.
const LONGEST_LINE: usize = 8192;

/// The largest result, in bytes: the largest message that brokers take since 4.0.
const MAX_RESULT: u64 = 16 * 1024 * 1024;

/// More than any delay needs, in bytes.
const MAX_RETRY_AFTER: u64 = 64;

/// A program to run for each message.
#[derive(Clone, Debug)]
pub struct Exec {
    program: PathBuf,
    arguments: Vec<OsString>,
    limit: Duration,
    folder: Arc<Folder>,
}

impl Exec {
    /// Finds the program (a path, or a name in `search_path`) before the first
    /// message is taken. `limit` is the longest one attempt may take.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when it is not there or cannot be executed,
    /// [`ErrorKind::InputOutput`] when there is no place for temporary files.
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
                folder: Arc::new(Folder::create()?),
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
        let files = Files {
            retry_after: self.folder.name("retry-after"),
            headers: self.folder.name("headers.json"),
        };
        let attempt = match self.start(&job, &files) {
            Ok(started) => self.attend(started, &job, &files, kill).await,
            Err(error) => Attempt::bare(Outcome::CannotStart {
                why: format!("cannot start {}: {error}", self.program.display()),
            }),
        };
        if !matches!(attempt.outcome, Outcome::Done) {
            folder::remove(&files.retry_after);
        }
        attempt
    }

    fn start(&self, job: &Job, files: &Files) -> io::Result<Started> {
        let mut command = Command::new(&self.program);
        // A worker within a handler must not see the outer message's.
        for name in OPTIONAL {
            command.env_remove(name);
        }
        let variables = variables(job);
        let omitted = |(name, _): &(&str, String)| *name == "MQ_HEADERS_OMITTED";
        let has_headers_file = variables.iter().any(omitted);
        if has_headers_file {
            folder::write(&files.headers, &headers_json(job))?;
            command.env("MQ_HEADERS_FILE", &files.headers);
        }
        let (words, write_end) = io::pipe()?;
        let (stdout, stderr) = if job.wants_result {
            (Stdio::piped(), Stdio::from(write_end))
        } else {
            (Stdio::from(write_end.try_clone()?), Stdio::from(write_end))
        };
        let child = command
            .args(&self.arguments)
            .envs(variables)
            .env("MQ_RETRY_AFTER", &files.retry_after)
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Started {
            child,
            words: pipe::Receiver::from_owned_fd(words.into())?,
            has_headers_file,
        })
    }

    async fn attend(
        &self,
        started: Started,
        job: &Job,
        files: &Files,
        mut kill: watch::Receiver<bool>,
    ) -> Attempt {
        let Started {
            mut child,
            words,
            has_headers_file,
        } = started;
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
        let mut listening = tokio::spawn(listen(words, label(job), Arc::clone(&said)));
        let mut collecting = child.stdout.take().map(|stdout| {
            tokio::spawn(async move {
                let mut result = Vec::new();
                let read = stdout.take(MAX_RESULT + 1).read_to_end(&mut result).await;
                read.map(|_| result)
            })
        });
        let ended = tokio::select! {
            status = child.wait() => Ended::ByItself(status),
            () = sleep(self.limit) => Ended::TimedOut,
            () = told(&mut kill) => Ended::Interrupted,
        };
        if !matches!(ended, Ended::ByItself(_)) {
            end(&mut child, group).await;
        }
        feeding.abort();
        if timeout(PIPE_GRACE, &mut listening).await.is_err() {
            listening.abort();
        }
        let result = match &mut collecting {
            None => Ok(None),
            Some(collecting) => match timeout(PIPE_GRACE, &mut *collecting).await {
                Ok(Ok(Ok(result))) if result.len() as u64 > MAX_RESULT => {
                    Err(format!("its result is larger than {MAX_RESULT} bytes"))
                }
                Ok(Ok(Ok(result))) => Ok(Some(result)),
                Ok(Ok(Err(error))) => Err(format!("its result cannot be read: {error}")),
                Ok(Err(_)) | Err(_) => {
                    collecting.abort();
                    Err("it ended, but its standard output is still open".to_owned())
                }
            },
        };
        if has_headers_file {
            folder::remove(&files.headers);
        }
        let said = {
            let kept = said.lock().unwrap_or_else(PoisonError::into_inner);
            String::from_utf8_lossy(&kept).trim_end().to_owned()
        };
        let (outcome, end) = match ended {
            Ended::ByItself(Ok(status)) => {
                (outcome(status, last_line(&said)), Some(end_of(status)))
            }
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
        let (outcome, result) = match (outcome, result) {
            // Without its whole result the work cannot be passed on.
            (Outcome::Done, Err(why)) => (Outcome::Failed { why, wait: None }, None),
            (Outcome::Failed { why, .. }, result) => {
                let wait = folder::take(&files.retry_after, MAX_RETRY_AFTER)
                    .and_then(|text| retry_after::delay(&text));
                // A program that failed without a word gave nothing back.
                let result = result.ok().flatten().filter(|body| !body.is_empty());
                (Outcome::Failed { why, wait }, result)
            }
            (outcome, result) => (outcome, result.ok().flatten()),
        };
        Attempt {
            outcome,
            result: result.map(|body| HandlerResult {
                body,
                content_type: None,
            }),
            trace: Trace {
                end,
                stderr: Some(said).filter(|said| !said.is_empty()),
            },
        }
    }
}

/// Files of one attempt.
struct Files {
    /// Where the handler may write the delay it asks for.
    retry_after: PathBuf,
    /// Headers that are too large for the environment.
    headers: PathBuf,
}

struct Started {
    child: Child,
    /// What it says.
    words: pipe::Receiver,
    has_headers_file: bool,
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

/// How the lines of one message's handler are told from those of others.
fn label(job: &Job) -> String {
    match &job.delivery.properties.message_id {
        Some(id) if !id.is_empty() => format!("[{}] ", one_line(id, 64)),
        Some(_) | None => format!("[#{}] ", job.tag),
    }
}

/// Passes what a handler says on, line by line, and keeps its end.
async fn listen(mut words: pipe::Receiver, label: String, kept: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = vec![0; LONGEST_LINE];
    let mut lines = Vec::new();
    let mut open_line = false;
    while let Ok(read) = words.read(&mut chunk).await {
        let Some(new) = chunk.get(..read).filter(|new| !new.is_empty()) else {
            break;
        };
        lines.clear();
        for piece in new.split_inclusive(|byte| *byte == b'\n') {
            if !open_line {
                lines.extend_from_slice(label.as_bytes());
            }
            lines.extend_from_slice(piece);
            open_line = !piece.ends_with(b"\n");
        }
        crate::output::pass_to_stderr(&lines);
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(new);
        if kept.len() > KEPT_STDERR {
            let surplus = kept.len() - KEPT_STDERR;
            kept.drain(..surplus);
        }
    }
    if open_line {
        crate::output::pass_to_stderr(b"\n");
    }
}

fn last_line(said: &str) -> Option<&str> {
    said.lines().map(str::trim).rfind(|line| !line.is_empty())
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
