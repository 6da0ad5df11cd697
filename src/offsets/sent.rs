//! How far the messages of a source are published, kept in a file.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, ErrorKind, Result};
use crate::offsets::small_file::{Lock, SmallFile, lock_of};
use crate::output::Lines;

/// What the content of the file means. Before it was written there, the mark was of
/// one line only, and the source was known by its name alone.
const FORM: u32 = 2;

/// Bytes of a digest that are kept.
const MARK_BYTES: usize = 16;

/// How far a source is published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// What the rest means: 2; 0, where it is missing, is what it was before.
    #[serde(default)]
    pub form: u32,
    /// What tells the source and where it is published to from others.
    pub source: String,
    /// The number of the last message of which all before it and itself are
    /// settled; 0: none.
    pub settled: u64,
    /// What that message and all before it are known by, to see whether the source
    /// is the same; empty where that is known without it.
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

/// What lines are known by, in their order: a digest of each and of all before it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks([u8; MARK_BYTES]);

impl Marks {
    /// The next line; its end (LF or CR LF) is no part of it, for the last one may
    /// get one later.
    pub fn add(&mut self, line: &[u8]) {
        let line = match line.strip_suffix(b"\n") {
            Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
            None => line,
        };
        let digest = Sha256::new().chain_update(self.0).chain_update(line);
        self.0
            .iter_mut()
            .zip(digest.finalize())
            .for_each(|(byte, from)| *byte = from);
    }

    /// The mark of all lines so far: SHA-256 over what came before and the line, 32
    /// digits.
    #[must_use]
    pub fn mark(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
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
    lock: Lock,
}

impl SentFile {
    /// The file beside it that lets one run at a time have it.
    #[must_use]
    pub fn lock_of(path: &Path) -> PathBuf {
        lock_of(path)
    }

    /// Reads how far `source` came; a new one starts, as `run`. Proves that the
    /// file can be written, and locks it (`FILE.lock`) for as long as this lives.
    /// Where that fails, no lock is left that was not there before.
    ///
    /// # Errors
    /// When it is damaged, of another source or version, or cannot be read or
    /// written; [`ErrorKind::Refused`] while another run has it.
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
        let this = Self { file, lock };
        match this.begun(source, run) {
            Ok(sent) => Ok((this, sent)),
            Err(error) => {
                this.lock.undo();
                Err(error)
            }
        }
    }

    /// How far it came; it is written first where there is none.
    fn begun(&self, source: &str, run: &str) -> Result<Sent> {
        let text = self
            .file
            .read()
            .map_err(|error| cannot(&self.file, "read", &error))?;
        self.file
            .can_be_written()
            .map_err(|error| cannot(&self.file, "write", &error))?;
        let Some(text) = text else {
            let sent = Sent {
                form: FORM,
                source: source.to_owned(),
                run: run.to_owned(),
                ..Sent::default()
            };
            self.keep(&sent)?;
            return Ok(sent);
        };
        let path = self.file.path().display();
        let sent: Sent = serde_json::from_slice(&text).map_err(|error| {
            Error::new(
                ErrorKind::InvalidInput,
                format!("the file '{path}' for --resume is damaged: {error}"),
            )
            .hint("restore it; or remove it to start from the beginning")
        })?;
        if sent.form != FORM {
            let when = if sent.form < FORM {
                "an earlier"
            } else {
                "a later"
            };
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "the file '{path}' for --resume is of {when} version of mq, which kept it in another form; by it the first {} of '{}' are settled",
                    sent.settled, sent.source
                ),
            )
            .hint("finish with that version; or take what is settled out of the source, and name another file"));
        }
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
        Ok(sent)
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
        // A file that is not ours is left with nothing beside it.
        let lock = SentFile::lock_of(&path);
        std::fs::remove_file(&lock).expect("remove");
        for (text, says) in [
            ("{", "is damaged"),
            (
                r#"{"source":"a.jsonl","settled":7,"mark":"0123456789abcdef","run":"r1"}"#,
                "an earlier version of mq",
            ),
            (
                r#"{"form":3,"source":"a.jsonl","settled":7,"mark":"","run":"r1"}"#,
                "a later version of mq",
            ),
        ] {
            let file = SmallFile::new(path.clone());
            file.replace(text.as_bytes()).expect("written");
            let error = open("a.jsonl", "r4").expect_err(says);
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.message().contains(says), "{error}");
            assert!(!lock.exists(), "{says}");
        }
        assert!(SentFile::open(folder.path().to_owned(), "a.jsonl", "r5").is_err());
        assert!(!SentFile::lock_of(folder.path()).exists());
    }

    #[test]
    fn a_mark_is_of_a_line_and_all_before_it_but_of_no_line_end() {
        let of = |lines: &[&str]| {
            let mut marks = Marks::default();
            for line in lines {
                marks.add(line.as_bytes());
            }
            marks.mark()
        };
        let mark = of(&["a\n", "b\n"]);
        assert_eq!(mark.len(), 32);
        for same in [["a\n", "b"], ["a\r\n", "b\r\n"]] {
            assert_eq!(of(&same), mark, "{same:?}");
        }
        for other in [
            &["x\n", "b\n"][..],
            &["a\n", "b \n"],
            &["a\n", "b\r"],
            &["b\n", "a\n"],
            &["b\n"],
            &["ab\n"],
            &["a\n", "\n", "b\n"],
        ] {
            assert_ne!(of(other), mark, "{other:?}");
        }
    }
}
