//! The line at the bottom of the terminal that tells how far something is, and
//! the one way to standard error around it.
//!
//! While it is shown, whatever else is said stands above it: the line is taken
//! away, the words are written, and it is drawn again. A line that is not ended
//! yet is kept back meanwhile, or the next drawing would wipe it out.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the line is drawn again with the clock"
)]

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::held;
use crate::output::progress_text::{Rate, bar_line};

/// How often the line is drawn anew. What ends sooner shows none.
const EVERY: Duration = Duration::from_millis(250);

/// So much of a line without an end is kept back, in bytes.
const LONGEST_OPEN: usize = 64 * 1024;

/// Where the terminal does not tell its width, in columns.
const USUAL_WIDTH: usize = 80;

/// The line that is shown now; there is one terminal.
static SHOWN: Mutex<Option<Shown>> = Mutex::new(None);

struct Shown {
    bar: ProgressBar,
    /// What was said since the last end of a line.
    open: Vec<u8>,
}

/// A progress line. It is there as long as this is kept, and leaves no trace.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// Tells the drawing thread to end by being dropped.
    stop: Option<mpsc::Sender<()>>,
    drawing: Option<JoinHandle<()>>,
}

impl Progress {
    /// Whether standard error is a terminal that can show a line.
    #[must_use]
    pub fn is_possible() -> bool {
        io::stderr().is_terminal() && !ProgressDrawTarget::stderr().is_hidden()
    }

    /// Shows how far something is: `count` of `total`.
    #[must_use]
    pub fn bar(what: String, count: &Arc<AtomicU64>, total: u64) -> Self {
        let count = Arc::clone(count);
        let mut rate = Rate::default();
        Self::start(move |now, columns| {
            let done = count.load(Ordering::Relaxed);
            bar_line(&what, done, total, rate.sample(now, done), columns)
        })
    }

    /// Shows what `text` gives, a few times a second: it gets the time and the
    /// columns that there are, and must give one line.
    #[must_use]
    pub fn start(text: impl FnMut(Instant, usize) -> String + Send + 'static) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        *shown() = Some(Shown {
            bar: bar.clone(),
            open: Vec::new(),
        });
        let (stop, stopped) = mpsc::channel();
        let drawn = bar.clone();
        // A thread of its own: a terminal may be stopped, and then nobody but
        // those who write to it should have to wait.
        let drawing = thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || draw(&drawn, &stopped, text));
        Self {
            bar,
            stop: Some(stop),
            drawing: drawing.ok(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(drawing) = self.drawing.take() {
            let _ = drawing.join();
        }
        let mut shown = shown();
        self.bar.finish_and_clear();
        if let Some(shown) = shown.take() {
            let _ = io::stderr().lock().write_all(&shown.open);
        }
    }
}

fn draw(
    bar: &ProgressBar,
    stopped: &mpsc::Receiver<()>,
    mut text: impl FnMut(Instant, usize) -> String,
) {
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(EVERY) {
        let line = text(Instant::now(), width());
        let _one_at_a_time = shown();
        if is_foreground() {
            bar.set_message(line);
        }
    }
}

/// The one way to standard error; if nobody listens, nobody listens.
pub(super) fn to_stderr(bytes: &[u8]) {
    if held::keeps(bytes) {
        return;
    }
    match &mut *shown() {
        None => write(bytes),
        Some(shown) => shown.say(bytes),
    }
}

impl Shown {
    fn say(&mut self, bytes: &[u8]) {
        self.open.extend_from_slice(bytes);
        if self.open.len() > LONGEST_OPEN {
            self.open.push(b'\n');
        }
        let whole = whole_lines(&mut self.open);
        if whole.is_empty() {
        } else if is_foreground() {
            self.bar.suspend(|| write(&whole));
        } else {
            write(&whole);
        }
    }
}

/// Takes away what is ended.
fn whole_lines(open: &mut Vec<u8>) -> Vec<u8> {
    let ended = open.iter().rposition(|byte| *byte == b'\n');
    let rest = open.split_off(ended.map_or(0, |last| last + 1));
    std::mem::replace(open, rest)
}

fn write(bytes: &[u8]) {
    let _ = io::stderr().lock().write_all(bytes);
}

fn shown() -> MutexGuard<'static, Option<Shown>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who was sent to the background has no line in the terminal of others.
fn is_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stderr())
        .is_ok_and(|foreground| foreground == rustix::process::getpgrp())
}

fn width() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        Ok(_) | Err(_) => USUAL_WIDTH,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_is_kept_back() {
        let mut open = b"a\nb\nc".to_vec();
        assert_eq!(whole_lines(&mut open), b"a\nb\n");
        assert_eq!(open, b"c");
        assert_eq!(whole_lines(&mut open), b"");
        open.push(b'\n');
        assert_eq!(whole_lines(&mut open), b"c\n");
        assert!(open.is_empty());
    }
}
