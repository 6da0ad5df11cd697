//! A small file that is replaced as a whole.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a position meets the file system"
)]

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::output::{can_be_replaced, replace_bytes};

/// More than any position needs, in bytes: a device may never end.
const LONGEST: u64 = 64 * 1024;

/// How often a lock is tried whose file was removed by who had it before.
const TRIES: usize = 5;

/// A file whose content is replaced as a whole: afterwards it has the old one or
/// the new one, also after a power cut.
#[derive(Clone, Debug)]
pub(super) struct SmallFile {
    path: PathBuf,
}

/// Held as long as it lives; the kernel takes it from a process that dies.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
    path: PathBuf,
    /// Whether its file was not there before.
    is_new: bool,
}

impl Lock {
    /// Gives it back as if nobody had ever had it: a file that was made for it is
    /// removed. That is safe as long as it is held, for who opened the file before
    /// looks whether it is still there ([`SmallFile::lock`]).
    pub(super) fn undo(self) {
        if self.is_new {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl SmallFile {
    /// It need not exist yet.
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Its path, as it was given.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it, at most 64 KiB; `None` when there is no file.
    pub(super) fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Locks a file of the same name and `.lock`, which stays there: the file
    /// itself is another one after each replacement. `None`: somebody else has it.
    pub(super) fn lock(&self) -> io::Result<Option<Lock>> {
        let path = lock_of(&self.path);
        for _ in 0..TRIES {
            let (file, is_new) = opened_or_made(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if is_at(&file, &path)? {
                return Ok(Some(Lock {
                    _file: file,
                    path,
                    is_new,
                }));
            }
        }
        Ok(None)
    }

    /// Proves that it can be written, and changes nothing.
    pub(super) fn can_be_written(&self) -> io::Result<()> {
        can_be_replaced(&self.path)
    }

    /// Replaces what is in it.
    pub(super) fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        replace_bytes(&self.path, bytes)
    }
}

/// The file whose lock is the lock of `path`.
pub(super) fn lock_of(path: &Path) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(".lock");
    name.into()
}

/// Whether it was made is only known where making it may fail.
fn opened_or_made(path: &Path) -> io::Result<(File, bool)> {
    let made = OpenOptions::new().write(true).create_new(true).open(path);
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut options = OpenOptions::new();
            let opened = options.write(true).create(true).truncate(false).open(path);
            opened.map(|file| (file, false))
        }
        made => made.map(|file| (file, true)),
    }
}

/// Whether the open file is the one that the path leads to.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_undone_only_by_who_made_its_file() {
        let folder = tempfile::tempdir().expect("folder");
        let file = SmallFile::new(folder.path().join("state"));
        let path = folder.path().join("state.lock");
        let lock = file.lock().expect("lock").expect("free");
        assert!(file.lock().expect("lock").is_none());
        // Who opened it before it went must not believe to have it afterwards.
        let (old, is_new) = opened_or_made(&path).expect("open");
        assert!(!is_new && is_at(&old, &path).expect("look"));
        lock.undo();
        assert!(!path.exists() && !is_at(&old, &path).expect("look"));
        drop(file.lock().expect("lock").expect("free"));
        assert!(path.exists() && !is_at(&old, &path).expect("look"));
        file.lock().expect("lock").expect("free").undo();
        assert!(path.exists());
    }
}
