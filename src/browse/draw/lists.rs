//! Queues, groups, messages, and one message.

use unicode_width::UnicodeWidthStr as _;

use super::frame::{Column, Frame, room_beside};
use super::text;
use crate::browse::BrowsedLetter;
use crate::browse::filter::FilterLine;
use crate::browse::opened::Opened;
use crate::browse::page::Page;
use crate::browse::state::Browser;
use crate::browse::wrap::{fitted, tail};
use crate::deadletter::{Group, first_line};
use crate::output::{
    ListedQueue, age, body_line, fate, fed_by, known_count, letter_cells, one_line, span, tries,
};

/// The widest name of a queue or vhost in a list.
const NAME: usize = 40;

/// Below so many columns a list leaves out what can be missed.
const NARROW: usize = 60;

/// From so many columns on, a message's line says what happened to it.
const WIDE: usize = 110;

/// Most bytes of a body on one line.
const BODY: usize = 1_000;

const fn column(header: &'static str, columns: usize) -> Column {
    Column {
        header,
        columns,
        is_number: false,
    }
}

const fn number(header: &'static str, columns: usize) -> Column {
    Column {
        header,
        columns,
        is_number: true,
    }
}

/// `1,000`: counts of messages are long.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

fn grouped_len(count: usize) -> String {
    grouped(count as u64)
}

pub(super) fn queues(frame: &mut Frame<'_>, browser: &Browser) {
    let queues = &browser.queues;
    frame.title("mq dlq browse");
    if let Some(page) = &queues.trouble {
        text(frame, page);
        if queues.is_awaited {
            frame.status("asking again …");
        }
        frame.keys(&[("R", "try again"), ("q", "quit"), ("?", "help")]);
        return;
    }
    let all = queues.listed.queues.len();
    let mut counts = match (all, queues.is_awaited) {
        (0, true) => "asking the broker for its dead-letter queues …".to_owned(),
        (0, false) => "no queue takes dead letters of another one".to_owned(),
        (1, _) => "1 dead-letter queue".to_owned(),
        (all, _) => format!("{all} dead-letter queues"),
    };
    if queues.shown.len() < all {
        counts = format!("{counts}, {} shown", queues.shown.len());
    }
    if queues.listed.skipped {
        counts.push_str("; some vhosts could not be read");
    }
    if queues.is_awaited && all > 0 {
        counts.push_str("; loading …");
    }
    frame.counts(&counts);
    if all > 0 {
        queue_table(frame, browser);
    }
    status(frame, browser, &queues.filter);
    frame.keys(&[
        ("Enter", "open"),
        ("/", "filter"),
        ("R", "reload"),
        ("q", "quit"),
        ("?", "help"),
    ]);
}

fn queue_table(frame: &mut Frame<'_>, browser: &Browser) {
    let queues = &browser.queues;
    let widest = |name: &dyn Fn(&ListedQueue) -> String, least: usize| {
        let widths = queues.listed.queues.iter().map(|it| name(it).width());
        widths.max().unwrap_or(0).clamp(least, NAME)
    };
    let queue_name = |queue: &ListedQueue| one_line(&queue.queue, NAME);
    let vhost_name = |queue: &ListedQueue| one_line(&queue.vhost, NAME);
    let share = frame.columns() / 3;
    let is_narrow = frame.columns() < NARROW;
    let mut columns = vec![
        column("QUEUE", widest(&queue_name, 5).min(share)),
        number("READY", 9),
    ];
    if !is_narrow {
        columns.extend([number("UNACKED", 7), column("OLDEST", 8)]);
    }
    columns.push(column("LOOK", 7));
    if browser.with_vhost {
        columns.insert(0, column("VHOST", widest(&vhost_name, 5).min(share / 2)));
    }
    columns.push(column("FED BY", room_beside(&columns, frame.columns())));
    frame.header(&columns);
    for row in 0..frame.table_rows() {
        let place = queues.list.top + row;
        let Some(queue) = queues.row(place) else {
            break;
        };
        let mut cells = vec![queue_name(queue), known_count(queue.observed.ready)];
        if !is_narrow {
            cells.push(known_count(queue.observed.unacknowledged));
            cells.push(queue.oldest_seconds.map_or_else(|| "-".to_owned(), age));
        }
        cells.extend([queue.look.to_owned(), fed_by(&queue.fed_by)]);
        if browser.with_vhost {
            cells.insert(0, vhost_name(queue));
        }
        frame.row(row, &cells, &columns, place == queues.list.selected, false);
    }
}

