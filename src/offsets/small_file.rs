//! A small file that is replaced as a whole.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a position meets the file system"
)]

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// More than any position needs, in bytes: a device may never end.
const LONGEST: u64 = 64 * 1024;

/// A file whose content is replaced as a whole: afterwards it has the old one or
/// the new one, also after a power cut.
#[derive(Clone, Debug)]
pub(super) struct SmallFile {
    path: PathBuf,
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

    /// Proves that it can be written, and changes nothing.
    pub(super) fn can_be_written(&self) -> io::Result<()> {
        let new = self.new_file();
        File::create(&new).and_then(|_| fs::remove_file(&new))
    }

    /// Replaces what is in it.
    pub(super) fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let new = self.new_file();
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        let folder = match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            Some(_) | None => Path::new("."),
        };
        File::open(folder)?.sync_all()
    }

    /// In the same folder, for only there it can be renamed.
    fn new_file(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        self.path.with_file_name(name)
    }
}
