//! When a queue is really empty: `--until-empty` must not stop while a retry is
//! between two queues.
//!
//! The broker moves a dead letter asynchronously: for a moment it is in neither
//! queue. So emptiness must be seen several times in a row, and the retries we
//! caused ourselves must have come back, or have had time to.

use std::time::Duration;

/// Looks in a row that must all find nothing.
const STEADY_LOOKS: u32 = 3;

/// After the longest wait a retry that still is not back was taken by another worker.
const GRACE: Duration = Duration::from_secs(3);

/// What one look found.
#[derive(Clone, Copy, Debug)]
pub struct Emptiness {
    /// Ready messages in the work queue and all its wait queues.
    pub ready: u64,
    /// Deliveries in our own hands.
    pub in_flight: usize,
    /// Retries we sent through the broker and have not seen come back.
    pub retries_out: u64,
    /// Time since the last of them left.
    pub since_last_retry: Duration,
}

/// Remembers how steadily it was empty.
#[derive(Clone, Debug)]
pub struct DrainCheck {
    longest_wait: Duration,
    empty_looks: u32,
}

impl DrainCheck {
    /// For a queue whose retries wait at most `longest_wait`.
    #[must_use]
    pub const fn new(longest_wait: Duration) -> Self {
        Self {
            longest_wait,
            empty_looks: 0,
        }
    }

    /// Takes one look into account; true once the queue is drained.
    pub fn look(&mut self, found: Emptiness) -> bool {
        let retries_may_come = found.retries_out > 0
            && found.since_last_retry < self.longest_wait.saturating_add(GRACE);
        if found.ready > 0 || found.in_flight > 0 || retries_may_come {
            self.empty_looks = 0;
        } else {
            self.empty_looks += 1;
        }
        self.empty_looks >= STEADY_LOOKS
    }

    /// Something arrived: start over.
    pub const fn disturbed(&mut self) {
        self.empty_looks = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> Emptiness {
        Emptiness {
            ready: 0,
            in_flight: 0,
            retries_out: 0,
            since_last_retry: Duration::ZERO,
        }
    }

    #[test]
    fn empty_is_empty_three_times_in_a_row() {
        let mut check = DrainCheck::new(Duration::ZERO);
        assert!(!check.look(nothing()));
        assert!(!check.look(nothing()));
        assert!(!check.look(Emptiness {
            ready: 1,
            ..nothing()
        }));
        assert!(!check.look(nothing()));
        assert!(!check.look(nothing()));
        assert!(check.look(nothing()));
    }

    #[test]
    fn waits_for_the_retries_it_sent_but_not_for_ever() {
        let mut check = DrainCheck::new(Duration::from_secs(10));
        let out = |seconds| Emptiness {
            retries_out: 1,
            since_last_retry: Duration::from_secs(seconds),
            ..nothing()
        };
        for _ in 0..5 {
            assert!(!check.look(out(5)));
        }
        assert!(!check.look(out(14)));
        assert!(!check.look(out(14)));
        assert!(check.look(out(14)));
    }
}
