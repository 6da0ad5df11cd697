//! Which delays a strategy can keep, and how many of them are ever reached.

use std::fmt;
use std::time::Duration;

use crate::retry::{DEFAULT_MAX_ATTEMPTS, RetryPolicy, Strategy};

/// Why the delays of a retry policy make no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DelaysProblem {
    /// Nobody says what keeps them.
    NoStrategy,
    /// The strategy needs some.
    Missing,
    /// The strategy does not wait.
    NeverWaits,
    /// More than the strategy can keep.
    TooMany(Strategy, usize),
    /// A delay of nothing.
    Zero,
    /// One that is shorter than the one before it.
    Unsorted(Duration, Duration),
    /// More than there are retries.
    Unreachable(usize, u32),
}

impl fmt::Display for DelaysProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStrategy => write!(f, "delays without a strategy"),
            Self::Missing => write!(f, "no delays for `backoff`"),
            Self::NeverWaits => write!(f, "delays, but `immediate` never waits"),
            Self::TooMany(strategy, most) => {
                write!(f, "more delays than `{strategy}` can keep, which is {most}")
            }
            Self::Zero => write!(f, "a delay of zero"),
            Self::Unsorted(longer, shorter) => write!(
                f,
                "the delay {} after {}",
                humantime::format_duration(*shorter),
                humantime::format_duration(*longer)
            ),
            Self::Unreachable(delays, attempts) => write!(
                f,
                "{delays} delays, but {attempts} attempts are retried {} times",
                attempts.saturating_sub(1)
            ),
        }
    }
}

impl DelaysProblem {
    /// What to do about it.
    #[must_use]
    pub fn way_out(&self) -> String {
        match self {
            Self::NoStrategy => "add `strategy: backoff`, dlx or native".to_owned(),
            Self::Missing => "add `delays: [1s, 10s, 1m]`".to_owned(),
            Self::NeverWaits => {
                "leave `delays` out, or write `strategy: backoff` or `strategy: dlx`".to_owned()
            }
            Self::TooMany(Strategy::Native, _) => {
                "write the shortest and the longest only, or use `strategy: backoff`".to_owned()
            }
            Self::TooMany(..) => {
                "a queue has one dead-letter key, so one wait queue; use `strategy: backoff` for several delays"
                    .to_owned()
            }
            Self::Zero => "write a delay such as 1s, or use `strategy: immediate`".to_owned(),
            Self::Unsorted(..) => "write the shortest first".to_owned(),
            Self::Unreachable(delays, _) => format!(
                "write `max_attempts: {}` or more, or fewer delays; the last delay repeats",
                delays + 1
            ),
        }
    }
}

/// Whether the policy's delays are such as its strategy can keep.
///
/// # Errors
/// The first problem found.
pub fn check_delays(policy: &RetryPolicy) -> Result<(), DelaysProblem> {
    let delays = policy.delays.as_slice();
    let most = match (policy.strategy, delays) {
        (Some(Strategy::Backoff), []) => return Err(DelaysProblem::Missing),
        (_, []) => return Ok(()),
        (None, _) => return Err(DelaysProblem::NoStrategy),
        (Some(Strategy::Immediate), _) => return Err(DelaysProblem::NeverWaits),
        (Some(Strategy::Dlx), _) => Some((Strategy::Dlx, 1)),
        (Some(Strategy::Native), _) => Some((Strategy::Native, 2)),
        (Some(Strategy::Backoff), _) => None,
    };
    if let Some((strategy, most)) = most
        && delays.len() > most
    {
        return Err(DelaysProblem::TooMany(strategy, most));
    }
    if delays.iter().any(Duration::is_zero) {
        return Err(DelaysProblem::Zero);
    }
    for pair in delays.windows(2) {
        if let [earlier, later] = pair
            && later < earlier
        {
            return Err(DelaysProblem::Unsorted(*earlier, *later));
        }
    }
    let attempts = policy.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS);
    let retries = usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX);
    // The bounds of native delays are not steps.
    if policy.strategy != Some(Strategy::Native) && delays.len() > retries {
        return Err(DelaysProblem::Unreachable(delays.len(), attempts));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_strategy_keeps_other_delays() {
        use Strategy::{Backoff, Dlx, Immediate, Native};
        for (strategy, delays, attempts, expected) in [
            (None, vec![], None, Ok(())),
            (None, vec![1], None, Err(DelaysProblem::NoStrategy)),
            (Some(Dlx), vec![], None, Ok(())),
            (Some(Dlx), vec![1], Some(2), Ok(())),
            (
                Some(Dlx),
                vec![1],
                Some(1),
                Err(DelaysProblem::Unreachable(1, 1)),
            ),
            (
                Some(Dlx),
                vec![1, 2],
                None,
                Err(DelaysProblem::TooMany(Dlx, 1)),
            ),
            (Some(Backoff), vec![], None, Err(DelaysProblem::Missing)),
            (Some(Backoff), vec![1, 1, 10, 60], None, Ok(())),
            (
                Some(Backoff),
                vec![1, 2, 3, 4, 5],
                None,
                Err(DelaysProblem::Unreachable(5, 5)),
            ),
            (Some(Backoff), vec![1, 2, 3, 4, 5], Some(6), Ok(())),
            (
                Some(Backoff),
                vec![10, 1],
                None,
                Err(DelaysProblem::Unsorted(
                    Duration::from_secs(10),
                    Duration::from_secs(1),
                )),
            ),
            (Some(Backoff), vec![0, 1], None, Err(DelaysProblem::Zero)),
            (Some(Immediate), vec![], None, Ok(())),
            (
                Some(Immediate),
                vec![1],
                None,
                Err(DelaysProblem::NeverWaits),
            ),
            (Some(Native), vec![1, 60], Some(2), Ok(())),
            (
                Some(Native),
                vec![1, 2, 3],
                None,
                Err(DelaysProblem::TooMany(Native, 2)),
            ),
        ] {
            let policy = RetryPolicy {
                strategy,
                delays: delays.iter().copied().map(Duration::from_secs).collect(),
                max_attempts: attempts,
                ..RetryPolicy::default()
            };
            let found = check_delays(&policy);
            assert_eq!(found, expected, "{policy:?}");
            if let Err(problem) = found {
                assert!(!problem.to_string().is_empty() && !problem.way_out().is_empty());
            }
        }
    }
}
