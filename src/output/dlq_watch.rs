//! Dead-letter queues over time: a page that fits a terminal, and lines of JSON.

use serde_json::{Value as Json, json};
use unicode_width::UnicodeWidthStr as _;

use crate::deadletter::WatchRow;
use crate::output::progress_text::cut;
use crate::output::{unbroken, when};

/// What a page says besides its rows.
#[derive(Clone, Debug)]
pub struct WatchFrame {
    /// When the rows were read, in seconds since 1970.
    pub read: u64,
    /// Since when nothing was heard, in seconds since 1970: the rows are old then.
    pub silent_since: Option<u64>,
    /// The vhost that all rows are of; `None`: each says its own.
    pub vhost: Option<String>,
    /// Whether the terminal shows more than ASCII.
    pub unicode: bool,
    /// Its columns and rows.
    pub size: (usize, usize),
}

/// Between two columns.
const GAP: &str = "  ";

/// A name has at least so many columns, if it needs them, beside the first number.
const LEAST_NAME: usize = 8;

/// The same beside more of them.
const USUAL_NAME: usize = 16;

/// Columns that a trend takes at most.
const TREND: usize = 20;

/// The lines of a page, none longer than the columns, and not more than the rows.
#[must_use]
pub fn watch_frame(rows: &[WatchRow], frame: &WatchFrame) -> Vec<String> {
    let (columns, height) = frame.size;
    let mut lines = vec![title(frame)];
    let room = height.saturating_sub(2);
    let shown = chosen(rows, room);
    if rows.is_empty() {
        lines.push("no dead-letter queue was found".to_owned());
    } else {
        lines.extend(table(&shown, frame));
        if shown.len() < rows.len() {
            lines.push(format!("… and {} more queues", rows.len() - shown.len()));
        }
    }
    lines.truncate(height.max(1));
    lines.iter().map(|line| cut(line, columns)).collect()
}

fn title(frame: &WatchFrame) -> String {
    let clock = |seconds: u64| {
        let text = when(Some(seconds));
        text.get(11..19).unwrap_or("?").to_owned()
    };
    match frame.silent_since {
        None => {
            let vhost = frame.vhost.as_deref().map(unbroken);
            let vhost = vhost.map_or_else(String::new, |vhost| format!("  vhost {vhost}"));
            format!("{} UTC  q: quit{vhost}", clock(frame.read))
        }
        // Short enough for a narrow terminal to show what matters.
        Some(since) => format!(
            "NO ANSWER since {} UTC, trying again; ~ is as of then",
            clock(since)
        ),
    }
}

/// As many rows as fit, with a line for the rest: first those that hold something.
fn chosen(rows: &[WatchRow], room: usize) -> Vec<&WatchRow> {
    if rows.len() <= room {
        return rows.iter().collect();
    }
    let holds = |row: &&WatchRow| {
        row.seen.ready.unwrap_or(0) > 0 || row.seen.unacknowledged.unwrap_or(0) > 0
    };
    let (full, empty): (Vec<_>, Vec<_>) = rows.iter().partition(holds);
    let room = room.saturating_sub(1).max(1);
    full.into_iter().chain(empty).take(room).collect()
}

