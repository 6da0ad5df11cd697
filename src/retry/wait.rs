//! Where a failed message waits for its next attempt, and how long.
//!
//! A wait queue has one TTL, and a copy in it may expire earlier but not later.
//! A copy behind others waits for them (measured on all versions: messages
//! expire at the head only), but never longer than the TTL, since all in front
//! came earlier. So a delay is between what is asked for and its step.

use std::time::Duration;

use crate::retry::{DeadLetterAddress, Jitter, RetryPath, Strategy};
use crate::topology::{ExchangeName, RoutingKey};

/// An expiration of nothing would only be a slower way back.
const SHORTEST: Duration = Duration::from_millis(1);

/// Where a copy is published and after how long it leaves its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Exchange and key.
    pub address: DeadLetterAddress,
    /// Its own expiration, where it is shorter than the queue's TTL.
    pub expiration: Option<Duration>,
}

impl RetryPath {
    /// Where a copy waits after the `attempt`-th attempt failed, counted from 1.
    /// `asked` is the handler's wish, kept as far as the wait queues can: in
    /// the shortest step that is long enough, else in the longest. `chance`, from
    /// 0 to 1, decides how far [`Jitter`] shortens a delay that nobody asked for.
    #[must_use]
    pub fn waiting(
        &self,
        routing_key: &RoutingKey,
        attempt: u32,
        asked: Option<Duration>,
        jitter: Jitter,
        chance: f64,
    ) -> Waiting {
        let through_default = |key| DeadLetterAddress {
            exchange: ExchangeName::default_exchange(),
            key,
        };
        let step = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        let planned = self.steps.get(step).or(self.steps.last());
        let chosen = match asked {
            Some(asked) => self
                .steps
                .iter()
                .find(|step| step.delay >= asked)
                .or(self.steps.last()),
            None => planned,
        };
        if let Some(chosen) = chosen {
            let wanted = asked.unwrap_or_else(|| scattered(chosen.delay, jitter, chance));
            return Waiting {
                address: through_default(RoutingKey::of_queue(&chosen.queue)),
                expiration: shorter(wanted, chosen.delay),
            };
        }
        let address = match self.strategy {
            // The queue itself holds it back.
            Strategy::Native => through_default(RoutingKey::of_queue(&self.queue)),
            Strategy::Dlx | Strategy::Backoff | Strategy::Immediate => {
                self.nack_address(routing_key)
            }
        };
        // In a chain of wait queues the first one's share is not known.
        let single = self.strategy == Strategy::Dlx && self.wait_queues.len() == 1;
        let expiration = asked
            .filter(|_| single)
            .and_then(|asked| shorter(asked, self.longest_wait));
        Waiting {
            address,
            expiration,
        }
    }
}

fn shorter(wanted: Duration, ttl: Duration) -> Option<Duration> {
    (wanted < ttl).then_some(wanted.max(SHORTEST))
}

fn scattered(delay: Duration, jitter: Jitter, chance: f64) -> Duration {
    let least = match jitter {
        Jitter::None => return delay,
        Jitter::Full => Duration::ZERO,
        Jitter::Bounded(percent) => delay.mul_f64(1.0 - f64::from(percent.min(100)) / 100.0),
    };
    least + (delay.saturating_sub(least)).mul_f64(chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::retry::{Step, Strategy};
    use crate::topology::{DeadLetterKey, QueueName};

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).expect("queue name")
    }

    fn path(strategy: Strategy, steps: &[u64], longest_wait: u64) -> RetryPath {
        RetryPath {
            queue: queue("work"),
            strategy,
            counts_returns: true,
            single_active_consumer: false,
            exchange: ExchangeName::new("dlx").expect("exchange"),
            key: DeadLetterKey::Kept,
            wait_queues: BTreeSet::from([queue("wait")]),
            steps: steps
                .iter()
                .map(|seconds| Step {
                    queue: queue(&format!("wait.{seconds}")),
                    delay: Duration::from_secs(*seconds),
                })
                .collect(),
            dead_letter_queues: BTreeSet::new(),
            park: None,
            longest_wait: Duration::from_secs(longest_wait),
            nack_is_confirmed: true,
        }
    }

    fn waits(path: &RetryPath, attempt: u32, asked: Option<u64>) -> (String, Option<u64>) {
        let key = RoutingKey::new("k").expect("key");
        let asked = asked.map(Duration::from_secs);
        let waiting = path.waiting(&key, attempt, asked, Jitter::None, 0.5);
        (
            format!("{}/{}", waiting.address.exchange, waiting.address.key),
            waiting.expiration.map(|expiration| expiration.as_secs()),
        )
    }

    #[test]
    fn a_copy_waits_in_its_step_or_in_the_one_that_was_asked_for() {
        let backoff = path(Strategy::Backoff, &[1, 10, 60], 60);
        for (attempt, asked, queue, expiration) in [
            (1, None, "/wait.1", None),
            (2, None, "/wait.10", None),
            (3, None, "/wait.60", None),
            (9, None, "/wait.60", None),
            (1, Some(10), "/wait.10", None),
            (1, Some(5), "/wait.10", Some(5)),
            (3, Some(1), "/wait.1", None),
            // Longer than can be kept.
            (1, Some(3600), "/wait.60", None),
        ] {
            assert_eq!(
                waits(&backoff, attempt, asked),
                (queue.to_owned(), expiration),
                "{attempt} {asked:?}"
            );
        }
    }

    #[test]
    fn the_one_wait_queue_of_dlx_lets_a_copy_go_earlier_but_not_later() {
        let dlx = path(Strategy::Dlx, &[], 30);
        assert_eq!(waits(&dlx, 1, None), ("dlx/k".to_owned(), None));
        assert_eq!(waits(&dlx, 1, Some(5)), ("dlx/k".to_owned(), Some(5)));
        assert_eq!(waits(&dlx, 1, Some(50)), ("dlx/k".to_owned(), None));
        let native = path(Strategy::Native, &[], 30);
        assert_eq!(waits(&native, 1, Some(5)), ("/work".to_owned(), None));
    }

    proptest! {
        #[test]
        fn jitter_stays_within_its_bounds(
            delay in 1_u64..100_000_000,
            percent in 1_u8..100,
            chance in 0.0_f64..=1.0,
        ) {
            let delay = Duration::from_millis(delay);
            prop_assert_eq!(scattered(delay, Jitter::None, chance), delay);
            prop_assert!(scattered(delay, Jitter::Full, chance) <= delay);
            let bounded = scattered(delay, Jitter::Bounded(percent), chance);
            prop_assert!(bounded <= delay + SHORTEST);
            prop_assert!(bounded + SHORTEST >= delay.mul_f64(1.0 - f64::from(percent) / 100.0));
        }
    }
}
