//! Publishes copies on a connection of its own: a publishing connection that
//! the broker blocks (alarm) must not hold up settling.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::amqp::{Connection, Frames, Publisher, Receipt};
use crate::endpoint::Endpoint;
use crate::error::{Error, ErrorKind, Result};
use crate::message::Publication;

/// How long one copy may wait for its confirm.
const CONFIRM_LIMIT: Duration = Duration::from_secs(30);

/// The hand-over to the publishing task.
pub(super) struct Parker {
    requests: mpsc::UnboundedSender<(u64, Publication)>,
    results: mpsc::UnboundedReceiver<(u64, Result<()>)>,
}

impl Parker {
    /// Starts the task; it connects when the first copy is to be published.
    /// Outstanding copies are bounded by the worker's prefetch.
    pub(super) fn start(endpoint: Endpoint, limit: Duration) -> Self {
        let (requests, mut incoming) = mpsc::unbounded_channel::<(u64, Publication)>();
        let (outgoing, results) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let Some(first) = incoming.recv().await else {
                return;
            };
            let connection = match Connection::open(
                &[endpoint],
                "mq consume (dead letters)",
                limit,
                Frames::Large,
            )
            .await
            {
                Ok(connection) => connection,
                Err(error) => {
                    let _ = outgoing.send((first.0, Err(error.clone())));
                    while let Some((tag, _)) = incoming.recv().await {
                        let _ = outgoing.send((tag, Err(error.clone())));
                    }
                    return;
                }
            };
            let mut next = Some(first);
            let mut publisher = None;
            while let Some((tag, publication)) = next {
                let result = publish(&connection, &mut publisher, &publication).await;
                let _ = outgoing.send((tag, result));
                next = incoming.recv().await;
            }
            drop(publisher);
            connection.close().await;
        });
        Self { requests, results }
    }

    pub(super) fn publish(&self, tag: u64, publication: Publication) {
        // The task ends only when this sender is dropped.
        let _ = self.requests.send((tag, publication));
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
            format!("no queue takes dead letters of {place} any more ({said})"),
        )
        .hint("bind the dead-letter queue again (`mq topology apply FILE`), then start the worker again")),
        Receipt::Refused => Err(Error::new(
            ErrorKind::Refused,
            format!("the broker refused (nack) a dead letter for {place}"),
        )
        .hint("the dead-letter queue may be full (x-max-length with reject-publish); make room, then start the worker again")),
        Receipt::Unknown(error) => Err(match error.way_out() {
            Some(_) => error,
            None => error.hint("the message is still in its queue: start the worker again"),
        }),
    }
}
