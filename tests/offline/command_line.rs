//! What is typed wrong is usage (64), never clap's own 2, which means "blocked" here.

use crate::support::{Mq, TextFile};

#[test]
fn nonsense_is_usage() {
    for args in [
        &["frobnicate"][..],
        &["publish"],
        &["publish", "-e", "a", "-q", "b", "x"],
        &["publish", "-k", "only-a-key", "x"],
        &["publish", "-q", "q", "-H", "no-equals-sign", "x"],
        &["publish", "-q", "q", "--header-json", "n=not json", "x"],
        &["publish", "-q", "q", "--expiration", "5", "x"],
        &["publish", "-q", "q", "--expiration", "1us", "x"],
        &["publish", "-q", "q", "-H", "a=1", "-H", "a=2", "x"],
        &[
            "publish",
            "-q",
            "q",
            "--header-json",
            "n=[12345678901234567890]",
            "x",
        ],
        &[
            "publish",
            "-q",
            "q",
            "--header-json",
            "n=99999999999999999999",
            "x",
        ],
        &[
            "consume",
            "q",
            "--print",
            "--drain-timeout",
            "500000000000y",
        ],
        &["consume", "q"],
        &["consume", "q", "--print", "--prefetch", "0"],
        &["consume", "q", "--print", "--strategy", "magic"],
        &["consume", "q", "--print", "--delays", "0s"],
        &["consume", "q", "--print", "--delays", "1s,soon"],
        &["consume", "q", "--print", "--delays", "1s,,2s"],
        &["consume", "q", "--print", "--delays", ""],
        &["consume", "q", "--print", "--jitter", "100%"],
        &["consume", "q", "--print", "--jitter", "25"],
        &["consume", "q", "--exec"],
        &["consume", "q", "--print", "--exec", "true"],
        &["consume", "q", "--print", "--http", "http://h/"],
        &["consume", "q", "--http", "http://h/", "--exec", "true"],
        &["consume", "q", "--http"],
        &["consume", "q", "--print", "--connect-timeout", "1s"],
        &["dlq", "inspect"],
        &["dlq", "inspect", "q", "--limit", "1001"],
        &["dlq", "inspect", "q", "--filter", ".a =="],
        &["dlq", "list", "q"],
        &["dlq", "check", "--max-messages", "-1"],
        &["dlq", "check", "--max-age", "60"],
        &["dlq", "check", "--max-rate", "5"],
        &["dlq", "check", "--max-rate", "5/d"],
        &["dlq", "check", "q", "--all-vhosts"],
        &["dlq", "watch", "--interval", "999ms"],
        &["dlq", "watch", "--count", "0"],
        &["dlq", "export"],
        &["dlq", "export", "q", "--remove"],
        &["dlq", "export", "q", "--remove", "--to", "-"],
        &["dlq", "export", "q", "--append"],
        &["dlq", "export", "q", "--limit", "0"],
        &["dlq", "export", "q", "--filter", ".a |"],
        &["dlq", "export", "q", "--filter", "env"],
        &["dlq", "export", "q", "--filter", "input"],
        &["dlq", "purge"],
        &["dlq", "purge", "q", "--backup", "f", "--no-backup"],
        &["dlq", "purge", "q", "--filter", "$ENV"],
        &["publish", "--jsonl"],
        &["publish", "--jsonl", "f", "body"],
        &["publish", "--jsonl", "f", "-H", "a=1"],
        &["publish", "--jsonl", "f", "--priority", "1"],
        &["publish", "--jsonl", "f", "-q", "q", "-k", "k"],
        &["publish", "-q", "q", "x", "--drop-user-id"],
        &["topology", "apply"],
        &["topology", "validate", "-", "-"],
        &["topology", "plan", "-f", "-", "-"],
        &["topology", "convert", "-", "-"],
        &["wait", "--for", "0s"],
        &["wait", "--for", "soon"],
        &["--output", "yaml", "wait"],
    ] {
        let ran = Mq::new(args).run().code(64);
        assert!(ran.stdout.is_empty(), "{args:?}: talk belongs on stderr");
        assert!(!ran.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn a_version_is_checked_wherever_one_is_asked_for() {
    for command in [
        &["topology", "validate", "x.yaml"][..],
        &["topology", "route", "x.yaml", "-e", "x"],
        &["topology", "test", "x.yaml"],
        &["topology", "convert", "x.yaml"],
    ] {
        for version in ["abc", "3", "4.x", "", "3.10.x"] {
            let flags = ["--for", version];
            let args = command.iter().chain(&flags);
            Mq::new(args).run().code(64).says(&["3.10 or 4.0.5"]);
        }
        let args = command.iter().chain(&["--for", "4.2.0-rc.1"]);
        Mq::new(args).run().code(66);
    }
}

#[test]
fn standard_input_can_be_given_once() {
    for args in [
        ["topology", "validate", "-", "-"],
        ["topology", "convert", "-", "-"],
    ] {
        let ran = Mq::new(args).stdin("version: 1\n").run().code(64);
        ran.says(&["standard input is given twice"]);
    }
}

#[test]
fn no_command_shows_help_and_is_usage() {
    Mq::new([] as [&str; 0])
        .run()
        .code(64)
        .says(&["Usage: mq", "consume"]);
}

#[test]
fn a_missing_body_file_is_66_and_named() {
    Mq::new(["publish", "-q", "q", "@/no/such/body"])
        .run()
        .code(66)
        .says(&["/no/such/body", "standard input"]);
}

#[test]
fn names_over_255_bytes_are_refused_before_the_wire() {
    let long = "é".repeat(128);
    for args in [
        &["publish", "-q", &long, "x"][..],
        &["publish", "-e", &long, "x"],
        &["publish", "-e", "e", "-k", &long, "x"],
        &["consume", &long, "--print"],
        &["dlq", "inspect", &long],
        &["--vhost", &long, "wait"],
    ] {
        Mq::new(args).run().code(65).says(&["256 bytes", "255"]);
    }
}

#[test]
fn an_empty_queue_name_is_65() {
    for args in [
        &["publish", "-q", "", "x"][..],
        &["consume", "", "--print"],
        &["dlq", "inspect", ""],
    ] {
        Mq::new(args).run().code(65).says(&["name is empty"]);
    }
}

#[test]
fn a_handler_that_is_not_there_is_found_before_anything_else() {
    for program in [
        "/no/such/handler",
        "no-such-program-anywhere",
        "/etc/passwd",
    ] {
        Mq::new(["consume", "q", "--exec", program])
            .run()
            .code(69)
            .says(&[program, "cannot be started", "no message was taken"]);
    }
}

#[test]
fn a_handler_url_that_makes_no_sense_is_found_before_anything_else() {
    for (url, says) in [
        (
            "localhost:8080",
            "begins neither with http:// nor with https://",
        ),
        (
            "ftp://user:sesame@h/",
            "begins neither with http:// nor with https://",
        ),
        ("http://user:sesame@h:99999/?t=sesame", "cannot be read"),
    ] {
        let ran = Mq::new(["consume", "q", "--http", url])
            .run()
            .code(78)
            .says(&[says, "no message was taken"]);
        assert!(!ran.stderr.contains("sesame"), "{}", ran.stderr);
    }
}

#[test]
fn everything_after_exec_belongs_to_the_program() {
    // Were --max-attempts taken by mq, 0 would be a usage error.
    Mq::new([
        "--url",
        "amqp://127.0.0.1:1",
        "consume",
        "q",
        "--exec",
        "sh",
        "-c",
        "exit 0",
        "--max-attempts",
        "0",
    ])
    .run()
    .code(69)
    .says(&["127.0.0.1:1", "refused"]);
}

/// What `consume` says with these flags before it asks any broker.
fn judged(file: Option<&TextFile>, flags: &[&str], code: i32) -> String {
    let mut args = vec!["--url", "amqp://127.0.0.1:1", "consume", "w"];
    let path = file.map(TextFile::path);
    if let Some(path) = &path {
        args.extend(["--topology", path]);
    }
    args.extend(flags);
    args.extend(["--exec", "true"]);
    let ran = Mq::new(args).run().code(code);
    assert!(ran.stdout.is_empty());
    ran.stderr
}

#[test]
fn retries_that_flags_ask_for_are_judged_before_anything_else() {
    let mut said = String::new();
    for flags in [
        &["--delays", "1s"][..],
        &["--jitter", "full"],
        &["--strategy", "backoff"],
        &["--strategy", "backoff", "--delays", "10s,1s"],
        &["--strategy", "backoff", "--delays", "1s,2s,3s,4s,5s"],
        &[
            "--strategy",
            "backoff",
            "--delays",
            "1s,2s",
            "--max-attempts",
            "2",
        ],
        &["--strategy", "immediate", "--delays", "1s"],
        &["--strategy", "immediate", "--jitter", "1%"],
        &["--strategy", "dlx", "--delays", "1s,2s"],
        &["--strategy", "dlx", "--jitter", "25%"],
        &["--strategy", "native", "--delays", "1s,2s,3s"],
        &["--strategy", "native", "--jitter", "full"],
    ] {
        said.push_str(&format!(
            "{}\n{}\n",
            flags.join(" "),
            judged(None, flags, 64)
        ));
    }
    insta::assert_snapshot!(said);
    // Nothing is wrong with these but the broker.
    for flags in [
        &["--strategy", "dlx"][..],
        &["--strategy", "dlx", "--delays", "1s", "--jitter", "none"],
        &["--strategy", "immediate", "--max-attempts", "1"],
        &[
            "--strategy",
            "backoff",
            "--delays",
            "1s,10s,1m",
            "--jitter",
            "full",
        ],
    ] {
        let said = judged(None, flags, 69);
        assert!(said.contains("127.0.0.1:1"), "{flags:?}: {said}");
    }
}

#[test]
fn flags_beat_the_retry_of_the_file() {
    let file = TextFile::new(
        "t.yaml",
        "version: 1
workers: { w: { retry: { strategy: backoff, delays: { first: 1s }, jitter: 25%, max_attempts: 5 } } }
",
    );
    for (flags, wrong) in [
        (&[][..], None),
        (&["--strategy", "backoff"], None),
        // Fewer attempts than the file has delays for are no slip of the file's.
        (&["--max-attempts", "2"], None),
        (&["--jitter", "none", "--delays", "1s,2s"], None),
        (
            &["--delays", "1s,2s", "--max-attempts", "2"],
            Some("2 delays, but 2 attempts are retried once"),
        ),
        (
            &["--delays", "1s,2s,3s,4s,5s"],
            Some("use --max-attempts 6 or more"),
        ),
        // Neither the delays nor the jitter of the file are another strategy's.
        (&["--strategy", "dlx"], None),
        (&["--strategy", "immediate"], None),
        (
            &["--strategy", "immediate", "--delays", "1s"],
            Some("leave --delays out"),
        ),
        (
            &["--strategy", "dlx", "--jitter", "full"],
            Some("leave --jitter out, or use --strategy backoff"),
        ),
    ] {
        let said = judged(Some(&file), flags, if wrong.is_some() { 64 } else { 69 });
        let expected = wrong.unwrap_or("127.0.0.1:1");
        assert!(said.contains(expected), "{flags:?}: {said}");
    }
}

#[test]
fn reports_do_not_share_standard_output_with_results() {
    for (args, says) in [
        (&["doctor", "--junit", "-"][..], "a report needs a file"),
        (
            &["topology", "test", "t.yaml", "--junit", "-"],
            "a report needs a file",
        ),
        (
            &["dlq", "check", "--nagios", "--prometheus", "-"],
            "--prometheus FILE",
        ),
    ] {
        let ran = Mq::new(args.iter().copied()).run().code(64).says(&[says]);
        assert_eq!(ran.stdout, "");
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "files that are written and read back"
)]
fn a_bulk_writes_no_file_that_it_reads_and_none_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("in"), "1\n").unwrap();
    std::fs::hard_link(path("in"), path("again")).unwrap();
    let (input, again, state) = (path("in"), path("again"), path("state"));
    for (args, says) in [
        (
            &["--results", &input][..],
            &["--results ", "is the same file as the source "][..],
        ),
        (
            &["--resume", &state, "--results", &again],
            &["--results ", "is the same file as the source "],
        ),
        (
            &["--resume", &again],
            &["--resume ", "is the same file as the source "],
        ),
        (
            &["--resume", &state, "--results", &state],
            &["--results ", "is the same file as --resume "],
        ),
        (
            &["--resume", &state, "--results", &path("state.lock")],
            &["is the same file as the lock of --resume"],
        ),
    ] {
        Mq::new(["publish", "-q", "q", "--lines", &input])
            .args(args)
            .env("MQ_URL", "amqp://localhost:1")
            .run()
            .code(64)
            .says(says);
    }
    let mut left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["again", "in"]);
    assert_eq!(std::fs::read_to_string(&input).unwrap(), "1\n");
    // A state that cannot be kept leaves no lock behind.
    Mq::new(["publish", "-q", "q", "--lines", &input, "--resume"])
        .args([folder.path()])
        .run()
        .code(74);
    let mut lock = folder.path().as_os_str().to_owned();
    lock.push(".lock");
    assert!(!std::path::Path::new(&lock).exists());
}
