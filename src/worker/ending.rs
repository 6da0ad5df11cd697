//! The end of a session that is not its own wish: the grace period is over, the
//! connection broke, a second signal came.

use tokio::sync::mpsc;

use crate::error::{Error, ErrorKind, Result};
use crate::retry::{Attempt, Outcome};
use crate::worker::drive::{Session, at, later};
use crate::worker::event::{Event, StopReason};
use crate::worker::status::Link;
use crate::worker::wanted::{Ending, Handling};

impl Session<'_> {
    /// Ends what still runs. Copies that were not confirmed in time may arrive
    /// all the same: their messages go back, so there may be duplicates, no loss.
    pub(super) async fn grace_is_over(&mut self, handling: &mut Handling<'_>) -> Result<()> {
        tracing::warn!("the grace period is over: ending the handlers that still run");
        self.kill.send_replace(true);
        for tag in self.machine.being_published() {
            let error = Error::new(
                ErrorKind::TimedOut,
                "a copy was not confirmed before the grace period was over",
            )
            .hint("it may be there twice; give it longer with --drain-timeout");
            let result = Err(error);
            self.apply(Event::Published { tag, result }, handling)
                .await?;
        }
        for tag in self.machine.being_recorded() {
            let error = Error::new(
                ErrorKind::TimedOut,
                "the dedupe store did not answer before the grace period was over",
            )
            .hint("give it longer with --drain-timeout");
            let result = Err(error);
            self.apply(Event::Recorded { tag, result }, handling)
                .await?;
        }
        Ok(())
    }

    /// The broker ended the subscription: because the queue is gone, or for a
    /// reason that passes.
    pub(super) async fn cancelled(&mut self, handling: &mut Handling<'_>) -> Result<()> {
        self.subscribed = false;
        match self.connection.queue_status(&self.wanted.queue).await? {
            None => {
                self.apply(Event::Stop(StopReason::QueueGone), handling)
                    .await
            }
            Some(_) => Err(Error::new(
                ErrorKind::Unavailable,
                format!(
                    "the broker ended the subscription to queue '{}'",
                    self.wanted.queue
                ),
            )
            .hint("a message held longer than the broker's consumer_timeout does this on 4.3")),
        }
    }

    /// After the connection broke: let handlers end, for their work is real even
    /// though it cannot be settled any more.
    pub(super) async fn lost(
        mut self,
        error: Error,
        signals: &mut mpsc::UnboundedReceiver<u8>,
    ) -> Ending {
        self.machine.handle(Event::ConnectionLost);
        self.wanted.board.post(self.machine, Link::Lost);
        let mut deadline = self.deadline;
        loop {
            tokio::select! {
                ended = self.running.join_next() => match ended {
                    None => {
                        self.close_desk().await;
                        return Ending::Lost(error);
                    }
                    Some(Ok((tag, Attempt { outcome, .. }, took))) => {
                        self.wanted.board.attempt_ended(&outcome, took);
                        if outcome == Outcome::Done {
                            self.done_unacked(tag);
                        }
                    }
                    Some(Err(_)) => {}
                },
                Some(signal) = signals.recv() => {
                    if matches!(self.machine.stop_reason(), Some(StopReason::Signal)) {
                        self.kill_handlers().await;
                        return Ending::SecondSignal(signal);
                    }
                    self.machine.handle(Event::Stop(StopReason::Signal));
                    self.wanted.board.post(self.machine, Link::Lost);
                    deadline = later(self.wanted.grace);
                }
                () = at(deadline) => {
                    deadline = None;
                    self.kill.send_replace(true);
                }
            }
        }
    }

    pub(super) async fn kill_handlers(&mut self) {
        self.kill.send_replace(true);
        while self.running.join_next().await.is_some() {}
    }
}
