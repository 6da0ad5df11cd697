//! Raw arguments of queues that brokers refuse, or take without doing anything.

use crate::field::FieldValue;
use crate::lint::rule::{REFUSED_ARGUMENT, TEXT_FOR_A_NUMBER};
use crate::lint::survey::Survey;
use crate::lint::{Finding, Subject};
use crate::topology::QueueType;

/// Arguments that quorum queues do not have (measured on 3.10.8, 4.0.5 and 4.3.6).
const NOT_FOR_QUORUM: [&str; 3] = ["x-queue-mode", "x-queue-version", "x-queue-master-locator"];

/// Arguments whose value is a number.
const NUMBERS: [&str; 6] = [
    "x-max-in-memory-bytes",
    "x-max-in-memory-length",
    "x-queue-version",
    "x-quorum-initial-group-size",
    "x-quorum-target-group-size",
    "x-stream-max-segment-size-bytes",
];

pub(super) fn check(survey: &Survey<'_>, findings: &mut Vec<Finding>) {
    for (name, queue) in &survey.topology.queues {
        for (argument, value) in &queue.arguments {
            let subject = Subject::Queue(name.clone());
            if queue.kind == Some(QueueType::Quorum) && NOT_FOR_QUORUM.contains(&argument.as_str())
            {
                findings.push(
                    REFUSED_ARGUMENT
                        .finding(
                            subject,
                            format!("queue '{name}' is a quorum queue, which has no `{argument}`"),
                        )
                        .at("arguments")
                        .label("brokers refuse to declare it")
                        .help("leave it out, or write `type: classic`"),
                );
            } else if NUMBERS.contains(&argument.as_str())
                && let FieldValue::LongStr(text) = value
            {
                findings.push(
                    TEXT_FOR_A_NUMBER
                        .finding(
                            subject,
                            format!(
                                "`{argument}` of queue '{name}' is the text '{}'",
                                String::from_utf8_lossy(text)
                            ),
                        )
                        .at("arguments")
                        .label("brokers look for a number, and refuse or ignore text")
                        .help("write the number without quotes"),
                );
            }
        }
    }
}
