//! The checks by their codes, and what they find.

use crate::doctor::seen::{RUN_AGAIN, SWITCH_ON};
use crate::doctor::{NotTold, VhostSeen};
use crate::topology::VhostName;

/// How a check went, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Everything that was judged is as it should be.
    Pass,
    /// Something could not be judged.
    Unknown,
    /// Something should be looked at.
    Warn,
    /// Something loses messages, or is about to.
    Fail,
}

impl Status {
    /// In one word: `pass`, `unknown`, `warn` or `fail`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Unknown => "unknown",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubjectKind {
    /// The broker as a whole.
    Broker,
    /// One node.
    Node,
    /// A vhost.
    Vhost,
    /// A queue.
    Queue,
    /// A policy.
    Policy,
    /// A client's connection.
    Connection,
    /// A consumer, named by its queue.
    Consumer,
    /// A deprecated feature.
    Feature,
}

impl SubjectKind {
    /// In one word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Broker => "broker",
            Self::Node => "node",
            Self::Vhost => "vhost",
            Self::Queue => "queue",
            Self::Policy => "policy",
            Self::Connection => "connection",
            Self::Consumer => "consumer",
            Self::Feature => "feature",
        }
    }
}

/// One thing that is not as it should be, or not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is; never a pass.
    pub status: Status,
    /// The vhost it is in; `None`: the broker.
    pub vhost: Option<VhostName>,
    /// What kind of thing it is about.
    pub kind: SubjectKind,
    /// Its name.
    pub subject: String,
    /// What was read, with names and numbers.
    pub evidence: String,
    /// What to do.
    pub fix: Fix,
}

/// What to do about a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// In words.
    pub words: String,
    /// The command that does it, on one line and safe to paste, where there is one.
    pub command: Option<String>,
}

impl<T: Into<String>> From<T> for Fix {
    fn from(words: T) -> Self {
        Self {
            words: words.into(),
            command: None,
        }
    }
}

impl std::fmt::Display for Fix {
    /// On one line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words)?;
        match &self.command {
            Some(command) => write!(f, ": {command}"),
            None => Ok(()),
        }
    }
}

/// One check of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckRule {
    /// Its code.
    pub code: &'static str,
    /// What holds when it passes.
    pub title: &'static str,
    /// What was judged.
    pub judged: &'static str,
    /// Whether it looks into vhosts, and not only at the broker.
    pub of_vhosts: bool,
}

macro_rules! checks {
    ($($name:ident = $code:literal $title:literal, $judged:literal, $of:literal;)+) => {
        $(#[doc = $title] pub(super) const $name: CheckRule = CheckRule {
            code: $code, title: $title, judged: $judged, of_vhosts: $of,
        };)+
        /// Every check, by its code.
        pub const CHECKS: &[CheckRule] = &[$($name),+];
    };
}

checks! {
    DLX = "MQD01" "dead-letter exchanges exist and are durable", "queues with one", true;
    PATH = "MQD02" "dead letters reach a queue", "queues with dead-lettering", true;
    HAS_PATH = "MQD03" "work queues have a dead-letter path", "queues in use", true;
    CONFIRMS = "MQD04" "publishers use confirms", "publishing channels", true;
    ACKS = "MQD05" "consumers ack manually", "consumers", true;
    PREFETCH = "MQD06" "consumers have a sane prefetch", "consumers", true;
    CYCLES = "MQD07" "no dead-letter cycle", "queues with dead-lettering", true;
    SURVIVES = "MQD08" "what must survive is durable and replicated", "queues", true;
    LIMITS = "MQD09" "no delivery limit silently drops messages", "quorum queues", true;
    PUT_BACK = "MQD10" "no consumer puts dead letters back in a loop", "dead-letter queues", true;
    EMPTY = "MQD11" "dead-letter queues are empty", "dead-letter queues", true;
    NODES = "MQD12" "nodes run without alarms or partitions", "nodes", false;
    DEPRECATED = "MQD13" "no deprecated feature is in use", "features and settings", true;
    SUPPORTED = "MQD14" "the broker's series is supported", "broker", false;
}

