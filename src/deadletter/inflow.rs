//! How many messages came into a queue within a while, from what the broker remembers.
//!
//! `message_stats.publish` of a queue counts what clients published and no dead
//! letter at all (measured on 3.10.8, 4.0.5 and 4.3.6, classic and quorum). What
//! tells is how much more there is, and how much was taken for good meanwhile:
//! both are remembered for the last minute every 5 s and for the last hour every
//! minute (management.md, sample retention).

use std::time::Duration;

/// A number that the broker remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was taken, in milliseconds since 1970.
    pub at: u64,
    /// The number.
    pub value: u64,
}

/// What the broker remembers of one queue, each series oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Messages in it, those out for delivery included.
    pub messages: Vec<Sample>,
    /// Messages taken for good in all: acked, and delivered without acks.
    pub taken: Vec<Vec<Sample>>,
}

/// Why more may have come than is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blind {
    /// The queue expires or drops messages, which nobody counts.
    Sheds,
    /// The node was started so lately that what it remembers does not go back far enough.
    Restarted,
}

/// How fast messages come in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inflow {
    /// Messages a second over the whole window, at least.
    pub per_second: f64,
    /// Why it may be more.
    pub blind: Option<Blind>,
}

impl Inflow {
    /// The inflow that a history shows. `sheds`: the queue has a time to live or a
    /// length limit. `up`: how long the node has been up, if that is known; a node
    /// that was just started knows nothing of before, and takes what it finds in
    /// the queue for new.
    ///
    /// `ready`: the messages ready now, if that is known better than from statistics,
    /// which are up to ten seconds old.
    ///
    /// `None`: the history is too short to tell anything.
    #[must_use]
    pub fn of(
        history: &History,
        ready: Option<u64>,
        sheds: bool,
        up: Option<Duration>,
    ) -> Option<Self> {
        let (first, last) = ends(&history.messages)?;
        let window = Duration::from_millis(last.at.checked_sub(first.at)?);
        if window.is_zero() {
            return None;
        }
        let found = up.and_then(|up| found_at_start(&history.messages, window, last, up));
        let before = found.unwrap_or(first.value);
        let taken: u64 = history
            .taken
            .iter()
            .filter_map(|series| ends(series))
            .map(|(first, last)| last.value.saturating_sub(first.value))
            .sum();
        let there = last.value.max(ready.unwrap_or(0));
        let came = (there + taken).saturating_sub(before);
        Some(Self {
            per_second: to_float(came) / window.as_secs_f64(),
            blind: if sheds {
                Some(Blind::Sheds)
            } else {
                found.map(|_| Blind::Restarted)
            },
        })
    }
}

impl Inflow {
    /// The inflow over `whole`, where as much came within the `part` at its end as
    /// `last` says: no less can have come in all.
    #[must_use]
    pub fn or_in_part(self, last: Self, part: Duration, whole: Duration) -> Self {
        let at_least = last.per_second * part.as_secs_f64() / whole.as_secs_f64();
        if at_least <= self.per_second {
            return self;
        }
        Self {
            per_second: at_least,
            blind: self.blind.or(last.blind),
        }
    }
}

/// A node takes so long from its start to its first statistics.
const SLACK: Duration = Duration::from_secs(15);

/// What a node that was started within the window may have found in the queue: the
/// first messages it counted, unless it had counted none before.
fn found_at_start(
    messages: &[Sample],
    window: Duration,
    last: Sample,
    up: Duration,
) -> Option<u64> {
    if up >= window + SLACK {
        return None;
    }
    let (first, second) = (messages.first()?, messages.get(1)?);
    let step = second.at.saturating_sub(first.at);
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let started = last.at.saturating_sub(millis(up));
    let counts_since = started.saturating_add(step).saturating_add(millis(SLACK));
    let found = messages.iter().find(|sample| sample.value > 0)?;
    let was_empty = messages
        .iter()
        .any(|sample| sample.value == 0 && sample.at >= counts_since && sample.at < found.at);
    (!was_empty).then_some(found.value)
}

