//! A Redis server of a test's own, on a free port of loopback.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "test support starts a process"
)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::wait_until;

/// Forgets everything when it ends.
pub(crate) struct Redis {
    child: Child,
    port: u16,
    arguments: Vec<String>,
    folder: TempDir,
}

impl Redis {
    /// One that asks for this password, unless it is empty.
    pub(crate) fn start(password: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let arguments = if password.is_empty() {
            Vec::new()
        } else {
            vec!["--requirepass".to_owned(), password.to_owned()]
        };
        let folder = tempfile::tempdir().unwrap();
        let child = run(port, &arguments, &folder);
        let redis = Self {
            child,
            port,
            arguments,
            folder,
        };
        redis.wait();
        redis
    }

    pub(crate) fn url(&self, login: &str) -> String {
        format!("redis://{login}127.0.0.1:{}/0", self.port)
    }

    /// What it says to a command.
    pub(crate) fn ask(&self, command: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.write_all(format!("{command}\r\n").as_bytes()).ok()?;
        let mut said = [0; 1024];
        let read = stream.read(&mut said).ok()?;
        Some(String::from_utf8_lossy(&said[..read]).into_owned())
    }

    pub(crate) fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Empty, on the same port.
    pub(crate) fn start_again(&mut self) {
        self.child = run(self.port, &self.arguments, &self.folder);
        self.wait();
    }

    fn wait(&self) {
        wait_until("Redis to answer", || self.ask("PING").is_some());
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(port: u16, arguments: &[String], folder: &TempDir) -> Child {
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no", "--dir"])
        .arg(folder.path())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
