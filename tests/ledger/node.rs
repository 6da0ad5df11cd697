//! The broker's node, which is killed and started again.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test support outside #[test] functions: runs scripts/broker, reads the environment and the clock"
)]

use std::process::Command;
use std::sync::{RwLock, RwLockReadGuard};

use crate::fault::{Fault, Struck};

/// A node that belongs to this test alone.
pub(crate) struct Node {
    pub(crate) version: String,
    /// Held by those who need it up, and alone by who kills it.
    up: RwLock<()>,
}

/// Seconds since the machine started: what a handler can read without another process.
pub(crate) fn clock() -> f64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

impl Node {
    /// The node that the environment names; it must be the one of `MQ_URL`, for
    /// it will be killed.
    pub(crate) fn of_environment() -> Self {
        let wanted = std::env::var("MQ_LEDGER_BROKER").unwrap_or_else(|_| {
            panic!("MQ_LEDGER_BROKER is not set: the ledger kills its broker, so it needs one of its own; run scripts/test, or see the README")
        });
        let node = Self {
            version: wanted,
            up: RwLock::new(()),
        };
        let told = node.script("env");
        let url = std::env::var("MQ_URL").unwrap_or_default();
        let ours = told.lines().any(|line| {
            let line = line.replace('\\', "");
            line.strip_prefix("export MQ_URL=") == Some(&url)
        });
        assert!(
            ours,
            "MQ_URL is not the node {} of scripts/broker, and the ledger kills only that:\n{told}",
            node.version
        );
        node
    }

    fn script(&self, command: &str) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/broker");
        let ran = Command::new(script)
            .args([command, &self.version])
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "scripts/broker {command}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    /// While this is held the node is not killed.
    pub(crate) fn keep_up(&self) -> RwLockReadGuard<'_, ()> {
        self.up.read().unwrap()
    }

    /// `kill -9`, and a start with the same data.
    pub(crate) fn kill_and_start(&self) -> Struck {
        let _alone = self.up.write().unwrap();
        let from = clock();
        self.script("kill");
        self.script("start");
        Struck {
            fault: Fault::BrokerKilled,
            from,
            to: clock(),
        }
    }
}
