//! An attempt with what comes before it: the message is held against its contract.
//!
//! On a thread of its own, for a large body takes its time, and a schema may
//! take for ever over a small one (one that doubles its work at each level):
//! neither may hold up the worker or its end.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a check is timed and has a thread of its own"
)]

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::contract::Contracts;
use crate::handler::{Handler, Job};
use crate::retry::{Attempt, Outcome};

/// The longest check. What takes longer is no message that the schema is about.
const CHECK_LIMIT: Duration = Duration::from_secs(10);

/// Runs one attempt to its end, if the message keeps its contract.
pub(super) async fn attempt(
    contracts: Option<Arc<Contracts>>,
    handler: Handler,
    job: Job,
    mut kill: watch::Receiver<bool>,
) -> Attempt {
    if let Some(contracts) = contracts {
        let (queue, delivery) = (job.queue.clone(), Arc::clone(&job.delivery));
        let check = tokio::task::spawn_blocking(move || contracts.broken_by(&queue, &delivery));
        let broken = tokio::select! {
            checked = check => match checked {
                Ok(broken) => broken,
                Err(error) => Some(format!("it could not be held against its schema: {error}")),
            },
            () = sleep(CHECK_LIMIT) => Some(format!(
                "holding it against its schema took longer than {}",
                humantime::format_duration(CHECK_LIMIT)
            )),
            Ok(_) = kill.wait_for(|kill| *kill) => return Attempt::bare(Outcome::Interrupted),
        };
        if let Some(why) = broken {
            return Attempt::against_contract(why);
        }
    }
    handler.run(job, kill).await
}