/// The header and the rows, with the columns that there is room for: the first
/// ones matter most.
fn table(rows: &[&WatchRow], frame: &WatchFrame) -> Vec<String> {
    let names: Vec<String> = rows.iter().map(|row| name(row, frame)).collect();
    let cells: [(&str, Vec<String>); 6] = [
        ("READY", rows.iter().map(|row| ready(row)).collect()),
        (
            "UNACKED",
            rows.iter().map(|row| unacknowledged(row)).collect(),
        ),
        (
            "IN/S",
            rows.iter().map(|row| rate(row.in_per_second)).collect(),
        ),
        (
            "OUT/S",
            rows.iter().map(|row| rate(row.out_per_second)).collect(),
        ),
        (
            "CHANGE",
            rows.iter().map(|row| change(row.change)).collect(),
        ),
        (
            "TREND",
            rows.iter()
                .map(|row| trend(&row.trend, frame.unicode))
                .collect(),
        ),
    ];
    let columns = frame.size.0;
    let longest = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let longest = longest.max("QUEUE".width());
    let mut used = 0;
    let mut fitting = Vec::new();
    for (title, cells) in &cells {
        let width = cells.iter().map(|cell| cell.width()).max().unwrap_or(0);
        let width = width.max(title.width());
        let name = if fitting.is_empty() {
            LEAST_NAME
        } else {
            USUAL_NAME
        };
        if longest.min(name) + used + GAP.len() + width > columns {
            break;
        }
        used += GAP.len() + width;
        fitting.push((*title, cells, width));
    }
    let taken: usize = fitting.iter().map(|(_, _, width)| GAP.len() + width).sum();
    let for_name = columns.saturating_sub(taken).min(longest);
    let line = |name: &str, at: Option<usize>| {
        let name = cut(name, for_name);
        let mut line = format!(
            "{name}{}",
            " ".repeat(for_name.saturating_sub(name.width()))
        );
        for (title, cells, width) in &fitting {
            let cell = at.map_or(*title, |at| cells.get(at).map_or("", String::as_str));
            let padding = " ".repeat(width.saturating_sub(cell.width()));
            line.push_str(GAP);
            if *title == "TREND" {
                line.push_str(cell);
            } else {
                line.push_str(&padding);
                line.push_str(cell);
            }
        }
        line.trim_end().to_owned()
    };
    let header = line("QUEUE", None);
    let rows = names.iter().enumerate();
    let rows = rows.map(|(at, name)| line(name, Some(at)));
    std::iter::once(header).chain(rows).collect()
}

/// With a mark on what is old.
fn name(row: &WatchRow, frame: &WatchFrame) -> String {
    let mark = if frame.silent_since.is_some() {
        "~"
    } else {
        ""
    };
    let queue = unbroken(&row.queue);
    if frame.vhost.is_none() {
        format!("{mark}{queue} ({})", unbroken(&row.vhost))
    } else {
        format!("{mark}{queue}")
    }
}

fn ready(row: &WatchRow) -> String {
    if row.is_gone {
        "gone".to_owned()
    } else {
        number(row.seen.ready)
    }
}

fn unacknowledged(row: &WatchRow) -> String {
    if row.is_gone {
        "-".to_owned()
    } else {
        number(row.seen.unacknowledged)
    }
}

fn number(number: Option<u64>) -> String {
    number.map_or_else(|| "?".to_owned(), |number| number.to_string())
}

fn rate(rate: Option<f64>) -> String {
    match rate {
        None => "-".to_owned(),
        Some(rate) if rate >= 10.0 || rate <= 0.0 => format!("{rate:.0}"),
        Some(rate) if rate < 0.1 => "<0.1".to_owned(),
        Some(rate) => format!("{rate:.1}"),
    }
}

fn change(change: Option<i64>) -> String {
    match change {
        None => "-".to_owned(),
        Some(0) => "0".to_owned(),
        Some(change) => format!("{change:+}"),
    }
}

/// The last numbers as heights, from the least to the most among them.
fn trend(numbers: &[u64], unicode: bool) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII: [char; 8] = ['_', '.', ',', '-', '=', '+', '*', '#'];
    let heights = if unicode { BARS } else { ASCII };
    let numbers = numbers
        .get(numbers.len().saturating_sub(TREND)..)
        .unwrap_or(numbers);
    let least = numbers.iter().min().copied().unwrap_or(0);
    let most = numbers.iter().max().copied().unwrap_or(0);
    let height = |number: &u64| {
        let above = u128::from(number - least) * 7;
        let at = above.checked_div(u128::from(most - least)).unwrap_or(0);
        usize::try_from(at)
            .ok()
            .and_then(|at| heights.get(at).copied())
    };
    numbers.iter().filter_map(height).collect()
}

