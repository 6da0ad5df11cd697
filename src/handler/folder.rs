//! A folder of the worker's own for what handlers read and write besides their
//! standard streams.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where files for handlers are made and read"
)]

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorKind, Result};

/// Readable for nobody else; removed with all that is in it when dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    next: AtomicU64,
}

impl Folder {
    /// Makes it where temporary files go.
    ///
    /// # Errors
    /// [`ErrorKind::InputOutput`] when that is impossible.
    pub(super) fn create() -> Result<Self> {
        let name = format!("mq-{}-{:016x}", std::process::id(), fastrand::u64(..));
        let path = std::env::temp_dir().join(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| {
                Error::new(
                    ErrorKind::InputOutput,
                    format!(
                        "cannot make the folder {} for handlers: {error}",
                        path.display()
                    ),
                )
                .hint("set TMPDIR to a folder that can be written")
            })?;
        Ok(Self {
            path,
            next: AtomicU64::new(0),
        })
    }

    /// A file name that no other attempt has, of a file that is not there.
    pub(super) fn name(&self, what: &str) -> PathBuf {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.path.join(format!("{number}.{what}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Whoever removed it before did the same.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Reads the start of a file and removes it; `None` if there is none, or if it
/// is anything but a plain file: to open a pipe could take for ever.
pub(super) fn take(path: &Path, most_bytes: u64) -> Option<String> {
    if !std::fs::symlink_metadata(path).ok()?.is_file() {
        remove(path);
        return None;
    }
    let file = File::open(path).ok()?;
    let mut text = Vec::new();
    let read = file.take(most_bytes).read_to_end(&mut text);
    let _ = std::fs::remove_file(path);
    read.ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Writes a new file.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    std::fs::write(path, text)
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}
