//! What happens to the browser, and what it wants done.

use std::sync::Arc;

use crate::browse::BrowsedLetter;
use crate::deadletter::{Marked, ReplayTo};
use crate::output::ListedQueue;

/// A key, as far as the browser knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the keys of these names")]
pub enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-U: what was typed goes.
    ClearLine,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-L.
    Redraw,
    /// F5.
    Reload,
    Char(char),
}

/// What happens to the browser.
#[derive(Clone, Debug)]
pub enum Event {
    /// A key was pressed.
    Key(Key),
    /// Text was pasted: it is only ever text, never keys.
    Paste(String),
    /// The terminal has so many columns and rows now.
    Resize(u16, u16),
    /// The dead-letter queues, or why they are not known.
    Listed(Result<Listed, Trouble>),
    /// The answer to the load of this number.
    Loaded(u64, Result<Loaded, Trouble>),
    /// Which letters a program accepts: the answer to the match of this number.
    Matched(u64, Result<Vec<bool>, String>),
    /// A job looked at so many messages so far.
    Progress(u64),
    /// A job is over.
    Finished(Outcome),
    /// Something was said that would have gone to standard error.
    Said(Vec<String>),
}

/// Every dead-letter queue there is.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Each, by vhost and name.
    pub queues: Vec<ListedQueue>,
    /// Whether vhosts could not be read.
    pub skipped: bool,
}

/// What is loaded of one queue.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// Messages that were ready when it was read.
    pub ready: u64,
    /// The first of them.
    pub letters: Vec<BrowsedLetter>,
    /// Whether fewer were loaded than could be, because they are large.
    pub is_cut_by_size: bool,
}

/// Why something did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What happened and the way out, in lines.
    pub text: String,
    /// Whether the queue does not exist any more.
    pub is_gone: bool,
}

/// What the browser wants done.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Gather the dead-letter queues.
    List,
    /// Read the first messages of a queue and put them back.
    Load {
        /// Comes back in [`Event::Loaded`].
        number: u64,
        /// The queue's vhost.
        vhost: String,
        /// The queue.
        queue: String,
    },
    /// Ask a jq program about each letter. Only the newest such wish counts.
    Match {
        /// Comes back in [`Event::Matched`].
        number: u64,
        /// The program.
        program: String,
        /// Those it is asked about.
        letters: Arc<Vec<BrowsedLetter>>,
    },
    /// Do something with messages; one job at a time.
    Run(Job),
    /// End the job in order, as a signal would; the second time at once.
    Stop,
    /// Draw all cells, also those that did not change.
    Redraw,
    /// Leave the terminal to the shell until it brings us back.
    Suspend,
    /// The end.
    Quit,
}

/// Something to be done with messages of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The queue's vhost.
    pub vhost: String,
    /// The queue.
    pub queue: String,
    /// Which messages.
    pub marked: Marked,
    /// What.
    pub doing: Doing,
}

/// What to do with messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Tell where they would land.
    Preview(ReplayTo),
    /// Send them back.
    Replay(ReplayTo),
    /// Write them to this file; without a name, to one named after queue and time.
    Export(String),
    /// Write them to a file that is named after queue and time, and remove them.
    Purge,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was done, in lines; for a preview, what would be.
    pub text: String,
    /// Messages that were dealt with, or would be.
    pub count: u64,
    /// Why it ended early.
    pub trouble: Option<Trouble>,
}
