//! The delay that a handler asks for, as it writes it.

use std::time::Duration;

/// The longest delay that is believed: a day.
pub(super) const LONGEST: Duration = Duration::from_hours(24);

/// Reads seconds (`30`, `0.5`) or a duration (`1m 30s`); at most [`LONGEST`].
pub(super) fn delay(text: &str) -> Option<Duration> {
    let text = text.trim();
    let seconds = text.parse::<f64>().ok().map(Duration::try_from_secs_f64);
    let delay = match seconds {
        Some(seconds) => seconds.ok()?,
        None => humantime::parse_duration(text).ok()?,
    };
    Some(delay.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_seconds_and_durations_and_nothing_else() {
        for (text, expected) in [
            ("30", Some(Duration::from_secs(30))),
            (" 0.5\n", Some(Duration::from_millis(500))),
            ("1m 30s", Some(Duration::from_secs(90))),
            ("0", Some(Duration::ZERO)),
            ("9999999999", Some(LONGEST)),
            ("-1", None),
            ("inf", None),
            ("NaN", None),
            ("1e400", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(delay(text), expected, "{text:?}");
        }
    }
}
