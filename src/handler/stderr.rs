//! What a child writes to its standard error: passed on, and its end kept.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long its standard error is read after a child ended: a grandchild may
/// hold the pipe open for ever.
const STDERR_GRACE: Duration = Duration::from_millis(200);

/// How much of standard error is kept for the reason of a failure, in bytes.
const KEPT_STDERR: usize = 4096;

/// Listens as long as the child writes.
#[derive(Debug)]
pub(super) struct Listener {
    kept: Arc<Mutex<Vec<u8>>>,
    listening: JoinHandle<()>,
}

impl Listener {
    pub(super) fn start(stderr: Option<ChildStderr>) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        Self {
            listening: tokio::spawn(listen(stderr, Arc::clone(&kept))),
            kept,
        }
    }

    /// Forgets what was kept: a new message begins.
    pub(super) fn forget(&self) {
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// The end of what was said so far.
    pub(super) fn said(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).trim_end().to_owned()
    }

    /// The end of what was said by a child that ended.
    pub(super) async fn finish(&mut self) -> String {
        if timeout(STDERR_GRACE, &mut self.listening).await.is_err() {
            self.listening.abort();
        }
        self.said()
    }
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

/// The last line that is not blank.
pub(super) fn last_line(said: &str) -> Option<&str> {
    said.lines().map(str::trim).rfind(|line| !line.is_empty())
}
