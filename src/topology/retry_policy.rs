//! The `retry:` block of a queue.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::topology::QueueName;

/// Attempts when nobody says how many.
pub const DEFAULT_MAX_ATTEMPTS: u32 = 5;

/// How a failed message comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// nack → DLX → wait queue with TTL → back; attempts are counted by the broker.
    Dlx,
    /// The worker publishes a copy to the wait queue of its step, then settles
    /// the message; the dead-letter exchange leads straight to the end.
    Backoff,
    /// The worker tries again at once while it holds the message; then nack → DLX.
    Immediate,
    /// The worker requeues, and the queue holds the message back
    /// (`x-delayed-retry-*`, since 4.3).
    Native,
}

impl Strategy {
    /// Every strategy by the word the topology file uses.
    pub const ALL: [(&'static str, Self); 4] = [
        ("dlx", Self::Dlx),
        ("backoff", Self::Backoff),
        ("immediate", Self::Immediate),
        ("native", Self::Native),
    ];
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dlx => "dlx",
            Self::Backoff => "backoff",
            Self::Immediate => "immediate",
            Self::Native => "native",
        })
    }
}

/// How far a delay may fall short of its step, so that messages that failed
/// together do not all come back together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Every message waits exactly its delay.
    #[default]
    None,
    /// Anything from nothing to the whole delay.
    Full,
    /// At most this many percent less than the delay; 1 to 99.
    Bounded(u8),
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Full => f.write_str("full"),
            Self::Bounded(percent) => write!(f, "{percent}%"),
        }
    }
}

impl FromStr for Jitter {
    type Err = String;

    /// Reads `full`, `none` and `1%` to `99%`; else says what is expected.
    fn from_str(text: &str) -> Result<Self, String> {
        let bounded = || {
            text.strip_suffix('%')
                .filter(|digits| !digits.starts_with(['+', '0']))
                .and_then(|digits| digits.parse().ok())
                .filter(|percent| (1..=99).contains(percent))
                .map(Self::Bounded)
        };
        match text {
            "none" => Some(Self::None),
            "full" => Some(Self::Full),
            _ => bounded(),
        }
        .ok_or_else(|| "expected full, none or a percentage such as 25%".to_owned())
    }
}

/// What the file says about retries of one queue; what it leaves out is found
/// in the topology itself or has a default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Checked against what the dead-letter path really does.
    pub strategy: Option<Strategy>,
    /// How long to wait before each further attempt, shortest first; the last
    /// one repeats. Empty: as the topology has it.
    pub delays: Vec<Duration>,
    /// How far they are scattered; only `backoff` can.
    pub jitter: Jitter,
    /// Attempts in all, the first one included; at least 1.
    pub max_attempts: Option<u32>,
    /// Where exhausted and poison messages rest; needed only where the
    /// dead-letter exchange leads to several such queues.
    pub dead_letter_queue: Option<QueueName>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_a_word_or_a_percentage() {
        for percent in 1..=99 {
            let jitter = Jitter::Bounded(percent);
            assert_eq!(jitter.to_string().parse(), Ok(jitter));
        }
        for jitter in [Jitter::None, Jitter::Full] {
            assert_eq!(jitter.to_string().parse(), Ok(jitter));
        }
        for wrong in [
            "", "%", "0%", "100%", "256%", "25", "+5%", "05%", "2.5%", "25 %", "-1%", "Full",
        ] {
            assert!(wrong.parse::<Jitter>().is_err(), "{wrong}");
        }
    }
}