/// A check with what it judged and found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Which.
    pub rule: CheckRule,
    /// How many things were judged.
    pub judged: usize,
    /// What is not as it should be, in the order it was found.
    pub findings: Vec<Finding>,
}

impl Check {
    /// The worst of the findings; without any it passed.
    #[must_use]
    pub fn status(&self) -> Status {
        let worst = self.findings.iter().map(|finding| finding.status).max();
        worst.unwrap_or(Status::Pass)
    }
}

/// Every check that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// By code.
    pub checks: Vec<Check>,
}

impl Report {
    /// A report in which nothing was judged yet, without the checks in `skip`.
    #[must_use]
    pub fn new(skip: &[String]) -> Self {
        let checks = CHECKS
            .iter()
            .filter(|rule| !skip.iter().any(|code| code == rule.code))
            .map(|rule| Check {
                rule: *rule,
                judged: 0,
                findings: Vec::new(),
            });
        Self {
            checks: checks.collect(),
        }
    }

    /// Whether any finding has this status.
    #[must_use]
    pub fn has(&self, status: Status) -> bool {
        let mut findings = self.checks.iter().flat_map(|check| &check.findings);
        findings.any(|finding| finding.status == status)
    }

    /// How many checks went so.
    #[must_use]
    pub fn count(&self, status: Status) -> usize {
        let checks = self.checks.iter();
        checks.filter(|check| check.status() == status).count()
    }

    pub(super) fn judged(&mut self, rule: CheckRule, count: usize) {
        if let Some(check) = self.check(rule) {
            check.judged += count;
        }
    }

    pub(super) fn find(&mut self, rule: CheckRule, finding: Finding) {
        if let Some(check) = self.check(rule) {
            check.findings.push(finding);
        }
    }

    /// What is late elsewhere never comes on a broker without statistics.
    pub(super) fn without_statistics(&mut self) {
        let findings = self.checks.iter_mut().flat_map(|check| &mut check.findings);
        for finding in findings.filter(|finding| finding.fix.words == RUN_AGAIN) {
            SWITCH_ON.clone_into(&mut finding.fix.words);
        }
    }

    /// Nothing of this vhost could be judged.
    pub(super) fn unreadable(&mut self, vhost: &VhostSeen, why: &NotTold) {
        for check in self.checks.iter_mut().filter(|one| one.rule.of_vhosts) {
            check.findings.push(vhost.not_told(why));
        }
    }

    fn check(&mut self, rule: CheckRule) -> Option<&mut Check> {
        self.checks
            .iter_mut()
            .find(|check| check.rule.code == rule.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_and_can_be_skipped() {
        assert!(CHECKS.is_sorted_by(|a, b| a.code < b.code));
        let report = Report::new(&["MQD04".to_owned()]);
        assert_eq!(report.checks.len(), CHECKS.len() - 1);
        assert!(!report.checks.iter().any(|check| check.rule == CONFIRMS));
        assert_eq!(report.count(Status::Pass), CHECKS.len() - 1);
    }

    #[test]
    fn the_worst_finding_counts() {
        let finding = |status| Finding {
            status,
            vhost: None,
            kind: SubjectKind::Broker,
            subject: String::new(),
            evidence: String::new(),
            fix: Fix::from(""),
        };
        for (found, status) in [
            (vec![], Status::Pass),
            (vec![Status::Unknown], Status::Unknown),
            (vec![Status::Warn, Status::Unknown], Status::Warn),
            (vec![Status::Warn, Status::Fail], Status::Fail),
        ] {
            let check = Check {
                rule: DLX,
                judged: 1,
                findings: found.into_iter().map(finding).collect(),
            };
            assert_eq!(check.status(), status);
        }
    }
}
