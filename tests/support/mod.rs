//! What every test needs: the binary in a clean environment, and patience with a limit.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    dead_code,
    clippy::indexing_slicing,
    reason = "test support: helpers are outside #[test] functions, start processes, and not every suite uses all of them"
)]

pub(crate) mod certificates;
pub(crate) mod exposition;
pub(crate) mod http_server;
pub(crate) mod redis;
pub(crate) mod schema;
pub(crate) mod screen;

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Nothing in a test may take longer. It tells a hang from a busy machine: a
/// migration waits 20 s for the broker's statistics by design, so less than a
/// few times that fails where disks are slow.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// One run of mq, hermetic: no environment but `PATH` and a `HOME` of its own.
pub(crate) struct Mq {
    command: Command,
    stdin: Vec<u8>,
    home: TempDir,
}

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) stdout_bytes: Vec<u8>,
}

impl Mq {
    pub(crate) fn new<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_mq"));
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home.path())
            .env("COLUMNS", "100")
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        Self {
            command,
            stdin: Vec::new(),
            home,
        }
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// The same process, in this folder.
    pub(crate) fn inside(mut self, folder: impl AsRef<std::path::Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// The same process, started so that it ignores SIGHUP.
    pub(crate) fn under_nohup(mut self) -> Self {
        let mut command = Command::new("nohup");
        command
            .arg(self.command.get_program())
            .args(self.command.get_args())
            .env_clear();
        for (name, value) in self.command.get_envs() {
            command.env(name, value.unwrap());
        }
        command.current_dir(self.command.get_current_dir().unwrap());
        self.command = command;
        self
    }

    /// The same process, on a terminal of so many columns: what it writes to
    /// either output arrives as standard output. By `script`, which is essential
    /// in Debian (bsdutils).
    pub(crate) fn on_terminal(mut self, columns: u16) -> Self {
        let quoted = |word: &OsStr| format!("'{}'", word.to_str().unwrap().replace('\'', "'\\''"));
        let words: Vec<String> = std::iter::once(self.command.get_program())
            .chain(self.command.get_args())
            .map(quoted)
            .collect();
        let line = format!("stty rows 24 cols {columns} && exec {}", words.join(" "));
        let mut command = Command::new("script");
        command
            .args(["-qec", &line, "/dev/null"])
            .env_clear()
            .env("TERM", "xterm");
        for (name, value) in self.command.get_envs() {
            command.env(name, value.unwrap());
        }
        command.current_dir(self.command.get_current_dir().unwrap());
        self.command = command;
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Runs to the end; a run that does not end fails the test. A topology file
    /// that mq took must be one that the schema takes.
    pub(crate) fn run(self) -> Ran {
        let files = schema::files_of(&self.command, &self.stdin);
        let ran = self.spawn().wait();
        if ran.code == 0 {
            for text in &files {
                schema::must_take(text);
            }
        }
        ran
    }

    /// Starts it and leaves it running.
    pub(crate) fn spawn(mut self) -> Running {
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let bytes = std::mem::take(&mut self.stdin);
        std::thread::spawn(move || {
            // The child may end without reading.
            let _ = stdin.write_all(&bytes);
        });
        let stdout = collect(child.stdout.take().unwrap());
        let stderr = collect(child.stderr.take().unwrap());
        Running {
            child,
            stdout,
            stderr,
            _home: self.home,
        }
    }
}

type Collected = std::sync::Arc<std::sync::Mutex<Vec<u8>>>;

fn collect(mut from: impl std::io::Read + Send + 'static) -> Collected {
    let collected = Collected::default();
    let into = collected.clone();
    std::thread::spawn(move || {
        let mut chunk = vec![0; 65536];
        while let Ok(read) = from.read(&mut chunk) {
            if read == 0 {
                break;
            }
            into.lock().unwrap().extend_from_slice(&chunk[..read]);
        }
    });
    collected
}

/// An mq that runs while the test does something.
pub(crate) struct Running {
    child: Child,
    stdout: Collected,
    stderr: Collected,
    _home: TempDir,
}

impl Running {
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn stderr_so_far(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().unwrap()).into_owned()
    }

    pub(crate) fn stdout_so_far(&self) -> String {
        String::from_utf8_lossy(&self.stdout.lock().unwrap()).into_owned()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn wait_for_stderr(&mut self, text: &str) {
        wait_until(&format!("stderr to say {text:?}"), || {
            self.stderr_so_far().contains(text)
        });
    }

    pub(crate) fn wait(mut self) -> Ran {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    let _ = self.child.kill();
                    panic!(
                        "mq did not end within {PATIENCE:?}; stderr:\n{}",
                        self.stderr_so_far()
                    );
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        // A grandchild may still hold a pipe; what was written by mq is there by now or soon.
        settle(&self.stdout);
        settle(&self.stderr);
        let stdout_bytes = self.stdout.lock().unwrap().clone();
        Ran {
            code: status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&stdout_bytes).into_owned(),
            stderr: self.stderr_so_far(),
            stdout_bytes,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn settle(collected: &Collected) {
    let deadline = Instant::now() + Duration::from_secs(2);
    // The reader thread drops its reference at the end of the stream.
    while std::sync::Arc::strong_count(collected) > 1 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Ran {
    /// Asserts the exit code, showing everything when it is another.
    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Self {
        assert_eq!(
            self.code, expected,
            "\nstdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// Asserts that standard error names all of these.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(
                self.stderr.contains(part),
                "{part:?} is not in stderr:\n{}",
                self.stderr
            );
        }
        self
    }

    /// Asserts that standard output holds all of these.
    #[track_caller]
    pub(crate) fn shows(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(
                self.stdout.contains(part),
                "{part:?} is not in stdout:\n{}\nstderr:\n{}",
                self.stdout,
                self.stderr
            );
        }
        self
    }

    /// Standard output as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON ({error}):\n{}\n{}", self.stdout, self.stderr))
    }
}

/// Polls until it is true; fails the test when it never is.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    wait_for(what, || is().then_some(()).ok_or_else(String::new));
}

/// The same with the word on what is there instead, for the failure of the test.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut is: impl FnMut() -> Result<(), String>) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(instead) = is() {
        assert!(
            Instant::now() < deadline,
            "waited in vain for {what} {instead}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A shell script that can be run, in a folder that goes with the test.
pub(crate) struct Script {
    folder: TempDir,
}

impl Script {
    pub(crate) fn new(body: &str) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("handler");
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> OsString {
        self.folder.path().join("handler").into_os_string()
    }

    /// A file next to the script, for what it wants to leave behind.
    pub(crate) fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Leaves an empty file next to the script, which it may wait for.
    pub(crate) fn leave(&self, name: &str) {
        std::fs::write(self.file(name), "").unwrap();
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        std::fs::read_to_string(self.file(name))
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

/// A file with this text, in a folder that goes with the test.
pub(crate) struct TextFile {
    folder: TempDir,
    name: String,
}

impl TextFile {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
        Self {
            folder,
            name: name.to_owned(),
        }
    }

    pub(crate) fn path(&self) -> String {
        self.folder
            .path()
            .join(&self.name)
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// The same text with the folder's changing name replaced.
    pub(crate) fn normalise(&self, text: &str) -> String {
        text.replace(self.folder.path().to_str().unwrap(), "DIR")
    }
}

/// A named pipe in a folder that goes with the test.
pub(crate) fn pipe() -> (TempDir, String) {
    use rustix::fs::{CWD, Mode, mkfifoat};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    mkfifoat(CWD, &path, Mode::RWXU).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}
