//! What the answer to a request means for the message.

use std::time::{Duration, SystemTime};

use url::Url;

use crate::printable::{one_line, unbroken};
use crate::retry::Outcome;

/// The longest wait that is believed: a message is not put off for good by a typo.
const MAX_WAIT: Duration = Duration::from_hours(24);

/// Longest quotation from an answer in a reason, in bytes.
const MAX_SAID: usize = 200;

/// Longest address that is told in a reason, in characters.
const MAX_LOCATION: usize = 200;

/// What counts of an answer.
pub(super) struct Answer<'a> {
    /// The status code.
    pub(super) status: u16,
    /// `Retry-After`: seconds, or a date of HTTP.
    pub(super) retry_after: Option<&'a str>,
    /// `Location`.
    pub(super) location: Option<&'a str>,
    /// How its body begins.
    pub(super) said: &'a [u8],
}

/// 2xx done; 408, 425, 429 and 5xx a failed attempt; every other 4xx poison. A
/// redirect is a wrong URL, hence a failed attempt, as is whatever else there is.
pub(super) fn outcome(answer: &Answer<'_>, now: SystemTime) -> Outcome {
    let why = || {
        let status = answer.status;
        match first_line(answer.said) {
            Some(said) => format!("HTTP {status}: {said}"),
            None => format!("HTTP {status}"),
        }
    };
    match answer.status {
        200..=299 => Outcome::Done,
        408 | 425 | 429 | 500..=599 => Outcome::Failed {
            why: why(),
            wait: answer.retry_after.and_then(|text| wait(text, now)),
        },
        400..=499 => Outcome::Poison { why: why() },
        300..=399 => Outcome::Failed {
            why: match answer.location {
                Some(location) => format!(
                    "HTTP {}: redirects are not followed; is the URL wrong? It leads to {}",
                    answer.status,
                    shown(location)
                ),
                None => why(),
            },
            wait: None,
        },
        _ => Outcome::Failed {
            why: why(),
            wait: None,
        },
    }
}

/// `None` when nothing that can be understood is asked for, or no wait at all.
fn wait(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let asked = if is_number {
        // More digits than a number of 64 bits can have are absurd all the same.
        text.parse().map_or(MAX_WAIT, Duration::from_secs)
    } else {
        let date = httpdate::parse_http_date(text).ok()?;
        date.duration_since(now).ok()?
    };
    Some(asked.min(MAX_WAIT)).filter(|wait| !wait.is_zero())
}

/// The first line that says something: `{` alone does not.
fn first_line(said: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(said);
    let line = said
        .lines()
        .find(|line| line.chars().any(char::is_alphanumeric))?;
    let mut shown = unbroken(line.trim());
    if shown.len() > MAX_SAID {
        let end = '…';
        shown.truncate(shown.floor_char_boundary(MAX_SAID - end.len_utf8()));
        shown.push(end);
    }
    Some(shown)
}

/// Without the login and what follows the path: both may be secret.
fn shown(location: &str) -> String {
    let path = location.split(['?', '#']).next().unwrap_or_default();
    let location = match Url::parse(path) {
        Ok(mut url) => {
            // Both setters fail only for URLs that have no login.
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.to_string()
        }
        Err(_) => path.to_owned(),
    };
    one_line(&location, MAX_LOCATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1994-11-06 08:49:37 UTC, the example of RFC 9110.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
    }

    fn of(status: u16, retry_after: Option<&str>, location: Option<&str>, said: &str) -> Outcome {
        let answer = Answer {
            status,
            retry_after,
            location,
            said: said.as_bytes(),
        };
        outcome(&answer, now())
    }

    fn failed(why: &str, wait: Option<u64>) -> Outcome {
        Outcome::Failed {
            why: why.to_owned(),
            wait: wait.map(Duration::from_secs),
        }
    }

    fn poison(why: &str) -> Outcome {
        Outcome::Poison {
            why: why.to_owned(),
        }
    }

    #[test]
    fn the_status_settles_the_message() {
        for (status, expected) in [
            (101, failed("HTTP 101: bad", None)),
            (200, Outcome::Done),
            (202, Outcome::Done),
            (204, Outcome::Done),
            (299, Outcome::Done),
            (304, failed("HTTP 304: bad", None)),
            (400, poison("HTTP 400: bad")),
            (401, poison("HTTP 401: bad")),
            (404, poison("HTTP 404: bad")),
            (408, failed("HTTP 408: bad", Some(7))),
            (422, poison("HTTP 422: bad")),
            (425, failed("HTTP 425: bad", Some(7))),
            (429, failed("HTTP 429: bad", Some(7))),
            (431, poison("HTTP 431: bad")),
            (499, poison("HTTP 499: bad")),
            (500, failed("HTTP 500: bad", Some(7))),
            (503, failed("HTTP 503: bad", Some(7))),
            (599, failed("HTTP 599: bad", Some(7))),
            (600, failed("HTTP 600: bad", None)),
        ] {
            assert_eq!(of(status, Some("7"), None, "bad"), expected, "{status}");
        }
    }

    #[test]
    fn a_wait_is_seconds_or_a_date_and_never_absurd() {
        let day = 24 * 60 * 60;
        for (text, expected) in [
            ("120", Some(120)),
            (" 1 ", Some(1)),
            ("0", None),
            ("86400", Some(day)),
            ("86401", Some(day)),
            ("99999999999999999999999", Some(day)),
            ("-5", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            ("Sun Nov  6 08:50:37 1994", Some(60)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:00:00 GMT", None),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(day)),
        ] {
            let expected = failed("HTTP 503", expected);
            assert_eq!(of(503, Some(text), None, ""), expected, "{text:?}");
        }
    }

    #[test]
    fn a_redirect_is_named_without_what_is_secret() {
        let leads_to = |location: &str| match of(302, Some("7"), Some(location), "moved") {
            Outcome::Failed { why, wait: None } => why,
            other => panic!("{other:?}"),
        };
        for (location, shown) in [
            ("/login?token=sesame", " /login"),
            ("https://u:sesame@h/a?t=sesame#sesame", " https://h/a"),
            ("https://h/\u{1b}[31m", " https://h/%1B[31m"),
        ] {
            let why = leads_to(location);
            assert!(why.starts_with("HTTP 302: redirects are not followed"));
            assert!(why.ends_with(shown), "{why}");
        }
        assert!(leads_to(&"x".repeat(5000)).len() < 300);
    }

    #[test]
    fn the_reason_is_the_first_line_that_says_something() {
        let long = format!("{}…", "é".repeat(98));
        for (said, expected) in [
            ("", "HTTP 400"),
            ("\r\n \n", "HTTP 400"),
            ("{\r\n  \"error\": 1\n}", "HTTP 400: \"error\": 1"),
            ("a\u{1b}[31mb\tc\nnext", "HTTP 400: a\\u{1b}[31mb\\tc"),
            (&"é".repeat(100), &format!("HTTP 400: {}", "é".repeat(100))),
            (&"é".repeat(101), &format!("HTTP 400: {long}")),
        ] {
            assert_eq!(of(400, None, None, said), poison(expected), "{said:?}");
        }
        let bytes = Answer {
            status: 400,
            retry_after: None,
            location: None,
            said: b"\xff\xfe x",
        };
        assert_eq!(
            outcome(&bytes, now()),
            poison("HTTP 400: \u{fffd}\u{fffd} x")
        );
    }
}
