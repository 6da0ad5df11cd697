//! A file that grows line by line, of which it is known what is on disk.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where folders are opened to have them on disk too"
)]

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind as IoKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// Lines are kept back until [`Self::write`]; what [`Self::sync`] came back from
/// without an error survives the process and the machine.
#[derive(Debug)]
pub struct LineFile {
    file: File,
    path: PathBuf,
    waiting: Vec<u8>,
    /// Its length when it was last on disk: what is behind may be torn.
    on_disk: u64,
    /// Its length after the last whole write.
    whole: u64,
    is_new: bool,
    is_regular: bool,
    /// Why a write failed: there would be a gap before any line after it.
    failed: Option<Error>,
    is_deleted: bool,
}

/// What may be at the path already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Nothing, not even a link that leads nowhere.
    Refuse,
    /// A file that the lines are added to; without one it is made.
    Append,
}

impl LineFile {
    /// Opens or makes the file, and has its name on disk.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when there is something at the path already,
    /// [`ErrorKind::TimedOut`] while another mq writes to it, and
    /// [`ErrorKind::InputOutput`] when it cannot be written.
    pub fn open(path: &Path, existing: Existing) -> Result<Self> {
        let mut options = OpenOptions::new();
        let opened = match existing {
            Existing::Refuse => options.write(true).create_new(true).open(path),
            Existing::Append => options.read(true).append(true).create(true).open(path),
        };
        let file = opened.map_err(|error| match error.kind() {
            IoKind::AlreadyExists => Error::new(
                ErrorKind::Usage,
                format!("{} is there already", path.display()),
            )
            .hint("name another file"),
            _ => failed(path, "open", &error),
        })?;
        let meta = file
            .metadata()
            .map_err(|error| failed(path, "look at", &error))?;
        if meta.is_file() {
            alone(&file, path)?;
        }
        // Whoever had it before may have added to it.
        let meta = file
            .metadata()
            .map_err(|error| failed(path, "look at", &error))?;
        let mut opened = Self {
            file,
            path: path.to_owned(),
            waiting: Vec::new(),
            on_disk: meta.len(),
            whole: meta.len(),
            is_new: meta.len() == 0,
            is_regular: meta.is_file(),
            failed: None,
            is_deleted: false,
        };
        if opened.is_regular {
            opened.end_torn_line()?;
            opened.sync_folder()?;
        }
        Ok(opened)
    }

    /// Whether it is a file of a disk, and no pipe, terminal or device: only
    /// then can anything be said about what is safe.
    #[must_use]
    pub const fn can_be_safe(&self) -> bool {
        self.is_regular
    }

    /// Its path, as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether [`Self::sync`] found that it was deleted meanwhile.
    #[must_use]
    pub const fn is_deleted(&self) -> bool {
        self.is_deleted
    }

    /// Adds a line to those that are kept back; it goes nowhere once a write failed.
    pub fn push(&mut self, line: &str) {
        if self.failed.is_some() {
            return;
        }
        self.waiting.extend_from_slice(line.as_bytes());
        self.waiting.push(b'\n');
    }

