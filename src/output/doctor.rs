//! What `mq doctor` found, on screen and as JSON.

use serde_json::{Value as Json, json};
use unicode_width::UnicodeWidthStr as _;

use crate::doctor::{BrokerSeen, Check, Finding, Report, Status, SubjectKind};
use crate::output::{one_line, unbroken};
use crate::topology::VhostName;

/// Columns that lines are broken at.
const WIDTH: usize = 80;

/// Columns before the title of a check.
const TITLES_BEGIN: usize = 15;

/// Findings of one check beyond this are counted, not shown; JSON has all of them.
const MOST_SHOWN: usize = 10;

/// What was examined and found.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The broker.
    pub broker: BrokerSeen,
    /// Its vhosts, readable or not.
    pub vhosts: Vec<VhostName>,
    /// What was found.
    pub report: Report,
}

/// A line for each check, and below it what is not as it should be.
#[must_use]
pub fn doctor_text(examined: &Examined) -> String {
    let mut text = heading(examined);
    text.push('\n');
    let with_vhost = examined.vhosts.len() > 1;
    for check in &examined.report.checks {
        let judged = match (check.status(), check.judged) {
            (Status::Pass, 0) => " (nothing to judge)".to_owned(),
            (Status::Pass, count) => format!(" ({}: {count})", check.rule.judged),
            _ => String::new(),
        };
        let status = check.status().word().to_uppercase();
        text.push_str(&format!("\n{status:<7} {}  ", check.rule.code));
        wrap_from(
            TITLES_BEGIN,
            &format!("{}{judged}", check.rule.title),
            &mut text,
        );
        for finding in check.findings.iter().take(MOST_SHOWN) {
            shown(finding, with_vhost, &mut text);
        }
        if let Some(more) = check.findings.len().checked_sub(MOST_SHOWN)
            && more > 0
        {
            text.push_str(&format!("\n    and {more} more: `-o json` has all of them"));
        }
    }
    let count = |status| examined.report.count(status);
    text.push_str(&format!(
        "\n\n{} checks: {} passed, {} warned, {} failed, {} unknown",
        examined.report.checks.len(),
        count(Status::Pass),
        count(Status::Warn),
        count(Status::Fail),
        count(Status::Unknown)
    ));
    text
}

fn heading(examined: &Examined) -> String {
    let cluster = examined.broker.cluster.as_deref().unwrap_or("?");
    let vhosts = match examined.vhosts.as_slice() {
        [only] => format!("vhost '{}'", one_line(only.as_str(), 60)),
        several => format!("{} vhosts", several.len()),
    };
    format!(
        "{}, cluster '{}', {vhosts}",
        one_line(&examined.broker.facts.to_string(), 40),
        one_line(cluster, 60)
    )
}

fn shown(finding: &Finding, with_vhost: bool, text: &mut String) {
    let word = finding.status.word();
    let subject = match (finding.kind, &finding.vhost) {
        (SubjectKind::Vhost, _) | (_, None) => named(finding),
        (_, Some(vhost)) if with_vhost => format!("{} in vhost '{vhost}'", named(finding)),
        (_, Some(_)) => named(finding),
    };
    wrap(&unbroken(&format!("{word}: {subject}")), 2, text);
    wrap(&unbroken(&finding.evidence), 4, text);
    let Some(command) = &finding.fix.command else {
        wrap(&unbroken(&format!("fix: {}", finding.fix.words)), 4, text);
        return;
    };
    wrap(&unbroken(&format!("fix: {}:", finding.fix.words)), 4, text);
    // A line that is broken could not be pasted.
    text.push_str(&format!("\n    {}", unbroken(command)));
}

fn named(finding: &Finding) -> String {
    match finding.kind {
        SubjectKind::Broker => finding.subject.clone(),
        SubjectKind::Consumer => format!("consumer of queue '{}'", finding.subject),
        kind => format!("{} '{}'", kind.word(), finding.subject),
    }
}

/// Adds a text on lines of its own.
fn wrap(line: &str, indent: usize, text: &mut String) {
    text.push('\n');
    text.push_str(&" ".repeat(indent));
    wrap_from(indent, line, text);
}

/// Adds a text from this column on, in lines of at most [`WIDTH`] columns, broken
/// at blanks; what has none stays whole.
fn wrap_from(indent: usize, line: &str, text: &mut String) {
    let mut column = indent;
    for (number, word) in line.split(' ').enumerate() {
        let width = word.width();
        if number > 0 && column + 1 + width > WIDTH {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            column = indent;
        } else if number > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
}

/// `{broker: {version, cluster}, vhosts, checks, passed, warned, failed, unknown}`,
/// the checks as in [`doctor_check_json`].
#[must_use]
pub fn doctor_json(examined: &Examined) -> Json {
    let count = |status| examined.report.count(status);
    let vhosts: Vec<&str> = examined.vhosts.iter().map(VhostName::as_str).collect();
    json!({
        "broker": {
            "version": examined.broker.facts.version(),
            "cluster": examined.broker.cluster,
        },
        "vhosts": vhosts,
        "checks": examined.report.checks.iter().map(doctor_check_json).collect::<Vec<_>>(),
        "passed": count(Status::Pass),
        "warned": count(Status::Warn),
        "failed": count(Status::Fail),
        "unknown": count(Status::Unknown),
    })
}

/// `{code, title, status, judged, findings: [{status, vhost, subject_kind, subject,
/// evidence, fix, command}]}`; the vhost of what is about the broker is null, and so
/// is the command where there is none; else the fix ends with it.
#[must_use]
pub fn doctor_check_json(check: &Check) -> Json {
    let findings = check.findings.iter().map(|finding| {
        json!({
            "status": finding.status.word(),
            "vhost": finding.vhost.as_ref().map(VhostName::as_str),
            "subject_kind": finding.kind.word(),
            "subject": finding.subject,
            "evidence": finding.evidence,
            "fix": finding.fix.to_string(),
            "command": finding.fix.command,
        })
    });
    json!({
        "code": check.rule.code,
        "title": check.rule.title,
        "status": check.status().word(),
        "judged": check.judged,
        "findings": findings.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_blanks_and_long_words_stay_whole() {
        let mut text = String::new();
        let long = "x".repeat(100);
        wrap(
            &format!("{} {long} end", "word ".repeat(20).trim()),
            2,
            &mut text,
        );
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert!(lines.iter().all(|line| line.starts_with("  ")), "{text}");
        assert!(
            lines
                .iter()
                .all(|line| line.width() <= WIDTH || line.trim() == long),
            "{text}"
        );
        assert_eq!(text.split_whitespace().count(), 22);
    }
}
