//! The `retry:` of a queue or a worker.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::diagnostic::Diagnostic;
use crate::retry::{
    DEFAULT_MAX_ATTEMPTS, DelaysProblem, Exponential, RetryPolicy, Strategy, check_delays,
};
use crate::topology::QueueName;
use crate::topologyfile::fields::Reader;
use crate::topologyfile::queue_fields::Part;
use crate::topologyfile::tree::{Node, Value};
use crate::topologyfile::units::MAX_DURATION;

/// Every key of `retry`.
pub(super) const KEYS: [&str; 5] = [
    "strategy",
    "delays",
    "jitter",
    "max_attempts",
    "dead_letter_queue",
];

/// Every key of a worker's `retry`, whose dead-letter queue is given.
pub(super) const WORKER_KEYS: [&str; 4] = ["strategy", "delays", "jitter", "max_attempts"];

/// Every key of `delays` that grow.
pub(super) const DELAYS_KEYS: [&str; 3] = ["first", "factor", "max"];

/// How often a message can be tried.
pub(super) const ATTEMPTS: RangeInclusive<u64> = 1..=u32::MAX as u64;

/// What each further delay is of the one before it when nobody says it.
pub(super) const DEFAULT_FACTOR: u8 = 2;

impl Part<'_, '_> {
    pub(super) fn retry(&mut self) -> Option<RetryPolicy> {
        let node = self.fields.get("retry")?;
        let what = format!("`retry` of {}", self.what);
        let known: &'static [&'static str] = if self.of_worker { &WORKER_KEYS } else { &KEYS };
        let fields = self.reader.fields(node, &what, known)?;
        let of = |field: &str| format!("`{field}` of {what}");
        let strategy = match fields.get("strategy") {
            None => self.of_worker.then_some(Strategy::Dlx),
            Some(node) => self.reader.word(node, &of("strategy"), &Strategy::ALL),
        };
        let max_attempts = fields.get("max_attempts").and_then(|node| {
            let attempts = self.reader.integer(node, &of("max_attempts"), ATTEMPTS)?;
            u32::try_from(attempts).ok()
        });
        let jitter_node = fields.get("jitter");
        let jitter = jitter_node.and_then(|node| self.reader.jitter(node, &of("jitter")));
        let dead_letter_queue = fields.get("dead_letter_queue").and_then(|node| {
            let name = self
                .reader
                .name(node, &of("dead_letter_queue"), QueueName::new)?;
            self.places
                .queue(&name, node.place(), format!("{what} names it"));
            Some(name)
        });
        let delays_node = fields.get("delays");
        let attempts = max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS);
        let delays = delays_node.map_or(Some(Vec::new()), |node| {
            self.delays(node, &what, strategy, attempts)
        });
        // What could not be read has been reported, and would be missed here.
        let is_read = |field: &str, read: bool| read || fields.get(field).is_none();
        let strategy_is_read = is_read("strategy", strategy.is_some());
        let can_be_judged =
            strategy_is_read && is_read("max_attempts", max_attempts.is_some()) && delays.is_some();
        let policy = RetryPolicy {
            strategy,
            delays: delays.unwrap_or_default(),
            jitter: jitter.unwrap_or_default(),
            max_attempts,
            dead_letter_queue,
        };
        if can_be_judged && let Err(problem) = check_delays(&policy) {
            let wrong = match problem {
                DelaysProblem::NeverScatters(_) => jitter_node,
                _ => delays_node,
            };
            self.reader.report(
                Diagnostic::new(
                    "MQ103",
                    wrong.map_or_else(|| node.start(), Node::place),
                    format!("{what} has {problem}"),
                )
                .help(problem.way_out()),
            );
        }
        strategy_is_read.then_some(policy)
    }

    /// A list of delays, or what a map comes to; `None` if something of it
    /// cannot be read.
    fn delays(
        &mut self,
        node: &Node,
        what: &str,
        strategy: Option<Strategy>,
        attempts: u32,
    ) -> Option<Vec<Duration>> {
        if matches!(node.value, Value::Map(_)) {
            return self.growing_delays(node, what, strategy, attempts);
        }
        let of = format!("a delay of {what}");
        let items = self.reader.items(node, &format!("`delays` of {what}"));
        let read: Vec<Duration> = items
            .iter()
            .filter_map(|item| self.reader.duration(item, &of))
            .collect();
        (node.item_count() == Some(read.len())).then_some(read)
    }

    fn growing_delays(
        &mut self,
        node: &Node,
        what: &str,
        strategy: Option<Strategy>,
        attempts: u32,
    ) -> Option<Vec<Duration>> {
        let what = format!("`delays` of {what}");
        let fields = self.reader.fields(node, &what, &DELAYS_KEYS)?;
        let of = |field: &str| format!("`{field}` of {what}");
        let first_node = fields.get("first");
        if first_node.is_none() {
            self.reader.report(
                Diagnostic::new("MQ107", node.start(), format!("{what} has no `first`"))
                    .help("add `first: 1s`: how long a message waits after its first attempt"),
            );
        }
        let first = first_node.and_then(|node| self.reader.duration(node, &of("first")));
        let factor = fields
            .get("factor")
            .map_or(Some(DEFAULT_FACTOR.into()), |node| {
                factor(node, &of("factor"), self.reader)
            });
        let max = fields.get("max").map_or(Some(MAX_DURATION), |node| {
            self.reader.duration(node, &of("max"))
        });
        if strategy == Some(Strategy::Native) {
            self.reader.report(
                Diagnostic::new(
                    "MQ103",
                    node.place(),
                    format!("{what} has steps, which `native` does not take"),
                )
                .help(
                    "write the shortest and the longest: `delays: [1s, 1m]`; RabbitMQ has its own steps between them",
                ),
            );
            return None;
        }
        let (first, factor, max) = (first?, factor?, max?);
        if max < first
            && let Some(node) = fields.get("max")
        {
            self.reader.report(
                Diagnostic::new(
                    "MQ103",
                    node.place(),
                    format!("`max` of {what} is less than its `first`"),
                )
                .help("the delays grow from `first` to `max`"),
            );
            return None;
        }
        let growing = Exponential { first, factor, max };
        let delays = growing.delays(attempts);
        // Without any retry the first delay is one too many, and is told to be.
        Some(if delays.is_empty() {
            vec![first]
        } else {
            delays
        })
    }
}

/// A number, whole or not, from 1 up.
fn factor(node: &Node, what: &str, reader: &mut Reader) -> Option<f64> {
    let factor = match node.value {
        Value::Float(factor) => Some(factor),
        Value::Integer(factor) => Some(inexact(factor)),
        _ => None,
    };
    let factor = factor.filter(|factor| *factor >= 1.0);
    if factor.is_none() {
        reader.expected(node, what, "a number from 1, such as 2 or 1.5");
    }
    factor
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no factor is so large that its last digit counts"
)]
fn inexact(number: i64) -> f64 {
    number as f64
}
