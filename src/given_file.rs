//! A small file that a flag names: read within a limit, and only up to a size.
//!
//! It may be a pipe, such as `<(pass show broker)` of a shell, whose writer never
//! comes, or a device that never ends.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where files of certificates and passwords are read"
)]

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// More than any bundle of certificates has, in bytes.
pub const LONGEST: usize = 1024 * 1024;

/// Reads all of it, at most [`LONGEST`] bytes, in at most `limit`.
///
/// # Errors
/// Those of the system; [`io::ErrorKind::TimedOut`] when it did not come to its
/// end in time, and [`io::ErrorKind::FileTooLarge`].
pub fn read(path: &Path, limit: Duration) -> io::Result<Vec<u8>> {
    // A regular file does not wait for anybody, and a thread costs time.
    if std::fs::metadata(path)?.is_file() {
        return whole(path);
    }
    let (tell, told) = mpsc::sync_channel(1);
    let path = path.to_owned();
    // Nothing ends a read that waits for a writer: the thread is left behind.
    thread::Builder::new()
        .name("read a given file".to_owned())
        .spawn(move || {
            let _ = tell.send(whole(&path));
        })?;
    told.recv_timeout(limit).unwrap_or_else(|_| {
        // A limit that is what is left of another one has odd nanoseconds.
        let milliseconds = u64::try_from(limit.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
        let limit = humantime::format_duration(Duration::from_millis(milliseconds));
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("it is a pipe or a device, and nobody wrote it to its end within {limit}"),
        ))
    })
}

fn whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let more_than_enough = LONGEST as u64 + 1;
    File::open(path)?
        .take(more_than_enough)
        .read_to_end(&mut bytes)?;
    if bytes.len() > LONGEST {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it is larger than 1 MiB",
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};

    const SOON: Duration = Duration::from_millis(50);

    #[test]
    fn waits_for_a_writer_only_so_long() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        mkfifoat(CWD, &pipe, Mode::RWXU).expect("a pipe");
        let error = read(&pipe, SOON).expect_err("nobody writes");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("within 50ms"), "{error}");

        let other = folder.path().join("other");
        mkfifoat(CWD, &other, Mode::RWXU).expect("a pipe");
        let to = other.clone();
        let writer = thread::spawn(move || std::fs::write(to, "hello").expect("written"));
        let text = read(&other, Duration::from_mins(1)).expect("read");
        assert_eq!(text, b"hello");
        writer.join().expect("done");
    }

    #[test]
    fn has_an_end() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), vec![b'x'; LONGEST]).expect("written");
        assert_eq!(read(file.path(), SOON).expect("fits").len(), LONGEST);
        std::fs::write(file.path(), vec![b'x'; LONGEST + 1]).expect("written");
        let device = Path::new("/dev/zero");
        for path in [file.path(), device] {
            let error = read(path, Duration::from_mins(1)).expect_err("too large");
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{error}");
        }
    }
}
