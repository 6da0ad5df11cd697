//! The children of one worker: as many as attempts that run at once, never more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;

use crate::handler::stream::child::StreamChild;
use crate::handler::stream::silence::Silence;

/// How long children may take to end by themselves once their input is closed.
const CLOSE_GRACE: Duration = Duration::from_secs(3);

/// Idle children, and what all of them have in common.
#[derive(Debug, Default)]
pub(super) struct Pool {
    state: Mutex<State>,
    last_id: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<StreamChild>,
    silence: Silence,
}

impl Pool {
    /// A number that no message of this worker had before; the first is 1.
    pub(super) fn next_id(&self) -> u64 {
        // A child that answers what it has not read must not guess right.
        let gap = fastrand::u64(1..1 << 20);
        self.last_id.fetch_add(gap, Ordering::Relaxed) + 1
    }

    /// An idle child that still runs. Those that died since their last answer
    /// are cleared away.
    pub(super) async fn take(&self) -> Option<StreamChild> {
        loop {
            let mut child = self.state().idle.pop()?;
            if child.is_running() {
                return Some(child);
            }
            tracing::info!("an idle handler process ended; another takes its place");
            child.finish(Duration::ZERO).await;
        }
    }

    /// Puts back a child that answered.
    pub(super) fn answered(&self, child: StreamChild) {
        let mut state = self.state();
        state.silence.answered();
        state.idle.push(child);
    }

    /// Whether no child of this worker has answered yet.
    pub(super) fn is_silent(&self) -> bool {
        self.state().silence.is_unbroken()
    }

    /// See [`Silence::unanswered`].
    pub(super) fn unanswered(&self, look: u64, attempt: u32) -> bool {
        self.state().silence.unanswered(look, attempt)
    }

    /// Ends every idle child.
    pub(super) async fn close(&self) {
        let idle = std::mem::take(&mut self.state().idle);
        join_all(idle.into_iter().map(|child| child.finish(CLOSE_GRACE))).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
