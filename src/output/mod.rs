//! The only door to standard output and standard error.
//!
//! Data goes to standard output, talk to standard error. A reader that goes
//! away ends us quietly. Text from messages and brokers is shown with its
//! control characters escaped: a dead letter must not drive the terminal.

mod apply;
mod body;
mod consume;
mod destroy;
mod dlq;
mod dlq_check;
mod dlq_check_metrics;
mod dlq_check_nagios;
mod dlq_full;
mod dlq_list;
mod dlq_watch;
mod doctor;
mod doctor_junit;
mod export;
mod graph;
mod held;
mod junit;
mod letter;
mod line_file;
mod live;
mod log;
mod migrate;
mod place;
mod plan;
mod progress;
mod progress_text;
mod proof;
mod publish;
mod published;
mod replace;
mod replay;
mod route;
mod screen;
mod table;
mod text;

use std::io::{self, IsTerminal as _, Write as _};

use crate::error::{Error, ErrorKind, Result};

pub use crate::printable::{one_line, printable, unbroken};
pub use apply::{apply_json, apply_text};
pub use consume::{delivery_json, summary_json, summary_text};
pub use destroy::{destroy_json, destroy_text};
pub use dlq::{
    Detail, Inspection, body_line, inspection_json, inspection_text, letter_cells, span,
};
pub use dlq_check::{CheckReport, check_advice, check_json, check_lines_json, check_text};
pub use dlq_check_metrics::{check_metrics, failed_check_metrics};
pub use dlq_check_nagios::{check_nagios, failed_check_nagios};
pub use dlq_full::full_letter;
pub use dlq_list::{ListedQueue, age, dlq_list_json, dlq_list_text, fed_by, known_count};
pub use dlq_watch::{WatchFrame, watch_frame, watch_json};
pub use doctor::{Examined, doctor_check_json, doctor_json, doctor_text};
pub use doctor_junit::doctor_junit;
pub use export::{Took, export_json, export_text, purge_json, purge_text};
pub use graph::graph_json;
pub use held::{Held, hold};
pub use junit::{junit_xml, write_junit};
pub use letter::{fate, tries};
pub use line_file::{Existing, LineFile};
pub use live::{LiveScreen, TerminalKind};
pub use log::LogWriter;
pub use migrate::{migrate_json, migrate_text};
pub use place::Place;
pub use plan::{plan_json, plan_text};
pub use progress::Progress;
pub use progress_text::{Rate, bar_line, worker_line};
pub use proof::{check_lines, proof_json, proof_text};
pub use publish::{receipt_json, receipt_text};
pub use published::{Lines, Published, published_json, published_text};
pub use replace::{can_be_replaced, replace_bytes, replace_file};
pub use replay::{question_text, replay_json, replay_text};
pub use route::{outlook_json, outlook_text};
pub use screen::{Screen, can_show_a_screen};
pub use table::Table;
pub use text::when;

/// How data is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Table,
    /// One JSON document.
    Json,
    /// One JSON document per line.
    JsonLines,
}

/// Writes data and a line end, and makes sure that it left.
///
/// # Errors
/// [`ErrorKind::ReaderGone`] when nobody reads any more, [`ErrorKind::InputOutput`]
/// when it cannot be written.
pub fn data(text: &str) -> Result<()> {
    let mut line = Vec::with_capacity(text.len() + 1);
    add_line(&mut line, text.as_bytes());
    data_page(&line)
}

/// JSON on one line, with what could drive or deceive a terminal escaped: JSON
/// itself leaves DEL, C1 controls and marks that reverse text as they are.
#[must_use]
pub fn json_line(json: &serde_json::Value) -> String {
    text::escape_in_json(&json.to_string())
}

/// The same, indented.
#[must_use]
pub fn json_pretty(json: &serde_json::Value) -> String {
    text::escape_in_json(&format!("{json:#}"))
}

/// Adds bytes and a line end, if they have none, to a page.
pub fn add_line(page: &mut Vec<u8>, bytes: &[u8]) {
    page.extend_from_slice(bytes);
    if !bytes.ends_with(b"\n") {
        page.push(b'\n');
    }
}

/// Writes a page to standard output, and makes sure that it left.
///
/// # Errors
/// The plain I/O error.
pub fn page(page: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(page)?;
    out.flush()
}

/// Writes whole lines of data to standard output, and makes sure that they left.
///
/// # Errors
/// Those of [`data`].
pub fn data_page(lines: &[u8]) -> Result<()> {
    page(lines).map_err(|error| written(&error))
}

/// Says something to the person; if nobody listens, nobody listens.
pub fn talk(text: &str) {
    progress::to_stderr(format!("{text}\n").as_bytes());
}

/// Passes bytes of a child on to standard error as they are.
pub fn pass_to_stderr(bytes: &[u8]) {
    progress::to_stderr(bytes);
}

/// The columns of the terminal that data goes to; `None`: it goes elsewhere, or
/// the terminal does not tell.
#[must_use]
pub fn data_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// Whether data goes to a terminal.
#[must_use]
pub fn data_is_on_terminal() -> bool {
    io::stdout().is_terminal()
}

fn written(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => {
            Error::new(ErrorKind::ReaderGone, "the reader of our output went away")
        }
        _ => Error::new(
            ErrorKind::InputOutput,
            format!("cannot write to standard output: {error}"),
        )
        .hint("check free space and where the output goes"),
    }
}
