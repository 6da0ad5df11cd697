//! The whole terminal as a screen: taken, drawn on, and given back as it was, on
//! every way out.

use std::io::{self, IsTerminal as _, Stdout, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::crossterm::{ExecutableCommand as _, QueueableCommand as _};
use ratatui::layout::Rect;

use crate::error::{Error, ErrorKind, Result};
use crate::output::held::{Held, hold};

/// Whether the terminal is ours.
static IS_OURS: AtomicBool = AtomicBool::new(false);

/// Whether something broke down while it was.
static BROKE_DOWN: AtomicBool = AtomicBool::new(false);

/// The terminal, while it is a screen. Nothing is said on standard error as long
/// as this lives.
#[derive(Debug)]
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// Goes after the terminal is given back.
    held: Held,
}

/// Whether data goes to a terminal that can be one: `term` is what `TERM` says.
#[must_use]
pub fn can_show_a_screen(term: Option<&str>) -> bool {
    io::stdout().is_terminal() && term.is_some_and(|term| !matches!(term, "" | "dumb"))
}

impl Screen {
    /// Takes the terminal. From then on a panic gives it back before it is told.
    ///
    /// # Errors
    /// [`ErrorKind::InputOutput`] when the terminal does not let itself be taken.
    pub fn open() -> Result<Self> {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if IS_OURS.load(Ordering::SeqCst) {
                BROKE_DOWN.store(true, Ordering::SeqCst);
                give_back();
            }
            told(panic);
        }));
        let terminal =
            Terminal::new(CrosstermBackend::new(io::stdout())).map_err(|error| failed(&error))?;
        let mut screen = Self {
            terminal,
            held: hold(),
        };
        screen.take()?;
        Ok(screen)
    }

    /// Columns and rows.
    #[must_use]
    pub fn size() -> (u16, u16) {
        size().unwrap_or((80, 24))
    }

    /// Takes the terminal again, after [`Self::give_back`].
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn take(&mut self) -> Result<()> {
        // Before the first change: whatever fails, it is undone.
        IS_OURS.store(true, Ordering::SeqCst);
        let taken = enable_raw_mode().and_then(|()| {
            let mut out = io::stdout();
            out.queue(EnterAlternateScreen)?
                .queue(EnableBracketedPaste)?
                .queue(Hide)?
                .flush()?;
            self.all_anew()
        });
        taken.map_err(|error| {
            give_back();
            failed(&error)
        })
    }

    /// Gives the terminal back for a while.
    pub fn give_back(&self) {
        give_back();
    }

    /// Draws everything anew; only what changed is sent.
    ///
    /// # Errors
    /// When the terminal is gone, or something of ours broke down meanwhile.
    pub fn draw(&mut self, draw: impl FnOnce(Rect, &mut Buffer)) -> Result<()> {
        if BROKE_DOWN.load(Ordering::SeqCst) {
            return Err(Error::new(
                ErrorKind::Internal,
                "a part of mq broke down; it is told above",
            )
            .hint("no message is lost by that; please report it"));
        }
        self.terminal
            .draw(|frame| draw(frame.area(), frame.buffer_mut()))
            .map(|_| ())
            .map_err(|error| failed(&error))
    }

    /// Has every cell sent with the next [`Self::draw`].
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn wipe(&mut self) -> Result<()> {
        self.all_anew().map_err(|error| failed(&error))
    }

    /// ratatui's own way to clear asks the terminal for its cursor, and the answer
    /// would be read as keys.
    fn all_anew(&mut self) -> io::Result<()> {
        let (columns, rows) = Self::size();
        self.terminal.resize(Rect::new(0, 0, columns, rows))
    }

    /// What was said meanwhile.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        self.held.take()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// The terminal as it was; once, whoever asks first.
fn give_back() {
    if !IS_OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    // One after the other: what fails must not keep the rest from being undone.
    let _ = out.execute(DisableBracketedPaste);
    let _ = out.execute(LeaveAlternateScreen);
    let _ = out.execute(Show);
    let _ = disable_raw_mode();
}

fn failed(error: &io::Error) -> Error {
    Error::new(
        ErrorKind::InputOutput,
        format!("the terminal cannot be used: {error}"),
    )
    .hint("mq dlq list and mq dlq inspect show the same as text")
}
