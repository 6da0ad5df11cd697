//! What a broker would accept and then lose messages by, found in a topology
//! before it is applied.
//!
//! Every rule is a pure function over the [`Survey`](survey::Survey): the queues
//! with their policies merged, and where their dead letters lead. Nothing here
//! knows files; who does gives each finding its place.

mod arguments;
mod bindings;
mod cycles;
mod dead_ends;
mod dead_letters;
mod feeds;
mod finding;
mod flow;
mod keys;
mod queues;
mod reach;
mod rings;
pub mod rule;
mod survey;

use crate::broker::BrokerFacts;
use crate::diagnostic::Level;
use crate::topology::{QueueName, Topology};

pub use feeds::{Feed, Feeds, feeds};
pub use finding::{Finding, Rule, Subject};
pub use rule::RULES;

use survey::Survey;

/// Everything that is wrong, or looks wrong, in the order of the rules.
///
/// Where the answer depends on the broker's version and `facts` is not given,
/// the more careful one is taken: quorum queues have a default delivery limit.
#[must_use]
pub fn lint(topology: &Topology, facts: Option<&BrokerFacts>) -> Vec<Finding> {
    let survey = Survey::new(topology, facts);
    let mut findings = Vec::new();
    dead_letters::check(&survey, &mut findings);
    let too_tangled = cycles::check(&survey, &mut findings);
    if survey.is_too_large || too_tangled {
        findings.push(
            rule::NOT_JUDGED
                .finding(
                    Subject::Vhost,
                    "there is too much to judge all dead-letter paths",
                )
                .help("lint parts of it on their own"),
        );
    }
    queues::check(&survey, &mut findings);
    arguments::check(&survey, &mut findings);
    reach::check(&survey, &mut findings);
    bindings::check(&survey, &mut findings);
    findings.sort_by(|a, b| (a.code, &a.subject).cmp(&(b.code, &b.subject)));
    findings
}

/// The first queue of each loop in which what is rejected comes back at once,
/// without waiting anywhere.
#[must_use]
pub fn pauseless_loops(topology: &Topology) -> Vec<QueueName> {
    cycles::pauseless(&Survey::new(topology, None))
}

/// The mistakes that are mistakes on every version: what can be said before it
/// is known which broker it is.
#[must_use]
pub fn lint_for_all(topology: &Topology) -> Vec<Finding> {
    let mut newest = lint(topology, Some(&BrokerFacts::newest_measured()));
    newest.retain(|finding| finding.level == Level::Error);
    if newest.is_empty() {
        return newest;
    }
    let oldest = lint(topology, Some(&BrokerFacts::oldest_measured()));
    newest
        .into_iter()
        .filter(|finding| {
            oldest
                .iter()
                .any(|other| (other.code, &other.subject) == (finding.code, &finding.subject))
        })
        .collect()
}

#[cfg(test)]
mod tests;
