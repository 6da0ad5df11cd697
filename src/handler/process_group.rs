//! Ending a child together with the children it started itself.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;
use tokio::time::timeout;

/// Between SIGTERM and SIGKILL for a child that must end.
const KILL_GRACE: Duration = Duration::from_secs(3);

/// The group that a child leads: it must have been started with
/// `process_group(0)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// The group of a child that was not waited for yet.
    pub(super) fn of(child: &Child) -> Self {
        Self(
            child
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(Pid::from_raw),
        )
    }

    /// SIGTERM to the child and its own children, then SIGKILL.
    pub(super) async fn end(self, child: &mut Child) {
        self.signal(Signal::TERM);
        if timeout(KILL_GRACE, child.wait()).await.is_err() {
            self.signal(Signal::KILL);
            let _ = child.wait().await;
        }
        self.kill();
    }

    /// SIGKILL to whoever is left.
    pub(super) fn kill(self) {
        self.signal(Signal::KILL);
    }

    fn signal(self, signal: Signal) {
        if let Some(group) = self.0 {
            // Fails only when nobody is left in the group.
            let _ = kill_process_group(group, signal);
        }
    }
}
