//! Session after session: a lost connection is opened again, with growing pauses.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where reconnecting meets the clock and chance"
)]

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::session::Session;
use crate::amqp::{Connection, Frames};
use crate::error::{Error, ErrorKind, Result};
use crate::worker::{
    Ending, Event, Handling, Machine, Reading, Session as Work, StopReason, Wanted,
};

/// The connection's name in the management UI.
pub(super) const NAME: &str = "mq consume";

/// The first pause before a reconnect; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How the work ended for good.
pub(super) enum Worked {
    Stopped,
    SecondSignal(u8),
}

/// Session after session until one ends by itself.
#[expect(
    clippy::too_many_arguments,
    reason = "what lives longer than a session is each of its own kind"
)]
pub(super) async fn work(
    wanted: &Wanted,
    session: &Session,
    mut connection: Connection,
    reconnect_for: Duration,
    machine: &mut Machine,
    mut reading: Option<&mut Reading>,
    handling: &mut Handling<'_>,
    signals: &mut mpsc::UnboundedReceiver<u8>,
) -> Result<Worked> {
    let mut subscribed_before = false;
    loop {
        let reading = reading.as_deref_mut();
        let opened = Work::open(wanted, &connection, machine, reading, session.limit).await;
        let ending = match opened {
            Ok(work) => {
                subscribed_before = true;
                work.run(handling, signals).await
            }
            Err(error) if is_passing(&error) => Ending::Lost(error),
            // A queue is still found for a moment after its deletion cancelled us.
            Err(error) if error.kind() == ErrorKind::NotFound && subscribed_before => {
                machine.handle(Event::Stop(StopReason::QueueGone));
                Ending::Done
            }
            Err(error) => {
                connection.close().await;
                return Err(error);
            }
        };
        let error = match ending {
            Ending::Done => {
                // Waits for the broker's answer, so that the last acks have arrived.
                connection.close().await;
                return Ok(Worked::Stopped);
            }
            Ending::SecondSignal(number) => return Ok(Worked::SecondSignal(number)),
            Ending::Lost(error) => error,
        };
        connection.close().await;
        if machine.stop_reason().is_some() {
            // Stopping anyway: what was not settled goes back by itself.
            return Ok(Worked::Stopped);
        }
        if !is_passing(&error) {
            return Err(error);
        }
        tracing::warn!(error = error.message(), "connection lost, reconnecting");
        let Some(back) = reconnect(session, reconnect_for, error, signals).await? else {
            machine.handle(Event::Stop(StopReason::Signal));
            return Ok(Worked::Stopped);
        };
        wanted.board.reconnected();
        connection = back;
    }
}

/// Whether trying again can help. A frame that cannot be read comes back with
/// every new connection: reconnecting would never end.
fn is_passing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::TimedOut)
}

/// Tries again with growing, jittered pauses; `None` when a signal ends it.
async fn reconnect(
    session: &Session,
    limit: Duration,
    lost: Error,
    signals: &mut mpsc::UnboundedReceiver<u8>,
) -> Result<Option<Connection>> {
    let deadline = Instant::now() + limit;
    let mut pause = FIRST_PAUSE;
    let mut last = lost;
    while Instant::now() + pause < deadline {
        let jittered = pause.mul_f64(0.5 + fastrand::f64());
        tokio::select! {
            () = sleep(jittered) => {}
            _ = signals.recv() => return Ok(None),
        }
        let connected = tokio::select! {
            connected = session.connect(NAME, Frames::Large) => connected,
            _ = signals.recv() => return Ok(None),
        };
        match connected {
            Ok(connection) => {
                tracing::warn!("reconnected");
                return Ok(Some(connection));
            }
            Err(error) if is_passing(&error) => last = error,
            Err(error) => return Err(error),
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Err(Error::new(
        ErrorKind::Unavailable,
        format!(
            "the connection was lost and did not come back within {}: {}",
            humantime::format_duration(limit),
            last.message()
        ),
    )
    .hint("unsettled messages are back in their queue; start the worker again when the broker runs, or give it longer with --reconnect-for"))
}
