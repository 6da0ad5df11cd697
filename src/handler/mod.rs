//! Handlers: what is done with each message. A program of the user's, a URL, or the printer.

mod environment;
mod exec;
mod exit_status;
mod folder;
mod http;
mod listener;
mod metadata;
mod process_group;
mod program;
mod retry_after;
mod stream;

use std::sync::Arc;

use tokio::sync::watch;

use crate::message::Delivery;
use crate::retry::Attempt;
use crate::topology::QueueName;

pub use exec::Exec;
pub use http::Http;
pub use stream::ExecStream;

/// One attempt at one message.
#[derive(Clone, Debug)]
pub struct Job {
    /// The work queue.
    pub queue: QueueName,
    /// The delivery's tag: names it among all that are in work.
    pub tag: u64,
    /// The message.
    pub delivery: Arc<Delivery>,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// Attempts it has in all.
    pub max_attempts: u32,
    /// Whether what the handler gives back is used: published as a result, or
    /// as the body of the next attempt.
    pub wants_result: bool,
}

/// What works messages. Cheap to clone: every attempt has its own.
#[derive(Clone, Debug)]
pub enum Handler {
    /// A program for each message.
    Exec(Exec),
    /// Long-lived programs that work one message after another.
    Stream(ExecStream),
    /// A request for each message.
    Http(Http),
}

impl Handler {
    /// Runs one attempt to its end. Once `kill` turns true it is ended and the
    /// outcome is [`crate::retry::Outcome::Interrupted`].
    pub async fn run(&self, job: Job, kill: watch::Receiver<bool>) -> Attempt {
        match self {
            Self::Exec(exec) => exec.run(job, kill).await,
            Self::Stream(stream) => stream.run(job, kill).await,
            Self::Http(http) => http.run(job, kill).await,
        }
    }

    /// Ends what outlives attempts, once none runs any more. Takes 6 s at most.
    pub async fn close(&self) {
        match self {
            Self::Exec(_) | Self::Http(_) => {}
            Self::Stream(stream) => stream.close().await,
        }
    }
}

/// Returns once the attempt must end.
async fn told(kill: &mut watch::Receiver<bool>) {
    if kill.wait_for(|kill| *kill).await.is_err() {
        // Nobody is left to tell us: never.
        std::future::pending::<()>().await;
    }
}
