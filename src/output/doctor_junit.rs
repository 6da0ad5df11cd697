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
        self.worst().map_or(Status::Pass, |finding| finding.status)
    }

    /// The first of the worst findings.
    fn worst(&self) -> Option<&Finding> {
        // Of equals `max_by_key` takes the last.
        let backwards = self.findings.iter().rev();
        backwards.copied().max_by_key(|finding| finding.status)
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
        let Some(worst) = self.worst() else {
            xml.push_str("/>\n");
            return;
        };
        let message = attribute(&worst.evidence);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::BrokerFacts;
    use crate::doctor::{BrokerSeen, Report, SubjectKind};

    #[test]
    fn the_message_is_that_of_the_first_of_the_worst() {
        let vhost = VhostName::new("v").expect("name");
        let finding = |(status, evidence): &(Status, &str)| Finding {
            status: *status,
            vhost: Some(vhost.clone()),
            kind: SubjectKind::Queue,
            subject: "q".to_owned(),
            evidence: (*evidence).to_owned(),
            fix: "f".into(),
        };
        let (unknown, warn) = ((Status::Unknown, "late"), (Status::Warn, "odd"));
        let (fail, other) = ((Status::Fail, "lost"), (Status::Fail, "gone"));
        for (found, expected) in [
            (vec![unknown], "<skipped message=\"late\""),
            (
                vec![unknown, warn],
                "<failure type=\"warn\" message=\"odd\"",
            ),
            (
                vec![unknown, fail, warn, other],
                "<failure type=\"fail\" message=\"lost\"",
            ),
        ] {
            let mut report = Report::new(&[]);
            let checks = report.checks.iter_mut();
            for check in checks.filter(|check| check.rule.code == "MQD03") {
                check.findings = found.iter().map(finding).collect();
            }
            let xml = doctor_junit(&Examined {
                broker: BrokerSeen {
                    facts: BrokerFacts::new("RabbitMQ", "4.3.6"),
                    cluster: None,
                    counts_clients: true,
                    nodes: Ok(Vec::new()),
                    deprecated: Ok(None),
                    now: 0,
                },
                vhosts: vec![vhost.clone()],
                report,
            });
            assert!(xml.contains(expected), "{xml}");
        }
    }
}
