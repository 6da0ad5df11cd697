//! What a progress line says, within the columns that there are.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::printable::unbroken;
use crate::worker::{Phase, Status};

/// Over how long a rate is taken.
const WINDOW: Duration = Duration::from_secs(5);

/// Between two parts.
const GAP: &str = "  ";

/// The part of the columns that a name has at least, if it needs them: one in so many.
const NAME_SHARE: usize = 4;

/// How fast something went over the last seconds.
#[derive(Debug, Default)]
pub struct Rate {
    samples: VecDeque<(Instant, u64)>,
}

impl Rate {
    /// How many a second, now that there are `count` in all.
    pub fn sample(&mut self, now: Instant, count: u64) -> f64 {
        self.samples.push_back((now, count));
        // One that is older than the window stays, so that it is covered.
        while let Some((second, _)) = self.samples.get(1)
            && now.duration_since(*second) >= WINDOW
        {
            self.samples.pop_front();
        }
        let Some((first, before)) = self.samples.front() else {
            return 0.0;
        };
        let seconds = now.duration_since(*first).as_secs_f64();
        let more = u32::try_from(count.saturating_sub(*before)).unwrap_or(u32::MAX);
        if seconds > 0.0 {
            f64::from(more) / seconds
        } else {
            0.0
        }
    }
}

/// How a worker is doing; `rate` is of messages a second.
#[must_use]
pub fn worker_line(queue: &str, status: &Status, rate: f64, columns: usize) -> String {
    let counts = &status.counts;
    let state = match status.phase() {
        Phase::Working => None,
        phase => Some(phase.word().to_owned()),
    };
    let parts = [
        state,
        Some(format!("{}/s", short(rate))),
        Some(format!("acked {}", counts.acked)),
        some_of("retried", counts.retried),
        some_of("dead-lettered", counts.dead_lettered()),
        some_of("done before", counts.deduplicated),
        some_of("in flight", status.in_flight as u64),
    ];
    fit(queue, parts.into_iter().flatten(), columns)
}

/// How far something is whose end is known.
#[must_use]
pub fn bar_line(what: &str, done: u64, total: u64, rate: f64, columns: usize) -> String {
    let share = if total == 0 {
        1.0
    } else {
        (to_float(done) / to_float(total)).min(1.0)
    };
    let left = total.saturating_sub(done);
    let eta = if left == 0 || rate <= 0.0 {
        None
    } else {
        Duration::try_from_secs_f64((to_float(left) / rate).ceil()).ok()
    };
    let parts = [
        Some(format!("{done}/{total}")),
        Some(format!("{:.0}%", (share * 100.0).floor())),
        Some(format!("{}/s", short(rate))),
        eta.map(|eta| format!("{} left", humantime::format_duration(eta))),
        Some(drawn(share)),
    ];
    fit(what, parts.into_iter().flatten(), columns)
}

fn drawn(share: f64) -> String {
    const CELLS: u32 = 20;
    let full = |cell: &u32| f64::from(*cell) < share * f64::from(CELLS);
    let cells = (0..CELLS).map(|cell| if full(&cell) { '#' } else { '-' });
    format!("[{}]", cells.collect::<String>())
}

fn some_of(what: &str, count: u64) -> Option<String> {
    (count > 0).then(|| format!("{what} {count}"))
}

fn short(rate: f64) -> String {
    if rate >= 10.0 || rate <= 0.0 {
        format!("{rate:.0}")
    } else {
        format!("{rate:.1}")
    }
}

/// Precise to 2^32, which is enough for a share.
fn to_float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The parts that fit, the first ones first; the name takes what they leave.
fn fit(name: &str, parts: impl IntoIterator<Item = String>, columns: usize) -> String {
    let name = unbroken(name);
    let least = name.width().min(columns / NAME_SHARE);
    let mut shown = String::new();
    for part in parts {
        let room = least + GAP.len() + part.width();
        if shown.width() + room > columns {
            break;
        }
        shown.push_str(GAP);
        shown.push_str(&part);
    }
    let name = cut(&name, columns.saturating_sub(shown.width()));
    format!("{name}{shown}")
}

/// At most so many columns of it.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        shown.push(c);
    }
    if columns > 0 {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::{Counts, Link};

    fn status(link: Link) -> Status {
        Status {
            counts: Counts {
                acked: 12_345,
                retried: 7,
                poison: 1,
                ..Counts::default()
            },
            in_flight: 8,
            link,
            ..Status::default()
        }
    }

    #[test]
    fn the_line_says_what_there_is_room_for() {
        let line = |columns| worker_line("orders.queue", &status(Link::Up), 1234.5, columns);
        assert_eq!(
            line(100),
            "orders.queue  1234/s  acked 12345  retried 7  dead-lettered 1  in flight 8"
        );
        assert_eq!(line(40), "orders.queue  1234/s  acked 12345");
        assert_eq!(line(19), "orders.que…  1234/s");
        let lost = worker_line("orders.queue", &status(Link::Lost), 0.0, 19);
        assert_eq!(lost, "orde…  reconnecting");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for queue in [
            "q",
            "orders.queue",
            "日本語の待ち行列",
            "\x1b[2J\u{202e}\nx",
        ] {
            for link in [Link::Awaited, Link::Up, Link::Lost] {
                for columns in 0..120 {
                    let line = worker_line(queue, &status(link), 99_999.0, columns);
                    assert!(line.width() <= columns, "{columns}: {line}");
                    assert!(!line.chars().any(char::is_control), "{line:?}");
                    let bar = bar_line(queue, 5, 9_000_000, 3.5, columns);
                    assert!(bar.width() <= columns, "{columns}: {bar}");
                }
            }
        }
    }

    #[test]
    fn a_bar_tells_what_is_left() {
        assert_eq!(
            bar_line("orders.dlq", 150, 400, 50.0, 80),
            "orders.dlq  150/400  37%  50/s  5s left  [########------------]"
        );
        assert_eq!(
            bar_line("orders.dlq", 0, 0, 0.0, 80),
            "orders.dlq  0/0  100%  0/s  [####################]"
        );
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "any moment will do, and there is no other way to get one"
    )]
    fn a_rate_is_of_the_last_seconds() {
        let mut rate = Rate::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(rate.sample(start, 10).abs() < 0.01);
        assert!((rate.sample(at(2), 30) - 10.0).abs() < 0.01);
        assert!((rate.sample(at(5), 40) - 6.0).abs() < 0.01);
        assert!((rate.sample(at(10), 40) - 0.0).abs() < 0.01);
    }
}
