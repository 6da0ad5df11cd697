//! Delays that grow by a factor, written as the list that they come to.

use std::time::Duration;

use crate::retry::MAX_DELAYS;

/// A first delay, and what each further one is of the one before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential {
    /// The first delay, in whole milliseconds.
    pub first: Duration,
    /// From 1 up; whatever is less, or no number, counts as 1.
    pub factor: f64,
    /// No delay is longer.
    pub max: Duration,
}

impl Exponential {
    /// The delays before each further attempt of so many in all, in whole
    /// milliseconds. The list ends with the first delay that has reached `max`
    /// or does not grow, because the last one repeats; it ends, too, once it
    /// has more than [`MAX_DELAYS`], which `check_delays` refuses.
    #[must_use]
    pub fn delays(&self, attempts: u32) -> Vec<Duration> {
        let retries = usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX);
        let most = retries.min(MAX_DELAYS + 1);
        let mut delays = Vec::new();
        let mut power = 1.0;
        while delays.len() < most {
            let delay = self.grown(power);
            delays.push(delay);
            if delay >= self.max || self.factor.is_nan() || self.factor <= 1.0 {
                break;
            }
            power *= self.factor;
        }
        delays
    }

    fn grown(&self, power: f64) -> Duration {
        // What no duration can hold is longer than any `max`.
        let delay = Duration::try_from_secs_f64(self.first.as_secs_f64() * power);
        let rounded = delay.ok().and_then(|delay| {
            let millis = delay.as_nanos().saturating_add(500_000) / 1_000_000;
            u64::try_from(millis).ok().map(Duration::from_millis)
        });
        rounded.map_or(self.max, |delay| delay.min(self.max))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    const DAY: u64 = 86_400_000;

    #[test]
    fn each_delay_is_a_multiple_of_the_one_before() {
        for (first, factor, max, attempts, expected) in [
            (1000, 2.0, DAY, 5, &[1000, 2000, 4000, 8000][..]),
            (1000, 2.0, DAY, 2, &[1000]),
            (1000, 2.0, DAY, 1, &[]),
            (1000, 2.0, DAY, 0, &[]),
            // The cap comes once, whether it is hit or passed.
            (1000, 2.0, 4000, 9, &[1000, 2000, 4000]),
            (1000, 2.0, 5000, 9, &[1000, 2000, 4000, 5000]),
            (1000, 2.0, 1000, 9, &[1000]),
            (2000, 2.0, 1000, 9, &[1000]),
            (1000, 1.5, DAY, 6, &[1000, 1500, 2250, 3375, 5063]),
            (100, 1.1, DAY, 5, &[100, 110, 121, 133]),
            // Less than a millisecond is not counted, and no reason to end.
            (1, 1.2, DAY, 8, &[1, 1, 1, 2, 2, 2, 3]),
            (1000, 1.0, DAY, 9, &[1000]),
            (1000, 0.5, DAY, 9, &[1000]),
            (1000, f64::NAN, DAY, 9, &[1000]),
            (1000, 1e300, DAY, u32::MAX, &[1000, DAY]),
            (1000, f64::INFINITY, DAY, 9, &[1000, DAY]),
        ] {
            let delays = Exponential {
                first: Duration::from_millis(first),
                factor,
                max: Duration::from_millis(max),
            }
            .delays(attempts);
            let expected: Vec<_> = expected
                .iter()
                .copied()
                .map(Duration::from_millis)
                .collect();
            assert_eq!(delays, expected, "{first} {factor} {max} {attempts}");
        }
    }

    proptest! {
        #[test]
        fn delays_grow_within_bounds(
            first in 1_u64..10_000_000_000,
            factor in 1.0_f64..1e9,
            small in 1.0_f64..1.01,
            max in 1_u64..400_000_000_000,
            attempts in 0_u32..3000,
        ) {
            for factor in [factor, small] {
                let [first, max] = [first, max].map(Duration::from_millis);
                let delays = Exponential { first, factor, max }.delays(attempts);
                let retries = usize::try_from(attempts.saturating_sub(1)).expect("few");
                prop_assert!(delays.len() <= retries);
                prop_assert!(delays.len() <= MAX_DELAYS + 1);
                prop_assert!(delays.is_sorted());
                prop_assert_eq!(delays.is_empty(), retries == 0);
                prop_assert!(delays.iter().all(|delay| (first.min(max)..=max).contains(delay)));
                prop_assert!(delays.iter().filter(|delay| **delay == max).count() <= 1);
                // Only what cannot grow is shorter than there are retries.
                let ended = delays.last() == Some(&max) || delays.len() > MAX_DELAYS;
                prop_assert!(ended || factor <= 1.0 || delays.len() == retries);
            }
        }
    }
}