fn path(browser: &Browser, opened: &Opened, rest: &str) -> String {
    let vhost = if browser.with_vhost {
        format!(" › {}", one_line(&opened.vhost, NAME))
    } else {
        String::new()
    };
    format!(
        "mq dlq browse{vhost} › {}{rest}",
        one_line(&opened.queue, NAME)
    )
}

/// `1,000 of 100,000 messages; 12 shown; 3 marked`.
fn counts(opened: &Opened) -> String {
    if !opened.is_loaded {
        return "loading …".to_owned();
    }
    let loaded = opened.letters.len();
    let mut text = if loaded as u64 == opened.ready {
        match loaded {
            0 => "no message is ready".to_owned(),
            1 => "1 message".to_owned(),
            _ => format!("{} messages", grouped_len(loaded)),
        }
    } else {
        let loaded = grouped_len(loaded);
        let why = if opened.is_cut_by_size {
            " (more are too large)"
        } else {
            ""
        };
        format!("{loaded} of {} messages{why}", grouped(opened.ready))
    };
    if opened.shown.len() < loaded {
        text.push_str(&format!("; {} match", grouped_len(opened.shown.len())));
    }
    match opened.marked_count() {
        0 => {}
        marked => text.push_str(&format!("; {} marked", grouped_len(marked))),
    }
    if opened.awaited.is_some() {
        text.push_str("; loading …");
    }
    text
}

/// What is typed, or said, or filtered by.
fn status(frame: &mut Frame<'_>, browser: &Browser, filter: &FilterLine) {
    let error = filter.error.as_ref().map(|error| one_line(error, 300));
    if let (true, Some(error)) = (browser.types, &error) {
        frame.counts(error);
    }
    let after = match (&browser.opened, filter.waits) {
        (_, true) => "  [asking …]",
        (Some(_), false) if filter.lacks_a_program() => "  [no program]",
        _ => "",
    };
    let room = frame.columns().saturating_sub(9 + after.width());
    let status = match (browser.types, error) {
        (true, _) => {
            let typed = tail(&one_line(&filter.text, usize::MAX), room.saturating_sub(1));
            format!("filter: {typed}▏{after}")
        }
        (false, _) if !browser.note.is_empty() => return frame.note(&browser.note),
        (false, Some(error)) => format!("filter: {error}"),
        (false, None) if !filter.text.is_empty() => {
            let kept = fitted(&one_line(&filter.text, 300), room);
            format!("filter: {}{after}", kept.trim_end())
        }
        (false, None) => String::new(),
    };
    frame.status(&status);
    if browser.types {
        frame.keys(&[
            ("type", "to filter"),
            ("=", "jq program"),
            ("Enter", "keep"),
            ("Esc", "clear"),
        ]);
    }
}

fn list_keys(frame: &mut Frame<'_>, browser: &Browser) {
    if !browser.types {
        frame.keys(&[
            ("Enter", "open"),
            ("Space", "mark"),
            ("r", "replay"),
            ("e", "export"),
            ("p", "purge"),
            ("/", "filter"),
            ("Esc", "back"),
            ("a", "all"),
            ("?", "help"),
        ]);
    }
}

pub(super) fn trouble(frame: &mut Frame<'_>, opened: &Opened, page: &Page) {
    frame.title(&format!(
        "mq dlq browse › {}",
        one_line(&opened.queue, NAME)
    ));
    text(frame, page);
    if opened.awaited.is_some() {
        frame.status("asking again …");
    }
    frame.keys(&[("R", "try again"), ("Esc", "back"), ("?", "help")]);
}

