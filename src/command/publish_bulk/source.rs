//! Many messages, read and understood ahead: the lines of a file, the files of a
//! folder, or one message again and again.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where messages are read from files and standard input, and filled by the clock and chance"
)]

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::sync::mpsc;

use super::super::publish_prototype::{Body, Environment, Prototype};
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Filling, Publication, read_message_line};

/// Batches that are read ahead.
const READ_AHEAD: usize = 2;

/// Messages and bytes of bodies in a batch, at most.
const BATCH: usize = 128;
const BATCH_BYTES: usize = 256 * 1024;

/// The longest line, in bytes: what a broker takes, however it is escaped.
const LONGEST: u64 = 1024 * 1024 * 1024;

/// A message to be sent.
#[derive(Debug)]
pub(super) struct Item {
    /// Its number: of its line, or counted from 1.
    pub(super) number: u64,
    pub(super) message: Publication,
}

/// Messages that follow each other. An error is the last thing there is.
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
    /// One body, so many times.
    Repeat(u64, Body),
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

    /// What one of its messages is called.
    pub(super) fn place(&self, number: u64) -> String {
        match self {
            Self::JsonLines(_) | Self::Lines(_) => format!("{}:{number}", self.name()),
            Self::Files(_) => format!("{}, file {number}", self.name()),
            Self::Repeat(..) => format!("message {number}"),
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

    /// Reads ahead, on a thread of its own: standard input may be slow, and
    /// signals and the broker are to be listened to meanwhile.
    ///
    /// # Errors
    /// When there is nothing of that name, or it cannot be opened.
    pub(super) fn read(
        self,
        prototype: Prototype,
        environment: Environment,
    ) -> Result<mpsc::Receiver<Batch>> {
        let (send, receive) = mpsc::channel(READ_AHEAD);
        let mut batches = Batches {
            source: self.clone(),
            prototype,
            environment,
            send,
            batch: Vec::new(),
            bytes: 0,
        };
        match self {
            Self::JsonLines(path) | Self::Lines(path) => {
                let reader = open(&path)?;
                spawn(move || batches.lines(reader))
            }
            Self::Files(path) => {
                let files = files_of(&path)?;
                spawn(move || batches.files(&files))
            }
            Self::Repeat(count, body) => spawn(move || batches.repeat(count, &body)),
        }?;
        Ok(receive)
    }
}

struct Batches {
    source: Source,
    prototype: Prototype,
    environment: Environment,
    send: mpsc::Sender<Batch>,
    batch: Batch,
    bytes: usize,
}

/// Whether anybody still wants more.
type IsWanted = bool;

impl Batches {
    /// Lines as they come: what is there is sent on before more is waited for.
    fn lines(&mut self, mut reader: BufReader<Box<dyn Read + Send>>) {
        for number in 1.. {
            if !reader.buffer().contains(&b'\n') && !self.flush() {
                return;
            }
            let mut bytes = Vec::new();
            let line = match reader.by_ref().take(LONGEST).read_until(b'\n', &mut bytes) {
                Ok(0) => break,
                Ok(read) if read as u64 >= LONGEST => Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!("it has more than {LONGEST} bytes"),
                )),
                Ok(_) => match &self.source {
                    Source::Lines(_) => self.body_line(number, bytes).map(Some),
                    _ => whole_message(&bytes),
                },
                Err(error) => {
                    self.end(unreadable(&self.source.name(), &error));
                    return;
                }
            };
            match line {
                Ok(None) => {}
                Ok(Some(message)) => {
                    if !self.add(number, message) {
                        return;
                    }
                }
                Err(error) => {
                    self.end_at(number, error);
                    return;
                }
            }
        }
        self.flush();
    }

    fn body_line(&self, number: u64, mut bytes: Vec<u8>) -> Result<Publication> {
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
        }
        self.of_body(&self.filling(number, ""), bytes)
    }

    fn of_body(&self, with: &Filling, bytes: Vec<u8>) -> Result<Publication> {
        let body = self.prototype.body(bytes, self.environment)?.fill(with);
        self.prototype.message(with, body)
    }

    fn filling(&self, number: u64, file: &str) -> Filling {
        if self.prototype.fills() {
            filling(number, file)
        } else {
            Filling::default()
        }
    }

    fn files(&mut self, files: &[PathBuf]) {
        for (number, path) in (1..).zip(files) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let message = std::fs::read(path)
                .map_err(|error| unreadable(&path.display().to_string(), &error))
                .and_then(|bytes| self.of_body(&self.filling(number, &name), bytes));
            match message {
                Ok(message) => {
                    if !self.add(number, message) {
                        return;
                    }
                }
                Err(error) => {
                    self.end_at(number, error);
                    return;
                }
            }
        }
        self.flush();
    }

    fn repeat(&mut self, count: u64, body: &Body) {
        for number in 1..=count {
            let with = self.filling(number, "");
            match self.prototype.message(&with, body.fill(&with)) {
                Ok(message) => {
                    if !self.add(number, message) {
                        return;
                    }
                }
                Err(error) => {
                    self.end_at(number, error);
                    return;
                }
            }
        }
        self.flush();
    }

    fn add(&mut self, number: u64, message: Publication) -> IsWanted {
        self.bytes += message.body.len();
        self.batch.push(Ok(Item { number, message }));
        let is_full = self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES;
        !is_full || self.flush()
    }

    fn flush(&mut self) -> IsWanted {
        self.bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        batch.is_empty() || self.send.blocking_send(batch).is_ok()
    }

    fn end_at(&mut self, number: u64, error: Error) {
        let error = error.during(&self.source.place(number));
        let what = self.source.counts();
        self.end(match error.way_out() {
            Some(_) => error,
            None => error.hint(format!(
                "correct the {what}, or take it out; those before it were sent"
            )),
        });
    }

    fn end(&mut self, error: Error) {
        self.batch.push(Err(error));
        self.flush();
    }
}

