//! What a check of dead-letter queues found, on screen and as JSON.

use serde_json::{Value as Json, json};

use crate::deadletter::{
    Coming, Excess, Gap, LimitKind, Limits, MaxRate, Oldest, Reading, Status, Verdict,
};
use crate::output::dlq_list::{age, known_count};
use crate::output::{Table, one_line};
use crate::topology::QueueName;

/// All that was checked.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// Each queue and its judgement.
    pub queues: Vec<(Reading, Verdict)>,
    /// Whether vhosts could not be read, or queues may be missing.
    pub incomplete: bool,
    /// What is allowed.
    pub limits: Limits,
}

impl CheckReport {
    /// Whether a queue is over a limit.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.any(Status::Over)
    }

    /// Whether every queue is known, and known to be within every limit.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        !self.incomplete && !self.is_over() && !self.any(Status::Unknown)
    }

    fn any(&self, status: Status) -> bool {
        self.queues
            .iter()
            .any(|(_, verdict)| verdict.status() == status)
    }
}

/// A table, with a column for the vhost where there are several.
#[must_use]
pub fn check_text(report: &CheckReport, with_vhost: bool) -> String {
    if report.queues.is_empty() {
        return "no dead-letter queue was found".to_owned();
    }
    let mut header = vec![
        "STATUS", "QUEUE", "READY", "UNACKED", "OLDEST", "RATE", "WHY",
    ];
    if with_vhost {
        header.insert(1, "VHOST");
    }
    let mut table = Table::new(&header);
    for (reading, verdict) in &report.queues {
        let mut cells = vec![
            verdict.status().word().to_owned(),
            one_line(&reading.queue, 60),
            known_count(reading.ready),
            known_count(reading.unacknowledged),
            oldest(&reading.oldest),
            coming(&reading.coming, &report.limits),
            one_line(&why(verdict).join("; "), 160),
        ];
        if with_vhost {
            cells.insert(1, one_line(&reading.vhost, 60));
        }
        table.row(cells);
    }
    table.render()
}

fn oldest(oldest: &Oldest) -> String {
    match oldest {
        Oldest::NotAsked | Oldest::Empty => "-".to_owned(),
        Oldest::Seconds(seconds) => age(*seconds),
        Oldest::Unknown(_) => "?".to_owned(),
    }
}

fn coming(coming: &Coming, limits: &Limits) -> String {
    match coming {
        Coming::NotAsked => "-".to_owned(),
        Coming::Unknown(_) => "?".to_owned(),
        Coming::Known(inflow) => {
            let at_least = if inflow.blind.is_some() { ">=" } else { "" };
            let rate = match limits.rate {
                Some(limit) => limit.in_its_unit(inflow.per_second),
                None => format!("{:.2}/s", inflow.per_second),
            };
            format!("{at_least}{rate}")
        }
    }
}

/// Each excess, then each limit that cannot be judged, in words.
pub(super) fn why(verdict: &Verdict) -> Vec<String> {
    let over = verdict.over.iter().map(excess);
    let unknown = verdict.unknown.iter().map(gap);
    over.chain(unknown).collect()
}

fn excess(excess: &Excess) -> String {
    match excess {
        Excess::Messages { allowed, found } => {
            let noun = if *found == 1 { "message" } else { "messages" };
            format!("{found} {noun}, {allowed} allowed")
        }
        Excess::Age { allowed, found } => {
            format!("oldest {}, {} allowed", age(*found), age(*allowed))
        }
        Excess::Rate { allowed, found } => {
            format!("{} come in, {allowed} allowed", allowed.in_its_unit(*found))
        }
    }
}

fn gap(gap: &Gap) -> String {
    let what = match gap.limit {
        LimitKind::Messages => "messages",
        LimitKind::Age => "age",
        LimitKind::Rate => "rate",
    };
    format!("{what} not known: {}", gap.why)
}

/// What to say of each queue that is not within its limits, and what to do about it.
#[must_use]
pub fn check_advice(report: &CheckReport) -> Vec<String> {
    let bad = report
        .queues
        .iter()
        .filter(|(_, verdict)| verdict.status() != Status::Ok);
    let mut lines: Vec<String> = bad
        .map(|(reading, verdict)| {
            let help = match verdict.status() {
                Status::Over => format!("\n  help: {}", inspect(reading)),
                Status::Unknown
                    if verdict
                        .unknown
                        .iter()
                        .any(|gap| gap.limit == LimitKind::Age) =>
                {
                    format!(
                        "\n  help: where a look is not safe, this tells the ways out: {}",
                        inspect(reading)
                    )
                }
                Status::Ok | Status::Unknown => String::new(),
            };
            format!(
                "mq: queue '{}' in vhost '{}': {}{help}",
                one_line(&reading.queue, 255),
                one_line(&reading.vhost, 255),
                one_line(&why(verdict).join("; "), 2000),
            )
        })
        .collect();
    if report.incomplete {
        lines.push("mq: not every dead-letter queue could be found, so this is not all".to_owned());
    }
    lines
}

/// The command that shows what is in the queue.
fn inspect(reading: &Reading) -> String {
    let quoted = |name: &str| {
        let quoted = QueueName::new(name).map(|name| name.shell_quoted());
        one_line(&quoted.unwrap_or_default(), 300)
    };
    format!(
        "mq dlq inspect {} --vhost {}",
        quoted(&reading.queue),
        quoted(&reading.vhost)
    )
}

