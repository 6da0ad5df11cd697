//! The program a handler runs: found before the first message is taken.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// A program that was there and could be executed when it was looked for.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

impl Program {
    /// Finds the program of `command`: a path, or a name in `search_path`.
    /// `flag` is the option it was given with.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when it is not there or cannot be executed.
    pub(super) fn find(
        flag: &str,
        command: &[OsString],
        search_path: Option<OsString>,
    ) -> Result<Self> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(
                Error::new(ErrorKind::Usage, format!("{flag} needs a program"))
                    .hint(format!("{flag} PROGRAM ARG…")),
            );
        };
        let named = Path::new(program);
        let candidates: Vec<PathBuf> = if named.components().count() > 1 {
            vec![named.to_path_buf()]
        } else {
            let path = search_path.unwrap_or_default();
            std::env::split_paths(&path)
                .map(|folder| folder.join(named))
                .collect()
        };
        let mut found = candidates.into_iter().filter(|path| path.is_file());
        match found.find(|path| is_executable(path)) {
            Some(path) => Ok(Self {
                path,
                arguments: arguments.to_vec(),
            }),
            None => Err(Error::new(
                ErrorKind::Unavailable,
                format!(
                    "the handler '{}' cannot be started: no such program, or not executable",
                    named.display()
                ),
            )
            .hint("check its path and `chmod +x` it; no message was taken")),
        }
    }
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
