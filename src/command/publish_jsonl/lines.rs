//! The lines of a file, read and understood ahead.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where messages are read from a file or standard input"
)]

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use tokio::sync::mpsc;

use crate::error::{Error, ErrorKind, Result};
use crate::message::{Publication, read_message_line};

/// Messages that are read ahead.
const READ_AHEAD: usize = 4;

/// The longest line, in bytes: what a broker takes, however it is escaped.
const LONGEST: u64 = 1024 * 1024 * 1024;

/// A message with the number of its line.
pub(super) type Line = Result<(u64, Publication)>;

pub(super) fn file_name(path: &Path) -> String {
    if path.as_os_str() == "-" {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// Reads and understands lines ahead, on a thread of its own: standard input may
/// be slow, and signals and the broker are to be listened to meanwhile.
pub(super) fn read(path: &Path) -> Result<mpsc::Receiver<Line>> {
    let file = file_name(path);
    let reader: Box<dyn BufRead + Send> = if path.as_os_str() == "-" {
        Box::new(BufReader::new(io::stdin()))
    } else {
        Box::new(BufReader::with_capacity(
            1024 * 1024,
            File::open(path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Error::new(
                    ErrorKind::InputMissing,
                    format!("the file {file} does not exist"),
                )
                .hint("check the path"),
                _ => unreadable(&file, &error),
            })?,
        ))
    };
    let (send, receive) = mpsc::channel(READ_AHEAD);
    std::thread::Builder::new()
        .name("lines".to_owned())
        .spawn(move || send_lines(reader, &file, &send))
        .map_err(|error| {
            Error::new(
                ErrorKind::Internal,
                format!("cannot start a thread that reads: {error}"),
            )
        })?;
    Ok(receive)
}

fn send_lines(mut reader: Box<dyn BufRead + Send>, file: &str, send: &mpsc::Sender<Line>) {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let line = match reader.by_ref().take(LONGEST).read_until(b'\n', &mut bytes) {
            Ok(0) => return,
            Ok(_) if bytes.trim_ascii().is_empty() => continue,
            Ok(_) => understood(&bytes).map_err(|error| {
                let error = error.during(&format!("{file}:{number}"));
                match error.way_out() {
                    Some(_) => error,
                    None => {
                        error.hint("correct the line, or take it out; those before it were sent")
                    }
                }
            }),
            Err(error) => Err(unreadable(file, &error)),
        };
        let is_last = line.is_err();
        let sent = send.blocking_send(line.map(|message| (number, message)));
        if is_last || sent.is_err() {
            return;
        }
    }
}

fn understood(bytes: &[u8]) -> Result<Publication> {
    let invalid = |what: String| Error::new(ErrorKind::InvalidInput, what);
    if bytes.len() as u64 >= LONGEST {
        return Err(invalid(format!("it has more than {LONGEST} bytes")));
    }
    let text =
        std::str::from_utf8(bytes).map_err(|error| invalid(format!("it is not UTF-8: {error}")))?;
    read_message_line(text)
}

fn unreadable(file: &str, error: &io::Error) -> Error {
    Error::new(
        ErrorKind::InputOutput,
        format!("cannot read {file}: {error}"),
    )
}
