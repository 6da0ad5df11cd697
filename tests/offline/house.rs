//! The house rules that no compiler checks: imports point down, one door to
//! lapin, one to each user of HTTP, one to the terminal.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test that reads the source tree"
)]

use std::path::{Path, PathBuf};

/// Modules from the bottom up; each may use only what stands before it, itself,
/// and what is listed as its exception.
const LAYERS: [(&str, &[&str]); 33] = [
    ("exit", &[]),
    ("error", &[]),
    ("field", &[]),
    ("printable", &[]),
    ("secret", &[]),
    ("broker", &[]),
    ("diagnostic", &[]),
    ("topology", &[]),
    ("endpoint", &[]),
    ("routing", &[]),
    ("proof", &[]),
    ("retry", &["topologyfile"]),
    ("message", &[]),
    ("dedupe", &[]),
    ("contract", &[]),
    ("offsets", &["output"]),
    ("lint", &[]),
    ("topologyfile", &[]),
    ("definitions", &[]),
    ("plan", &["topologyfile"]),
    ("deadletter", &[]),
    ("doctor", &[]),
    ("graph", &["topologyfile"]),
    ("query", &[]),
    ("given_file", &[]),
    ("tls", &[]),
    ("amqp", &[]),
    ("management", &[]),
    ("handler", &["output"]),
    ("worker", &[]),
    ("metrics", &[]),
    ("output", &[]),
    ("browse", &[]),
];

fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}

/// The top-level module a file belongs to.
fn module(path: &Path) -> String {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let inside = path.strip_prefix(src).unwrap();
    let first = inside.iter().next().unwrap().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The code without its tests and comments.
fn code(text: &str) -> String {
    let tests = text.find("#[cfg(test)]").unwrap_or(text.len());
    text[..tests]
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn is_test(path: &Path) -> bool {
    path.ends_with("tests.rs")
}

#[test]
fn imports_point_down() {
    for (path, text) in sources() {
        let here = module(&path);
        let Some(level) = LAYERS.iter().position(|(name, _)| *name == here) else {
            continue;
        };
        if is_test(&path) {
            continue;
        }
        let code = code(&text);
        for (other, _) in &LAYERS[level + 1..] {
            let allowed = LAYERS[level].1.contains(other);
            assert!(
                allowed || !code.contains(&format!("crate::{other}::")),
                "{} uses crate::{other}, which stands above it",
                path.display()
            );
        }
        for shell in ["cli", "command"] {
            assert!(
                !code.contains(&format!("crate::{shell}::")),
                "{} uses crate::{shell}",
                path.display()
            );
        }
    }
}

/// `src/handler/http.rs` and what is below it.
fn is_http_handler(path: &Path) -> bool {
    let handler = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/handler");
    path == handler.join("http.rs") || path.starts_with(handler.join("http"))
}

#[test]
fn one_door_to_each_outside_world() {
    for (word, home) in [
        ("lapin::", "amqp"),
        ("reqwest::", "management"),
        ("redb::", "dedupe"),
        ("redis::aio", "dedupe"),
        ("hyper::", "metrics"),
        ("indicatif::", "output"),
        ("CrosstermBackend", "output"),
        ("jaq_", "query"),
        ("io::stdout()", "output"),
        ("io::stderr()", "output"),
        ("println!", "nowhere"),
        ("eprintln!", "nowhere"),
    ] {
        for (path, text) in sources() {
            let here = module(&path);
            let lends_its_stderr = here == "handler" && word == "io::stderr()";
            let asks_a_url = word == "reqwest::" && is_http_handler(&path);
            let allowed = here == home || lends_its_stderr || asks_a_url;
            assert!(
                allowed || !code(&text).contains(word),
                "{} uses {word}",
                path.display()
            );
        }
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for (path, text) in sources() {
        assert!(
            is_test(&path) || text.starts_with("//!"),
            "{} has no module doc",
            path.display()
        );
    }
}

#[test]
fn no_openssl_and_no_second_crypto_library() {
    let lock = include_str!("../../Cargo.lock");
    for unwanted in [
        "openssl",
        "openssl-sys",
        "native-tls",
        "aws-lc-rs",
        "aws-lc-sys",
    ] {
        assert!(
            !lock.contains(&format!("name = \"{unwanted}\"")),
            "{unwanted} is in Cargo.lock"
        );
    }
}

/// Every text file of the repository, without what was built.
fn texts() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path == root.join("target") || path == root.join(".git") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                found.push((path, text));
            }
        }
    }
    found
}

#[test]
fn no_merge_was_left_half_done() {
    let texts = texts();
    assert!(texts.iter().any(|(path, _)| path.ends_with("README.md")));
    for (path, text) in texts {
        for (number, line) in text.lines().enumerate() {
            let is_mark = ["<", "=", ">", "|"].iter().any(|mark| {
                let rest = line.strip_prefix(&mark.repeat(7));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            });
            assert!(!is_mark, "{}:{}: {line}", path.display(), number + 1);
        }
    }
}
