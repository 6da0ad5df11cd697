//! What came of the tests of a topology.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use crate::output::one_line;
use crate::output::route::names;
use crate::proof::{Answer, Asked, Check, Proof, ProofReport};

/// Longer than any line with a few names in it.
const LINE: usize = 2_000;

/// One line for each test, below a failed one why; a sum at the end. With
/// `only_failed` nothing is said of those that passed.
#[must_use]
pub fn proof_text(report: &ProofReport, only_failed: bool) -> String {
    let mut text = String::new();
    if let (Some(broker), false) = (&report.broker, only_failed) {
        let _ = writeln!(text, "on {}", shown(broker));
    }
    for proof in &report.proofs {
        if !proof.passed() {
            let origin = &proof.origin;
            let place = shown(&format!("{}:{}", origin.file, origin.line));
            let _ = writeln!(text, "FAILED  {}  ({place})", shown(&proof.name));
            for line in proof.checks.iter().flat_map(check_lines) {
                let _ = writeln!(text, "        {line}");
            }
        } else if !only_failed {
            let _ = writeln!(text, "ok      {}", shown(&proof.name));
        }
    }
    let all = report.proofs.len();
    let plural = if all == 1 { "test" } else { "tests" };
    match report.failed() {
        0 => {
            let _ = write!(text, "{all} {plural} passed");
        }
        failed => {
            let _ = write!(text, "{failed} of {all} {plural} failed");
        }
    }
    text
}

fn shown(text: &str) -> String {
    one_line(text, LINE)
}

/// Why a check failed: what was expected, what came instead, and how. No line
/// for one that passed.
#[must_use]
pub fn check_lines(check: &Check) -> Vec<String> {
    if check.passed() {
        return Vec::new();
    }
    let asked = check.asked;
    let key = asked.key();
    let expected = listed(check.expected.iter().map(ToString::to_string), asked);
    let simulated = told(&check.simulated, asked);
    let mut lines = Vec::new();
    let live = check.live.as_ref();
    match live {
        None => lines.push(format!("{key}: expected {expected}; it is {simulated}")),
        Some(live) if check.differs() => {
            let live = told(live, asked);
            lines.push(format!(
                "{key}: expected {expected}; on the broker it is {live}"
            ));
            lines.push(format!("  the simulation says otherwise: {simulated}"));
        }
        Some(live) => {
            let live = told(live, asked);
            lines.push(format!(
                "{key}: expected {expected}; on the broker it is {live}"
            ));
        }
    }
    let mut ways: Vec<String> = Vec::new();
    if let Some(Answer::Queues { ways: by, .. }) = live {
        ways.extend(by.iter().map(|way| format!("  seen: {way}")));
    }
    if let Answer::Queues { ways: by, .. } = &check.simulated {
        let label = if live.is_some() { "simulated: " } else { "" };
        ways.extend(by.iter().map(|way| format!("  {label}{way}")));
    }
    lines.extend(ways);
    lines.iter().map(|line| shown(line)).collect()
}

fn told(answer: &Answer, asked: Asked) -> String {
    match answer {
        Answer::Queues { queues, .. } => listed(queues.iter().map(ToString::to_string), asked),
        Answer::Impossible(why) => format!("impossible: {why}"),
        Answer::Unknown(why) => format!("unknown: {why}"),
    }
}

fn listed(names: impl Iterator<Item = String>, asked: Asked) -> String {
    let names: Vec<String> = names.collect();
    match (names.is_empty(), asked) {
        (false, _) => names.join(", "),
        (true, Asked::Reaches) => "no queue".to_owned(),
        (true, Asked::Dies(_)) => "lost".to_owned(),
    }
}

/// The report as JSON: `passed`, `failed`, `broker`, and `tests` with `name`,
/// `file`, `line`, `exchange`, `routing_key`, `passed` and `checks` {`expects`,
/// `expected`, `passed`, `simulated`, `live`}.
#[must_use]
pub fn proof_json(report: &ProofReport) -> Json {
    json!({
        "passed": report.failed() == 0,
        "failed": report.failed(),
        "broker": report.broker,
        "tests": report.proofs.iter().map(one_json).collect::<Vec<_>>(),
    })
}

fn one_json(proof: &Proof) -> Json {
    let checks = proof.checks.iter().map(|check| {
        json!({
            "expects": check.asked.key(),
            "expected": names(&check.expected),
            "passed": check.passed(),
            "simulated": answer_json(&check.simulated),
            "live": check.live.as_ref().map(answer_json),
        })
    });
    json!({
        "name": proof.name,
        "file": proof.origin.file,
        "line": proof.origin.line,
        "exchange": proof.exchange.as_str(),
        "routing_key": proof.key.as_str(),
        "passed": proof.passed(),
        "checks": checks.collect::<Vec<_>>(),
    })
}

/// `queues` (null: there are none to tell), `ways` in words, `why` there are none.
fn answer_json(answer: &Answer) -> Json {
    match answer {
        Answer::Queues { queues, ways } => {
            json!({ "queues": names(queues), "ways": ways, "why": null })
        }
        Answer::Impossible(why) | Answer::Unknown(why) => {
            json!({ "queues": null, "ways": [], "why": why })
        }
    }
}
