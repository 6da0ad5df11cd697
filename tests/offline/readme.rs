//! The README cannot rot: its table and its blocks are checked.

use crate::support::certificates::Authority;
use crate::support::{Mq, TextFile};

const README: &str = include_str!("../../README.md");

#[test]
fn the_exit_code_table_is_the_one_in_the_code() {
    for (exit, meaning) in mq::exit::TABLE {
        let row = format!("| {} | {meaning} |", exit.code());
        assert!(README.contains(&row), "the README lacks the row\n{row}");
    }
}

#[test]
fn both_commands_of_the_first_screen_exist() {
    let first_screen: String = README.lines().take(40).collect::<Vec<_>>().join("\n");
    for command in ["scripts/quickstart", "scripts/test"] {
        assert!(first_screen.contains(command), "{command}");
        assert!(
            std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
                .join(command)
                .is_file(),
            "{command}"
        );
    }
}

#[test]
fn every_yaml_block_is_a_valid_topology() {
    let mut blocks = 0;
    let mut tested = 0;
    for block in README.split("```yaml\n").skip(1) {
        let text = block.split("```").next().unwrap_or_default();
        // From here, where the schemas are that it names.
        Mq::new(["topology", "validate", "-"])
            .stdin(text)
            .run()
            .code(0);
        let file = TextFile::new("readme.yaml", text);
        if text.contains("\ntests:") {
            Mq::new(["topology", "test", &file.path()]).run().code(0);
            tested += 1;
        }
        blocks += 1;
    }
    assert!(blocks > 0, "the README shows no topology");
    assert!(tested > 0, "the README shows no tests");
}

#[test]
fn headings_stand_between_blank_lines() {
    let lines: Vec<&str> = README.lines().collect();
    for three in lines.windows(3) {
        if three[1].starts_with("## ") || three[1].starts_with("### ") {
            assert_eq!([three[0], three[2]], ["", ""], "around {}", three[1]);
        }
    }
}

/// Each `mq …` line of a shell block must be understood: whatever it does
/// without a broker, it must not be a usage error.
#[test]
fn every_command_line_is_understood() {
    let mut lines = 0;
    let authority = Authority::new("ca");
    let client = authority.issue("shop", &[]);
    let files = [
        ("ca.pem", authority.file()),
        ("client.pem", client.cert_file()),
        ("client.key", client.key_file()),
    ];
    for block in README.split("```sh\n").skip(1) {
        let text = block.split("```").next().unwrap_or_default();
        for line in text.lines().filter(|line| line.starts_with("mq ")) {
            // Nothing answers here: waiting a minute for it proves nothing more.
            let hasty = line
                .replace("--for 60s", "--for 1s")
                .replace("--wait 2m", "--wait 1s");
            let args: Vec<String> = words(&hasty)
                .into_iter()
                .map(|word| {
                    let file = files.iter().find(|(name, _)| *name == word);
                    file.map_or(word, |(_, file)| file.path())
                })
                .collect();
            let mq = Mq::new(&args[1..])
                .env("MQ_URL", "amqp://127.0.0.1:1")
                .env("MQ_MANAGEMENT_URL", "http://127.0.0.1:1")
                .env("MQ_TIMEOUT", "1s");
            let needs_a_terminal = line.starts_with("mq dlq browse");
            let ran = if needs_a_terminal {
                mq.on_terminal(80).run()
            } else {
                mq.run()
            };
            // Nagios has a number of its own for it.
            let is_told_to_nagios = line.contains("--nagios") && ran.code == 3;
            assert!(
                is_told_to_nagios || [0, 66, 69].contains(&ran.code),
                "{line}\nexit {}\n{}",
                ran.code,
                ran.stderr
            );
            lines += 1;
        }
    }
    assert!(lines > 4, "the README shows only {lines} commands");
}

/// Splits as a shell does, as far as the README needs it.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            // What the output is given to is not ours.
            '|' if !quoted => break,
            c => {
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The picture is the one that the command draws.
#[test]
fn the_picture_of_the_orders_is_drawn_by_the_command() {
    let drawn = Mq::new(["topology", "graph", "topologies/orders.yaml"])
        .run()
        .code(0)
        .stdout;
    let shown = README.split("```mermaid\n").nth(1).unwrap_or_default();
    let shown = shown.split("```").next().unwrap_or_default();
    assert_eq!(
        shown, drawn,
        "put the output of the command into the README"
    );
}
