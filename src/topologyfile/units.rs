//! Durations and sizes: a number never stands without its unit.

use std::time::Duration;

use crate::topology::MaxAge;

/// The longest duration any broker takes: ten years, on quorum queues. Classic
/// queues take 2^32 − 1 ms (49 days) and say so themselves (measured).
pub(super) const MAX_DURATION: Duration = Duration::from_hours(87_600);

/// Reads `10m`, `1h 30m`, `500ms`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text.trim())
        .map_err(|_| "expected a duration such as 500ms, 30s, 10m or 24h".to_owned())?;
    if duration.subsec_nanos() % 1_000_000 != 0 {
        return Err("finer than a millisecond, which brokers cannot count".to_owned());
    }
    if duration > MAX_DURATION {
        return Err("longer than ten years, which no queue takes".to_owned());
    }
    Ok(duration)
}

/// Reads `7d`, `12h`, and the broker's own `7D`, `1M` and `1Y`, which stay as
/// they are because it compares them as text.
pub(super) fn max_age(text: &str) -> Result<MaxAge, String> {
    if let Some(age) = MaxAge::from_broker(text.trim()) {
        return Ok(age);
    }
    let unit_words = text.split(|c: char| !c.is_ascii_alphabetic());
    for word in unit_words {
        if word == "M" || word.starts_with("month") || word.starts_with('y') {
            return Err("months and years have no fixed length; write days, or 1M or 1Y as the broker counts them".to_owned());
        }
    }
    let duration =
        duration(text).map_err(|_| "expected an age such as 90s, 12h or 7d".to_owned())?;
    if duration.subsec_nanos() != 0 {
        return Err("finer than a second, which streams cannot count".to_owned());
    }
    MaxAge::from_seconds(duration.as_secs()).ok_or_else(|| "zero, which brokers refuse".to_owned())
}

/// Reads `1000B`, `64KiB`, `10MB`, `1GiB`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let wrong = || "expected a size such as 1000B, 64KiB, 10MB or 1GiB".to_owned();
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let factor: u64 = match unit.trim() {
        "B" => 1,
        "kB" | "KB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    number
        .checked_mul(factor)
        .filter(|bytes| i64::try_from(*bytes).is_ok())
        .ok_or_else(|| "larger than any queue can be".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("10m"), Ok(Duration::from_mins(10)));
        assert_eq!(duration("1h 30m"), Ok(Duration::from_mins(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["10", "", "ten minutes", "-1s", "500us", "11years"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ages_are_exact_or_refused() {
        for (text, sent) in [
            ("7d", "7D"),
            ("7D", "7D"),
            ("168h", "168h"),
            ("2w", "14D"),
            ("1h 30m", "90m"),
            ("1Y", "1Y"),
            ("1M", "1M"),
            ("90s", "90s"),
        ] {
            assert_eq!(
                max_age(text).map(|age| age.to_string()),
                Ok(sent.to_owned())
            );
        }
        for wrong in [
            "7", "", "500ms", "0s", "1y", "1yr", "2months", "1M 2d", "old", "-1d",
        ] {
            assert!(max_age(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_need_a_unit() {
        assert_eq!(size("64KiB"), Ok(65536));
        assert_eq!(size("10 MB"), Ok(10_000_000));
        for wrong in ["10", "KiB", "1.5MB", "99999999999GiB", "-1B"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
