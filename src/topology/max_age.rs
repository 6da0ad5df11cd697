//! The `x-max-age` of a stream: a text with one number and one unit.

use std::fmt;

/// How old the segments of a stream may become. RabbitMQ compares it as text,
/// so `7D` and `168h` are different values of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxAge {
    count: u64,
    unit: AgeUnit,
}

/// The units RabbitMQ has for ages (streams.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AgeUnit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

const UNITS: [(char, AgeUnit); 6] = [
    ('Y', AgeUnit::Year),
    ('M', AgeUnit::Month),
    ('D', AgeUnit::Day),
    ('h', AgeUnit::Hour),
    ('m', AgeUnit::Minute),
    ('s', AgeUnit::Second),
];

impl MaxAge {
    /// The broker's own spelling, such as `7D`; `None` if it would be refused
    /// (0 is, measured on all versions).
    #[must_use]
    pub fn from_broker(text: &str) -> Option<Self> {
        let letter = text.chars().last()?;
        let (_, unit) = UNITS.iter().find(|(known, _)| *known == letter)?;
        let digits = text.strip_suffix(letter)?;
        // What `parse` would also take (+7), or another spelling of the number
        // (07), is not the text that the broker compares with.
        let count: u64 = digits.parse().ok().filter(|count| *count > 0)?;
        (count.to_string() == digits).then_some(Self { count, unit: *unit })
    }

    /// That many seconds in the longest unit that says it exactly; months and
    /// years have no fixed length and are never chosen.
    #[must_use]
    pub fn from_seconds(seconds: u64) -> Option<Self> {
        [
            (86_400, AgeUnit::Day),
            (3_600, AgeUnit::Hour),
            (60, AgeUnit::Minute),
            (1, AgeUnit::Second),
        ]
        .into_iter()
        .find(|(length, _)| seconds > 0 && seconds.is_multiple_of(*length))
        .map(|(length, unit)| Self {
            count: seconds / length,
            unit,
        })
    }
}

impl fmt::Display for MaxAge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.unit {
            AgeUnit::Year => 'Y',
            AgeUnit::Month => 'M',
            AgeUnit::Day => 'D',
            AgeUnit::Hour => 'h',
            AgeUnit::Minute => 'm',
            AgeUnit::Second => 's',
        };
        write!(f, "{}{letter}", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brokers_words_stay_as_they_are() {
        for text in ["7D", "168h", "1Y", "2M", "90m", "1s"] {
            assert_eq!(
                MaxAge::from_broker(text).map(|age| age.to_string()),
                Some(text.to_owned())
            );
        }
        for wrong in [
            "", "7", "D", "0s", "07D", "+7D", "-1h", "7d", "1h30m", "7 D",
        ] {
            assert_eq!(MaxAge::from_broker(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn seconds_become_the_longest_exact_unit() {
        for (seconds, text) in [
            (604_800, "7D"),
            (90_000, "25h"),
            (5_400, "90m"),
            (61, "61s"),
        ] {
            assert_eq!(
                MaxAge::from_seconds(seconds).map(|age| age.to_string()),
                Some(text.to_owned())
            );
        }
        assert_eq!(MaxAge::from_seconds(0), None);
    }
}