pub(super) fn groups(frame: &mut Frame<'_>, browser: &Browser, opened: &Opened) {
    frame.title(&path(browser, opened, ""));
    frame.counts(&counts(opened));
    let mut columns = vec![
        number("COUNT", 7),
        number("MARKED", 6),
        column("WHAT HAPPENED", (frame.columns() / 2).saturating_sub(3)),
    ];
    columns.push(column("ERROR", room_beside(&columns, frame.columns())));
    if opened.group_rows() > 0 {
        frame.header(&columns);
    }
    for row in 0..frame.table_rows() {
        let place = opened.group_list.top + row;
        if place >= opened.group_rows() {
            break;
        }
        let letters = opened.of_group_row(place);
        let marked = letters.iter().filter(|it| opened.is_marked(it)).count();
        let (what, error) = match place.checked_sub(1).and_then(|at| opened.groups.get(at)) {
            None => ("all messages".to_owned(), String::new()),
            Some(group) => (what_happened(group), error_of(group)),
        };
        let marks = match marked {
            0 => "-".to_owned(),
            marked => marked.to_string(),
        };
        let cells = [letters.len().to_string(), marks, what, error];
        let is_marked = marked > 0 && marked == letters.len();
        let is_selected = place == opened.group_list.selected;
        frame.row(row, &cells, &columns, is_selected, is_marked);
    }
    status(frame, browser, &opened.filter);
    list_keys(frame, browser);
}

fn what_happened(group: &Group) -> String {
    let fate = fate(group.reason.as_deref(), group.origin.as_deref());
    format!("{fate}{}", tries(group.attempts))
}

fn error_of(group: &Group) -> String {
    match &group.error {
        Some(error) => one_line(error, 300),
        None => span(group.first_death, group.last_death),
    }
}

pub(super) fn messages(frame: &mut Frame<'_>, browser: &Browser, opened: &Opened) {
    frame.title(&path(browser, opened, " › messages"));
    frame.counts(&counts(opened));
    let is_wide = frame.columns() >= WIDE;
    let digits = opened.letters.len().to_string().len().max(1);
    let mut columns = vec![number("#", digits)];
    let is_narrow = frame.columns() < NARROW;
    if !is_narrow {
        columns.extend([column("LAST DEATH", 17), number("TRIES", 5)]);
    }
    columns.push(column("KEY", (frame.columns() / 5).min(30)));
    if is_wide {
        columns.push(column("WHAT HAPPENED", frame.columns() / 5));
    }
    columns.push(column("BODY", room_beside(&columns, frame.columns())));
    let room = columns.last().map_or(0, |it| it.columns);
    frame.header(&columns);
    for row in 0..frame.table_rows() {
        let place = opened.message_list.top + row;
        let found = opened.rows.get(place);
        let Some((at, letter)) = found.and_then(|at| Some((*at, opened.letters.get(*at)?))) else {
            break;
        };
        let mut cells = message_cells(at + 1, letter, room);
        if is_narrow {
            cells.drain(1..3);
        }
        if is_wide {
            let letter = &letter.letter;
            let what = fate(letter.reason.as_deref(), letter.origin.as_deref());
            let error = letter.error.as_deref().and_then(first_line);
            let error = error.map(|error| format!(": {}", one_line(&error, 300)));
            cells.insert(4, format!("{what}{}", error.unwrap_or_default()));
        }
        let is_selected = place == opened.message_list.selected;
        frame.row(row, &cells, &columns, is_selected, opened.is_marked(letter));
    }
    status(frame, browser, &opened.filter);
    list_keys(frame, browser);
}

fn message_cells(place: usize, it: &BrowsedLetter, room: usize) -> Vec<String> {
    let [died, attempts, key] = letter_cells(&it.letter, NAME);
    vec![
        place.to_string(),
        died,
        attempts,
        key,
        body_line(&it.message, BODY, Some(room)),
    ]
}

pub(super) fn message(frame: &mut Frame<'_>, browser: &Browser, opened: &Opened, page: &Page) {
    let place = format!(
        " › message {} of {}",
        opened.message_list.selected + 1,
        opened.rows.len()
    );
    frame.title(&path(browser, opened, &place));
    let is_marked = opened.selected().is_some_and(|it| opened.is_marked(it));
    let mark = if is_marked { "* marked; " } else { "" };
    frame.counts(&format!("{mark}{}", counts(opened)));
    text(frame, page);
    if !browser.note.is_empty() {
        frame.note(&browser.note);
    }
    frame.keys(&[
        ("↑↓", "scroll"),
        ("n b", "next, before"),
        ("Space", "mark"),
        ("r", "replay"),
        ("e", "export"),
        ("p", "purge"),
        ("Esc", "back"),
        ("?", "help"),
    ]);
}
