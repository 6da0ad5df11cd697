//! Where to start in a stream, as users say it and as brokers understand it.

use std::fmt;
use std::str::FromStr;
use std::time::UNIX_EPOCH;

use crate::field::FieldValue;

/// Where to start in a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartAt {
    /// With the oldest message that is kept.
    First,
    /// With the last chunk that was written.
    Last,
    /// With what comes from now on.
    #[default]
    Next,
    /// With this offset; the first message of a stream has 0.
    Offset(u64),
    /// With the chunk of this time, in seconds since 1970: some older messages may come.
    Time(u64),
}

impl StartAt {
    /// The value of the consumer's argument `x-stream-offset` (streams.md).
    #[must_use]
    pub fn argument(self) -> FieldValue {
        match self {
            Self::First => FieldValue::text("first"),
            Self::Last => FieldValue::text("last"),
            Self::Next => FieldValue::text("next"),
            Self::Offset(offset) => FieldValue::I64(i64::try_from(offset).unwrap_or(i64::MAX)),
            Self::Time(seconds) => FieldValue::Timestamp(seconds),
        }
    }
}

impl fmt::Display for StartAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Last => f.write_str("last"),
            Self::Next => f.write_str("next"),
            Self::Offset(offset) => write!(f, "{offset}"),
            Self::Time(seconds) => write!(f, "@{seconds}"),
        }
    }
}

impl FromStr for StartAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "first" => return Ok(Self::First),
            "last" => return Ok(Self::Last),
            "next" => return Ok(Self::Next),
            _ => {}
        }
        if let Some(seconds) = text.strip_prefix('@') {
            return seconds
                .parse()
                .map(Self::Time)
                .map_err(|_| format!("'{seconds}' is no number of seconds since 1970"));
        }
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let offset: i64 = text
                .parse()
                .map_err(|_| format!("offset {text} is too large"))?;
            return Ok(Self::Offset(offset.unsigned_abs()));
        }
        seconds_of(text).map(Self::Time).ok_or_else(|| {
            format!(
                "'{text}' is neither first, last, next, an offset, @SECONDS nor a time such as 2026-01-31T12:00:00Z"
            )
        })
    }
}

/// An RFC 3339 time as seconds since 1970.
fn seconds_of(text: &str) -> Option<u64> {
    let (local, shift) = match text.strip_suffix(['Z', 'z']) {
        Some(local) => (local, 0),
        None => {
            let (local, zone) = text.split_at_checked(text.len().checked_sub(6)?)?;
            let sign = match zone.get(..1)? {
                "+" => 1,
                "-" => -1,
                _ => return None,
            };
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let hours: i64 = hours.parse().ok()?;
            let minutes: i64 = minutes.parse().ok()?;
            (local, sign * (hours * 3600 + minutes * 60))
        }
    };
    let time = humantime::parse_rfc3339(&format!("{local}Z")).ok()?;
    let seconds = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
    seconds.checked_add_signed(-shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_say_it_is_understood() {
        for (text, start) in [
            ("first", StartAt::First),
            ("last", StartAt::Last),
            ("next", StartAt::Next),
            ("0", StartAt::Offset(0)),
            ("42", StartAt::Offset(42)),
            ("@1700000000", StartAt::Time(1_700_000_000)),
            ("2023-11-14T22:13:20Z", StartAt::Time(1_700_000_000)),
            ("2023-11-14T22:13:20.5Z", StartAt::Time(1_700_000_000)),
            ("2023-11-15T00:13:20+02:00", StartAt::Time(1_700_000_000)),
            ("2023-11-14T21:43:20-00:30", StartAt::Time(1_700_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(start), "{text}");
        }
        for text in [
            "",
            "-1",
            "First",
            "@x",
            "tomorrow",
            "2023-11-14",
            "99999999999999999999",
        ] {
            assert!(text.parse::<StartAt>().is_err(), "{text}");
        }
    }
}
