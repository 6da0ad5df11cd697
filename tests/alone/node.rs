//! The node of these tests, which one of them has at a time.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test support outside #[test] functions: runs scripts/broker, reads the environment"
)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

static NODE: Mutex<()> = Mutex::new(());

/// The node, for as long as this lives; its settings are the usual ones after.
pub(crate) struct Node {
    version: String,
    /// Limits that were changed, with what they were.
    changed: RefCell<BTreeMap<String, String>>,
    _alone: MutexGuard<'static, ()>,
}

impl Node {
    /// The node that the environment names; it must be the one of `MQ_URL`, for
    /// nobody else can use it meanwhile.
    pub(crate) fn alone() -> Self {
        let version = std::env::var("MQ_LEDGER_BROKER").unwrap_or_else(|_| {
            panic!("MQ_LEDGER_BROKER is not set: these tests need a broker of their own, as the ledger does; run scripts/test, or see the README")
        });
        let node = Self {
            version,
            changed: RefCell::default(),
            _alone: NODE.lock().unwrap_or_else(PoisonError::into_inner),
        };
        let told = node.script(&["env", &node.version]).replace('\\', "");
        let url = std::env::var("MQ_URL").unwrap_or_default();
        assert!(
            told.contains(&format!("export MQ_URL={url}\n")),
            "MQ_URL is not the node {} of scripts/broker:\n{told}",
            node.version
        );
        node
    }

    /// Raises the memory alarm.
    pub(crate) fn is_short_of_memory(&self) {
        self.memory("absolute 1MB");
    }

    pub(crate) fn has_memory_again(&self) {
        self.memory("0.4");
    }

    /// Sets what the broker's configuration calls so, for connections from now on.
    pub(crate) fn limit(&self, name: &str, value: u64) {
        let get = format!("{{ok, Value}} = application:get_env(rabbit, {name}), Value.");
        let before = self.script(&["ctl", &self.version, "eval", &get]);
        (self.changed.borrow_mut().entry(name.to_owned())).or_insert(before.trim().to_owned());
        self.set(name, &value.to_string());
    }

    fn set(&self, name: &str, value: &str) {
        // Some versions look up one, some the other.
        let set = format!(
            "application:set_env(rabbit, {name}, {value}), persistent_term:put({name}, {value})."
        );
        self.script(&["ctl", &self.version, "eval", &set]);
    }

    fn memory(&self, limit: &str) {
        let words = ["ctl", &self.version, "set_vm_memory_high_watermark"];
        let limit: Vec<&str> = limit.split(' ').collect();
        self.script(&[&words[..], &limit].concat());
    }

    fn script(&self, words: &[&str]) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/broker");
        let ran = Command::new(script).args(words).output().unwrap();
        assert!(
            ran.status.success(),
            "scripts/broker {words:?} on {}: {}",
            self.version,
            String::from_utf8_lossy(&ran.stderr)
        );
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.has_memory_again();
        for (name, value) in self.changed.take() {
            self.set(&name, &value);
        }
    }
}
