//! How long to wait before a message that the broker refused is published again.

use std::time::Duration;

use crate::retry::Exponential;

/// The first pause is short: a full queue often has room again at once.
const PAUSES: Exponential = Exponential {
    first: Duration::from_millis(100),
    factor: 2.0,
    max: Duration::from_secs(5),
};

/// The pause after so many refusals in a row, of which the first is `waited` ago;
/// `None` once that is as long as `limit`. After none there is no pause.
///
/// The pauses double from 100 ms to 5 s. `chance`, from 0 to 1, makes of each
/// something between half and one and a half of it, so that publishers which
/// were refused together do not come back together. The last try is at the limit.
#[must_use]
pub fn refused_pause(
    refusals: u32,
    waited: Duration,
    limit: Duration,
    chance: f64,
) -> Option<Duration> {
    let left = limit.checked_sub(waited).filter(|left| !left.is_zero())?;
    let pause = PAUSES.delays(refusals.saturating_add(1)).pop();
    Some(pause.unwrap_or_default().mul_f64(0.5 + chance).min(left))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::*;

    #[test]
    fn pauses_grow_and_end_at_the_limit() {
        const MINUTE: u64 = 60_000;
        for (refusals, waited, limit, chance, expected) in [
            (0, 0, MINUTE, 0.5, Some(0)),
            (1, 0, MINUTE, 0.5, Some(100)),
            (1, 0, MINUTE, 0.0, Some(50)),
            (1, 0, MINUTE, 1.0, Some(150)),
            (2, 100, MINUTE, 0.5, Some(200)),
            (6, 100, MINUTE, 0.5, Some(3200)),
            (7, 100, MINUTE, 0.5, Some(5000)),
            (1_000_000, 100, MINUTE, 0.5, Some(5000)),
            (u32::MAX, 100, MINUTE, 0.5, Some(5000)),
            // What is left is waited for, and no more.
            (7, 59_000, MINUTE, 0.5, Some(1000)),
            (1, 0, 1, 0.5, Some(1)),
            (7, MINUTE, MINUTE, 0.5, None),
            (1, MINUTE + 1, MINUTE, 0.5, None),
        ] {
            let [waited, limit] = [waited, limit].map(Duration::from_millis);
            assert_eq!(
                refused_pause(refusals, waited, limit, chance),
                expected.map(Duration::from_millis),
                "{refusals} {waited:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_pause_goes_beyond_the_limit(
            refusals in 0_u32..100,
            waited in 0_u64..1_000_000,
            limit in 1_u64..1_000_000,
            chance in 0.0_f64..1.0,
        ) {
            let [waited, limit] = [waited, limit].map(Duration::from_millis);
            match refused_pause(refusals, waited, limit, chance) {
                Some(pause) => prop_assert!(waited + pause <= limit),
                None => prop_assert!(waited >= limit),
            }
        }
    }
}
