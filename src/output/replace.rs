//! A file that is replaced as a whole: whoever reads it sees the old or the new one.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a report meets the file system"
)]

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// Links that are followed, at most.
const MOST_LINKS: usize = 40;

/// Puts `text` in the place of the file; see [`replace_bytes`].
///
/// # Errors
/// [`ErrorKind::InputOutput`]; the file is as it was then.
pub fn replace_file(path: &Path, text: &str) -> Result<()> {
    replace_bytes(path, text.as_bytes()).map_err(|error| {
        Error::new(
            ErrorKind::InputOutput,
            format!("cannot write '{}': {error}", path.display()),
        )
        .hint("check that its folder exists, may be written to, and has free space")
    })
}

/// Puts `bytes` in the place of what is in the file: afterwards it has the old or
/// the new, also after a power cut, and the permissions it had. A file beside it,
/// whose name ends with `.new` and the number of this process, is there meanwhile.
/// A link stays, and the file that it leads to is replaced; what is no file, such as
/// a device or a pipe, is written to as it is.
///
/// # Errors
/// The plain I/O error; the file is as it was then.
pub fn replace_bytes(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = &target(path)?;
    let old = match fs::metadata(path) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return fs::OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(bytes);
    }
    let new = beside(path)?;
    let written = File::create(&new)
        .and_then(|mut file| {
            if let Some(old) = &old {
                file.set_permissions(old.permissions())?;
            }
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written?;
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    };
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems have nothing to say about folders.
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Proves that [`replace_bytes`] can work there, and changes nothing.
///
/// # Errors
/// The plain I/O error.
pub fn can_be_replaced(path: &Path) -> io::Result<()> {
    let new = beside(&target(path)?)?;
    File::create(&new).and_then(|_| fs::remove_file(&new))
}

/// Where links lead to in the end.
pub(super) fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&path) else {
            return Ok(path);
        };
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(io::Error::other("there are too many links"))
}

/// In the same folder, for only there it can be renamed.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut name = path
        .file_name()
        .ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?
        .to_owned();
    name.push(format!(".new{}", std::process::id()));
    Ok(path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn it_is_replaced_and_nothing_stays_behind() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("mq.prom");
        for text in ["one", "two"] {
            replace_file(&path, text).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("read"), text);
        }
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("mq.prom", &link).expect("link");
        let private = fs::Permissions::from_mode(0o640);
        fs::set_permissions(&path, private.clone()).expect("permissions");
        replace_file(&link, "by link").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "by link");
        assert!(fs::symlink_metadata(&link).expect("link").is_symlink());
        let mode = fs::metadata(&path).expect("file").permissions().mode();
        assert_eq!(mode & 0o777, private.mode() & 0o777);
        fs::remove_file(&link).expect("removed");
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0)
            .expect("pipe");
        let reading = {
            let pipe = pipe.clone();
            std::thread::spawn(move || fs::read_to_string(pipe).expect("read"))
        };
        replace_file(&pipe, "through").expect("written");
        assert_eq!(reading.join().expect("reader"), "through");
        assert!(!fs::metadata(&pipe).expect("pipe").is_file());
        fs::remove_file(&pipe).expect("removed");
        let error = replace_file(folder.path(), "three").expect_err("a folder");
        assert_eq!(error.kind(), ErrorKind::InputOutput);
        let nowhere = folder.path().join("nowhere/mq.prom");
        assert!(replace_file(&nowhere, "three").is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 1);
    }
}
