//! `mq consume` of a stream: where it starts, where its dead letters go, and
//! what a stream cannot do.

use std::collections::BTreeSet;
use std::time::Duration;

use super::session::Session;
use crate::amqp::Connection;
use crate::cli::{ConsumeArgs, DeadLetterArg};
use crate::error::{Error, ErrorKind, Result};
use crate::offsets::{Keeper, OffsetFile, Positions, StartAt};
use crate::retry::{BuryReason, DeadLetterAddress, RetryPath, RetryPolicy, Strategy};
use crate::topology::{DeadLetterKey, ExchangeName, QueueName, QueueType, RoutingKey, Topology};
use crate::worker::Reading;

/// A stream that is to be read.
pub(super) struct Stream {
    from: Option<StartAt>,
    rewind: bool,
    positions: Option<Positions>,
}

impl Stream {
    /// A kept position goes before `--from`, unless `--rewind` is given.
    pub(super) async fn read(self, connection: &Connection, queue: &QueueName) -> Result<Reading> {
        let kept = match &self.positions {
            Some(positions) => positions.open()?,
            None => None,
        };
        let start = match kept.filter(|_| !self.rewind) {
            Some(offset) => {
                must_be_within(offset, connection, queue).await?;
                StartAt::Offset(offset)
            }
            None => self.from.unwrap_or_default(),
        };
        tracing::info!(from = %start, "reading a stream");
        Ok(Reading::new(start, self.positions.map(Keeper::start)))
    }
}

/// A stream that was deleted and declared again begins anew: everything in it
/// would be passed over without a word.
async fn must_be_within(kept: u64, connection: &Connection, queue: &QueueName) -> Result<()> {
    let end = connection.last_offset(queue).await?;
    let next = end.map_or(0, |last| last.saturating_add(1));
    if kept <= next {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidInput,
        format!(
            "the kept position {kept} is beyond the end of stream '{queue}', where the next message gets offset {next}"
        ),
    )
    .hint("if the stream was deleted and declared again, start with --from first --rewind; if not, check --offset-file, the vhost and the broker"))
}

/// The stream that the queue is, if it is one. The management API knows; without
/// it the file does, or who says where to start is believed: a broker refuses
/// that for any other queue.
pub(super) async fn stream(
    args: &ConsumeArgs,
    session: &Session,
    connection: &Connection,
    queue: &QueueName,
    file: Option<&Topology>,
) -> Result<Option<Stream>> {
    let vhost = session.vhost()?;
    let asks_for_one = args.from.is_some() || args.offset_file.is_some();
    let observed = match session.management() {
        Ok(management) => management.queue(vhost, queue, connection.facts()).await,
        Err(error) => Err(error),
    };
    let in_file = file.and_then(|topology| topology.effective_queue(queue)?.kind);
    let is_stream = match (observed, in_file) {
        (Ok(observed), _) => observed.kind == QueueType::Stream,
        (Err(_), Some(kind)) => kind == QueueType::Stream,
        (Err(_), None) => asks_for_one,
    };
    if !is_stream {
        return if asks_for_one {
            Err(Error::new(
                ErrorKind::Usage,
                format!(
                    "queue '{queue}' is no stream: --from and --offset-file are for streams only"
                ),
            )
            .hint("leave them out: every other queue hands out what nobody has worked yet"))
        } else {
            Ok(None)
        };
    }
    let positions = args
        .offset_file
        .clone()
        .map(|path| Positions::File(OffsetFile::new(path, vhost, queue)));
    Ok(Some(Stream {
        from: args.from,
        rewind: args.rewind,
        positions,
    }))
}

/// Retries are made in place. Dead letters go to the queue that was named, as
/// copies through the default exchange: a stream has no dead-letter exchange.
pub(super) async fn path(
    args: &ConsumeArgs,
    connection: &Connection,
    queue: &QueueName,
    policy: &RetryPolicy,
) -> Result<RetryPath> {
    let refused = |why: String, way_out: &str| {
        Err(Error::new(
            ErrorKind::Blocked,
            format!("refusing to work stream '{queue}': {why}"),
        )
        .hint(way_out))
    };
    if let Some(strategy) = policy.strategy
        && strategy != Strategy::Immediate
    {
        return refused(
            format!("the strategy `{strategy}` is asked for, but a stream takes nothing back"),
            "leave the strategy out: failed messages of a stream are tried again at once",
        );
    }
    if !policy.delays.is_empty() {
        return refused(
            "delays are asked for, but a stream takes nothing back".to_owned(),
            "leave --delays out; a handler may still say how long to wait",
        );
    }
    if args.dead_letter == DeadLetterArg::Nack {
        return refused(
            "a stream has no dead-letter exchange that a nack could lead to".to_owned(),
            "leave --dead-letter nack out",
        );
    }
    let exchange = ExchangeName::new("")?;
    let rest = policy.dead_letter_queue.as_ref();
    if let Some(rest) = rest {
        if rest == queue {
            return refused(
                "its dead letters would come back to it".to_owned(),
                "name another queue with --dead-letter-queue",
            );
        }
        if connection.queue_status(rest).await?.is_none() {
            return refused(
                format!("its dead-letter queue '{rest}' does not exist"),
                "declare it with `mq topology apply FILE`, or check --dead-letter-queue",
            );
        }
    }
    let key = RoutingKey::new(rest.map_or("", |rest| rest.as_str()))?;
    Ok(RetryPath {
        queue: queue.clone(),
        strategy: Strategy::Immediate,
        counts_returns: false,
        single_active_consumer: false,
        exchange: exchange.clone(),
        key: DeadLetterKey::Replaced(key.clone()),
        wait_queues: BTreeSet::new(),
        steps: Vec::new(),
        dead_letter_queues: rest.into_iter().cloned().collect(),
        park: Some(DeadLetterAddress { exchange, key }),
        longest_wait: Duration::ZERO,
        nack_is_confirmed: false,
    })
}

/// Where a reader stood when it stopped.
pub(super) struct End {
    stuck_at: Option<u64>,
    is_kept: bool,
}

impl End {
    pub(super) fn of(reading: &Reading) -> Self {
        Self {
            stuck_at: reading.stuck_at(),
            is_kept: reading.is_kept(),
        }
    }
}

/// A message that cannot be done stops a reader that may not set it aside.
pub(super) fn no_dead_letter_queue(
    queue: &QueueName,
    reason: &BuryReason,
    end: Option<&End>,
) -> Error {
    let offset = end.and_then(|end| end.stuck_at);
    let at = offset.map_or_else(String::new, |offset| format!(" at offset {offset}"));
    let from = offset.map_or_else(
        || "--from".to_owned(),
        |offset| format!("--from {}", offset + 1),
    );
    let rewind = if end.is_some_and(|end| end.is_kept) {
        " --rewind"
    } else {
        ""
    };
    Error::new(
        ErrorKind::Unavailable,
        format!("the message{at} of stream '{queue}' cannot be done ({reason}), and there is no queue to set it aside"),
    )
    .hint(format!(
        "set such messages aside with --dead-letter-queue QUEUE, or pass over this one with {from}{rewind}"
    ))
}