    /// Hands everything to the operating system.
    ///
    /// # Errors
    /// When that fails, and each time from then on: no line is written behind one
    /// that is missing. What of it was written is taken back where it can be, and
    /// lines that were written before stay.
    pub fn write(&mut self) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let written = self.file.write_all(&self.waiting);
        let bytes = self.waiting.len() as u64;
        self.waiting.clear();
        written.map_err(|error| self.not_written(&error))?;
        self.whole += bytes;
        Ok(())
    }

    /// Writes everything and waits until the disk has it.
    ///
    /// # Errors
    /// When it cannot be said that it has; the same as for [`Self::write`] then.
    pub fn sync(&mut self) -> Result<()> {
        self.write()?;
        let synced = self.file.sync_all().and_then(|()| self.file.metadata());
        let meta = synced.map_err(|error| self.not_written(&error))?;
        if meta.nlink() == 0 {
            self.is_deleted = true;
            let error = Error::new(
                ErrorKind::InputOutput,
                format!("{} was deleted while it was written", self.path.display()),
            )
            .hint("what was in it is gone with it");
            return Err(self.failed.insert(error).clone());
        }
        self.on_disk = meta.len();
        Ok(())
    }

    /// Deletes the file if it was made for this and nothing is in it.
    pub fn discard_if_empty(self) {
        if self.is_new && self.is_regular && self.whole == 0 {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    fn not_written(&mut self, error: &std::io::Error) -> Error {
        if self.is_regular {
            // No half line is left, where the disk still does as it is told.
            let _ = self.file.set_len(self.whole);
            let _ = self.file.seek(SeekFrom::Start(self.whole));
            let _ = self.file.sync_all();
        }
        self.failed
            .insert(failed(&self.path, "write", error))
            .clone()
    }

    /// A line that somebody was interrupted in must not run into the first of ours.
    fn end_torn_line(&mut self) -> Result<()> {
        if self.on_disk == 0 {
            return Ok(());
        }
        let mut last = [0];
        self.file
            .seek(SeekFrom::End(-1))
            .and_then(|_| self.file.read_exact(&mut last))
            .map_err(|error| failed(&self.path, "read", &error))?;
        if last != *b"\n" {
            self.waiting.push(b'\n');
        }
        Ok(())
    }

    /// The name of a new file is on disk only once its folder is.
    fn sync_folder(&self) -> Result<()> {
        let synced = self.path.canonicalize().and_then(|path| {
            let folder = path.parent().unwrap_or(Path::new("/"));
            File::open(folder)?.sync_all()
        });
        match synced {
            // Some file systems have nothing to say about folders.
            Err(error) if error.kind() != IoKind::InvalidInput => {
                Err(failed(&self.path, "secure the folder of", &error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// One that fails takes back what it could not write, which must be nobody else's.
fn alone(file: &File, path: &Path) -> Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::new(
            ErrorKind::TimedOut,
            format!("another mq is writing to {}", path.display()),
        )
        .hint("wait until it has ended, or name another file")),
        // Some file systems have no locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

fn failed(path: &Path, doing: &str, error: &std::io::Error) -> Error {
    let kind = match error.kind() {
        IoKind::BrokenPipe => ErrorKind::ReaderGone,
        _ => ErrorKind::InputOutput,
    };
    Error::new(kind, format!("cannot {doing} {}: {error}", path.display()))
        .hint("check free space, the folder and its permissions")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).expect("read")
    }

    #[test]
    fn lines_are_whole_and_torn_ones_stay_apart() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("odd \n'\u{202e}name.jsonl");
        let mut file = LineFile::open(&path, Existing::Refuse).expect("open");
        assert!(file.can_be_safe());
        file.push("a");
        assert_eq!(read(&path), "");
        file.sync().expect("sync");
        assert_eq!(read(&path), "a\n");

        drop(file);
        let error = LineFile::open(&path, Existing::Refuse).expect_err("there");
        assert_eq!(error.kind(), ErrorKind::Usage);
        std::fs::write(&path, "a\n{\"torn").expect("write");
        let mut file = LineFile::open(&path, Existing::Append).expect("open");
        file.push("c");
        file.sync().expect("sync");
        assert_eq!(read(&path), "a\n{\"torn\nc\n");
    }

    #[test]
    fn after_a_failed_write_earlier_lines_stay_and_no_later_one_is_said_to_be_written() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("f");
        let mut file = LineFile::open(&path, Existing::Refuse).expect("open");
        file.push("a");
        file.write().expect("written");
        file.file.write_all(b"half a li").expect("torn");
        let _ = file.not_written(&std::io::Error::other("no space"));
        assert_eq!(read(&path), "a\n");
        file.push("c");
        for error in [file.write(), file.sync(), file.write()] {
            let error = error.expect_err("a line is missing");
            assert!(error.message().contains("no space"), "{error}");
        }
        assert_eq!(read(&path), "a\n");
    }

    #[test]
    fn two_do_not_write_to_one_file() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("f");
        let mut first = LineFile::open(&path, Existing::Append).expect("open");
        let error = LineFile::open(&path, Existing::Append).expect_err("in use");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        first.push("a");
        first.sync().expect("sync");
        drop(first);
        let second = LineFile::open(&path, Existing::Append).expect("free again");
        assert_eq!(second.whole, 2);
    }

    #[test]
    fn what_is_there_is_never_overwritten_nor_followed() {
        let folder = tempfile::tempdir().expect("folder");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("nowhere"), &link).expect("link");
        assert!(LineFile::open(&link, Existing::Refuse).is_err());
        assert!(LineFile::open(Path::new("/dev/full"), Existing::Refuse).is_err());
        assert!(LineFile::open(folder.path(), Existing::Append).is_err());
        let missing = folder.path().join("no/such/folder");
        let error = LineFile::open(&missing, Existing::Refuse).expect_err("folder");
        assert_eq!(error.kind(), ErrorKind::InputOutput);
    }

    #[test]
    fn a_full_disk_and_a_deleted_file_are_errors() {
        let mut full = LineFile::open(Path::new("/dev/full"), Existing::Append).expect("open");
        assert!(!full.can_be_safe());
        full.push("a");
        let error = full.sync().expect_err("full");
        assert_eq!(error.kind(), ErrorKind::InputOutput);

        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("gone");
        let mut file = LineFile::open(&path, Existing::Refuse).expect("open");
        std::fs::remove_file(&path).expect("remove");
        file.push("a");
        let error = file.sync().expect_err("deleted");
        assert!(error.message().contains("was deleted"), "{error}");
        assert!(file.is_deleted());
        file.push("b");
        assert!(file.write().is_err());
    }

    #[test]
    fn an_empty_file_of_ours_goes_and_one_of_others_stays() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("f");
        LineFile::open(&path, Existing::Refuse)
            .expect("open")
            .discard_if_empty();
        assert!(!path.exists());
        std::fs::write(&path, "x\n").expect("write");
        LineFile::open(&path, Existing::Append)
            .expect("open")
            .discard_if_empty();
        assert!(path.exists());
    }
}
