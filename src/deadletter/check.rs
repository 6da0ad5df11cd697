//! Whether a dead-letter queue is within its limits. What is not known is never
//! taken for good: a queue is then neither within nor over.

use crate::deadletter::{Blind, Inflow, MaxRate};

/// What is allowed; every limit that is given is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Messages, those out for delivery included.
    pub messages: Option<u64>,
    /// Age of the first message since it died last, in seconds.
    pub age_seconds: Option<u64>,
    /// Messages that come in.
    pub rate: Option<MaxRate>,
}

/// How old the first message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Oldest {
    /// Nobody asked.
    NotAsked,
    /// There is no message.
    Empty,
    /// Seconds since it died last; one that never died: since it was published.
    Seconds(u64),
    /// It cannot be told, and why.
    Unknown(String),
}

/// How fast messages come in.
#[derive(Clone, Debug, PartialEq)]
pub enum Coming {
    /// Nobody asked.
    NotAsked,
    /// So fast, or faster if it says so.
    Known(Inflow),
    /// It cannot be told, and why.
    Unknown(String),
}

/// What was found out about one queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Its vhost.
    pub vhost: String,
    /// Its name.
    pub queue: String,
    /// Messages ready for delivery.
    pub ready: Option<u64>,
    /// Whether that is of now, and not of the last statistics.
    pub ready_is_exact: bool,
    /// Messages out for delivery, as of the last statistics.
    pub unacknowledged: Option<u64>,
    /// The age of its first message.
    pub oldest: Oldest,
    /// What comes in.
    pub coming: Coming,
}

/// Which limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// `--max-messages`.
    Messages,
    /// `--max-age`.
    Age,
    /// `--max-rate`.
    Rate,
}

impl LimitKind {
    /// Its name in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Messages => "max_messages",
            Self::Age => "max_age",
            Self::Rate => "max_rate",
        }
    }
}

/// A limit that is exceeded: what is allowed, and what there is at least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Excess {
    /// In messages.
    Messages {
        /// The most.
        allowed: u64,
        /// What there is.
        found: u64,
    },
    /// In seconds.
    Age {
        /// The most.
        allowed: u64,
        /// How old the first message is.
        found: u64,
    },
    /// How fast messages come in.
    Rate {
        /// The most.
        allowed: MaxRate,
        /// In messages a second.
        found: f64,
    },
}

impl Excess {
    /// Which limit.
    #[must_use]
    pub const fn limit(&self) -> LimitKind {
        match self {
            Self::Messages { .. } => LimitKind::Messages,
            Self::Age { .. } => LimitKind::Age,
            Self::Rate { .. } => LimitKind::Rate,
        }
    }
}

/// A limit of which it cannot be told whether it is exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Which one.
    pub limit: LimitKind,
    /// Why.
    pub why: String,
}

/// What became of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Within every limit.
    Ok,
    /// Over one at least.
    Over,
    /// Over none as far as is known, and not all is known.
    Unknown,
}

impl Status {
    /// `ok`, `over` or `unknown`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Over => "over",
            Self::Unknown => "unknown",
        }
    }
}

/// The judgement of one queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The limits that are exceeded.
    pub over: Vec<Excess>,
    /// Those that cannot be judged.
    pub unknown: Vec<Gap>,
}

impl Verdict {
    /// Judges a queue by every limit that is given.
    #[must_use]
    pub fn of(reading: &Reading, limits: &Limits) -> Self {
        let mut verdict = Self::default();
        if let Some(most) = limits.messages {
            verdict.messages(reading, most);
        }
        if let Some(most) = limits.age_seconds {
            verdict.age(&reading.oldest, most);
        }
        if let Some(most) = limits.rate {
            verdict.rate(&reading.coming, most);
        }
        verdict
    }

    /// What it comes to: an excess is one whatever else is not known.
    #[must_use]
    pub const fn status(&self) -> Status {
        if !self.over.is_empty() {
            Status::Over
        } else if !self.unknown.is_empty() {
            Status::Unknown
        } else {
            Status::Ok
        }
    }

    fn messages(&mut self, reading: &Reading, most: u64) {
        let known = [reading.ready, reading.unacknowledged];
        let least: u64 = known.iter().flatten().sum();
        if least > most {
            self.over.push(Excess::Messages {
                allowed: most,
                found: least,
            });
        } else if reading.ready.is_none() {
            self.gap(
                LimitKind::Messages,
                "the broker does not tell how many messages are ready",
            );
        } else if reading.unacknowledged.is_none() {
            self.gap(
                LimitKind::Messages,
                "the broker does not tell how many messages are out for delivery",
            );
        }
    }

    fn age(&mut self, oldest: &Oldest, most: u64) {
        match oldest {
            Oldest::Seconds(age) if *age > most => {
                self.over.push(Excess::Age {
                    allowed: most,
                    found: *age,
                });
            }
            Oldest::Empty | Oldest::Seconds(_) => {}
            Oldest::Unknown(why) => self.gap(LimitKind::Age, why),
            Oldest::NotAsked => self.gap(LimitKind::Age, "nobody looked"),
        }
    }

