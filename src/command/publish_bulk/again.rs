//! What the broker refused is sent again, with growing pauses, one message at a time.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where pauses meet the clock and chance"
)]

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::sending::{Ended, Sending};
use crate::amqp::{Receipt, max_message_size};
use crate::error::{Error, Result};

type Signals = mpsc::UnboundedReceiver<u8>;

impl Sending<'_, '_> {
    /// Sends those again that were refused, until none is left or it is to end.
    pub(super) async fn send_again(&mut self, signals: &mut Signals) -> Result<Option<Ended>> {
        loop {
            let published = &self.books.published;
            let stops = self.rules.stops_at_unroutable && published.unroutable.count > 0;
            if stops || self.books.unwritten.is_some() {
                return Ok(None);
            }
            // All are told before the first is sent again: none overtakes it.
            if let Some(signal) = self.until_none_is_open(signals).await? {
                return Ok(Some(Ended::Signal(signal)));
            }
            let Some(number) = self.refused.first() else {
                return Ok(None);
            };
            let now = Instant::now();
            let Some(pause) = self.refused.pause(now, fastrand::f64()) else {
                return Ok(Some(Ended::StillRefused));
            };
            self.tell_refused(number);
            tokio::select! {
                biased;
                signal = signals.recv() => return Ok(Some(Ended::Signal(signal.unwrap_or(0)))),
                () = sleep_until(self.due.max(now + pause)) => {}
            }
            self.send_first_again(number)?;
        }
    }

    /// Waits for what becomes of all that is under way, or for a signal.
    pub(super) async fn until_none_is_open(&mut self, signals: &mut Signals) -> Result<Option<u8>> {
        while !self.open.is_empty() {
            tokio::select! {
                biased;
                signal = signals.recv() => return Ok(Some(signal.unwrap_or(0))),
                told = self.outcome() => {
                    let told = told?;
                    self.settled(told);
                }
            }
        }
        Ok(None)
    }

    fn send_first_again(&mut self, number: u64) -> Result<()> {
        let Some((open, message)) = self.refused.take_first() else {
            return Ok(());
        };
        if let Err(error) = self.pipeline.send(message) {
            self.refused.put_back(open);
            return Err(error.during(&self.rules.source.place(number)));
        }
        self.is_under_way(open);
        Ok(())
    }

    fn tell_refused(&mut self, number: u64) {
        if !std::mem::replace(&mut self.told_refused, true) {
            let place = self.rules.source.place(number);
            let limit = humantime::format_duration(self.refused.limit());
            self.rules.session.warn(|| format!(
                "mq: {place}: refused (nack), it is sent again; what follows waits until it is taken, for at most {limit}"
            ));
        }
    }

    /// The number of the message that the broker found too large: it reads them in
    /// order, so it is the first that is.
    pub(super) fn too_large(&self, error: &Error) -> Option<u64> {
        let most = max_message_size(error)?;
        let found = self.open.iter().find(|open| open.bytes > most);
        found.map(|open| open.number)
    }

    /// What is not told yet: those that wait, and those under way as `unknown` says.
    pub(super) fn count_rest(&mut self, unknown: Option<&Receipt>) {
        let mut rest = self.refused.end();
        if let Some(unknown) = unknown {
            let too_large = match unknown {
                Receipt::Unknown(error) => self.too_large(error),
                _ => None,
            };
            let open = std::mem::take(&mut self.open).into_iter();
            rest.extend(open.map(|open| {
                let is_it = too_large == Some(open.number);
                let receipt = if is_it { &Receipt::Refused } else { unknown };
                (open, receipt.clone())
            }));
        }
        rest.sort_by_key(|(open, _)| open.number);
        for (open, receipt) in rest {
            self.count(open, &receipt);
        }
    }
}
