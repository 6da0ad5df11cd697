//! `mq publish`, many messages at once.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Where many messages come from, and how they are sent.
#[derive(Clone, Debug, Args)]
pub struct BulkArgs {
    /// Publish the messages of a file of JSON lines; - for standard input
    ///
    /// Sends each line that `mq dlq export` wrote exactly as it was: body,
    /// properties, headers with their types, to its own exchange with its own
    /// key, or where -q, -e and -k say. In order; stops before the first line
    /// that cannot be read.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Many messages",
        conflicts_with_all = ["body", "headers", "json_headers", "content_type", "content_encoding",
            "message_id", "correlation_id", "reply_to", "kind", "app_id", "user_id", "timestamp",
            "priority", "expiration", "transient", "lines", "files", "repeat", "template"]
    )]
    pub jsonl: Option<PathBuf>,

    /// Publish each line of a file as a body; - for standard input
    ///
    /// Without its line end (LF or CR LF). An empty line is an empty body.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["body", "files", "repeat"], help_heading = "Many messages")]
    pub lines: Option<PathBuf>,

    /// Publish each file of a folder as a body, in the order of their names
    ///
    /// Folders in it and hidden files are passed over.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["body", "repeat"], help_heading = "Many messages")]
    pub files: Option<PathBuf>,

    /// Publish the body so many times
    #[arg(long, value_name = "N", help_heading = "Many messages")]
    pub repeat: Option<NonZeroU64>,

    /// Fill {{seq}}, {{uuid}}, {{now}}, {{file}} and {{env.NAME}} in body, key,
    /// headers of -H and ids
    ///
    /// seq is the number of the message from 1, uuid is new for each message, now
    /// the time (RFC 3339, UTC), file the name of a file of --files, else nothing.
    /// {{{{ stands for two braces. Nothing else is filled, -q and --header-json
    /// neither.
    #[arg(long, help_heading = "Many messages")]
    pub template: bool,

    /// Send messages of --jsonl that carry another user's user_id without it
    #[arg(long, requires = "jsonl", help_heading = "Many messages")]
    pub drop_user_id: bool,

    /// Most messages a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Many messages")]
    pub rate: Option<u32>,

    /// Most messages without a confirm at a time; more are not sent before
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=10_000), help_heading = "Many messages")]
    pub in_flight: u16,

    /// Write what became of each message to a new file, a line of JSON each; - for
    /// standard output
    ///
    /// With --resume a file that is there is added to.
    #[arg(long, value_name = "FILE", help_heading = "Many messages")]
    pub results: Option<PathBuf>,

    /// What to do once a message reached no queue
    #[arg(long, value_enum, default_value_t = OnUnroutable::Continue, help_heading = "Many messages")]
    pub on_unroutable: OnUnroutable,

    /// Keep in this file how far the messages are settled, and go on from there
    ///
    /// A run that was interrupted sends again what was not known to be settled,
    /// with the ids it had ({{uuid}}, --generate-message-id), so that a consumer can
    /// tell (mq consume --dedupe). It stops at the first message that is refused (with
    /// --retry-refused: for good). One run at a time; --results is added to. Not for
    /// --files, whose names do not tell what is new.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "files",
        help_heading = "Many messages"
    )]
    pub resume: Option<PathBuf>,
}

impl BulkArgs {
    /// Whether many messages are to be sent, or it is to be kept what became of one.
    #[must_use]
    pub const fn is_asked_for(&self) -> bool {
        self.jsonl.is_some()
            || self.lines.is_some()
            || self.files.is_some()
            || self.repeat.is_some()
            || self.results.is_some()
            || self.resume.is_some()
    }
}

/// What to do once a message reached no queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnUnroutable {
    /// Send no more
    Stop,
    /// Go on; it is named at the end
    Continue,
}
