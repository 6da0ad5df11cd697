//! A body in the person's own editor.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the file for the editor is made and read"
)]

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::error::{Error, ErrorKind, Result};

/// The command of an editor, as a shell understands it.
#[derive(Clone, Debug)]
pub(in crate::command) struct Editor {
    command: String,
}

impl Editor {
    /// `command` is what `$VISUAL` or `$EDITOR` say.
    pub(super) fn new(command: Option<String>) -> Result<Self> {
        match command {
            Some(command) if !command.trim().is_empty() => Ok(Self { command }),
            _ => Err(
                Error::new(ErrorKind::Usage, "no editor is known to open a body in")
                    .hint("set VISUAL or EDITOR, such as EDITOR=nano"),
            ),
        }
    }

    /// Opens a body and waits until the editor ends; `None` when it was left as
    /// it is. The file can be read by nobody else, and goes afterwards.
    ///
    /// # Errors
    /// When the editor does not start, or ends with a failure: nothing is known
    /// about what the person wanted then.
    pub(super) async fn open(&self, body: &[u8]) -> Result<Option<Vec<u8>>> {
        let file = File::with(body)?;
        let status = Command::new("sh")
            .args(["-c", &format!("{} \"$1\"", self.command), "mq"])
            .arg(&file.path)
            .kill_on_drop(true)
            .status()
            .await
            .map_err(|error| self.failed(&error.to_string()))?;
        if !status.success() {
            return Err(self.failed(&status.to_string()));
        }
        let edited = fs::read(&file.path).map_err(|error| unusable(&file.path, &error))?;
        // Most editors end the last line, which the body may not do.
        let same = edited == body || edited.strip_suffix(b"\n") == Some(body);
        let kept_its_end = if body.ends_with(b"\n") {
            edited
        } else {
            edited.strip_suffix(b"\n").unwrap_or(&edited).to_vec()
        };
        Ok((!same).then_some(kept_its_end))
    }

    fn failed(&self, how: &str) -> Error {
        Error::new(
            ErrorKind::InputOutput,
            format!("the editor '{}' failed: {how}", self.command),
        )
        .hint("check VISUAL and EDITOR; the message stays in its queue")
    }
}

/// A file for one body.
struct File {
    path: PathBuf,
}

impl File {
    fn with(body: &[u8]) -> Result<Self> {
        let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
        let kind = if is_json { "json" } else { "txt" };
        let name = format!("mq-body-{:016x}.{kind}", fastrand::u64(..));
        let path = std::env::temp_dir().join(name);
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(body))
            .map_err(|error| unusable(&path, &error))?;
        Ok(Self { path })
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // Editors that save by renaming may have taken it away already.
        let _ = fs::remove_file(&self.path);
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(
        ErrorKind::InputOutput,
        format!("cannot use the file {} for a body: {error}", path.display()),
    )
    .hint("set TMPDIR to a folder that can be written")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(command: &str, body: &[u8]) -> Result<Option<Vec<u8>>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("runtime");
        let editor = Editor::new(Some(command.to_owned())).expect("editor");
        runtime.block_on(editor.open(body))
    }

    #[test]
    fn what_was_changed_is_told_from_what_was_not() {
        for (command, body, changed) in [
            ("true", "{}", None),
            // As vim and nano do.
            ("f() { echo >> \"$1\"; }; f", "{}", None),
            ("f() { printf '[1]\\n' > \"$1\"; }; f", "{}", Some("[1]")),
            (
                "f() { printf '[1]\\n' > \"$1\"; }; f",
                "{}\n",
                Some("[1]\n"),
            ),
            ("f() { : > \"$1\"; }; f", "x", Some("")),
        ] {
            let opened = opened(command, body.as_bytes()).expect("opened");
            assert_eq!(opened.as_deref(), changed.map(str::as_bytes), "{command}");
        }
    }

    #[test]
    fn an_editor_that_fails_decides_nothing() {
        let error = opened("exit 3;", b"x").expect_err("failed");
        assert!(error.message().contains("exit status: 3"), "{error}");
        assert!(Editor::new(Some("  ".to_owned())).is_err());
        assert!(Editor::new(None).is_err());
    }
}
