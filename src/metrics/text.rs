//! A status in the text format of Prometheus, version 0.0.4.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>

use std::time::Duration;

use crate::worker::{BOUNDS, Link, Status, Times};

/// What every series is labelled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// The vhost that is worked on.
    pub vhost: String,
    /// The work queue.
    pub queue: String,
}

/// Every metric there is, in the order it is written.
pub const NAMES: [&str; 16] = [
    "mq_info",
    "process_start_time_seconds",
    "mq_received_total",
    "mq_acked_total",
    "mq_retried_total",
    "mq_dead_lettered_total",
    "mq_deduplicated_total",
    "mq_released_total",
    "mq_unsettled_total",
    "mq_reconnects_total",
    "mq_in_flight",
    "mq_connected",
    "mq_paused",
    "mq_draining",
    "mq_healthy",
    "mq_handler_seconds",
];

/// All series, those that are zero too; `started` is since 1970.
#[must_use]
pub fn metrics_text(labels: &Labels, started: Duration, status: &Status) -> String {
    let mut page = Page {
        text: String::with_capacity(16 * 1024),
        labels: format!(
            "vhost=\"{}\",queue=\"{}\"",
            escaped(&labels.vhost),
            escaped(&labels.queue)
        ),
    };
    page.about("mq_info", "gauge", "The version of mq.");
    page.line("mq_info", &[("version", env!("CARGO_PKG_VERSION"))], "1");
    page.about(
        "process_start_time_seconds",
        "gauge",
        "When the worker was started, in seconds since 1970.",
    );
    let started = format!("{:.3}", started.as_secs_f64());
    page.line("process_start_time_seconds", &[], &started);
    counters(&mut page, status);
    for (name, help, value) in [
        (
            "mq_in_flight",
            "Messages in work.",
            status.in_flight.to_string(),
        ),
        (
            "mq_connected",
            "Whether the worker is subscribed.",
            flag(status.link == Link::Up),
        ),
        (
            "mq_paused",
            "Whether the worker takes no messages for a while, by its own decision.",
            flag(status.paused),
        ),
        (
            "mq_draining",
            "Whether the worker stops and takes no further messages.",
            flag(status.stopping),
        ),
        (
            "mq_healthy",
            "What /healthz says: 0 when the worker's loop is stuck.",
            flag(!status.is_stuck()),
        ),
    ] {
        page.about(name, "gauge", help);
        page.line(name, &[], &value);
    }
    page.about(
        "mq_handler_seconds",
        "histogram",
        "How long attempts of the handler took, by outcome.",
    );
    for (outcome, times) in status.handler_times.iter() {
        histogram(&mut page, outcome, times);
    }
    page.text
}

fn counters(page: &mut Page, status: &Status) {
    let counts = &status.counts;
    let one = |name, help, value: u64| (name, help, vec![(None, value)]);
    for (name, help, series) in [
        one(
            "mq_received_total",
            "Messages taken, those that came again too.",
            counts.received,
        ),
        one(
            "mq_acked_total",
            "Messages that were done and acked.",
            counts.acked,
        ),
        one(
            "mq_retried_total",
            "Failed attempts that are followed by another.",
            counts.retried,
        ),
        (
            "mq_dead_lettered_total",
            "Messages that were dead-lettered, by reason.",
            vec![
                (Some("poison"), counts.poison),
                (Some("exhausted"), counts.exhausted),
                (Some("returned"), counts.returned),
            ],
        ),
        one(
            "mq_deduplicated_total",
            "Messages acked without being handled, because the same had been done before.",
            counts.deduplicated,
        ),
        one(
            "mq_released_total",
            "Messages given back untouched.",
            counts.released,
        ),
        one(
            "mq_unsettled_total",
            "Messages in work when the connection broke.",
            counts.unsettled,
        ),
        one(
            "mq_reconnects_total",
            "Lost connections that were opened again.",
            status.reconnects,
        ),
    ] {
        page.about(name, "counter", help);
        for (reason, value) in series {
            let reason = reason.map(|reason| ("reason", reason));
            page.line(name, reason.as_slice(), &value.to_string());
        }
    }
}

fn histogram(page: &mut Page, outcome: &str, times: &Times) {
    let mut below = 0;
    for (bound, count) in BOUNDS.iter().zip(&times.classes) {
        below += count;
        let bound = Duration::from_millis(*bound).as_secs_f64().to_string();
        let labels = [("outcome", outcome), ("le", &bound)];
        page.line("mq_handler_seconds_bucket", &labels, &below.to_string());
    }
    let count = times.count.to_string();
    let labels = [("outcome", outcome), ("le", "+Inf")];
    page.line("mq_handler_seconds_bucket", &labels, &count);
    let sum = times.sum.as_secs_f64().to_string();
    page.line("mq_handler_seconds_sum", &[("outcome", outcome)], &sum);
    page.line("mq_handler_seconds_count", &[("outcome", outcome)], &count);
}

struct Page {
    text: String,
    labels: String,
}

impl Page {
    fn about(&mut self, name: &str, kind: &str, help: &str) {
        self.text
            .push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// Values of labels other than ours need no escaping.
    fn line(&mut self, name: &str, more: &[(&str, &str)], value: &str) {
        self.text.push_str(&format!("{name}{{{}", self.labels));
        for (label, value) in more {
            self.text.push_str(&format!(",{label}=\"{value}\""));
        }
        self.text.push_str(&format!("}} {value}\n"));
    }
}

fn flag(is: bool) -> String {
    u8::from(is).to_string()
}

/// The value of a label as the format wants it.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
