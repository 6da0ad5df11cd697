//! Messages that were refused wait to be sent again, and what is told of those
//! behind them waits with them: outcomes count in the order of the messages.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::books::Open;
use crate::amqp::Receipt;
use crate::message::Publication;
use crate::retry::refused_pause;

/// A message and what became of it.
pub(super) type Outcome = (Open, Receipt);

/// Those that wait. One at a time is sent again, so that none overtakes another.
pub(super) struct Refused {
    /// How long the broker may refuse without taking any; none: nothing is sent again.
    limit: Option<Duration>,
    /// The first was refused, those behind it were under way with it.
    held: VecDeque<Outcome>,
    /// In a row, of the first.
    refusals: u32,
    /// When the first of them was.
    since: Option<Instant>,
    /// Whether the first is out of `held` because it is under way once more.
    is_under_way: bool,
}

impl Refused {
    pub(super) const fn new(limit: Option<Duration>) -> Self {
        Self {
            limit,
            held: VecDeque::new(),
            refusals: 0,
            since: None,
            is_under_way: false,
        }
    }

    /// Whether refused messages are sent again at all.
    pub(super) const fn are_sent_again(&self) -> bool {
        self.limit.is_some()
    }

    /// How long they are.
    pub(super) fn limit(&self) -> Duration {
        self.limit.unwrap_or_default()
    }

    /// Whether one waits, or is under way once more.
    pub(super) fn are_waiting(&self) -> bool {
        self.is_under_way || !self.held.is_empty()
    }

    /// Takes an outcome, and gives those that count now.
    pub(super) fn take(&mut self, open: Open, receipt: Receipt, now: Instant) -> Vec<Outcome> {
        let is_first = (self.held.front()).is_none_or(|(held, _)| open.number < held.number);
        if !is_first {
            self.held.push_back((open, receipt));
            return Vec::new();
        }
        self.is_under_way = false;
        if receipt == Receipt::Refused && self.are_sent_again() {
            self.refusals = self.refusals.saturating_add(1);
            self.since.get_or_insert(now);
            self.held.push_front((open, receipt));
            return Vec::new();
        }
        self.refusals = 0;
        self.since = None;
        let mut count = vec![(open, receipt)];
        while let Some(told) = self
            .held
            .pop_front_if(|(_, receipt)| *receipt != Receipt::Refused)
        {
            count.push(told);
        }
        if self.are_waiting() {
            self.since = Some(now);
        }
        count
    }

    /// How long to wait before the first is sent again; none: no more.
    pub(super) fn pause(&self, now: Instant, chance: f64) -> Option<Duration> {
        let waited = self.since.map_or(Duration::ZERO, |since| now - since);
        refused_pause(self.refusals, waited, self.limit?, chance)
    }

    /// The number of the first.
    pub(super) fn first(&self) -> Option<u64> {
        self.held.front().map(|(open, _)| open.number)
    }

    /// The first, to be sent again.
    pub(super) fn take_first(&mut self) -> Option<(Open, Arc<Publication>)> {
        let (open, _) = self.held.pop_front()?;
        let message = open.again.clone()?;
        self.is_under_way = true;
        Some((open, message))
    }

    /// It could not be sent: it is still the first of those that were refused.
    pub(super) fn put_back(&mut self, first: Open) {
        self.is_under_way = false;
        self.held.push_front((first, Receipt::Refused));
    }

    /// All that wait, which are not sent again any more.
    pub(super) fn end(&mut self) -> Vec<Outcome> {
        self.refusals = 0;
        self.since = None;
        self.is_under_way = false;
        std::mem::take(&mut self.held).into()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "a point in time to count from")]

    use super::*;
    use crate::message::Properties;
    use crate::topology::{ExchangeName, RoutingKey};

    const LIMIT: Duration = Duration::from_secs(10);

    fn open(number: u64) -> Open {
        Open {
            number,
            bytes: 0,
            told: None,
            mark: None,
            again: Some(Arc::new(Publication {
                exchange: ExchangeName::default_exchange(),
                routing_key: RoutingKey::new(String::new()).expect("a key"),
                properties: Properties::default(),
                body: Vec::new(),
            })),
        }
    }

    fn numbers(outcomes: &[Outcome]) -> Vec<u64> {
        outcomes.iter().map(|(open, _)| open.number).collect()
    }

    #[test]
    fn outcomes_count_in_the_order_of_the_messages() {
        let now = Instant::now();
        let mut refused = Refused::new(Some(LIMIT));
        let take = |refused: &mut Refused, number, receipt| {
            numbers(&refused.take(open(number), receipt, now))
        };
        assert_eq!(take(&mut refused, 1, Receipt::Routed), [1]);
        assert_eq!(take(&mut refused, 2, Receipt::Refused), [0; 0]);
        assert_eq!(take(&mut refused, 3, Receipt::Routed), [0; 0]);
        assert_eq!(take(&mut refused, 4, Receipt::Refused), [0; 0]);
        assert_eq!(take(&mut refused, 5, Receipt::Routed), [0; 0]);
        assert_eq!(refused.first(), Some(2));
        // Refused once more, it is the first again.
        assert_eq!(refused.take_first().map(|(open, _)| open.number), Some(2));
        assert_eq!(take(&mut refused, 2, Receipt::Refused), [0; 0]);
        assert_eq!(refused.take_first().map(|(open, _)| open.number), Some(2));
        assert_eq!(take(&mut refused, 2, Receipt::Routed), [2, 3]);
        assert_eq!(refused.first(), Some(4));
        assert!(refused.take_first().is_some());
        let said = Receipt::Unroutable("NO_ROUTE".to_owned());
        assert_eq!(take(&mut refused, 4, said), [4, 5]);
        assert!(!refused.are_waiting());
        assert_eq!(take(&mut refused, 6, Receipt::Routed), [6]);
    }

    #[test]
    fn time_is_counted_from_the_last_that_was_taken() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut refused = Refused::new(Some(LIMIT));
        refused.take(open(1), Receipt::Refused, start);
        refused.take(open(2), Receipt::Refused, after(1));
        assert!(refused.pause(after(9), 0.5).is_some());
        assert!(refused.pause(after(10), 0.5).is_none());
        assert!(refused.take_first().is_some());
        refused.take(open(1), Receipt::Routed, after(9));
        assert_eq!(refused.pause(after(9), 0.5), Some(Duration::ZERO));
        assert!(refused.take_first().is_some());
        assert!(refused.are_waiting());
        refused.take(open(2), Receipt::Refused, after(9));
        assert!(refused.pause(after(18), 0.5).is_some());
        assert!(refused.pause(after(19), 0.5).is_none());
        assert_eq!(numbers(&refused.end()), [2]);
        assert!(!refused.are_waiting());
    }

    #[test]
    fn where_nobody_asked_a_refusal_counts_at_once() {
        let mut refused = Refused::new(None);
        let told = refused.take(open(1), Receipt::Refused, Instant::now());
        assert_eq!(numbers(&told), [1]);
        assert!(!refused.are_waiting());
    }
}
