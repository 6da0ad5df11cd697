//! A line of JSON for each message that was sent: what became of it.

use std::path::Path;

use serde_json::json;

use crate::amqp::Receipt;
use crate::error::Result;
use crate::output::{self, Existing, LineFile};

/// Bytes that are written at once.
const TOGETHER: usize = 64 * 1024;

/// Where the lines go.
pub(super) enum Results {
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
    /// A file, or standard output.
    ///
    /// # Errors
    /// When the file is there already and is not to be added to, or cannot be made.
    pub(super) fn open(path: Option<&Path>, existing: Existing) -> Result<Self> {
        Ok(match path {
            None => Self::Nowhere,
            Some(path) if path.as_os_str() == "-" => Self::StandardOutput(Vec::new()),
            Some(path) => Self::File {
                file: LineFile::open(path, existing)?,
                waiting: 0,
            },
        })
    }

    pub(super) const fn are_wanted(&self) -> bool {
        !matches!(self, Self::Nowhere)
    }

    pub(super) const fn is_on_standard_output(&self) -> bool {
        matches!(self, Self::StandardOutput(_))
    }

    /// Adds a line; it is written with those that follow, or by [`Self::flush`].
    ///
    /// # Errors
    /// When it cannot be written.
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
        match self {
            Self::Nowhere => return Ok(()),
            Self::StandardOutput(page) => {
                output::add_line(page, line.as_bytes());
                if page.len() < TOGETHER {
                    return Ok(());
                }
            }
            Self::File { file, waiting } => {
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
    /// When that fails.
    pub(super) fn flush(&mut self) -> Result<()> {
        match self {
            Self::Nowhere => Ok(()),
            Self::StandardOutput(page) => output::data_page(&std::mem::take(page)),
            Self::File { file, waiting } => {
                *waiting = 0;
                file.write()
            }
        }
    }

    /// Writes what waits, and has a file on disk.
    ///
    /// # Errors
    /// When that fails.
    pub(super) fn close(&mut self) -> Result<()> {
        match self {
            Self::Nowhere => Ok(()),
            Self::StandardOutput(_) => self.flush(),
            Self::File { file, .. } => file.sync(),
        }
    }
}
