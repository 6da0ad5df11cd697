//! `mq doctor`: nothing is found where everything is right, and what cannot be
//! known is not called right.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests keep a pipe to a publisher open, and read what was reported"
)]

use std::fs::File;
use std::io::Write as _;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value as Json, json};

use crate::support::{Running, TextFile, wait_for};
use crate::vhost::Vhost;

/// What `mq doctor` finds in this vhost: codes with findings. What is about the
/// broker as a whole depends on what else runs there.
pub(crate) fn findings(vhost: &Vhost, report: &Json) -> Vec<(String, Json)> {
    let checks = report["checks"].as_array().unwrap();
    let all = checks.iter().flat_map(|check| {
        let code = check["code"].as_str().unwrap().to_owned();
        let found = check["findings"].as_array().unwrap().iter();
        found.map(move |finding| (code.clone(), finding.clone()))
    });
    all.filter(|(_, finding)| finding["vhost"] == vhost.name.as_str())
        .collect()
}

pub(crate) fn examine(vhost: &Vhost) -> Json {
    vhost.mq(["doctor", "-o", "json"]).run().code(0).json()
}

fn check<'r>(report: &'r Json, code: &str) -> &'r Json {
    let mut checks = report["checks"].as_array().unwrap().iter();
    checks.find(|check| check["code"] == code).unwrap()
}

/// A publisher that stays connected: `mq publish` reading a pipe.
struct Publisher {
    _pipe: File,
    _folder: tempfile::TempDir,
    _running: Running,
}

impl Publisher {
    fn new(vhost: &Vhost, queue: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("messages.jsonl");
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        let args = ["publish", "-q", queue, "--jsonl"];
        let running = vhost.mq(args).args([&path]).spawn();
        let mut pipe = File::options().write(true).open(&path).unwrap();
        for _ in 0..3 {
            writeln!(pipe, "{}", json!({"body": "x"})).unwrap();
        }
        Self {
            _pipe: pipe,
            _folder: folder,
            _running: running,
        }
    }
}

/// The shipped topologies with the queues that workers consume.
const SHIPPED: [(&str, &[&str]); 10] = [
    ("antigravity-state", &["q.antigravity.state"]),
    ("antigravity-tasks", &["antigravity.execution.queue"]),
    (
        "code-processing",
        &["code_submission_queue", "valid_code_queue"],
    ),
    ("metrics", &["metrics.events", "metrics.stored"]),
    ("order-process", &["order.main.queue"]),
    ("orders", &["orders.queue"]),
    ("pedidos", &["pedidos_principal"]),
    ("pipelines", &["pipeline.plans"]),
    ("telemetry", &["telemetry.ingest.queue"]),
    ("workers", &["invoices", "mails", "stock"]),
];

#[test]
fn nothing_is_found_on_the_shipped_topologies_run_properly() {
    let newer = Vhost::new().version() >= (4, 3);
    let native: &[(&str, &[&str])] = if newer {
        &[("4.3/native-retry", &["reports"])]
    } else {
        &[]
    };
    let mut running = Vec::new();
    for (name, queues) in SHIPPED.iter().chain(native) {
        let vhost = Vhost::new();
        let file = format!("topologies/{name}.yaml");
        vhost.mq(["topology", "apply", &file]).run().code(0);
        let workers: Vec<Running> = queues
            .iter()
            .map(|queue| {
                let args = ["consume", queue, "--topology", &file, "--exec", "true"];
                vhost.mq(args).spawn()
            })
            .collect();
        // The others hold their messages against a schema.
        let publishes = ["orders", "order-process"].contains(name);
        let publisher = publishes.then(|| Publisher::new(&vhost, queues[0]));
        running.push((vhost, *name, queues.len(), workers, publisher));
    }
    for (vhost, name, consumers, _workers, publisher) in &running {
        wait_for(&format!("everything to be judged in {name}"), || {
            let report = examine(vhost);
            let found = findings(vhost, &report);
            let counted = |code: &str| check(&report, code)["judged"].as_u64();
            let complete = counted("MQD05") == Some(*consumers as u64)
                && counted("MQD01") >= Some(1)
                && (publisher.is_none() || counted("MQD04") >= Some(1));
            if let Some((code, finding)) = found.iter().find(|(_, one)| one["status"] != "unknown")
            {
                panic!("{name}: {code} {finding:#}");
            }
            (complete && found.is_empty())
                .then_some(())
                .ok_or_else(|| format!("{report:#}"))
        });
        // Whatever there is to say of the broker itself.
        vhost
            .mq(["doctor", "--check", "--strict"])
            .args(["--skip", "MQD12", "--skip", "mqd13", "--skip", "MQD14"])
            .run()
            .code(0)
            .shows(&["11 checks: 11 passed"]);
    }
}

#[test]
fn what_is_not_counted_yet_is_unknown_and_no_pass() {
    let vhost = Vhost::new();
    vhost.apply("queues:\n  work: { type: quorum, dead_letter: { exchange: '', key: dead } }\n  dead: { type: classic }\n");
    let report = examine(&vhost);
    let dead = vhost.get(&["queues", &vhost.name, "dead"]);
    // Unless the statistics were quick.
    if dead["messages"].is_null() {
        let found = findings(&vhost, &report);
        let unknown = |code: &str| {
            let mut of = found.iter().filter(|(found, _)| found == code);
            of.any(|(_, finding)| finding["status"] == "unknown")
        };
        assert!(unknown("MQD11") && unknown("MQD05"), "{report:#}");
    }
    wait_for("the statistics", || {
        let report = examine(&vhost);
        let found = findings(&vhost, &report);
        found.is_empty().then_some(()).ok_or(report.to_string())
    });
}