/// `{ok, incomplete, limits, queues[]}`; see [`check_lines_json`] for a queue.
#[must_use]
pub fn check_json(report: &CheckReport) -> Json {
    json!({
        "ok": report.is_ok(),
        "incomplete": report.incomplete,
        "limits": {
            "max_messages": report.limits.messages,
            "max_age_seconds": report.limits.age_seconds,
            "max_rate_per_second": report.limits.rate.map(MaxRate::per_second),
        },
        "queues": check_lines_json(report),
    })
}

/// For each queue `{vhost, queue, status, ready, ready_is_exact, unacknowledged,
/// oldest_seconds, inflow_per_second, over[], unknown[]}`; what is not known or was
/// not asked is null.
#[must_use]
pub fn check_lines_json(report: &CheckReport) -> Vec<Json> {
    let queues = report.queues.iter();
    queues
        .map(|(reading, verdict)| queue_json(reading, verdict))
        .collect()
}

fn queue_json(reading: &Reading, verdict: &Verdict) -> Json {
    let over = verdict.over.iter().map(|excess| {
        let limit = excess.limit().word();
        match excess {
            Excess::Messages { allowed, found } | Excess::Age { allowed, found } => {
                json!({ "limit": limit, "allowed": allowed, "found": found })
            }
            Excess::Rate { allowed, found } => {
                json!({ "limit": limit, "allowed": allowed.per_second(), "found": found })
            }
        }
    });
    let unknown = verdict
        .unknown
        .iter()
        .map(|gap| json!({ "limit": gap.limit.word(), "why": gap.why }));
    json!({
        "vhost": reading.vhost,
        "queue": reading.queue,
        "status": verdict.status().word(),
        "ready": reading.ready,
        "ready_is_exact": reading.ready_is_exact,
        "unacknowledged": reading.unacknowledged,
        "oldest_seconds": match reading.oldest {
            Oldest::Seconds(seconds) => Some(seconds),
            Oldest::NotAsked | Oldest::Empty | Oldest::Unknown(_) => None,
        },
        "inflow_per_second": match &reading.coming {
            Coming::Known(inflow) => Some(inflow.per_second),
            Coming::NotAsked | Coming::Unknown(_) => None,
        },
        "over": over.collect::<Vec<_>>(),
        "unknown": unknown.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::deadletter::Inflow;

    /// Names that want to be more than one line, or more than a name.
    pub(in crate::output) const HOSTILE: [&str; 6] = [
        "a|b",
        "x'=1;2;3 y",
        "line\nDLQ OK - all is well",
        "\u{1b}[2J\u{202e}",
        "quote\"back\\slash",
        "日本 \u{85}",
    ];

    pub(in crate::output) fn report(limits: Limits, readings: Vec<Reading>) -> CheckReport {
        let queues = readings.into_iter().map(|reading| {
            let verdict = Verdict::of(&reading, &limits);
            (reading, verdict)
        });
        CheckReport {
            queues: queues.collect(),
            incomplete: false,
            limits,
        }
    }

    pub(in crate::output) fn reading(queue: &str, ready: Option<u64>) -> Reading {
        Reading {
            vhost: "shop".to_owned(),
            queue: queue.to_owned(),
            ready,
            ready_is_exact: true,
            unacknowledged: Some(0),
            oldest: Oldest::Seconds(7200),
            coming: Coming::Known(Inflow {
                per_second: 0.25,
                blind: None,
            }),
        }
    }

    pub(in crate::output) const EMPTY: Limits = Limits {
        messages: Some(0),
        age_seconds: None,
        rate: None,
    };

    #[test]
    fn a_table_says_why() {
        let limits = Limits {
            messages: Some(2),
            age_seconds: Some(3600),
            rate: "10/m".parse().ok(),
        };
        let mut idle = reading("idle", Some(0));
        idle.oldest = Oldest::Empty;
        let mut unsure = reading("unsure", None);
        (unsure.oldest, unsure.coming) =
            (Oldest::Empty, Coming::Unknown("no statistics".to_owned()));
        let report = report(limits, vec![reading("dead", Some(3)), idle, unsure]);
        assert_eq!(
            check_text(&report, false),
            "\
STATUS   QUEUE   READY  UNACKED  OLDEST  RATE  WHY
over     dead    3            0  2h      15/m  3 messages, 2 allowed; oldest 2h, 1h allowed; 15/m come in, 10/m allowed
over     idle    0            0  -       15/m  15/m come in, 10/m allowed
unknown  unsure  ?            0  -       ?     messages not known: the broker does not tell how many messages are ready; rate not known: no statistics"
        );
        assert_eq!(
            check_advice(&report)[0],
            "mq: queue 'dead' in vhost 'shop': 3 messages, 2 allowed; oldest 2h, 1h allowed; 15/m come in, 10/m allowed\n  help: mq dlq inspect dead --vhost shop"
        );
        let json = check_json(&report);
        assert_eq!(json["ok"], false);
        assert_eq!(
            json["queues"][0]["over"][0],
            json!({"limit": "max_messages", "allowed": 2, "found": 3})
        );
        assert_eq!(json["queues"][2]["unknown"][1]["limit"], "max_rate");
    }

    #[test]
    fn hostile_names_do_not_add_lines() {
        let readings = HOSTILE.map(|name| reading(name, Some(1))).to_vec();
        let report = report(EMPTY, readings);
        assert_eq!(check_text(&report, true).lines().count(), HOSTILE.len() + 1);
        for line in check_advice(&report) {
            assert_eq!(line.lines().count(), 2, "{line}");
            assert!(!line.contains('\u{1b}'));
        }
    }

    #[test]
    fn what_may_be_missing_is_not_ok() {
        let mut report = report(EMPTY, Vec::new());
        assert!(report.is_ok());
        report.incomplete = true;
        assert!(!report.is_ok() && !report.is_over());
    }
}
