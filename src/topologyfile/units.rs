//! Durations and sizes: a number never stands without its unit.

use std::time::Duration;

/// The longest duration any broker takes: ten years, on quorum queues. Classic
/// queues take 2^32 − 1 ms (49 days) and say so themselves (measured).
const MAX_DURATION: Duration = Duration::from_hours(87_600);

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
    fn sizes_need_a_unit() {
        assert_eq!(size("64KiB"), Ok(65536));
        assert_eq!(size("10 MB"), Ok(10_000_000));
        for wrong in ["10", "KiB", "1.5MB", "99999999999GiB", "-1B"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
