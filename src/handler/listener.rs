//! What a handler says: passed on line by line, and its end kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::handler::Job;
use crate::printable::one_line;

/// How long its pipes are read after a child ended: a grandchild may
/// hold the pipe open for ever.
pub(super) const PIPE_GRACE: Duration = Duration::from_millis(200);

/// How much of what it says is kept for the reason of a failure, in bytes.
const KEPT: usize = 4096;

/// A longer line is passed on in pieces, in bytes.
const LONGEST_LINE: usize = 8192;

/// Listens as long as the handler's end of the pipe is open.
#[derive(Debug)]
pub(super) struct Listener {
    heard: Arc<Mutex<Heard>>,
    listening: JoinHandle<()>,
}

#[derive(Debug)]
struct Heard {
    label: String,
    kept: Vec<u8>,
}

impl Listener {
    /// Listens to a handler that works `job`.
    pub(super) fn start(words: pipe::Receiver, job: &Job) -> Self {
        let heard = Arc::new(Mutex::new(Heard {
            label: label(job),
            kept: Vec::new(),
        }));
        Self {
            listening: tokio::spawn(listen(words, Arc::clone(&heard))),
            heard,
        }
    }

    /// From now on it speaks of another message.
    pub(super) fn next(&self, job: &Job) {
        let mut heard = lock(&self.heard);
        heard.label = label(job);
        heard.kept.clear();
    }

    /// The end of what was said of this message so far.
    pub(super) fn said(&self) -> String {
        String::from_utf8_lossy(&lock(&self.heard).kept)
            .trim_end()
            .to_owned()
    }

    /// The end of what was said by a handler that ended.
    pub(super) async fn finish(&mut self) -> String {
        if timeout(PIPE_GRACE, &mut self.listening).await.is_err() {
            self.listening.abort();
        }
        self.said()
    }
}

/// The last line that is not blank.
pub(super) fn last_line(said: &str) -> Option<&str> {
    said.lines().map(str::trim).rfind(|line| !line.is_empty())
}

/// How the lines of one message's handler are told from those of others.
fn label(job: &Job) -> String {
    match &job.delivery.properties.message_id {
        Some(id) if !id.is_empty() => format!("[{}] ", one_line(id, 64)),
        Some(_) | None => format!("[#{}] ", job.tag),
    }
}

/// Passes what a handler says on, line by line, and keeps its end.
async fn listen(mut words: pipe::Receiver, heard: Arc<Mutex<Heard>>) {
    let mut chunk = vec![0; LONGEST_LINE];
    let mut lines = Vec::new();
    let mut open_line = false;
    while let Ok(read) = words.read(&mut chunk).await {
        let Some(new) = chunk.get(..read).filter(|new| !new.is_empty()) else {
            break;
        };
        lines.clear();
        {
            let mut heard = lock(&heard);
            for piece in new.split_inclusive(|byte| *byte == b'\n') {
                if !open_line {
                    lines.extend_from_slice(heard.label.as_bytes());
                }
                lines.extend_from_slice(piece);
                open_line = !piece.ends_with(b"\n");
            }
            heard.kept.extend_from_slice(new);
            if heard.kept.len() > KEPT {
                let surplus = heard.kept.len() - KEPT;
                heard.kept.drain(..surplus);
            }
        }
        crate::output::pass_to_stderr(&lines);
    }
    if open_line {
        crate::output::pass_to_stderr(b"\n");
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}
