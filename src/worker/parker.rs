//! Publishes copies on a connection of its own: a publishing connection that
//! the broker blocks (alarm) must not hold up settling.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;

use crate::amqp::{Connection, Frames, Publisher, Receipt};
use crate::endpoint::Endpoint;
use crate::error::{Error, ErrorKind, Result};
use crate::message::Publication;
use crate::tls::Tls;

/// How long one copy may wait for its confirm.
const CONFIRM_LIMIT: Duration = Duration::from_secs(30);

/// What a copy is published for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// To rest in the dead-letter queue.
    DeadLetter,
    /// To wait for its next attempt.
    Retry,
    /// What the handler gave back.
    Result,
}

impl Purpose {
    const fn word(self) -> &'static str {
        match self {
            Self::DeadLetter => "a dead letter",
            Self::Retry => "a retry",
            Self::Result => "a result",
        }
    }
}

/// Most copies on their way at once, each on a channel of its own, so that a
/// return and a confirm cannot be taken for those of another copy.
const CHANNELS: usize = 16;

/// The hand-over to the publishing task.
pub(super) struct Parker {
    requests: mpsc::UnboundedSender<(u64, Purpose, Publication)>,
    results: mpsc::UnboundedReceiver<(u64, Result<()>)>,
}

impl Parker {
    /// Starts the task; it connects when the first copy is to be published.
    /// Outstanding copies are bounded by the worker's prefetch.
    pub(super) fn start(endpoint: Endpoint, tls: Tls, limit: Duration) -> Self {
        let (requests, mut incoming) = mpsc::unbounded_channel::<(u64, Purpose, Publication)>();
        let (outgoing, results) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let Some(first) = incoming.recv().await else {
                return;
            };
            let connection = match Connection::open(
                &[endpoint],
                &tls,
                "mq consume (publishes)",
                limit,
                Frames::Large,
            )
            .await
            {
                Ok(connection) => connection,
                Err(error) => {
                    let _ = outgoing.send((first.0, Err(error.clone())));
                    while let Some((tag, _, _)) = incoming.recv().await {
                        let _ = outgoing.send((tag, Err(error.clone())));
                    }
                    return;
                }
            };
            let mut first = Some(first);
            let mut idle = Vec::new();
            let mut busy = FuturesUnordered::new();
            loop {
                let request = match first.take() {
                    Some(request) => Some(request),
                    None => tokio::select! {
                        request = incoming.recv(), if busy.len() < CHANNELS => request,
                        Some((tag, publisher, result)) = busy.next() => {
                            idle.extend(publisher);
                            let _ = outgoing.send((tag, result));
                            continue;
                        }
                    },
                };
                let Some((tag, purpose, publication)) = request else {
                    break;
                };
                let publisher = idle.pop();
                let connection = &connection;
                busy.push(async move {
                    let mut publisher = publisher;
                    let result = publish(connection, &mut publisher, purpose, &publication).await;
                    (tag, publisher, result)
                });
            }
            while let Some((tag, publisher, result)) = busy.next().await {
                idle.extend(publisher);
                let _ = outgoing.send((tag, result));
            }
            drop((busy, idle));
            connection.close().await;
        });
        Self { requests, results }
    }

    pub(super) fn publish(&self, tag: u64, purpose: Purpose, publication: Publication) {
        // The task ends only when this sender is dropped.
        let _ = self.requests.send((tag, purpose, publication));
    }

    /// The next outcome. Safe to drop while waiting.
    pub(super) async fn next(&mut self) -> (u64, Result<()>) {
        match self.results.recv().await {
            Some(result) => result,
            None => std::future::pending().await,
        }
    }
}

/// Publishes one copy. A channel that was refused something is not used again:
/// a refusal of one copy must not take the next along.
async fn publish<'c>(
    connection: &'c Connection,
    kept: &mut Option<Publisher<'c>>,
    purpose: Purpose,
    publication: &Publication,
) -> Result<()> {
    let mut publisher = match kept.take() {
        Some(publisher) => publisher,
        None => Publisher::open(connection, CONFIRM_LIMIT).await?,
    };
    let receipt = publisher.publish(publication).await?;
    if !matches!(receipt, Receipt::Unknown(_)) {
        *kept = Some(publisher);
    }
    let place = format!(
        "exchange '{}' with key '{}'",
        publication.exchange, publication.routing_key
    );
    match receipt {
        Receipt::Routed => Ok(()),
        Receipt::Unroutable(said) => Err(Error::new(
            ErrorKind::Unroutable,
            match purpose {
                Purpose::DeadLetter => {
                    format!("no queue takes dead letters of {place} any more ({said})")
                }
                Purpose::Retry => format!("no queue takes retries at {place} any more ({said})"),
                Purpose::Result => format!("no queue takes results of {place} ({said})"),
            },
        )
        .hint(match purpose {
            Purpose::Retry => {
                "declare and bind the wait queue again (`mq topology apply FILE`), then start the worker again"
            }
            Purpose::DeadLetter => {
                "bind the dead-letter queue again (`mq topology apply FILE`), then start the worker again"
            }
            Purpose::Result => {
                "bind a queue for results there (`mq topology apply FILE`), then start the worker again"
            }
        })),
        Receipt::Refused => Err(Error::new(
            ErrorKind::Refused,
            format!("the broker refused (nack) {} for {place}", purpose.word()),
        )
        .hint("its queue may be full (x-max-length with reject-publish); make room, then start the worker again")),
        Receipt::Unknown(error) => Err(match error.way_out() {
            Some(_) => error,
            None => error.hint("the message is still in its queue: start the worker again"),
        }),
    }
}
