//! A line of JSON for each message that was sent: what became of it.
//!
//! Lines come in the order of the messages, and there is none behind one that could
//! not be written.

use std::path::Path;

use serde_json::json;

use crate::amqp::Receipt;
use crate::error::{Error, ErrorKind, Result};
use crate::output::{self, Existing, LineFile};

/// Bytes that are written at once.
const TOGETHER: usize = 64 * 1024;

/// The lines that are told.
pub(super) struct Results {
    target: Target,
    /// What numbers count: lines, files or messages.
    counts: &'static str,
    /// The number of the first message of this run.
    first: Option<u64>,
    /// The same of those whose lines wait to be written.
    first_waiting: Option<u64>,
    /// Why they cannot be written any more.
    failed: Option<Error>,
}

/// Where they go.
enum Target {
    /// Nobody asked.
    Nowhere,
    StandardOutput(Vec<u8>),
    File {
        file: LineFile,
        waiting: usize,
    },
}

/// What is told of a message besides its outcome.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) exchange: String,
    pub(super) routing_key: String,
    pub(super) message_id: Option<String>,
}

impl Results {
    /// A file, or standard output; `counts` is what numbers of messages count.
    ///
    /// # Errors
    /// When the file is there already and is not to be added to, or cannot be made.
    pub(super) fn open(
        path: Option<&Path>,
        existing: Existing,
        counts: &'static str,
    ) -> Result<Self> {
        let target = match path {
            None => Target::Nowhere,
            Some(path) if path.as_os_str() == "-" => Target::StandardOutput(Vec::new()),
            Some(path) => Target::File {
                file: LineFile::open(path, existing).map_err(|error| match error.kind() {
                    ErrorKind::Usage => error.hint("name another file for --results; only with --resume receipts are added to one that is there"),
                    _ => error,
                })?,
                waiting: 0,
            },
        };
        Ok(Self {
            target,
            counts,
            first: None,
            first_waiting: None,
            failed: None,
        })
    }

    pub(super) const fn are_wanted(&self) -> bool {
        !matches!(self.target, Target::Nowhere)
    }

    pub(super) const fn is_on_standard_output(&self) -> bool {
        matches!(self.target, Target::StandardOutput(_))
    }

    /// Adds a line; it is written with those that follow, or by [`Self::flush`].
    ///
    /// # Errors
    /// When it cannot be written, or one before it could not be.
    pub(super) fn add(&mut self, number: u64, told: &Told, receipt: &Receipt) -> Result<()> {
        let (outcome, why) = match receipt {
            Receipt::Routed => ("routed", None),
            Receipt::Unroutable(said) => ("unroutable", Some(said.as_str())),
            Receipt::Refused => ("refused", None),
            Receipt::Unknown(error) => ("unknown", Some(error.message())),
        };
        let line = output::json_line(&json!({
            "number": number,
            "receipt": outcome,
            "why": why,
            "exchange": told.exchange,
            "routing_key": told.routing_key,
            "message_id": told.message_id,
        }));
        self.first.get_or_insert(number);
        self.first_waiting.get_or_insert(number);
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match &mut self.target {
            Target::Nowhere => return Ok(()),
            Target::StandardOutput(page) => {
                output::add_line(page, line.as_bytes());
                if page.len() < TOGETHER {
                    return Ok(());
                }
            }
            Target::File { file, waiting } => {
                file.push(&line);
                *waiting += line.len();
                if *waiting < TOGETHER {
                    return Ok(());
                }
            }
        }
        self.flush()
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// When that fails, and each time from then on.
    pub(super) fn flush(&mut self) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let written = match &mut self.target {
            Target::Nowhere => Ok(()),
            Target::StandardOutput(page) => output::data_page(&std::mem::take(page)),
            Target::File { file, waiting } => {
                *waiting = 0;
                file.write()
            }
        };
        written.map_err(|error| self.are_missing(&error, self.first_waiting))?;
        self.first_waiting = None;
        Ok(())
    }

    /// Writes what waits, and has a file on disk.
    ///
    /// # Errors
    /// When that fails or did before.
    pub(super) fn close(&mut self) -> Result<()> {
        self.flush()?;
        let on_disk = match &mut self.target {
            Target::File { file, .. } if file.can_be_safe() => file.sync(),
            _ => Ok(()),
        };
        on_disk.map_err(|error| {
            let way_out = error.way_out().unwrap_or_default().to_owned();
            self.are_missing(&error, self.first).hint(way_out)
        })
    }

    /// Nothing is written any more.
    fn are_missing(&mut self, error: &Error, from: Option<u64>) -> Error {
        let missing = from.map_or_else(String::new, |number| {
            format!("; receipts from {} {number} on may be missing", self.counts)
        });
        let error = Error::new(error.kind(), format!("{}{missing}", error.message()))
            .hint("check the free space and the permissions there; with --resume the next run sends again what has no receipt");
        self.failed.insert(error).clone()
    }
}
