//! Which file a path leads to, whatever it is called.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where standard input is looked at"
)]

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::replace::target;

/// A plain file, told from all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// One that is there.
    There {
        /// Its file system.
        device: u64,
        /// Its number there.
        inode: u64,
    },
    /// One that is not there yet: its path, with no link in it.
    Free(PathBuf),
}

impl Place {
    /// That of a path; none where there is something else than a plain file (a
    /// pipe, a device, a folder), or nothing can be made.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        match fs::metadata(path) {
            Ok(there) => Self::of_plain(&there),
            Err(_) => free(path),
        }
    }

    /// What standard input is read from.
    #[must_use]
    pub fn of_standard_input() -> Option<Self> {
        Self::of_open(io::stdin())
    }

    /// What standard output goes to.
    #[must_use]
    pub fn of_standard_output() -> Option<Self> {
        Self::of_open(io::stdout())
    }

    fn of_open(open: impl AsFd) -> Option<Self> {
        let file = File::from(open.as_fd().try_clone_to_owned().ok()?);
        Self::of_plain(&file.metadata().ok()?)
    }

    fn of_plain(there: &Metadata) -> Option<Self> {
        there.is_file().then(|| Self::There {
            device: there.dev(),
            inode: there.ino(),
        })
    }
}

fn free(path: &Path) -> Option<Place> {
    let path = target(path).ok()?;
    let folder = match path.parent()? {
        folder if folder == Path::new("") => Path::new("."),
        folder => folder,
    };
    let folder = folder.canonicalize().ok()?;
    Some(Place::Free(folder.join(path.file_name()?)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_the_same_under_all_its_names() {
        let folder = tempfile::tempdir().expect("folder");
        let path = |name: &str| folder.path().join(name);
        let of = |name: &str| Place::of(&path(name));
        fs::write(path("a"), "").expect("written");
        fs::write(path("b"), "").expect("written");
        fs::hard_link(path("a"), path("hard")).expect("link");
        symlink(path("a"), path("soft")).expect("link");
        symlink("none", path("dangling")).expect("link");
        assert!(matches!(of("a"), Some(Place::There { .. })));
        for same in ["hard", "soft", "./a"] {
            assert_eq!(of(same), of("a"), "{same}");
        }
        assert_ne!(of("a"), of("b"));
        assert!(matches!(of("none"), Some(Place::Free(_))));
        assert_eq!(of("dangling"), of("none"));
        assert_ne!(of("none"), of("none2"));
        for nothing in ["", "no/such", "/dev/null"] {
            assert_eq!(of(nothing), None, "{nothing}");
        }
        assert_eq!(
            Place::of(Path::new("no-such-name")),
            Place::of(Path::new("./no-such-name"))
        );
    }
}
