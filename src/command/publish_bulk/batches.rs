//! Messages are read, understood and filled, and sent on in batches.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where messages are read from files and standard input, and filled by the clock and chance"
)]

use std::io::{BufRead as _, BufReader, Read};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::super::publish_prototype::{Body, filling};
use super::source::{Batch, Item, Reading, Source, files_of, open, unreadable};
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Filling, Publication, read_message_line};
use crate::offsets::{Marks, uuid};

/// Batches that are read ahead.
const READ_AHEAD: usize = 2;

/// Messages and bytes of bodies in a batch, at most.
const BATCH: usize = 128;
const BATCH_BYTES: usize = 256 * 1024;

/// The longest line, in bytes: what a broker takes, however it is escaped.
const LONGEST: u64 = 1024 * 1024 * 1024;

/// Reads ahead, on a thread of its own: standard input may be slow, and signals
/// and the broker are to be listened to meanwhile.
///
/// # Errors
/// When there is nothing of the source's name, or it cannot be opened.
pub(super) fn read(source: Source, reading: Reading) -> Result<mpsc::Receiver<Batch>> {
    let (send, receive) = mpsc::channel(READ_AHEAD);
    let mut batches = Batches {
        source: source.clone(),
        reading,
        send,
        batch: Vec::new(),
        bytes: 0,
    };
    match source {
        Source::JsonLines(path) | Source::Lines(path) => {
            let reader = open(&path)?;
            spawn(move || batches.lines(reader))
        }
        Source::Files(path) => {
            let files = files_of(&path)?;
            spawn(move || batches.files(&files))
        }
        Source::Repeat(count, body, _) => spawn(move || batches.repeat(count, &body)),
    }?;
    Ok(receive)
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

/// Messages that are read and sent on in batches.
struct Batches {
    source: Source,
    reading: Reading,
    send: mpsc::Sender<Batch>,
    batch: Batch,
    bytes: usize,
}

/// Whether anybody still wants more.
type IsWanted = bool;

impl Batches {
    /// Lines as they come: what is there is sent on before more is waited for.
    fn lines(&mut self, mut reader: BufReader<Box<dyn Read + Send>>) {
        let settled = self.settled();
        let mut marks = self.reading.settled.as_ref().map(|_| Marks::default());
        let mut last = 0;
        for number in 1.. {
            if !reader.buffer().contains(&b'\n') && !self.flush() {
                return;
            }
            let mut bytes = Vec::new();
            match reader.by_ref().take(LONGEST).read_until(b'\n', &mut bytes) {
                Ok(0) => break,
                Ok(_) => last = number,
                Err(error) => {
                    self.end(unreadable(&self.source.name(), &error));
                    return;
                }
            }
            if let Some(marks) = &mut marks {
                marks.add(&bytes);
            }
            if number < settled {
                continue;
            }
            let mark = marks.map(|marks| marks.mark());
            let line = if number == settled && settled > 0 {
                if self.is_settled_at(mark.as_ref()) {
                    continue;
                }
                Err(changed())
            } else if bytes.len() as u64 >= LONGEST {
                Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!("it has more than {LONGEST} bytes"),
                ))
            } else {
                match &self.source {
                    Source::Lines(_) => self.body_line(number, bytes).map(Some),
                    _ => whole_message(&bytes),
                }
            };
            match line {
                Ok(None) => {}
                Ok(Some(message)) => {
                    if !self.add(number, message, mark) {
                        return;
                    }
                }
                Err(error) => {
                    self.end_at(number, error);
                    return;
                }
            }
        }
        if last < settled {
            self.end_at(settled, changed());
        } else {
            self.flush();
        }
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
        let body = self
            .reading
            .prototype
            .body(bytes, self.reading.environment)
            // It stands in the source, not on the command line.
            .map_err(|error| error.as_kind(ErrorKind::InvalidInput))?
            .fill(with);
        self.reading.prototype.message(with, body)
    }

    fn filling(&self, number: u64, file: &str) -> Filling {
        if !self.reading.prototype.fills() {
            return Filling::default();
        }
        Filling {
            uuid: self.id(number),
            ..filling(number, file)
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
                    if !self.add(number, message, None) {
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
        let numbers = self.settled() + 1..=count;
        if !self.reading.prototype.fills() && self.reading.additions.are_none() {
            let with = Filling::default();
            return match self.reading.prototype.message(&with, body.fill(&with)) {
                Ok(message) => self.same(numbers, &Arc::new(message)),
                Err(error) => self.end_at(*numbers.start(), error),
            };
        }
        for number in numbers {
            let with = self.filling(number, "");
            match self.reading.prototype.message(&with, body.fill(&with)) {
                Ok(message) => {
                    let mark = self.reading.settled.is_some().then(String::new);
                    if !self.add(number, message, mark) {
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

    /// The same message for all numbers.
    fn same(&mut self, numbers: RangeInclusive<u64>, message: &Arc<Publication>) {
        let keeps = self.reading.settled.is_some();
        for number in numbers {
            if !self.push(number, Arc::clone(message), keeps.then(String::new)) {
                return;
            }
        }
        self.flush();
    }

    /// The number of the last message that was settled before; 0: none.
    fn settled(&self) -> u64 {
        self.reading.settled.as_ref().map_or(0, |sent| sent.settled)
    }

    fn is_settled_at(&self, mark: Option<&String>) -> bool {
        self.reading.settled.as_ref().map(|sent| &sent.mark) == mark
    }

    fn id(&self, number: u64) -> String {
        match &self.reading.settled {
            Some(sent) => sent.id(number),
            None => uuid(fastrand::u128(..), 4),
        }
    }

    fn add(&mut self, number: u64, mut message: Publication, mark: Option<String>) -> IsWanted {
        let added = (self.reading.additions).add(&mut message, || self.id(number));
        match added {
            Ok(()) => self.push(number, Arc::new(message), mark),
            Err(error) if self.reading.is_dry_run => {
                self.batch
                    .push(Err(error.during(&self.source.place(number))));
                self.flush_if_full()
            }
            Err(error) => {
                self.end_at(number, error);
                false
            }
        }
    }

    fn push(&mut self, number: u64, message: Arc<Publication>, mark: Option<String>) -> IsWanted {
        self.bytes += message.body.len();
        self.batch.push(Ok(Item {
            number,
            message,
            mark,
        }));
        self.flush_if_full()
    }

    fn flush_if_full(&mut self) -> IsWanted {
        let is_full = self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES;
        !is_full || self.flush()
    }

    fn flush(&mut self) -> IsWanted {
        self.bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        batch.is_empty() || self.send.blocking_send(batch).is_ok()
    }

    fn end_at(&mut self, number: u64, error: Error) {
        self.end(self.source.wrong_at(number, error));
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

/// The source is not what it was.
fn changed() -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        "up to here it is not what was settled before: the source has changed",
    )
    .hint("--resume goes on with the same source only; for another one name another file")
}
