//! Many messages, read and understood ahead: the lines of a file, the files of a
//! folder, or one message again and again.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where files and folders are opened"
)]

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::publish_additions::Additions;
use super::super::publish_prototype::{Body, Environment, Prototype};
use crate::error::{Error, ErrorKind, Result};
use crate::message::Publication;
use crate::offsets::Sent;

/// A message to be sent.
#[derive(Debug)]
pub(super) struct Item {
    /// Its number: of its line, or counted from 1.
    pub(super) number: u64,
    /// One for all where all are the same.
    pub(super) message: Arc<Publication>,
    /// What its place in the source is known by, if that is to be kept.
    pub(super) mark: Option<String>,
}

/// What of a source is wanted, and how.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) prototype: Prototype,
    pub(super) environment: Environment,
    /// How far it was settled before; none: that is not kept.
    pub(super) settled: Option<Sent>,
    pub(super) additions: Additions,
    /// Nothing is sent, and so all messages are checked.
    pub(super) is_dry_run: bool,
}

/// Messages that follow each other. An error is the last thing there is, unless it
/// is a dry run and only about what is in a message.
pub(super) type Batch = Vec<Result<Item>>;

/// Where the messages come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Whole messages, a line of JSON each.
    JsonLines(PathBuf),
    /// Bodies, a line each.
    Lines(PathBuf),
    /// Bodies, a file each: those of a folder.
    Files(PathBuf),
    /// One body, so many times, and the SHA-256 of what it is made of.
    Repeat(u64, Body, String),
}

impl Source {
    /// What it is called.
    pub(super) fn name(&self) -> String {
        match self {
            Self::JsonLines(path) | Self::Lines(path) if path.as_os_str() == "-" => {
                "standard input".to_owned()
            }
            Self::JsonLines(path) | Self::Lines(path) | Self::Files(path) => {
                path.display().to_string()
            }
            Self::Repeat(..) => "the command line".to_owned(),
        }
    }

    /// Looks whether it is there, before anything is made for it.
    ///
    /// # Errors
    /// When there is nothing of its name.
    pub(super) fn must_be_there(&self) -> Result<()> {
        let (what, path) = match self {
            Self::JsonLines(path) | Self::Lines(path) if path.as_os_str() != "-" => ("file", path),
            Self::Files(path) => ("folder", path),
            _ => return Ok(()),
        };
        std::fs::metadata(path)
            .map(drop)
            .map_err(|error| cannot_open(what, path, &error))
    }

    /// What tells it from another source: the flag that named it, and its name.
    pub(super) fn identity(&self) -> String {
        match self {
            Self::JsonLines(_) => format!("--jsonl {}", self.name()),
            Self::Lines(_) => format!("--lines {}", self.name()),
            Self::Files(_) => format!("--files {}", self.name()),
            Self::Repeat(_, _, digest) => format!("--repeat, body {digest}"),
        }
    }

    /// The file that is read; none: it is no file that is named.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::JsonLines(path) | Self::Lines(path) => Some(path),
            Self::Files(_) | Self::Repeat(..) => None,
        }
    }

    /// What one of its messages is called.
    pub(super) fn place(&self, number: u64) -> String {
        match self {
            Self::JsonLines(_) | Self::Lines(_) => format!("{}:{number}", self.name()),
            Self::Files(_) => format!("{}, file {number}", self.name()),
            Self::Repeat(..) => format!("message {number}"),
        }
    }

    /// An error about one of its messages, with its place and a way out.
    pub(super) fn wrong_at(&self, number: u64, error: Error) -> Error {
        let error = error.during(&self.place(number));
        match error.way_out() {
            Some(_) => error,
            None => error.hint(format!(
                "correct the {}, or take it out; those before it were sent",
                self.counts()
            )),
        }
    }

    /// What its numbers count.
    pub(super) const fn counts(&self) -> &'static str {
        match self {
            Self::JsonLines(_) | Self::Lines(_) => "line",
            Self::Files(_) => "file",
            Self::Repeat(..) => "message",
        }
    }
}

pub(super) fn open(path: &Path) -> Result<BufReader<Box<dyn Read + Send>>> {
    if path.as_os_str() == "-" {
        return Ok(BufReader::with_capacity(64 * 1024, Box::new(io::stdin())));
    }
    let file = File::open(path).map_err(|error| cannot_open("file", path, &error))?;
    Ok(BufReader::with_capacity(1024 * 1024, Box::new(file)))
}

/// The plain files of a folder, by name; hidden ones are left out.
pub(super) fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| cannot_open("folder", folder, &error))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(&folder.display().to_string(), &error))?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // A link counts as what it leads to.
        if !is_hidden && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

fn cannot_open(what: &str, path: &Path, error: &io::Error) -> Error {
    let shown = path.display().to_string();
    match error.kind() {
        io::ErrorKind::NotFound => Error::new(
            ErrorKind::InputMissing,
            format!("the {what} {shown} does not exist"),
        )
        .hint("check the path"),
        _ => unreadable(&shown, error),
    }
}

pub(super) fn unreadable(what: &str, error: &io::Error) -> Error {
    Error::new(
        ErrorKind::InputOutput,
        format!("cannot read {what}: {error}"),
    )
}
