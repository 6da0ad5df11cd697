//! A check in the text format of Prometheus, version 0.0.4.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>

use crate::deadletter::{Coming, Oldest, Reading, Status, Verdict};
use crate::output::dlq_check::CheckReport;

type Value = fn(&Reading, &Verdict) -> Option<String>;

/// What is told of each queue; what is not known is left out.
const OF_QUEUES: [(&str, &str, Value); 5] = [
    (
        "mq_dlq_messages_ready",
        "Messages ready for delivery in a dead-letter queue.",
        |reading, _| reading.ready.map(|count| count.to_string()),
    ),
    (
        "mq_dlq_messages_unacked",
        "Messages of a dead-letter queue that are out for delivery, as of the broker's last statistics.",
        |reading, _| reading.unacknowledged.map(|count| count.to_string()),
    ),
    (
        "mq_dlq_oldest_age_seconds",
        "Time since the first message died last; of an empty queue 0.",
        |reading, _| match reading.oldest {
            Oldest::Seconds(seconds) => Some(seconds.to_string()),
            Oldest::Empty => Some("0".to_owned()),
            Oldest::NotAsked | Oldest::Unknown(_) => None,
        },
    ),
    (
        "mq_dlq_inflow_per_second",
        "Messages that came in, over the last minute (over the last hour, where the limit is one by hour).",
        |reading, _| match &reading.coming {
            Coming::Known(inflow) if inflow.blind.is_none() => Some(inflow.per_second.to_string()),
            Coming::Known(_) | Coming::Unknown(_) | Coming::NotAsked => None,
        },
    ),
    (
        "mq_dlq_ok",
        "Whether a dead-letter queue is within every limit of the check.",
        |_, verdict| match verdict.status() {
            Status::Ok => Some("1".to_owned()),
            Status::Over => Some("0".to_owned()),
            Status::Unknown => None,
        },
    ),
];

/// The metrics of a check that could be made at `now`, in seconds since 1970, of a
/// vhost; empty: of all.
#[must_use]
pub fn check_metrics(report: &CheckReport, vhost: &str, now: u64) -> String {
    let mut page = of_the_check(vhost, now, !report.incomplete);
    for (name, help, value) in OF_QUEUES {
        let series: String = report
            .queues
            .iter()
            .filter_map(|(reading, verdict)| {
                let value = value(reading, verdict)?;
                let (vhost, queue) = (escaped(&reading.vhost), escaped(&reading.queue));
                Some(format!(
                    "{name}{{vhost=\"{vhost}\",queue=\"{queue}\"}} {value}\n"
                ))
            })
            .collect();
        if !series.is_empty() {
            page.push_str(&head(name, help));
            page.push_str(&series);
        }
    }
    page
}

/// Those of a check that could not be made.
#[must_use]
pub fn failed_check_metrics(vhost: &str, now: u64) -> String {
    of_the_check(vhost, now, false)
}

fn of_the_check(vhost: &str, now: u64, success: bool) -> String {
    let vhost = escaped(vhost);
    let success = u8::from(success);
    let mut page = head(
        "mq_dlq_check_success",
        "Whether the last check could read every dead-letter queue.",
    );
    page.push_str(&format!(
        "mq_dlq_check_success{{vhost=\"{vhost}\"}} {success}\n"
    ));
    page.push_str(&head(
        "mq_dlq_check_timestamp_seconds",
        "When the last check was made, in seconds since 1970.",
    ));
    page.push_str(&format!(
        "mq_dlq_check_timestamp_seconds{{vhost=\"{vhost}\"}} {now}\n"
    ));
    page
}

fn head(name: &str, help: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} gauge\n")
}

/// The value of a label as the format wants it.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::dlq_check::tests::{EMPTY, HOSTILE, reading, report};

    #[test]
    fn what_is_not_known_is_left_out() {
        let mut unsure = reading("unsure", None);
        unsure.oldest = Oldest::Unknown("why".to_owned());
        unsure.coming = Coming::NotAsked;
        let page = check_metrics(
            &report(EMPTY, vec![reading("dead", Some(3)), unsure]),
            "shop",
            1_796_036_640,
        );
        let told: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            told,
            [
                "mq_dlq_check_success{vhost=\"shop\"} 1",
                "mq_dlq_check_timestamp_seconds{vhost=\"shop\"} 1796036640",
                "mq_dlq_messages_ready{vhost=\"shop\",queue=\"dead\"} 3",
                "mq_dlq_messages_unacked{vhost=\"shop\",queue=\"dead\"} 0",
                "mq_dlq_messages_unacked{vhost=\"shop\",queue=\"unsure\"} 0",
                "mq_dlq_oldest_age_seconds{vhost=\"shop\",queue=\"dead\"} 7200",
                "mq_dlq_inflow_per_second{vhost=\"shop\",queue=\"dead\"} 0.25",
                "mq_dlq_ok{vhost=\"shop\",queue=\"dead\"} 0",
            ]
        );
    }

    #[test]
    fn a_check_that_failed_says_only_that() {
        let page = failed_check_metrics("", 5);
        assert!(page.contains("mq_dlq_check_success{vhost=\"\"} 0\n"));
        assert!(!page.contains("mq_dlq_ok"));
    }

    #[test]
    fn names_are_escaped() {
        let readings = HOSTILE.map(|name| reading(name, Some(1))).to_vec();
        let page = check_metrics(&report(EMPTY, readings), "shop", 0);
        let series = page
            .lines()
            .filter(|line| line.starts_with("mq_dlq_ok{"))
            .count();
        assert_eq!(series, HOSTILE.len());
        assert!(page.contains(r#"queue="quote\"back\\slash""#));
    }
}