/// The message of a line; none if it is blank.
fn whole_message(bytes: &[u8]) -> Result<Option<Publication>> {
    if bytes.trim_ascii().is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Error::new(ErrorKind::InvalidInput, format!("it is not UTF-8: {error}"))
    })?;
    read_message_line(text).map(Some)
}

/// What fills the templates of one message.
pub(in super::super) fn filling(seq: u64, file: &str) -> Filling {
    Filling {
        seq,
        uuid: random_id(),
        now: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
        file: file.to_owned(),
    }
}

/// A random UUID (RFC 9562, version 4).
fn random_id() -> String {
    let random = fastrand::u128(..);
    let marked = random & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{marked:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-{}-{}-{}",
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32)
    )
}

fn open(path: &Path) -> Result<BufReader<Box<dyn Read + Send>>> {
    if path.as_os_str() == "-" {
        return Ok(BufReader::with_capacity(64 * 1024, Box::new(io::stdin())));
    }
    let file = File::open(path).map_err(|error| cannot_open("file", path, &error))?;
    Ok(BufReader::with_capacity(1024 * 1024, Box::new(file)))
}

/// The plain files of a folder, by name; hidden ones are left out.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
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

fn unreadable(what: &str, error: &io::Error) -> Error {
    Error::new(
        ErrorKind::InputOutput,
        format!("cannot read {what}: {error}"),
    )
}

fn spawn(read: impl FnOnce() + Send + 'static) -> Result<()> {
    std::thread::Builder::new()
        .name("source".to_owned())
        .spawn(read)
        .map(drop)
        .map_err(|error| {
            Error::new(
                ErrorKind::Internal,
                format!("cannot start a thread that reads: {error}"),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_of_version_4_and_differ() {
        let ids: Vec<String> = (0..100).map(|_| random_id()).collect();
        for id in &ids {
            assert_eq!(id.len(), 36, "{id}");
            assert_eq!(id.as_bytes()[14], b'4', "{id}");
            assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
        }
        let different: std::collections::BTreeSet<&String> = ids.iter().collect();
        assert_eq!(different.len(), ids.len());
    }
}
