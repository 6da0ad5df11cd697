//! Several events at once: what has happened meanwhile is taken along, so that
//! pages are written and acks are sent for many messages together.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the worker lets some more messages come"
)]

use std::io;
use std::time::Duration;

use crate::amqp::Incoming;
use crate::dedupe::Desk;
use crate::error::Result;
use crate::retry::Outcome;
use crate::worker::drive::Session;
use crate::worker::event::{Event, StopReason};
use crate::worker::wanted::Handling;

/// Most events that are taken along before acks are sent.
const MOST_AT_ONCE: usize = 256;

/// So many messages that came together are not the last.
const A_CROWD: usize = 16;

/// In which some more come.
const SHORT_PAUSE: Duration = Duration::from_millis(1);

/// A page that is written before more is added to it, in bytes.
const FULL_PAGE: usize = 1024 * 1024;

impl Session<'_> {
    /// Takes along what has happened meanwhile: acks and writes are cheaper together.
    pub(super) async fn take_what_is_ready(&mut self, handling: &mut Handling<'_>) -> Result<()> {
        for taken in 0..MOST_AT_ONCE {
            if self.page.len() > FULL_PAGE {
                break;
            }
            if let Some(ended) = self.running.try_join_next() {
                self.ended(ended, handling).await?;
            } else if let Some(answer) = self.desk.as_mut().and_then(Desk::next_now) {
                self.answered(answer, handling).await?;
            } else if let Some(incoming) = self.incoming_now() {
                self.incoming(incoming, handling).await?;
            } else {
                // They come so fast that waking up for each costs more than
                // handling it; while few of all that may be out are taken, the
                // broker need not wait for us.
                let few_of_many =
                    taken >= A_CROWD && taken * 8 <= usize::from(self.wanted.prefetch);
                if few_of_many && !self.page.is_empty() {
                    tokio::time::sleep(SHORT_PAUSE).await;
                }
                break;
            }
        }
        Ok(())
    }

    fn incoming_now(&mut self) -> Option<Incoming> {
        if self.subscribed {
            self.subscription.next_now()
        } else {
            None
        }
    }

    /// Writes what is to be printed, and then acks what is done.
    pub(super) async fn say_what_is_done(&mut self, handling: &mut Handling<'_>) -> Result<()> {
        if let (Handling::Print(printer), false) = (&*handling, self.page.is_empty()) {
            let written = (printer.write)(&self.page);
            self.page.clear();
            for tag in std::mem::take(&mut self.printed) {
                let event = match &written {
                    Ok(()) => Event::Finished {
                        tag,
                        outcome: Outcome::Done,
                        result: false,
                    },
                    Err(error) => Event::Unprinted {
                        tag,
                        reason: match error.kind() {
                            io::ErrorKind::BrokenPipe => StopReason::ReaderGone,
                            _ => StopReason::Output(error.to_string()),
                        },
                    },
                };
                self.apply(event, handling).await?;
            }
        }
        if let Some(reading) = &self.reading {
            reading.keep();
        }
        self.subscription.send_acks().await
    }
}
