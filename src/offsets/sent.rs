//! How far the messages of a source are published, kept in a file.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, ErrorKind, Result};
use crate::offsets::small_file::{Lock, SmallFile};
use crate::output::Lines;

/// How far a source is published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// What the source is called.
    pub source: String,
    /// The number of the last message of which all before it and itself are
    /// settled; 0: none.
    pub settled: u64,
    /// What that message is known by, to see whether the source is the same.
    pub mark: String,
    /// What all runs over this source have in common: ids of messages are made of
    /// it, so that one that is sent again has the id it had.
    pub run: String,
    /// Those of them that reached no queue and that no run has told yet at its end.
    #[serde(default)]
    pub unroutable: Lines,
}

impl Sent {
    /// The id of a message: a UUID of version 8 (RFC 9562), the same each time.
    #[must_use]
    pub fn id(&self, number: u64) -> String {
        let digest = Sha256::digest(format!("{} {number}", self.run));
        let mut bytes = [0; 16];
        bytes
            .iter_mut()
            .zip(digest)
            .for_each(|(byte, from)| *byte = from);
        uuid(u128::from_be_bytes(bytes), 8)
    }
}

/// A UUID of random or digested bits; `version` is 4 or 8.
#[must_use]
pub fn uuid(bits: u128, version: u8) -> String {
    let marked =
        bits & !(0xf << 76) & !(0x3 << 62) | u128::from(version & 0xf) << 76 | 0x2_u128 << 62;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        marked >> 96,
        marked >> 80 & 0xffff,
        marked >> 64 & 0xffff,
        marked >> 48 & 0xffff,
        marked & 0xffff_ffff_ffff
    )
}

/// The file that keeps it, for one run at a time.
#[derive(Debug)]
pub struct SentFile {
    file: SmallFile,
    _lock: Lock,
}

impl SentFile {
    /// Reads how far `source` came; a new one starts, as `run`. Proves that the
    /// file can be written, and locks it (`FILE.lock`) for as long as this lives.
    ///
    /// # Errors
    /// When it is damaged, of another source, or cannot be read or written;
    /// [`ErrorKind::Refused`] while another run has it.
    pub fn open(path: PathBuf, source: &str, run: &str) -> Result<(Self, Sent)> {
        let file = SmallFile::new(path);
        let lock = file
            .lock()
            .map_err(|error| cannot(&file, "lock", &error))?
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Refused,
                    format!(
                        "the file '{}' for --resume is in use by another run",
                        file.path().display()
                    ),
                )
                .hint("wait until it has ended")
            })?;
        let this = Self { file, _lock: lock };
        let text = this
            .file
            .read()
            .map_err(|error| cannot(&this.file, "read", &error))?;
        this.file
            .can_be_written()
            .map_err(|error| cannot(&this.file, "write", &error))?;
        let Some(text) = text else {
            let sent = Sent {
                source: source.to_owned(),
                run: run.to_owned(),
                ..Sent::default()
            };
            this.keep(&sent)?;
            return Ok((this, sent));
        };
        let path = this.file.path().display();
        let sent: Sent = serde_json::from_slice(&text).map_err(|error| {
            Error::new(
                ErrorKind::InvalidInput,
                format!("the file '{path}' for --resume is damaged: {error}"),
            )
            .hint("restore it; or remove it to start from the beginning")
        })?;
        if sent.source != source {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "the file '{path}' for --resume is about '{}', not about '{source}'",
                    sent.source
                ),
            )
            .hint("each source and each place to publish to needs a file of its own"));
        }
        Ok((this, sent))
    }

    /// Replaces what is kept: afterwards the file has the old or the new, also
    /// after a power cut.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, sent: &Sent) -> Result<()> {
        let mut text = serde_json::to_vec(sent).map_err(|error| {
            Error::new(ErrorKind::Internal, format!("cannot write JSON: {error}"))
        })?;
        text.push(b'\n');
        self.file
            .replace(&text)
            .map_err(|error| cannot(&self.file, "write", &error))
    }
}

fn cannot(file: &SmallFile, what: &str, error: &io::Error) -> Error {
    Error::new(
        ErrorKind::InputOutput,
        format!(
            "cannot {what} the file '{}' for --resume: {error}",
            file.path().display()
        ),
    )
    .hint("check its folder, its permissions and the free space")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_and_the_same_for_the_same_run_and_number() {
        assert_eq!(uuid(u128::MAX, 4), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid(0, 8), "00000000-0000-8000-8000-000000000000");
        let of = |run: &str| Sent {
            run: run.to_owned(),
            ..Sent::default()
        };
        assert_eq!(of("a").id(1), of("a").id(1));
        assert_ne!(of("a").id(1), of("a").id(2));
        assert_ne!(of("a").id(1), of("b").id(1));
    }

    #[test]
    fn what_is_kept_is_found_again_for_the_same_source_only() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("state");
        let open = |source: &str, run: &str| SentFile::open(path.clone(), source, run);
        let (file, mut sent) = open("a.jsonl", "r1").expect("new");
        assert_eq!((sent.settled, sent.run.as_str()), (0, "r1"));
        sent.settled = 7;
        sent.unroutable.add(3);
        file.keep(&sent).expect("kept");
        let error = open("a.jsonl", "r2").expect_err("another run");
        assert_eq!(error.kind(), ErrorKind::Refused);
        drop(file);
        assert_eq!(open("a.jsonl", "r2").expect("again").1, sent);
        let error = open("b.jsonl", "r3").expect_err("foreign");
        assert!(error.message().contains("is about 'a.jsonl'"), "{error}");
        SmallFile::new(path.clone()).replace(b"{").expect("damaged");
        assert_eq!(
            open("a.jsonl", "r4").expect_err("damaged").kind(),
            ErrorKind::InvalidInput
        );
    }
}
