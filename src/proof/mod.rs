//! Whether messages go where the tests of a topology say.
//!
//! A test is answered by simulation, and where it was done on a broker by what
//! happened there. It passes when every answer is what it expects.

mod prepare;
mod settling;
mod simulate;

use std::collections::BTreeSet;

use crate::routing::Death;
use crate::topology::{ExchangeName, QueueName, RoutingKey, RoutingTest, TestOrigin};

pub use prepare::{MOST_HELD, MOST_WAIT, prepared, waits};
pub use settling::{Settled, Settling};
pub use simulate::{cannot_die, simulate};

/// What one expectation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// Which queues the message reaches.
    Reaches,
    /// Where it rests once it died so in those.
    Dies(Death),
}

impl Asked {
    /// Its key in the file.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Reaches => "reaches",
            Self::Dies(Death::Rejected) => "rejected",
            Self::Dies(Death::Expired) => "expired",
            Self::Dies(Death::MaxLength) => "max_length",
            Self::Dies(Death::DeliveryLimit) => "delivery_limit",
        }
    }

    /// Everything a test expects, in the order of the file format.
    #[must_use]
    pub fn of(test: &RoutingTest) -> Vec<(Self, BTreeSet<QueueName>)> {
        let dies = Death::ALL.map(|(_, death)| Self::Dies(death));
        std::iter::once(Self::Reaches)
            .chain(dies)
            .filter_map(|asked| {
                let mut expectations = test.expectations().into_iter();
                let (_, expected) = expectations.find(|(key, _)| *key == asked.key())?;
                Some((asked, expected.cloned()?))
            })
            .collect()
    }
}

/// What came of one question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The message is in exactly these queues.
    Queues {
        /// Them.
        queues: BTreeSet<QueueName>,
        /// How it came there, or was lost.
        ways: Vec<String>,
    },
    /// What is asked about cannot happen, and why.
    Impossible(String),
    /// There is no answer, and why.
    Unknown(String),
}

impl Answer {
    /// The queues, if that is the answer.
    #[must_use]
    pub const fn queues(&self) -> Option<&BTreeSet<QueueName>> {
        match self {
            Self::Queues { queues, .. } => Some(queues),
            Self::Impossible(_) | Self::Unknown(_) => None,
        }
    }

    /// Takes another part of the same answer in: the deaths of one message in
    /// several queues.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (
                Self::Queues {
                    mut queues,
                    mut ways,
                },
                Self::Queues {
                    queues: more_queues,
                    ways: more_ways,
                },
            ) => {
                queues.extend(more_queues);
                ways.extend(more_ways);
                Self::Queues { queues, ways }
            }
            (Self::Queues { .. }, failed) | (failed, _) => failed,
        }
    }

    /// Whether both say the same, in whatever words.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Queues { queues: a, .. }, Self::Queues { queues: b, .. }) => a == b,
            (Self::Impossible(_), Self::Impossible(_)) => true,
            _ => false,
        }
    }
}

/// One expectation and its answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What it is about.
    pub asked: Asked,
    /// Exactly these queues.
    pub expected: BTreeSet<QueueName>,
    /// The simulation's answer.
    pub simulated: Answer,
    /// The broker's, if it was asked.
    pub live: Option<Answer>,
}

impl Check {
    /// Whether the broker's answer is another one than the simulation's. One
    /// that the simulation cannot give is none.
    #[must_use]
    pub fn differs(&self) -> bool {
        let known = !matches!(self.simulated, Answer::Unknown(_));
        known
            && self
                .live
                .as_ref()
                .is_some_and(|live| !live.agrees_with(&self.simulated))
    }

    /// Whether it is as expected, by every answer there is.
    #[must_use]
    pub fn passed(&self) -> bool {
        let answer = self.live.as_ref().unwrap_or(&self.simulated);
        answer.queues() == Some(&self.expected) && !self.differs()
    }
}

/// One test and its checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    /// The name of the test.
    pub name: String,
    /// Where it stands.
    pub origin: TestOrigin,
    /// Where its message is published.
    pub exchange: ExchangeName,
    /// With which key.
    pub key: RoutingKey,
    /// Its expectations.
    pub checks: Vec<Check>,
}

impl Proof {
    /// Whether every check passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.checks.iter().all(Check::passed)
    }
}

/// All tests of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ProofReport {
    /// The broker they were done on, if they were.
    pub broker: Option<String>,
    /// Each test.
    pub proofs: Vec<Proof>,
}

impl ProofReport {
    /// How many failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.proofs.iter().filter(|proof| !proof.passed()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(names: &[&str]) -> Answer {
        let names = names
            .iter()
            .map(|name| QueueName::new(*name).expect("name"));
        Answer::Queues {
            queues: names.collect(),
            ways: Vec::new(),
        }
    }

    #[test]
    fn the_broker_has_the_last_word_and_must_agree_with_a_simulation_that_knows() {
        let unknown = || Answer::Unknown("plugin".to_owned());
        let impossible = || Answer::Impossible("no limit".to_owned());
        for (simulated, live, passed, differs) in [
            (answer(&["a"]), None, true, false),
            (answer(&["b"]), None, false, false),
            (answer(&[]), None, false, false),
            (unknown(), None, false, false),
            (impossible(), None, false, false),
            (answer(&["a"]), Some(answer(&["a"])), true, false),
            (answer(&["b"]), Some(answer(&["a"])), false, true),
            (answer(&["a"]), Some(answer(&["b"])), false, true),
            (answer(&["b"]), Some(answer(&["b"])), false, false),
            (answer(&["a"]), Some(unknown()), false, true),
            (unknown(), Some(answer(&["a"])), true, false),
            (impossible(), Some(impossible()), false, false),
        ] {
            let told = format!("{simulated:?} {live:?}");
            let check = Check {
                asked: Asked::Reaches,
                expected: BTreeSet::from([QueueName::new("a").expect("name")]),
                simulated,
                live,
            };
            assert_eq!(
                (check.passed(), check.differs()),
                (passed, differs),
                "{told}"
            );
        }
    }

    #[test]
    fn parts_of_an_answer_are_one_and_a_failed_part_is_all_of_it() {
        assert_eq!(answer(&["a"]).and(answer(&["b"])), answer(&["a", "b"]));
        let unknown = Answer::Unknown("why".to_owned());
        assert_eq!(answer(&["a"]).and(unknown.clone()), unknown);
        assert_eq!(unknown.clone().and(answer(&["a"])), unknown);
    }
}
