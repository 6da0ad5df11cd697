//! A check as one line for Nagios, Icinga and their like.
//!
//! The line: what people read, `|`, and performance data `'label'=value;warn;crit;min`
//! (<https://nagios-plugins.org/doc/guidelines.html>).

use crate::deadletter::{Reading, Status, Verdict};
use crate::error::Error;
use crate::output::dlq_check::{CheckReport, why};
use crate::output::one_line;

/// Queues that are named before the `|`; pagers show little.
const NAMED: usize = 5;

/// Characters of one queue's why.
const LONGEST_WHY: usize = 200;

/// The line of a check that could be made.
#[must_use]
pub fn check_nagios(report: &CheckReport) -> String {
    let (word, status) = if report.is_over() {
        ("CRITICAL", Some(Status::Over))
    } else if report.is_ok() {
        ("OK", None)
    } else {
        ("UNKNOWN", Some(Status::Unknown))
    };
    let told = match status {
        None => match report.queues.len() {
            0 => "no dead-letter queue was found".to_owned(),
            1 => "1 queue within its limits".to_owned(),
            count => format!("{count} queues within their limits"),
        },
        Some(status) => bad(report, status),
    };
    let data: Vec<String> = report
        .queues
        .iter()
        .filter_map(|(reading, _)| data(reading, report.limits.messages))
        .collect();
    if data.is_empty() {
        format!("DLQ {word} - {told}")
    } else {
        format!("DLQ {word} - {told} | {}", data.join(" "))
    }
}

/// The line of a check that could not be made.
#[must_use]
pub fn failed_check_nagios(error: &Error) -> String {
    format!("DLQ UNKNOWN - {}", spoken(error.message(), 500))
}

fn bad(report: &CheckReport, status: Status) -> String {
    let bad: Vec<&(Reading, Verdict)> = report
        .queues
        .iter()
        .filter(|(_, verdict)| verdict.status() == status)
        .collect();
    let mut told: Vec<String> = bad
        .iter()
        .take(NAMED)
        .map(|(reading, verdict)| {
            let place = format!("{}/{}", reading.vhost, reading.queue);
            let why = why(verdict).join(", ");
            format!("{}: {}", spoken(&place, 120), spoken(&why, LONGEST_WHY))
        })
        .collect();
    if bad.len() > NAMED {
        told.push(format!("and {} more", bad.len() - NAMED));
    }
    if report.incomplete {
        told.push("not every dead-letter queue could be found".to_owned());
    }
    told.join("; ")
}

/// On one line and without the mark that begins performance data.
fn spoken(text: &str, width: usize) -> String {
    one_line(text, width).replace('|', "¦")
}

/// All messages of a queue, as far as all are known. A critical range of 0 is
/// written as `0`: above it is critical.
fn data(reading: &Reading, most: Option<u64>) -> Option<String> {
    let messages = reading.ready?.checked_add(reading.unacknowledged?)?;
    let most = most.map_or_else(String::new, |most| most.to_string());
    let label = format!("{}/{}", reading.vhost, reading.queue);
    Some(format!("'{}'={messages};;{most};0", label_text(&label)))
}

/// A label in quotes: a quote is doubled; `=` may not stand in it at all.
fn label_text(label: &str) -> String {
    spoken(label, 255).replace('=', "_").replace('\'', "''")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadletter::Limits;
    use crate::error::ErrorKind;
    use crate::output::dlq_check::tests::{EMPTY, HOSTILE, reading, report};

    #[test]
    fn one_line_says_it_all() {
        for (readings, expected) in [
            (vec![], "DLQ OK - no dead-letter queue was found"),
            (
                vec![reading("a", Some(0))],
                "DLQ OK - 1 queue within its limits | 'shop/a'=0;;0;0",
            ),
            (
                vec![reading("a", Some(0)), reading("b", Some(3))],
                "DLQ CRITICAL - shop/b: 3 messages, 0 allowed | 'shop/a'=0;;0;0 'shop/b'=3;;0;0",
            ),
            (
                vec![reading("a", None), reading("b", Some(0))],
                "DLQ UNKNOWN - shop/a: messages not known: the broker does not tell how many messages are ready | 'shop/b'=0;;0;0",
            ),
        ] {
            assert_eq!(check_nagios(&report(EMPTY, readings)), expected);
        }
        let by_age = Limits {
            age_seconds: Some(9000),
            ..Limits::default()
        };
        assert_eq!(
            check_nagios(&report(by_age, vec![reading("a", Some(3))])),
            "DLQ OK - 1 queue within its limits | 'shop/a'=3;;;0"
        );
        let mut incomplete = report(EMPTY, Vec::new());
        incomplete.incomplete = true;
        assert_eq!(
            check_nagios(&incomplete),
            "DLQ UNKNOWN - not every dead-letter queue could be found"
        );
    }

    #[test]
    fn names_stay_names() {
        for name in HOSTILE {
            let line = check_nagios(&report(EMPTY, vec![reading(name, Some(1))]));
            assert_eq!(line.lines().count(), 1, "{line}");
            assert!(!line.chars().any(char::is_control), "{line}");
            let (_, data) = line.split_once('|').expect("data");
            assert!(!data.contains('|'), "{line}");
            let label = data.trim().strip_prefix('\'').expect("quoted");
            let label = label.strip_suffix("'=1;;0;0").expect("one value");
            assert!(!label.replace("''", "").contains(['\'', '=']), "{line}");
        }
        let error = Error::new(ErrorKind::Unavailable, "cannot\nreach | it");
        let line = failed_check_nagios(&error);
        assert_eq!(line, "DLQ UNKNOWN - cannot\\nreach ¦ it");
    }

    #[test]
    fn many_are_counted() {
        let readings = (0..9).map(|n| reading(&format!("q{n}"), Some(1)));
        let line = check_nagios(&report(EMPTY, readings.collect()));
        assert!(line.contains("q4: 1 message,") && line.contains("and 4 more"));
        assert!(!line.contains("q5: "));
    }
}
