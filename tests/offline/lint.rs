//! Lint: what real topologies lose, and what can be said against it.

use crate::support::{Mq, TextFile};

/// A topology as a tutorial has it, validated.
fn tutorial(name: &str, code: i32) -> String {
    let path = format!("tests/offline/tutorials/{name}.yaml");
    let ran = Mq::new(["topology", "validate", &path]).run().code(code);
    format!("{}{}", ran.stderr, ran.stdout)
}

#[test]
fn a_tutorial_that_loses_every_dead_letter() {
    insta::assert_snapshot!(tutorial("pedidos", 1));
}

#[test]
fn a_tutorial_whose_dead_letter_exchange_is_nowhere() {
    insta::assert_snapshot!(tutorial("telemetry", 65));
}

#[test]
fn a_tutorial_without_a_dead_letter_path() {
    insta::assert_snapshot!(tutorial("code-processing", 0));
}

#[test]
fn good_tutorials_are_not_accused() {
    for name in [
        "antigravity-state",
        "antigravity-tasks",
        "order-process",
        "orders",
    ] {
        assert_eq!(
            tutorial(name, 0),
            "fine: 2 exchanges, 2 queues, 2 bindings\n",
            "{name}"
        );
    }
}

#[test]
fn what_is_shipped_has_not_even_a_warning() {
    for path in ["topologies", "topologies/4.3"] {
        for version in ["3.10", "4.0", "4.3"] {
            if path.ends_with("4.3") && version != "4.3" {
                continue;
            }
            let flags = ["--strict", "--for", version];
            let args = ["topology", "validate", path];
            let ran = Mq::new(args.iter().chain(&flags)).run().code(0);
            assert_eq!(ran.stderr, "", "{path} {version}");
        }
    }
}

const LOSSY: &str = "version: 1
exchanges: { dlx: { type: direct } }
queues:
  work: { type: classic, dead_letter: { exchange: dlx } }
  rest: { type: quorum, bind: [{ exchange: dlx, key: dead }] }
";

#[test]
fn a_comment_silences_a_rule_where_it_stands() {
    let found = |text: &str, code: i32| {
        let file = TextFile::new("t.yaml", text);
        let args = ["topology", "validate", "-o", "json", &file.path()];
        let json = Mq::new(args).run().code(code).json();
        let findings = json["findings"].as_array().expect("findings").clone();
        let code = |finding: &serde_json::Value| {
            format!(
                "{}:{}",
                finding["code"].as_str().expect("code"),
                finding["line"]
            )
        };
        findings.iter().map(code).collect::<Vec<_>>()
    };
    assert_eq!(found(LOSSY, 1), ["MQ202:4", "MQ207:5"]);
    let line = LOSSY.replace(
        "exchange: dlx } }\n",
        "exchange: dlx } } # mq: allow MQ202\n",
    );
    assert_eq!(found(&line, 0), ["MQ207:5"]);
    let above = LOSSY.replace("  rest:", "  # mq: allow MQ207, MQ202\n  rest:");
    assert_eq!(found(&above, 1), ["MQ202:4"]);
    let everywhere = format!("# mq: allow MQ202 MQ207\n{LOSSY}");
    assert_eq!(found(&everywhere, 0), Vec::<String>::new());
    let useless = LOSSY.replace("  rest:", "  # mq: allow MQ299\n  rest:");
    assert_eq!(found(&useless, 1), ["MQ202:4", "MQ200:5", "MQ207:6"]);
}

#[test]
fn warnings_stop_only_who_is_strict() {
    let file = TextFile::new(
        "t.yaml",
        "version: 1\nqueues: { work: { type: classic } }\n",
    );
    let validate = |flags: &[&str], code: i32| {
        let path = file.path();
        let args = ["topology", "validate", &path];
        Mq::new(args.iter().chain(flags)).run().code(code)
    };
    assert!(validate(&[], 0).stderr.contains("warning[MQ209]"));
    assert!(validate(&["--strict"], 1).stderr.contains("warning[MQ209]"));
    assert_eq!(validate(&["--quiet"], 0).stderr, "");
    assert!(
        validate(&["--pedantic"], 0)
            .stderr
            .contains("advice[MQ213]")
    );
}

