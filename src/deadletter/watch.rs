//! Dead-letter queues over time: samples become rows.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// A vhost and a queue in it.
pub type Place = (String, String);

/// What the broker counted of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Messages ready for delivery.
    pub ready: Option<u64>,
    /// Messages out for delivery.
    pub unacknowledged: Option<u64>,
    /// Messages taken for good in all, since the node was started.
    pub taken: Option<u64>,
}

impl Seen {
    fn messages(self) -> Option<u64> {
        self.ready?.checked_add(self.unacknowledged?)
    }
}

/// One queue as it is now and as it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchRow {
    /// Its vhost.
    pub vhost: String,
    /// Its name.
    pub queue: String,
    /// What was counted last; of a queue that is gone, nothing.
    pub seen: Seen,
    /// Messages that come in, a second.
    pub in_per_second: Option<f64>,
    /// Messages that go out, a second.
    pub out_per_second: Option<f64>,
    /// How many more messages there are than when it was seen first.
    pub change: Option<i64>,
    /// Messages at the last looks, oldest first.
    pub trend: Vec<u64>,
    /// Whether it was deleted.
    pub is_gone: bool,
}

/// All queues that were ever seen.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    tracks: BTreeMap<Place, Track>,
}

#[derive(Clone, Debug, Default)]
struct Track {
    /// The first count.
    first: Option<u64>,
    last: Seen,
    /// When, messages, taken: as far back as a rate needs.
    counts: VecDeque<(Duration, u64, u64)>,
    trend: VecDeque<u64>,
    is_gone: bool,
}

/// A rate is over this long at least: statistics are renewed every five seconds, so
/// that over less it would jump between nothing and twice as much.
const WINDOW: Duration = Duration::from_secs(10);

/// Looks that a trend shows.
const TREND: usize = 30;

impl Watch {
    /// Takes in what was seen at a moment, told as the time since the start. A queue
    /// that was there and is not among `seen` is gone.
    pub fn sample(&mut self, at: Duration, seen: BTreeMap<Place, Seen>) {
        for (place, track) in &mut self.tracks {
            if !seen.contains_key(place) {
                *track = Track {
                    is_gone: true,
                    ..Track::default()
                };
            }
        }
        for (place, seen) in seen {
            self.tracks.entry(place).or_default().add(at, seen);
        }
    }

    /// The queues that are not gone, as far as is known.
    pub fn present(&self) -> impl Iterator<Item = &Place> {
        let present = self.tracks.iter().filter(|(_, track)| !track.is_gone);
        present.map(|(place, _)| place)
    }

    /// A row for each queue, by vhost and name.
    #[must_use]
    pub fn rows(&self) -> Vec<WatchRow> {
        let rows = self.tracks.iter();
        rows.map(|(place, track)| track.row(place)).collect()
    }
}

impl Track {
    fn add(&mut self, at: Duration, seen: Seen) {
        self.is_gone = false;
        self.last = seen;
        let (Some(messages), Some(taken)) = (seen.messages(), seen.taken) else {
            return;
        };
        self.first.get_or_insert(messages);
        self.trend.push_back(messages);
        if self.trend.len() > TREND {
            self.trend.pop_front();
        }
        // The node was started anew, and counts from 0.
        if self
            .counts
            .back()
            .is_some_and(|(_, _, before)| taken < *before)
        {
            self.counts.clear();
        }
        self.counts.push_back((at, messages, taken));
        while let Some((second, _, _)) = self.counts.get(1)
            && at.saturating_sub(*second) >= WINDOW
        {
            self.counts.pop_front();
        }
    }

    /// What comes in and goes out, a second.
    fn rates(&self) -> Option<(f64, f64)> {
        let (from, before, taken_before) = self.counts.front()?;
        let (to, messages, taken) = self.counts.back()?;
        let seconds = to.checked_sub(*from)?.as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        let taken = taken - taken_before;
        let came = (messages + taken).saturating_sub(*before);
        // What left otherwise than by being taken: purged, expired, dropped.
        let left = (before + came).saturating_sub(*messages);
        Some((to_float(came) / seconds, to_float(left) / seconds))
    }

