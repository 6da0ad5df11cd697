//! One message, sent again with growing pauses while the broker refuses it.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where pauses meet the clock and chance"
)]

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::session::Session;
use super::signals;
use crate::amqp::{Publisher, Receipt};
use crate::error::{Error, ErrorKind, Result};
use crate::message::Publication;
use crate::retry::refused_pause;

/// Publishes a message, and for as long as `limit` again if it is refused. A signal
/// ends it with what is known by then.
pub(super) async fn publish(
    publisher: &mut Publisher<'_>,
    message: &Publication,
    limit: Option<Duration>,
    session: &Session,
) -> Result<Receipt> {
    let mut signals = signals::listen().map_err(|error| {
        Error::new(
            ErrorKind::Internal,
            format!("cannot listen to signals: {error}"),
        )
    })?;
    let mut refusals = 0;
    let mut since = None;
    loop {
        let receipt = tokio::select! {
            biased;
            _ = signals.recv() => return Ok(Receipt::Unknown(stopped())),
            receipt = publisher.publish(message) => receipt?,
        };
        if receipt != Receipt::Refused {
            return Ok(receipt);
        }
        let Some(limit) = limit else {
            return Ok(receipt);
        };
        let now = Instant::now();
        let first = *since.get_or_insert(now);
        refusals += 1;
        let Some(pause) = refused_pause(refusals, now - first, limit, fastrand::f64()) else {
            return Ok(receipt);
        };
        if refusals == 1 {
            session.warn(|| {
                format!(
                    "mq: refused (nack): the message is sent again, for at most {}",
                    humantime::format_duration(limit)
                )
            });
        }
        tokio::select! {
            biased;
            _ = signals.recv() => return Ok(receipt),
            () = sleep(pause) => {}
        }
    }
}

fn stopped() -> Error {
    Error::new(
        ErrorKind::TimedOut,
        "a signal came before the answer; the broker may or may not have the message",
    )
}
