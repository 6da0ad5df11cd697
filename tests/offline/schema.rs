//! The schema for editors: printed, committed, and named by every shipped file.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test that reads the shipped files"
)]

use std::path::{Path, PathBuf};

use crate::support::{Mq, schema};

const COMMITTED: &str = include_str!("../../topologies/topology.schema.json");

fn shipped() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("topologies")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "yaml") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn the_committed_schema_is_the_printed_one() {
    let printed = Mq::new(["topology", "schema"]).run().code(0).stdout;
    assert!(
        printed == COMMITTED,
        "mq topology schema > topologies/topology.schema.json"
    );
}

#[test]
fn every_shipped_file_names_the_schema_and_fits_it() {
    let files = shipped();
    assert!(files.len() >= 3, "{files:?}");
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap_or_default();
        let named = first.strip_prefix("# yaml-language-server: $schema=");
        let named = named.unwrap_or_else(|| panic!("{}: {first}", path.display()));
        let schema = std::fs::read_to_string(path.with_file_name("").join(named)).unwrap();
        assert!(schema == COMMITTED, "{} names {named}", path.display());
        schema::must_take(&text);
        let path = path.to_str().unwrap();
        let expanded = Mq::new(["topology", "validate", "--expand", path])
            .run()
            .code(0);
        schema::must_take(&expanded.stdout);
    }
}
