//! Which delays a strategy can keep, and how many of them are ever reached.

use std::fmt;
use std::time::Duration;

use crate::retry::{DEFAULT_MAX_ATTEMPTS, Jitter, RetryPolicy, Strategy};

/// How many delays `backoff` can have: each has a wait queue of its own.
pub const MAX_DELAYS: usize = 1000;

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
    /// Delays are to be scattered by a strategy that cannot, if any is said:
    /// only a copy can be given an expiration of its own.
    NeverScatters(Option<Strategy>),
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
            Self::Unreachable(delays, attempts) => {
                let plural = if *delays == 1 { "" } else { "s" };
                let tried = match attempts {
                    1 => "1 attempt is".to_owned(),
                    many => format!("{many} attempts are"),
                };
                let times = match attempts.saturating_sub(1) {
                    1 => "once".to_owned(),
                    many => format!("{many} times"),
                };
                write!(f, "{delays} delay{plural}, but {tried} retried {times}")
            }
            Self::NeverScatters(None) => write!(f, "jitter without a strategy"),
            Self::NeverScatters(Some(strategy)) => {
                write!(f, "jitter, but `{strategy}` cannot scatter delays")
            }
        }
    }
}

impl DelaysProblem {
    /// What to do about it in a topology file.
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
            Self::TooMany(Strategy::Backoff, _) => {
                "let them grow faster, or end sooner; the last delay repeats".to_owned()
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
            Self::NeverScatters(_) => {
                "leave `jitter` out, or write `strategy: backoff`".to_owned()
            }
        }
    }

    /// What to do about it on the command line.
    #[must_use]
    pub fn way_out_by_flags(&self) -> String {
        match self {
            Self::NoStrategy => "add --strategy backoff".to_owned(),
            Self::Missing => {
                "add --delays 1s,10s,1m, or name them in the topology file (--topology)".to_owned()
            }
            Self::NeverWaits => "leave --delays out, or use --strategy backoff".to_owned(),
            Self::TooMany(Strategy::Native, _) => {
                "name the shortest and the longest only, or use --strategy backoff".to_owned()
            }
            Self::TooMany(Strategy::Backoff, _) => {
                "name fewer; the last delay repeats".to_owned()
            }
            Self::TooMany(..) => {
                "a queue has one dead-letter key, so one wait queue; use --strategy backoff for several delays"
                    .to_owned()
            }
            Self::Zero => "name a delay such as 1s, or use --strategy immediate".to_owned(),
            Self::Unsorted(..) => "name the shortest first".to_owned(),
            Self::Unreachable(delays, _) => format!(
                "use --max-attempts {} or more, or fewer delays; the last delay repeats",
                delays + 1
            ),
            Self::NeverScatters(_) => "leave --jitter out, or use --strategy backoff".to_owned(),
        }
    }
}

/// Whether the policy's delays are such as its strategy can keep and scatter.
///
/// # Errors
/// The first problem found.
pub fn check_delays(policy: &RetryPolicy) -> Result<(), DelaysProblem> {
    if policy.jitter != Jitter::None && policy.strategy != Some(Strategy::Backoff) {
        return Err(DelaysProblem::NeverScatters(policy.strategy));
    }
    let delays = policy.delays.as_slice();
    let (strategy, most) = match (policy.strategy, delays) {
        (Some(Strategy::Backoff), []) => return Err(DelaysProblem::Missing),
        (_, []) => return Ok(()),
        (None, _) => return Err(DelaysProblem::NoStrategy),
        (Some(Strategy::Immediate), _) => return Err(DelaysProblem::NeverWaits),
        (Some(Strategy::Dlx), _) => (Strategy::Dlx, 1),
        (Some(Strategy::Native), _) => (Strategy::Native, 2),
        (Some(Strategy::Backoff), _) => (Strategy::Backoff, MAX_DELAYS),
    };
    if delays.len() > most {
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
    if strategy != Strategy::Native && delays.len() > retries {
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
                assert!(problem.way_out_by_flags().contains("--") || strategy == Some(Backoff));
            }
        }
    }

    #[test]
    fn only_copies_can_be_scattered() {
        for strategy in Strategy::ALL.map(|(_, strategy)| Some(strategy)) {
            for (jitter, scatters) in [
                (Jitter::None, false),
                (Jitter::Full, true),
                (Jitter::Bounded(25), true),
            ] {
                let policy = RetryPolicy {
                    strategy,
                    delays: match strategy {
                        Some(Strategy::Immediate) => Vec::new(),
                        _ => vec![Duration::from_secs(1)],
                    },
                    jitter,
                    ..RetryPolicy::default()
                };
                let refused = scatters && strategy != Some(Strategy::Backoff);
                let expected = if refused {
                    Err(DelaysProblem::NeverScatters(strategy))
                } else {
                    Ok(())
                };
                assert_eq!(check_delays(&policy), expected, "{policy:?}");
            }
        }
        let unsaid = RetryPolicy {
            jitter: Jitter::Full,
            ..RetryPolicy::default()
        };
        let problem = DelaysProblem::NeverScatters(None);
        assert_eq!(check_delays(&unsaid), Err(problem));
    }

    #[test]
    fn so_many_wait_queues_are_a_slip() {
        let with = |count| RetryPolicy {
            strategy: Some(Strategy::Backoff),
            delays: vec![Duration::from_secs(1); count],
            max_attempts: Some(u32::MAX),
            ..RetryPolicy::default()
        };
        assert_eq!(check_delays(&with(MAX_DELAYS)), Ok(()));
        let problem = DelaysProblem::TooMany(Strategy::Backoff, MAX_DELAYS);
        assert_eq!(check_delays(&with(MAX_DELAYS + 1)), Err(problem));
    }
}
