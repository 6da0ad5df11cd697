//! What a session works with: the user's wishes and the handler; and how it ends.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::contract::Contracts;
use crate::dedupe::Store;
use crate::error::Error;
use crate::handler::Handler;
use crate::message::{Delivery, ResultTo};
use crate::retry::{Jitter, RetryPath};
use crate::topology::QueueName;
use crate::worker::StatusBoard;

/// What the user asked for, apart from what bounds the machine.
pub struct Wanted {
    /// The work queue.
    pub queue: QueueName,
    /// Most messages in work at once.
    pub prefetch: u16,
    /// Attempts for each message.
    pub max_attempts: u32,
    /// Where nacks lead; `None` when messages are only printed.
    pub path: Option<RetryPath>,
    /// Stop when queue and retries are drained.
    pub until_empty: bool,
    /// Stop after this long without a message.
    pub idle_timeout: Option<Duration>,
    /// How long running handlers may take once the worker stops.
    pub grace: Duration,
    /// Where what handlers give back is published, if anywhere.
    pub results: Option<ResultTo>,
    /// Whether what a failed handler gives back is the body of the next attempt.
    pub retry_with_result: bool,
    /// How far delays are scattered.
    pub jitter: Jitter,
    /// What remembers what is done, if anything.
    pub dedupe: Option<Store>,
    /// What messages are held against before they are worked.
    pub contracts: Option<Arc<Contracts>>,
    /// Host and process, for the headers of dead letters.
    pub worker: String,
    /// Where the worker's status is posted.
    pub board: Arc<StatusBoard>,
}

/// How one session ended.
#[derive(Debug)]
pub enum Ending {
    /// The machine is done; ask it why.
    Done,
    /// The connection broke; reconnect.
    Lost(Error),
    /// A second signal: handlers were killed, their messages go back by themselves.
    SecondSignal(u8),
}

/// What handles messages.
pub enum Handling<'h> {
    /// A handler's attempt at each.
    Run(&'h Handler),
    /// Our own standard output.
    Print(Printer<'h>),
}

/// How messages are printed: several with one write, where several are there.
#[derive(Clone, Copy)]
pub struct Printer<'p> {
    /// Adds one message to the page.
    pub form: &'p dyn Fn(&Delivery, &mut Vec<u8>),
    /// Writes the page and makes sure that it left.
    pub write: &'p dyn Fn(&[u8]) -> io::Result<()>,
}