/// `{time, vhost, queue, state, ready, unacknowledged, in_per_second,
/// out_per_second}`; what is not known is null.
#[must_use]
pub fn watch_json(row: &WatchRow, time: u64) -> Json {
    json!({
        "time": time,
        "vhost": row.vhost,
        "queue": row.queue,
        "state": if row.is_gone { "gone" } else { "present" },
        "ready": row.seen.ready,
        "unacknowledged": row.seen.unacknowledged,
        "in_per_second": row.in_per_second,
        "out_per_second": row.out_per_second,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadletter::Seen;

    fn row(queue: &str, ready: u64) -> WatchRow {
        WatchRow {
            vhost: "shop".to_owned(),
            queue: queue.to_owned(),
            seen: Seen {
                ready: Some(ready),
                unacknowledged: Some(0),
                taken: Some(0),
            },
            in_per_second: Some(2.5),
            out_per_second: Some(0.0),
            change: Some(12),
            trend: vec![0, 4, 8, 12],
            is_gone: false,
        }
    }

    fn frame(columns: usize, rows: usize) -> WatchFrame {
        WatchFrame {
            read: 1_796_036_640,
            silent_since: None,
            vhost: Some("shop".to_owned()),
            unicode: true,
            size: (columns, rows),
        }
    }

    #[test]
    fn a_page_shows_what_there_is_room_for() {
        let mut gone = row("mails.dlq", 0);
        gone.is_gone = true;
        gone.seen = Seen::default();
        (gone.in_per_second, gone.out_per_second) = (None, None);
        (gone.change, gone.trend) = (None, Vec::new());
        let rows = [row("orders.dlq", 12), gone];
        assert_eq!(
            watch_frame(&rows, &frame(80, 24)),
            [
                "11:04:00 UTC  q: quit  vhost shop",
                "QUEUE       READY  UNACKED  IN/S  OUT/S  CHANGE  TREND",
                "orders.dlq     12        0   2.5      0     +12  ▁▃▅█",
                "mails.dlq    gone        -     -      -       -",
            ]
        );
        let mut silent = frame(30, 24);
        silent.silent_since = Some(1_796_036_643);
        silent.unicode = false;
        assert_eq!(
            watch_frame(&rows, &silent),
            [
                "NO ANSWER since 11:04:03 UTC,…",
                "QUEUE        READY  UNACKED",
                "~orders.dlq     12        0",
                "~mails.dlq    gone        -",
            ]
        );
        assert_eq!(trend(&[0, 4, 8, 12], false), "_,=#");
        assert_eq!(trend(&[7, 7], false), "__");
        assert_eq!(trend(&[0, u64::MAX], true), "▁█");
    }

    #[test]
    fn no_page_is_larger_than_the_terminal() {
        let names = [
            "q",
            "orders.dlq",
            "日本語の待ち行列",
            "\u{1b}[2J\u{202e}\nx",
        ];
        let rows: Vec<WatchRow> = names
            .iter()
            .cycle()
            .take(30)
            .map(|name| row(name, 1_234_567))
            .collect();
        for columns in 1..130 {
            for height in [1, 2, 3, 5, 24, 60] {
                for vhost in [None, Some("\u{1b}[2J".to_owned())] {
                    let mut frame = frame(columns, height);
                    frame.vhost = vhost;
                    for rows in [&rows[..], &rows[..1], &[]] {
                        let lines = watch_frame(rows, &frame);
                        assert!(lines.len() <= height, "{columns}x{height}: {lines:?}");
                        for line in lines {
                            assert!(line.width() <= columns, "{columns}: {line}");
                            assert!(!line.chars().any(char::is_control), "{line:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_holds_something_is_not_what_is_cut_away() {
        let rows: Vec<WatchRow> = (0..9).map(|n| row(&format!("q{n}"), n / 7)).collect();
        let lines = watch_frame(&rows, &frame(20, 5));
        assert_eq!(
            lines,
            [
                "11:04:00 UTC  q: qu…",
                "QUEUE  READY",
                "q7         1",
                "q8         1",
                "… and 7 more queues",
            ]
        );
    }
}