    fn row(&self, (vhost, queue): &Place) -> WatchRow {
        let rates = self.last.messages().and_then(|_| self.rates());
        let change = self.first.zip(self.last.messages());
        WatchRow {
            vhost: vhost.clone(),
            queue: queue.clone(),
            seen: self.last,
            in_per_second: rates.map(|(comes, _)| comes),
            out_per_second: rates.map(|(_, goes)| goes),
            change: change.and_then(|(first, now)| now.checked_signed_diff(first)),
            trend: self.trend.iter().copied().collect(),
            is_gone: self.is_gone,
        }
    }
}

/// Precise to 2^32, which is enough for a rate.
fn to_float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ready: u64, unacknowledged: u64, taken: u64) -> Seen {
        Seen {
            ready: Some(ready),
            unacknowledged: Some(unacknowledged),
            taken: Some(taken),
        }
    }

    fn after(samples: &[(u64, Option<Seen>)]) -> WatchRow {
        let mut watch = Watch::default();
        for (at, seen) in samples {
            let place = ("/".to_owned(), "dlq".to_owned());
            let seen = seen.map(|seen| (place, seen)).into_iter().collect();
            watch.sample(Duration::from_secs(*at), seen);
        }
        watch.rows().remove(0)
    }

    #[test]
    fn what_comes_and_goes_is_told_apart() {
        for (samples, comes, goes, change) in [
            (vec![(0, Some(seen(5, 0, 0)))], None, None, Some(0)),
            (
                vec![(0, Some(seen(0, 0, 0))), (5, Some(seen(25, 0, 0)))],
                Some(5.0),
                Some(0.0),
                Some(25),
            ),
            // As much is acked as comes.
            (
                vec![(0, Some(seen(50, 0, 10))), (10, Some(seen(45, 5, 60)))],
                Some(5.0),
                Some(5.0),
                Some(0),
            ),
            // Purged.
            (
                vec![(0, Some(seen(50, 0, 0))), (5, Some(seen(0, 0, 0)))],
                Some(0.0),
                Some(10.0),
                Some(-50),
            ),
            // Over the last ten seconds.
            (
                vec![
                    (0, Some(seen(0, 0, 0))),
                    (5, Some(seen(100, 0, 0))),
                    (10, Some(seen(100, 0, 0))),
                    (15, Some(seen(100, 0, 0))),
                ],
                Some(0.0),
                Some(0.0),
                Some(100),
            ),
            // The node was started anew.
            (
                vec![(0, Some(seen(50, 0, 90))), (5, Some(seen(50, 0, 0)))],
                None,
                None,
                Some(0),
            ),
        ] {
            let row = after(&samples);
            let found = (row.in_per_second, row.out_per_second, row.change);
            assert_eq!(found, (comes, goes, change), "{samples:?}");
        }
    }

    #[test]
    fn what_is_not_counted_is_not_zero() {
        let row = after(&[(0, Some(Seen::default())), (5, Some(seen(3, 0, 0)))]);
        assert_eq!((row.change, row.in_per_second), (Some(0), None));
        let row = after(&[(0, Some(seen(3, 0, 0))), (5, Some(Seen::default()))]);
        assert_eq!((row.seen.ready, row.change), (None, None));
    }

    #[test]
    fn queues_go_and_come() {
        let here = Some(seen(3, 0, 0));
        let row = after(&[(0, here), (5, None)]);
        assert!(row.is_gone);
        assert_eq!((row.seen.ready, row.in_per_second), (None, None));
        let row = after(&[(0, here), (5, None), (10, Some(seen(1, 0, 0)))]);
        assert!(!row.is_gone);
        assert_eq!((row.change, row.trend), (Some(0), vec![1]));
        let many: Vec<_> = (0..99).map(|n| (n, Some(seen(n, 0, 0)))).collect();
        let row = after(&many);
        assert_eq!((row.trend.len(), row.trend.last()), (TREND, Some(&98)));
    }
}
