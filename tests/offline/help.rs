//! Every help text is worth reading, and stays as it was reviewed.

use crate::support::Mq;

fn check(name: &str, args: &[&str]) {
    let ran = Mq::new(args).run().code(0);
    insta::assert_snapshot!(name, ran.stdout);
}

#[test]
fn version_names_the_program_and_nothing_else() {
    let ran = Mq::new(["--version"]).run().code(0);
    assert_eq!(ran.stdout, format!("mq {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_of_mq() {
    check("mq", &["--help"]);
}

#[test]
fn short_help_of_mq() {
    check("mq_short", &["-h"]);
}

#[test]
fn help_of_wait() {
    check("wait", &["wait", "--help"]);
}

#[test]
fn help_of_topology() {
    check("topology", &["topology", "--help"]);
    check("topology_plan", &["topology", "plan", "--help"]);
    check("topology_apply", &["topology", "apply", "--help"]);
    check("topology_destroy", &["topology", "destroy", "--help"]);
    check("topology_migrate", &["topology", "migrate", "--help"]);
    check("topology_export", &["topology", "export", "--help"]);
    check("topology_graph", &["topology", "graph", "--help"]);
    check("topology_validate", &["topology", "validate", "--help"]);
    check("topology_schema", &["topology", "schema", "--help"]);
    check("topology_route", &["topology", "route", "--help"]);
    check("topology_test", &["topology", "test", "--help"]);
}

#[test]
fn help_of_publish() {
    check("publish", &["publish", "--help"]);
}

#[test]
fn help_of_consume() {
    check("consume", &["consume", "--help"]);
}

#[test]
fn help_of_dlq() {
    check("dlq", &["dlq", "--help"]);
    check("dlq_list", &["dlq", "list", "--help"]);
    check("dlq_inspect", &["dlq", "inspect", "--help"]);
    check("dlq_check", &["dlq", "check", "--help"]);
    check("dlq_watch", &["dlq", "watch", "--help"]);
    check("dlq_replay", &["dlq", "replay", "--help"]);
    check("dlq_export", &["dlq", "export", "--help"]);
    check("dlq_purge", &["dlq", "purge", "--help"]);
}

#[test]
fn help_of_doctor() {
    check("doctor", &["doctor", "--help"]);
}

#[test]
fn help_of_the_rest() {
    check("completions", &["completions", "--help"]);
    check("man", &["man", "--help"]);
}

#[test]
fn the_manual_has_every_command_and_every_exit_code() {
    let manual = Mq::new(["man"]).run().code(0).stdout;
    for command in [
        "mq-wait",
        "mq-topology-apply",
        "mq-topology-schema",
        "mq-publish",
        "mq-consume",
        "mq-dlq-list",
        "mq-dlq-check",
        "mq-dlq-watch",
        "mq-dlq-inspect",
        "mq-dlq-export",
        "mq-dlq-purge",
        "mq-doctor",
    ] {
        assert!(manual.contains(&command.replace('-', "\\-")), "{command}");
    }
    assert!(manual.contains("128+n"));
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = Mq::new(["completions", shell]).run().code(0);
        assert!(ran.stdout.contains("consume"), "{shell}");
    }
}