fn ends(series: &[Sample]) -> Option<(Sample, Sample)> {
    Some((*series.first()?, *series.last()?))
}

/// Precise to 2^32, which is enough for a rate.
fn to_float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[u64]) -> Vec<Sample> {
        let at = (0..).map(|number| 1_796_036_580_000 + number * 5000);
        let pairs = at.zip(values);
        pairs
            .map(|(at, value)| Sample { at, value: *value })
            .collect()
    }

    #[test]
    fn what_came_lately_came_within_the_hour() {
        let inflow = |per_second| Inflow {
            per_second,
            blind: None,
        };
        for (hour, last, expected) in [(0.0, 0.6, 0.1), (0.5, 0.6, 0.5), (0.0, 0.0, 0.0)] {
            let (part, whole) = (Duration::from_mins(10), Duration::from_hours(1));
            let found = inflow(hour).or_in_part(inflow(last), part, whole);
            assert!((found.per_second - expected).abs() < 1e-9, "{hour} {last}");
        }
    }

    #[test]
    fn what_came_is_what_is_there_more_and_what_was_taken() {
        for (messages, acked, expected) in [
            (&[0, 0, 0][..], &[][..], 0.0),
            (&[0, 25, 50], &[], 5.0),
            (&[50, 50, 50], &[], 0.0),
            // Measured on 4.0.5: 110 messages, 60 of them acked.
            (&[0, 25, 51, 51, 50], &[0, 0, 0, 21, 60], 5.5),
            // Drained.
            (&[50, 20, 0], &[0, 30, 50], 0.0),
            // Purged: nothing is known to have come.
            (&[50, 50, 0], &[], 0.0),
        ] {
            let history = History {
                messages: series(messages),
                taken: vec![series(acked)],
            };
            let found = Inflow::of(&history, None, false, None).expect("known");
            assert!((found.per_second - expected).abs() < 1e-9, "{messages:?}");
            assert_eq!(found.blind, None);
        }
    }

    #[test]
    fn what_came_since_the_last_statistics_counts() {
        let history = History {
            messages: series(&[0, 0, 0]),
            taken: Vec::new(),
        };
        let found = Inflow::of(&history, Some(5), false, None).expect("known");
        assert!((found.per_second - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_remembered_is_not_zero() {
        for messages in [&[][..], &[7]] {
            let history = History {
                messages: series(messages),
                taken: Vec::new(),
            };
            assert_eq!(Inflow::of(&history, Some(9), false, None), None);
        }
    }

    #[test]
    fn what_a_node_finds_at_its_start_did_not_just_come() {
        let second = Duration::from_secs(1);
        for (up, came, blind) in [
            (Some(8 * second), 10, Some(Blind::Restarted)),
            (Some(3600 * second), 60, None),
            (None, 60, None),
        ] {
            let history = History {
                messages: series(&[0, 0, 50, 60]),
                taken: Vec::new(),
            };
            let found = Inflow::of(&history, None, false, up).expect("known");
            assert!((found.per_second - f64::from(came) / 15.0).abs() < 1e-9);
            assert_eq!(found.blind, blind);
        }
        // It had counted nothing before the first came.
        let history = History {
            messages: series(&[0, 0, 0, 0, 0, 0, 0, 0, 50, 60]),
            taken: Vec::new(),
        };
        let up = Some(Duration::from_secs(40));
        let found = Inflow::of(&history, None, false, up).expect("known");
        assert_eq!(found.blind, None);
        assert!((found.per_second - 60.0 / 45.0).abs() < 1e-9);
        let empty = History {
            messages: series(&[0, 0, 0]),
            taken: Vec::new(),
        };
        let found = Inflow::of(&empty, None, false, Some(second)).expect("known");
        assert_eq!(found.blind, None);
        let found = Inflow::of(&empty, None, true, None).expect("known");
        assert_eq!(found.blind, Some(Blind::Sheds));
    }
}
