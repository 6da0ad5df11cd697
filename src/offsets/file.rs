//! A position in a file: small JSON, replaced as a whole.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::offsets::small_file::SmallFile;
use crate::topology::{QueueName, VhostName};

/// The file that keeps the position of one reader of one stream.
#[derive(Clone, Debug)]
pub struct OffsetFile {
    file: SmallFile,
    vhost: String,
    queue: String,
}

#[derive(Serialize, Deserialize)]
struct Content {
    vhost: String,
    queue: String,
    next_offset: u64,
}

impl OffsetFile {
    /// For this stream; the file need not exist yet.
    #[must_use]
    pub fn new(path: PathBuf, vhost: &VhostName, queue: &QueueName) -> Self {
        Self {
            file: SmallFile::new(path),
            vhost: vhost.as_str().to_owned(),
            queue: queue.as_str().to_owned(),
        }
    }

    /// The offset that is to be read next; `None` when there is no file. Proves
    /// that the file can be written.
    ///
    /// # Errors
    /// When it is damaged, of another stream, or cannot be read or written.
    pub fn open(&self) -> Result<Option<u64>> {
        let text = match self.file.read() {
            Ok(Some(text)) => text,
            Ok(None) => {
                self.file
                    .can_be_written()
                    .map_err(|error| self.cannot("write", &error))?;
                return Ok(None);
            }
            Err(error) => return Err(self.cannot("read", &error)),
        };
        let path = self.file.path().display();
        let content: Content = serde_json::from_slice(&text).map_err(|error| {
            Error::new(
                ErrorKind::InvalidInput,
                format!("the offset file '{path}' is damaged: {error}"),
            )
            .hint("restore it; or remove it and say with --from where to start")
        })?;
        if (&content.vhost, &content.queue) != (&self.vhost, &self.queue) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "the offset file '{path}' is of queue '{}' in vhost '{}', not of queue '{}' in vhost '{}'",
                    content.queue, content.vhost, self.queue, self.vhost
                ),
            )
            .hint("each reader of each stream needs an --offset-file of its own"));
        }
        self.keep(content.next_offset)?;
        Ok(Some(content.next_offset))
    }

    /// Replaces the position: afterwards the file has the old one or the new
    /// one, also after a power cut.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, next_offset: u64) -> Result<()> {
        self.replace(next_offset)
            .map_err(|error| self.cannot("write", &error))
    }

    fn replace(&self, next_offset: u64) -> io::Result<()> {
        let content = Content {
            vhost: self.vhost.clone(),
            queue: self.queue.clone(),
            next_offset,
        };
        let mut text = serde_json::to_vec(&content)?;
        text.push(b'\n');
        self.file.replace(&text)
    }

    fn cannot(&self, what: &str, error: &io::Error) -> Error {
        Error::new(
            ErrorKind::InputOutput,
            format!(
                "cannot {what} the offset file '{}': {error}",
                self.file.path().display()
            ),
        )
        .hint("check its folder, its permissions and the free space")
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a file is damaged, and files are counted"
)]
mod tests {
    use std::path::Path;

    use super::*;

    fn file(folder: &Path, queue: &str) -> OffsetFile {
        let vhost = VhostName::new("v").expect("vhost");
        OffsetFile::new(
            folder.join("offset.json"),
            &vhost,
            &QueueName::new(queue).expect("queue"),
        )
    }

    #[test]
    fn what_is_kept_is_found_again_by_the_same_reader_only() {
        let folder = tempfile::tempdir().expect("folder");
        let mine = file(folder.path(), "mine");
        assert_eq!(mine.open(), Ok(None));
        mine.keep(7).expect("kept");
        mine.keep(8).expect("kept");
        assert_eq!(mine.open(), Ok(Some(8)));
        let error = file(folder.path(), "other").open().expect_err("foreign");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.message().contains("of queue 'mine'"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
    }

    #[test]
    fn a_damaged_file_is_an_error_and_never_a_fresh_start() {
        let folder = tempfile::tempdir().expect("folder");
        let file = file(folder.path(), "q");
        for text in [
            "",
            "{",
            "7",
            r#"{"vhost":"v","queue":"q","next_offset":-1}"#,
        ] {
            std::fs::write(file.file.path(), text).expect("written");
            let error = file.open().expect_err("damaged");
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains("offset.json"), "{error}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_told_at_once() {
        let folder = tempfile::tempdir().expect("folder");
        let error = file(&folder.path().join("gone"), "q")
            .open()
            .expect_err("no folder");
        assert_eq!(error.kind(), ErrorKind::InputOutput);
    }
}
