//! A small file that is replaced as a whole.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a position meets the file system"
)]

use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::output::{can_be_replaced, replace_bytes};

/// More than any position needs, in bytes: a device may never end.
const LONGEST: u64 = 64 * 1024;

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
        let mut name = self.path.clone().into_os_string();
        name.push(".lock");
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(name)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
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