#[test]
fn each_version_has_its_own_answer() {
    let text = "version: 1
exchanges: { t: { type: topic } }
queues:
  work: { type: quorum, dead_letter: { exchange: '', key: rest }, bind: [{ exchange: t, key: '#.a.#.b.#' }] }
  rest: { type: quorum }
  late: { type: quorum, delayed_retry: { type: all, min: 1s }, dead_letter: { exchange: '', key: rest }, bind: [{ exchange: t, key: c }] }
";
    let file = TextFile::new("t.yaml", text);
    let shown = |version: &str, code: i32| {
        let ran = Mq::new(["topology", "validate", "--for", version, &file.path()])
            .run()
            .code(code);
        file.normalise(&ran.stderr)
    };
    insta::assert_snapshot!("for_3_10", shown("3.10", 1));
    insta::assert_snapshot!("for_4_3", shown("4.3", 1));
    Mq::new(["topology", "validate", "--for", "new", &file.path()])
        .run()
        .code(64);
}

#[test]
fn a_mistake_in_reading_is_a_finding_for_scripts_too() {
    let file = TextFile::new("t.yaml", "version: 1\nqueues: { a: { typ: quorum } }\n");
    let ran = Mq::new(["topology", "validate", "-o", "json", &file.path()])
        .run()
        .code(65);
    let json = ran.json();
    assert_eq!(json["valid"], false);
    assert_eq!(json["findings"][0]["code"], "MQ101");
    assert_eq!(
        (&json["findings"][0]["line"], &json["findings"][0]["column"]),
        (&serde_json::json!(2), &serde_json::json!(16))
    );
}

#[test]
fn plan_and_apply_stop_before_they_connect() {
    let file = TextFile::new("t.yaml", LOSSY);
    for command in ["plan", "apply"] {
        // Nobody listens there: 1 is known without a broker.
        let ran = Mq::new([
            "topology",
            command,
            &file.path(),
            "--url",
            "amqp://127.0.0.1:1",
        ])
        .run()
        .code(1);
        assert!(ran.stderr.contains("error[MQ202]"), "{}", ran.stderr);
        assert!(ran.stderr.contains("nothing was changed"), "{}", ran.stderr);
    }
}

#[test]
fn a_secret_is_not_shown_by_a_finding_on_its_line() {
    let text = "{ version: 1, queues: { work: {} }, users: { u: { password: hunter2hunter2 } } }\n";
    let file = TextFile::new("t.yaml", text);
    let ran = Mq::new(["topology", "validate", &file.path()]).run();
    assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
}

/// The table of the README is the table of the code.
#[test]
fn every_rule_stands_in_the_readme() {
    let readme = include_str!("../../README.md");
    for rule in mq::lint::RULES {
        let row = format!("| {} | {} | {} |", rule.code, rule.level.word(), rule.finds);
        assert!(readme.contains(&row), "README lacks\n{row}");
    }
}

#[test]
fn only_a_comment_allows_and_a_near_miss_is_told() {
    let text = "version: 1
queues:
  a: { type: classic, description: 'x # mq: allow MQ209' }
  b:
    type: classic
    description: |
      # mq: allow MQ209
  c: { type: classic } #mq: allow MQ209
  d: { type: classic } # mq: allow MQ209
";
    let ran = Mq::new(["topology", "validate", "-", "-o", "json"])
        .stdin(text)
        .run()
        .code(0);
    let json = ran.json();
    let mut told: Vec<String> = Vec::new();
    for finding in json["findings"].as_array().expect("a list") {
        if finding["code"] == "MQ209" || finding["code"] == "MQ200" {
            told.push(format!("{} {}", finding["line"], finding["code"]));
        }
    }
    assert_eq!(
        told,
        [
            r#"3 "MQ209""#,
            r#"4 "MQ209""#,
            r#"8 "MQ209""#,
            r#"8 "MQ200""#
        ]
    );
    Mq::new(["topology", "validate", "-"])
        .stdin(text)
        .run()
        .code(0)
        .says(&["write `# mq: allow MQ209`"]);
}

/// As many comments as queues: each is looked up, not looked through.
#[test]
fn thousands_of_comments_take_no_longer_than_the_rest() {
    let mut text = String::from("version: 1\nqueues:\n");
    for at in 0..10_000 {
        text.push_str(&format!(
            "  q{at}: {{ type: classic }} # mq: allow MQ209, MQ220\n"
        ));
    }
    let ran = Mq::new(["topology", "validate", "-"]).stdin(text).run();
    assert!(!ran.stderr.contains("MQ209"), "{}", ran.stderr);
    ran.code(0);
}
