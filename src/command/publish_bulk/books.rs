//! What became of each message is counted, told and kept.

use std::sync::Arc;

use super::results::{Results, Told};
use super::settled::Settled;
use crate::amqp::Receipt;
use crate::error::{Error, Result};
use crate::message::Publication;
use crate::output::Published;

/// Where it is written down what became of messages.
pub(super) struct Books<'s> {
    pub(super) published: &'s mut Published,
    pub(super) results: &'s mut Results,
    pub(super) settled: &'s mut Option<Settled>,
    /// Why they cannot be written any more.
    pub(super) unwritten: Option<Error>,
}

/// A message whose outcome is open.
pub(super) struct Open {
    pub(super) number: u64,
    pub(super) bytes: usize,
    pub(super) told: Option<Told>,
    pub(super) mark: Option<String>,
    /// The message, if it is to be sent again should it be refused.
    pub(super) again: Option<Arc<Publication>>,
}

impl<'s> Books<'s> {
    pub(super) const fn new(
        published: &'s mut Published,
        results: &'s mut Results,
        settled: &'s mut Option<Settled>,
    ) -> Self {
        Self {
            published,
            results,
            settled,
            unwritten: None,
        }
    }

    /// Where nothing more is sent after the first that reached no queue
    /// (`stops_at_unroutable`), that one is sent again by the next run.
    pub(super) fn count(&mut self, open: Open, receipt: &Receipt, stops_at_unroutable: bool) {
        match receipt {
            Receipt::Routed => self.published.routed += 1,
            Receipt::Unroutable(_) => self.published.unroutable.add(open.number),
            Receipt::Refused => self.published.refused.add(open.number),
            Receipt::Unknown(_) => self.published.unknown.add(open.number),
        }
        let told = match &open.told {
            Some(told) => self.results.add(open.number, told, receipt),
            None => Ok(()),
        };
        let is_done = match receipt {
            Receipt::Routed => true,
            Receipt::Unroutable(_) => !stops_at_unroutable,
            Receipt::Refused | Receipt::Unknown(_) => false,
        };
        let written = told.and_then(|()| self.keep(open, receipt, is_done));
        if let Err(error) = self.noticed(written) {
            self.unwritten.get_or_insert(error);
        }
    }

    /// Writes the receipts that wait.
    ///
    /// # Errors
    /// When that fails; nothing more counts as settled then.
    pub(super) fn write(&mut self) -> Result<()> {
        let written = self.results.flush();
        self.noticed(written)
    }

    /// Writes everything there is to write.
    ///
    /// # Errors
    /// When that fails.
    pub(super) fn close(mut self) -> Result<()> {
        let written = self.results.close();
        self.noticed(written)?;
        self.settled.as_mut().map_or(Ok(()), Settled::keep)
    }

    /// What is settled is not sent again, and so its receipt comes first: without it
    /// nothing more is settled.
    fn noticed(&mut self, written: Result<()>) -> Result<()> {
        if written.is_err()
            && let Some(settled) = self.settled.as_mut()
        {
            settled.give_up();
        }
        written
    }

    fn keep(&mut self, open: Open, receipt: &Receipt, is_done: bool) -> Result<()> {
        let Some(settled) = self.settled.as_mut() else {
            return Ok(());
        };
        if !is_done {
            settled.not_done();
            return Ok(());
        }
        let reached_no_queue = matches!(receipt, Receipt::Unroutable(_));
        settled.done(open.number, open.mark, reached_no_queue);
        if !settled.is_due() {
            return Ok(());
        }
        self.results.flush()?;
        settled.keep()
    }
}
