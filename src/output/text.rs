//! JSON and times, made safe and readable.

use std::time::{Duration, UNIX_EPOCH};

use crate::printable::hides;

/// Escapes in JSON text what its own escaping leaves alone. Such characters
/// stand only inside strings there, so the meaning stays the same.
pub(super) fn escape_in_json(json: &str) -> String {
    if json.bytes().all(|byte| byte.is_ascii() && byte != 0x7f) {
        return json.to_owned();
    }
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && (c.is_control() || hides(c)) {
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Seconds since 1970 as `2026-11-29T03:00:00Z`.
#[must_use]
pub fn when(seconds: Option<u64>) -> String {
    let Some(seconds) = seconds else {
        return "-".to_owned();
    };
    // The last second of the year 9999: beyond it there is no such notation.
    if seconds > 253_402_300_799 {
        return seconds.to_string();
    }
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_says_the_same_and_shows_nothing_odd() {
        let json = serde_json::json!({"a": "\u{9b}31m\u{202e}\u{7f}é\n"});
        for text in [json.to_string(), format!("{json:#}")] {
            let escaped = escape_in_json(&text);
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&escaped).expect("json"),
                json
            );
            assert!(
                escaped.chars().all(|c| c == '\n' || !c.is_control()),
                "{escaped}"
            );
            assert!(!escaped.contains('\u{202e}') && escaped.contains('é'));
        }
    }

    #[test]
    fn times_are_readable_and_never_panic() {
        assert_eq!(when(Some(0)), "1970-01-01T00:00:00Z");
        assert_eq!(when(None), "-");
        assert_eq!(when(Some(u64::MAX)), u64::MAX.to_string());
    }
}
