//! What `mq doctor` found as JUnit XML: a test case for each check and vhost.

use std::fmt::Write as _;

use crate::doctor::{Check, Finding, Status};
use crate::output::Examined;
use crate::output::junit::{attribute, escaped};
use crate::topology::VhostName;

/// The report as one test suite. Warnings and failures are failures, told apart by
/// their type; what is not known is skipped.
#[must_use]
pub fn doctor_junit(examined: &Examined) -> String {
    let cases = cases(examined);
    let count = |status| cases.iter().filter(|case| case.status() == status).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        cases.len(),
        count(Status::Fail) + count(Status::Warn),
        count(Status::Unknown)
    );
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"mq doctor\" {counts}>\n"
    );
    for case in &cases {
        case.write(&mut xml);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// One check in one vhost, or of the broker.
struct Case<'e> {
    check: &'e Check,
    place: String,
    findings: Vec<&'e Finding>,
}

fn cases(examined: &Examined) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    for check in &examined.report.checks {
        let of = |vhost: Option<&VhostName>| -> Vec<&Finding> {
            let findings = check.findings.iter();
            findings
                .filter(|finding| finding.vhost.as_ref() == vhost)
                .collect()
        };
        let of_broker = of(None);
        if !check.rule.of_vhosts || !of_broker.is_empty() {
            cases.push(Case {
                check,
                place: "broker".to_owned(),
                findings: of_broker,
            });
        }
        if check.rule.of_vhosts {
            cases.extend(examined.vhosts.iter().map(|vhost| Case {
                check,
                place: format!("vhost {vhost}"),
                findings: of(Some(vhost)),
            }));
        }
    }
    cases
}

impl Case<'_> {
    fn status(&self) -> Status {
        let worst = self.findings.iter().map(|finding| finding.status).max();
        worst.unwrap_or(Status::Pass)
    }

    fn write(&self, xml: &mut String) {
        let rule = &self.check.rule;
        let _ = write!(
            xml,
            "    <testcase classname=\"{}\" name=\"{} {}\"",
            attribute(&self.place),
            rule.code,
            attribute(rule.title)
        );
        let lines: Vec<String> = self
            .findings
            .iter()
            .map(|finding| {
                format!(
                    "{}: {} '{}': {}\nfix: {}",
                    finding.status.word(),
                    finding.kind.word(),
                    finding.subject,
                    finding.evidence,
                    finding.fix
                )
            })
            .collect();
        let Some(first) = self.findings.first() else {
            xml.push_str("/>\n");
            return;
        };
        let message = attribute(&first.evidence);
        let text = escaped(&lines.join("\n"));
        let _ = match self.status() {
            Status::Unknown => write!(
                xml,
                ">\n      <skipped message=\"{message}\"/>\n      <system-out>{text}</system-out>\n    </testcase>\n"
            ),
            status => write!(
                xml,
                ">\n      <failure type=\"{}\" message=\"{message}\">{text}</failure>\n    </testcase>\n",
                status.word()
            ),
        };
    }
}
