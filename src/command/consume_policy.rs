//! How a queue's messages are retried: flags over file, and what the strategy in
//! force cannot do.

use crate::broker::BrokerFacts;
use crate::cli::{ConsumeArgs, DeadLetterArg, RetryBodyArg, StrategyArg};
use crate::error::{Error, ErrorKind, Result};
use crate::retry::{Jitter, RetryPath, RetryPolicy, Strategy, check_delays};
use crate::topology::{QueueName, Topology};
use crate::worker::{LONGEST_HOLD, Pausing};

/// What the strategy that is in force cannot do is said before a message is taken.
pub(super) fn must_be_possible(
    args: &ConsumeArgs,
    path: &RetryPath,
    facts: &BrokerFacts,
) -> Result<()> {
    let queue = &path.queue;
    let refused = |why: &str, way_out: &str| {
        Err(Error::new(
            ErrorKind::Blocked,
            format!("refusing to work queue '{queue}': {why}"),
        )
        .hint(way_out))
    };
    match path.strategy {
        Strategy::Native if !facts.delays_retries() => refused(
            &format!(
                "{facts} ignores its `delayed_retry`, so a failed message would come back at once"
            ),
            "use `strategy: dlx` or `backoff` there, or RabbitMQ 4.3",
        ),
        Strategy::Native if args.retry_body == RetryBodyArg::Result => refused(
            "under the strategy `native` the broker keeps the message, so its body cannot change",
            "leave --retry-body out, or use `strategy: backoff` or `dlx`",
        ),
        Strategy::Dlx if args.dead_letter == DeadLetterArg::Nack => refused(
            "under the strategy `dlx` a nack leads into the wait queue, never to the dead-letter queue",
            "leave --dead-letter nack out, or use `strategy: backoff`",
        ),
        Strategy::Dlx | Strategy::Backoff | Strategy::Immediate | Strategy::Native => Ok(()),
    }
}

/// Whether outages are waited out.
pub(super) fn pausing(args: &ConsumeArgs) -> Result<Option<Pausing>> {
    let Some(after) = args.pause_after else {
        return Ok(None);
    };
    if args.probe_wait > LONGEST_HOLD {
        return Err(Error::new(
            ErrorKind::Usage,
            format!(
                "--probe-wait {} is too long: a message is held meanwhile, and brokers take it back after a while",
                humantime::format_duration(args.probe_wait)
            ),
        )
        .hint("wait 10m at most"));
    }
    Ok(Some(Pausing {
        after,
        probe_wait: args.probe_wait,
    }))
}

/// Flags over file.
pub(super) fn policy(
    args: &ConsumeArgs,
    queue: &QueueName,
    file: Option<&Topology>,
) -> Result<RetryPolicy> {
    let from_file = match file {
        None => RetryPolicy::default(),
        Some(topology) => topology
            .queues
            .get(queue)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::NotFound,
                    format!("the topology file does not declare queue '{queue}'"),
                )
                .hint("check the queue's name and --topology")
            })?
            .retry
            .clone()
            .unwrap_or_default(),
    };
    let dead_letter_queue = args
        .dead_letter_queue
        .clone()
        .map(QueueName::new)
        .transpose()?;
    let strategy = match args.strategy {
        None => from_file.strategy,
        Some(StrategyArg::Dlx) => Some(Strategy::Dlx),
        Some(StrategyArg::Backoff) => Some(Strategy::Backoff),
        Some(StrategyArg::Immediate) => Some(Strategy::Immediate),
        Some(StrategyArg::Native) => Some(Strategy::Native),
    };
    // The file's delays belong to its strategy.
    let (delays, jitter) = if strategy == from_file.strategy {
        (from_file.delays, from_file.jitter)
    } else {
        (Vec::new(), Jitter::None)
    };
    let file_attempts = from_file.max_attempts;
    let policy = RetryPolicy {
        strategy,
        delays: if args.delays.is_empty() {
            delays
        } else {
            args.delays.clone()
        },
        jitter: args.jitter.unwrap_or(jitter),
        max_attempts: args.max_attempts.or(file_attempts),
        dead_letter_queue: dead_letter_queue.or(from_file.dead_letter_queue),
    };
    // What the file says alone has been judged when it was read, its delays
    // with its attempts: fewer of them may be asked for without naming others.
    let judged = RetryPolicy {
        max_attempts: if args.delays.is_empty() {
            file_attempts
        } else {
            policy.max_attempts
        },
        ..policy.clone()
    };
    check_delays(&judged).map_err(|problem| {
        Error::new(
            ErrorKind::Usage,
            format!("queue '{queue}' cannot be retried as the flags say: {problem}"),
        )
        .hint(problem.way_out_by_flags())
    })?;
    Ok(policy)
}
