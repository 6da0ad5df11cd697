//! A file that is replaced as a whole: whoever reads it sees the old or the new one.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a report meets the file system"
)]

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};

/// Puts `text` in the place of the file. A file beside it, whose name ends with
/// `.new` and the number of this process, is there meanwhile.
///
/// # Errors
/// [`ErrorKind::InputOutput`]; the file is as it was then.
pub fn replace_file(path: &Path, text: &str) -> Result<()> {
    let cannot = |error: &io::Error| {
        Error::new(
            ErrorKind::InputOutput,
            format!("cannot write '{}': {error}", path.display()),
        )
        .hint("check that its folder exists, may be written to, and has free space")
    };
    let mut name = path
        .file_name()
        .ok_or_else(|| cannot(&io::Error::from(io::ErrorKind::IsADirectory)))?
        .to_owned();
    name.push(format!(".new{}", std::process::id()));
    let new = path.with_file_name(name);
    let written = File::create(&new)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&new);
        cannot(&error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_replaced_and_nothing_stays_behind() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("mq.prom");
        for text in ["one", "two"] {
            replace_file(&path, text).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("read"), text);
        }
        let error = replace_file(folder.path(), "three").expect_err("a folder");
        assert_eq!(error.kind(), ErrorKind::InputOutput);
        let nowhere = folder.path().join("nowhere/mq.prom");
        assert!(replace_file(&nowhere, "three").is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 1);
    }
}