#[test]
fn the_exit_code_tells_the_result_only_when_asked() {
    let vhost = Vhost::new();
    vhost.apply("queues:\n  work: { type: classic, dead_letter: { exchange: '', key: dead } }\n  dead: { type: classic }\n");
    vhost.publish("dead", "x");
    // Until the broker's rate of it is 0 again, a publisher that is gone is unknown.
    wait_for("the dead letter to be counted", || {
        let report = examine(&vhost);
        let found = findings(&vhost, &report);
        let is_counted = found.len() == 1 && found[0].1["status"] == "warn";
        is_counted.then_some(()).ok_or(report.to_string())
    });
    let of_broker = ["--skip", "MQD12", "--skip", "MQD13", "--skip", "MQD14"];
    let doctor = |flags: &[&str]| vhost.mq(["doctor"]).args(flags).args(of_broker).run();
    let shown = doctor(&[]).code(0).shows(&[
        "WARN    MQD11",
        "queue 'dead'",
        "1 dead letter",
        "mq dlq inspect dead --vhost 'mq",
    ]);
    assert!(
        shown.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        shown.stdout
    );
    doctor(&["--check"]).code(0);
    doctor(&["--check", "--strict"]).code(1);
    doctor(&["--check", "--strict", "--skip", "MQD11"]).code(0);
    let junit = TextFile::new("doctor.xml", "");
    doctor(&["--junit", &junit.path(), "--quiet"]).code(0);
    let xml = std::fs::read_to_string(junit.path()).unwrap();
    assert!(xml.contains("tests=\"11\" failures=\"1\""), "{xml}");
    assert!(
        xml.contains("<failure type=\"warn\" message=\"1 dead letter"),
        "{xml}"
    );
    // Nothing is dead-lettered to where nothing is: that fails.
    vhost.delete_queue("dead");
    doctor(&["--check"])
        .code(1)
        .shows(&["FAIL    MQD02", "there is no queue 'dead'"]);
}

#[test]
fn who_sees_only_his_own_clients_is_told_which_right_is_missing() {
    let mut vhost = Vhost::new();
    vhost.apply("queues: { q: { type: classic, dead_letter: { exchange: '', key: d } }, d: { type: classic } }");
    let user = vhost.user(".*", ".*", ".*", "management");
    let url = vhost
        .management_url
        .replace("guest:guest", &format!("{user}:pw"));
    let doctor = |flags: &[&str]| {
        let words = ["doctor"].iter().chain(flags);
        vhost.mq(words).env("MQ_MANAGEMENT_URL", &url).run()
    };
    let report = doctor(&["-o", "json"]).code(0).json();
    for code in ["MQD04", "MQD05", "MQD06", "MQD08", "MQD12"] {
        let check = check(&report, code);
        assert_eq!(check["status"], "unknown", "{check:#}");
        let tag = format!("set_user_tags {user} monitoring");
        let mut found = check["findings"].as_array().unwrap().iter();
        let is_named = |fix: &Json| fix.as_str().unwrap().contains(&tag);
        assert!(found.any(|one| is_named(&one["fix"])), "{check:#}");
    }
    // Everything else is judged, once it is counted.
    wait_for("the queues to be judged", || {
        let ran = doctor(&["--check", "--skip", "MQD13", "--skip", "MQD14"]).code(3);
        let judged = ran.stdout.contains("PASS    MQD11") && ran.stdout.contains("PASS    MQD02");
        judged.then_some(()).ok_or(ran.stdout)
    });
}

#[test]
fn a_vhost_that_may_not_be_read_is_unknown_and_the_others_are_judged() {
    let mut open = Vhost::new();
    let closed = Vhost::new();
    let lost = json!({"durable": true, "arguments": {"x-dead-letter-exchange": "nowhere"}});
    open.api(Method::PUT, &["queues", &open.name, "q"], &lost);
    let user = open.user("^$", "^$", ".*", "monitoring");
    let url = open
        .management_url
        .replace("guest:guest", &format!("{user}:pw"));
    wait_for("both vhosts to be judged", || {
        let all = ["doctor", "--all-vhosts", "-o", "json"];
        let report = open
            .mq(all)
            .env("MQ_MANAGEMENT_URL", &url)
            .run()
            .code(0)
            .json();
        let of = |vhost: &Vhost, code: &str| {
            let mut found = findings(vhost, &report).into_iter();
            found
                .find(|(one, _)| one == code)
                .map(|(_, finding)| finding)
        };
        let unknown = of(&closed, "MQD01").unwrap_or_default();
        let broken = of(&open, "MQD01").unwrap_or_default();
        let fix = unknown["fix"].as_str().unwrap_or_default();
        let right = unknown["status"] == "unknown"
            && fix.contains("set_permissions")
            && broken["status"] == "fail"
            && broken["subject"] == "q";
        right.then_some(()).ok_or(report.to_string())
    });
    // Alone it is no answer.
    closed
        .mq(["doctor"])
        .env("MQ_MANAGEMENT_URL", &url)
        .run()
        .says(&["read the topology of vhost", "access"]);
}

#[test]
fn names_cannot_drive_the_terminal() {
    let vhost = Vhost::new();
    let name = "dead\u{1b}[31m'; reboot #\u{202e}\u{2028}";
    vhost.api(
        Method::PUT,
        &["queues", &vhost.name, name],
        &json!({"durable": true, "arguments": {"x-dead-letter-exchange": "no\u{1b}[2Jwhere"}}),
    );
    for format in ["table", "json", "jsonl"] {
        let ran = vhost.mq(["doctor", "-o", format]).run().code(0);
        assert!(
            !ran.stdout.contains(['\u{1b}', '\u{202e}', '\u{2028}']),
            "{}",
            ran.stdout
        );
        assert!(ran.stdout.contains("MQD01"), "{}", ran.stdout);
    }
}
