//! How long attempts took, in classes of time, by outcome.

use std::time::Duration;

use crate::retry::Outcome;

/// The upper bounds of the classes, in milliseconds: from a millisecond to the
/// 30 minutes after which brokers take a message back. What took longer is in
/// none of them.
pub const BOUNDS: [u64; 17] = [
    1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000,
    1_800_000,
];

/// What attempts are told apart by.
pub const OUTCOMES: [&str; 6] = [
    "done",
    "failed",
    "poison",
    "downstream_down",
    "cannot_start",
    "interrupted",
];

/// The attempts of one outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// How many took no longer than each of [`BOUNDS`] and longer than the one before.
    pub classes: [u64; BOUNDS.len()],
    /// All of them, those beyond the last bound too.
    pub count: u64,
    /// What they took together.
    pub sum: Duration,
}

/// The attempts of every outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandlerTimes {
    by_outcome: [Times; OUTCOMES.len()],
}

impl HandlerTimes {
    /// Counts one attempt.
    pub fn add(&mut self, outcome: &Outcome, took: Duration) {
        let word = outcome.word();
        let all = OUTCOMES.iter().zip(&mut self.by_outcome);
        for (_, times) in all.filter(|(outcome, _)| **outcome == word) {
            times.count += 1;
            times.sum = times.sum.saturating_add(took);
            let class = BOUNDS
                .iter()
                .zip(&mut times.classes)
                .find(|(bound, _)| took <= Duration::from_millis(**bound));
            if let Some((_, count)) = class {
                *count += 1;
            }
        }
    }

    /// Every outcome with its attempts, those that never happened too.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Times)> {
        OUTCOMES.into_iter().zip(&self.by_outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(word: &str, times: &HandlerTimes) -> Times {
        *times
            .iter()
            .find(|(outcome, _)| *outcome == word)
            .expect("an outcome")
            .1
    }

    #[test]
    fn a_bound_belongs_to_its_class_and_the_rest_to_none() {
        let mut times = HandlerTimes::default();
        times.add(&Outcome::Done, Duration::from_millis(1));
        times.add(&Outcome::Done, Duration::from_micros(1_001));
        times.add(&Outcome::Done, Duration::from_hours(1));
        let done = of("done", &times);
        assert_eq!(done.classes[..3], [1, 1, 0]);
        assert_eq!(done.classes.iter().sum::<u64>(), 2);
        assert_eq!(done.count, 3);
        assert_eq!(done.sum, Duration::from_micros(3_600_002_001));
        assert_eq!(of("failed", &times), Times::default());
    }

    #[test]
    fn every_outcome_is_counted() {
        let why = String::new;
        let mut times = HandlerTimes::default();
        for outcome in [
            Outcome::Done,
            Outcome::Poison { why: why() },
            Outcome::Failed {
                why: why(),
                wait: None,
            },
            Outcome::DownstreamDown { why: why() },
            Outcome::CannotStart { why: why() },
            Outcome::Interrupted,
        ] {
            times.add(&outcome, Duration::ZERO);
        }
        assert!(times.iter().all(|(_, times)| times.count == 1));
    }
}
