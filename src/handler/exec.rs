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
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::error::Result;
use crate::handler::environment::{STREAM_PROTOCOL, variables};
use crate::handler::exit_status::{end_of, outcome};
use crate::handler::folder::{self, Folder};
use crate::handler::listener::{Listener, PIPE_GRACE, last_line};
use crate::handler::metadata::{OPTIONAL, headers_json};
use crate::handler::process_group::ProcessGroup;
use crate::handler::program::Program;
use crate::handler::{Job, retry_after, told};
use crate::retry::{Attempt, HandlerResult, Outcome, Trace};

/// An empty pipe takes a page at once, whoever reads it and when (pipe(7)).
const FITS_A_PIPE: usize = 4096;

/// The largest result, in bytes: the largest message that brokers take since 4.0.
const MAX_RESULT: u64 = 16 * 1024 * 1024;

/// More than any delay needs, in bytes.
const MAX_RETRY_AFTER: u64 = 64;

/// A program to run for each message.
#[derive(Clone, Debug)]
pub struct Exec {
    program: Program,
    limit: Duration,
    folder: Arc<Folder>,
}

impl Exec {
    /// Finds the program (a path, or a name in `search_path`) before the first
    /// message is taken. `limit` is the longest one attempt may take.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Unavailable`] when it is not there or cannot be executed,
    /// [`crate::error::ErrorKind::InputOutput`] when there is no place for temporary files.
    pub fn find(
        command: &[OsString],
        search_path: Option<OsString>,
        limit: Duration,
    ) -> Result<Self> {
        Ok(Self {
            program: Program::find("--exec", command, search_path)?,
            limit,
            folder: Arc::new(Folder::create()?),
        })
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
                why: format!("cannot start {}: {error}", self.program.path.display()),
            }),
        };
        if !matches!(attempt.outcome, Outcome::Done) {
            folder::remove(&files.retry_after);
        }
        attempt
    }

    fn start(&self, job: &Job, files: &Files) -> io::Result<Started> {
        let mut command = Command::new(&self.program.path);
        // A worker within a handler must not see the outer message's.
        for name in OPTIONAL.into_iter().chain([STREAM_PROTOCOL]) {
            command.env_remove(name);
        }
        let variables = variables(job);
        let omitted = |(name, _): &(&str, String)| *name == "MQ_HEADERS_OMITTED";
        let has_headers_file = variables.iter().any(omitted);
        if has_headers_file {
            folder::write(&files.headers, &headers_json(job)).map_err(|error| {
                let file = files.headers.display();
                io::Error::new(
                    error.kind(),
                    format!("its headers cannot be written to {file}: {error}"),
                )
            })?;
            command.env("MQ_HEADERS_FILE", &files.headers);
        }
        let (words, write_end) = io::pipe()?;
        let (stdout, stderr) = if job.wants_result {
            (Stdio::piped(), Stdio::from(write_end))
        } else {
            (Stdio::from(write_end.try_clone()?), Stdio::from(write_end))
        };
        let child = command
            .args(&self.program.arguments)
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
        let group = ProcessGroup::of(&child);
        let stdin = child.stdin.take();
        let body = Arc::clone(&job.delivery);
        let feed = async move {
            if let Some(mut stdin) = stdin {
                // A child may ignore its input or close it early; its exit code decides.
                let _ = stdin.write_all(&body.body).await;
            }
        };
        let feeding = if job.delivery.body.len() <= FITS_A_PIPE {
            feed.await;
            None
        } else {
            Some(tokio::spawn(feed))
        };
        let mut listener = Listener::start(words, job);
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
            group.end(&mut child).await;
        }
        if let Some(feeding) = feeding {
            feeding.abort();
        }
        let said = listener.finish().await;
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
                    // Whoever holds it would outlive the attempt.
                    group.kill();
                    Err("it ended, but its standard output is still open".to_owned())
                }
            },
        };
        if has_headers_file {
            folder::remove(&files.headers);
        }
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