    fn rate(&mut self, coming: &Coming, most: MaxRate) {
        match coming {
            Coming::Known(inflow) if inflow.per_second > most.per_second() => {
                self.over.push(Excess::Rate {
                    allowed: most,
                    found: inflow.per_second,
                });
            }
            Coming::Known(inflow) => match inflow.blind {
                None => {}
                Some(Blind::Sheds) => self.gap(
                    LimitKind::Rate,
                    "the queue has a time to live or a length limit, and nobody counts what that removes",
                ),
                Some(Blind::Restarted) => self.gap(
                    LimitKind::Rate,
                    "the broker was started so lately that its statistics do not go back far enough",
                ),
            },
            Coming::Unknown(why) => self.gap(LimitKind::Rate, why),
            Coming::NotAsked => self.gap(LimitKind::Rate, "nobody asked"),
        }
    }

    fn gap(&mut self, limit: LimitKind, why: &str) {
        self.unknown.push(Gap {
            limit,
            why: why.to_owned(),
        });
    }
}

/// The age of a first message that is of this second, `moment`, both in seconds
/// since 1970; `None` when it is so far in the future that it is no time, such as
/// one in milliseconds.
#[must_use]
pub const fn age_at(now: u64, moment: u64) -> Option<u64> {
    const CLOCKS_APART: u64 = 300;
    if moment > now.saturating_add(CLOCKS_APART) {
        None
    } else {
        Some(now.saturating_sub(moment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(ready: Option<u64>, unacknowledged: Option<u64>) -> Reading {
        Reading {
            vhost: "/".to_owned(),
            queue: "dlq".to_owned(),
            ready,
            ready_is_exact: true,
            unacknowledged,
            oldest: Oldest::NotAsked,
            coming: Coming::NotAsked,
        }
    }

    #[test]
    fn messages_that_are_not_counted_are_not_none() {
        for (ready, unacknowledged, most, expected) in [
            (Some(0), Some(0), 0, Status::Ok),
            (Some(1), Some(0), 0, Status::Over),
            (Some(0), Some(1), 0, Status::Over),
            (Some(3), Some(2), 5, Status::Ok),
            (Some(3), Some(3), 5, Status::Over),
            (Some(0), None, 0, Status::Unknown),
            (None, Some(0), 0, Status::Unknown),
            (None, None, 9, Status::Unknown),
            // What is known is enough.
            (Some(1), None, 0, Status::Over),
            (None, Some(1), 0, Status::Over),
        ] {
            let limits = Limits {
                messages: Some(most),
                ..Limits::default()
            };
            let verdict = Verdict::of(&reading(ready, unacknowledged), &limits);
            assert_eq!(
                verdict.status(),
                expected,
                "{ready:?} {unacknowledged:?} {most}"
            );
        }
    }

    #[test]
    fn ages_and_rates_that_are_not_known_are_not_good() {
        let inflow = |per_second, blind| Coming::Known(Inflow { per_second, blind });
        let unknown = || Oldest::Unknown("why".to_owned());
        for (oldest, coming, expected) in [
            (Oldest::Empty, inflow(0.0, None), Status::Ok),
            (Oldest::Seconds(60), inflow(1.0, None), Status::Ok),
            (Oldest::Seconds(61), inflow(1.0, None), Status::Over),
            (Oldest::Seconds(60), inflow(1.01, None), Status::Over),
            (unknown(), inflow(1.0, None), Status::Unknown),
            (unknown(), inflow(2.0, None), Status::Over),
            (Oldest::NotAsked, inflow(0.0, None), Status::Unknown),
            (
                Oldest::Empty,
                inflow(1.0, Some(Blind::Sheds)),
                Status::Unknown,
            ),
            (
                Oldest::Empty,
                inflow(1.0, Some(Blind::Restarted)),
                Status::Unknown,
            ),
            (Oldest::Empty, inflow(9.0, Some(Blind::Sheds)), Status::Over),
            (Oldest::Empty, Coming::NotAsked, Status::Unknown),
            (
                Oldest::Empty,
                Coming::Unknown("why".to_owned()),
                Status::Unknown,
            ),
        ] {
            let limits = Limits {
                messages: None,
                age_seconds: Some(60),
                rate: "1/s".parse().ok(),
            };
            let mut reading = reading(None, None);
            (reading.oldest, reading.coming) = (oldest, coming);
            let verdict = Verdict::of(&reading, &limits);
            assert_eq!(verdict.status(), expected, "{reading:?}");
        }
    }

    #[test]
    fn all_limits_are_reported() {
        let limits = Limits {
            messages: Some(0),
            age_seconds: Some(60),
            rate: "1/m".parse().ok(),
        };
        let mut reading = reading(Some(7), None);
        reading.oldest = Oldest::Seconds(3600);
        reading.coming = Coming::Unknown("why".to_owned());
        let verdict = Verdict::of(&reading, &limits);
        let over: Vec<&str> = verdict.over.iter().map(|it| it.limit().word()).collect();
        assert_eq!(over, ["max_messages", "max_age"]);
        assert_eq!(verdict.unknown[0].limit, LimitKind::Rate);
    }

    #[test]
    fn a_time_in_the_future_is_no_age() {
        assert_eq!(age_at(1000, 900), Some(100));
        assert_eq!(age_at(1000, 1010), Some(0));
        assert_eq!(age_at(1000, 1_796_036_580_000), None);
    }
}
