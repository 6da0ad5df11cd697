//! The schema of topology files, held against every file that a test uses.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "test support: helpers are outside #[test] functions and read files"
)]

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use jsonschema::Validator;

static VALIDATOR: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::draft7::new(&mq::topologyfile::schema()).unwrap());

/// The topology files that a command is given, as they are before it runs.
pub(super) fn files_of(command: &Command, stdin: &[u8]) -> Vec<String> {
    let args: Vec<&str> = command.get_args().filter_map(|arg| arg.to_str()).collect();
    if args.first() != Some(&"topology") {
        return Vec::new();
    }
    let named = args
        .iter()
        .filter(|arg| {
            let end = Path::new(arg).extension();
            end.is_some_and(|end| end == "yaml" || end == "yml")
        })
        .filter_map(|path| std::fs::read_to_string(path).ok());
    let piped = args.contains(&"-").then(|| String::from_utf8_lossy(stdin));
    named.chain(piped.map(Into::into)).collect()
}

/// Fails the test if the schema complains about a file.
#[track_caller]
pub(crate) fn must_take(text: &str) {
    // As mq reads it: only true and false are booleans, 017 is text.
    let options = serde_yaml::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        budget: serde_yaml::budget! {
            max_events: 8_000_000,
            max_nodes: 2_000_000,
        },
    };
    let file: serde_json::Value =
        serde_yaml::from_str_with_options(text.trim_start_matches('\u{feff}'), options).unwrap();
    // Definitions have no version; they are no topology file.
    if file.get("version").is_none() {
        return;
    }
    let complaints: Vec<String> = VALIDATOR
        .iter_errors(&file)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(complaints, Vec::<String>::new(), "{text}");
}
