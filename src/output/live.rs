//! A screen of our own on the terminal: a page that is drawn again in its place,
//! and the terminal as it was once it is dropped.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where keys are read from the terminal"
)]

use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::thread;

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

use crate::error::Result;
use crate::output::written;

/// Another screen, no cursor, no wrapping.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Where the terminal does not tell its size: columns and rows.
const USUAL: (usize, usize) = (80, 24);

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalKind {
    /// Whether it can be drawn on.
    pub draws: bool,
    /// Whether it shows more than ASCII.
    pub unicode: bool,
}

impl TerminalKind {
    /// By `TERM` and the locale.
    #[must_use]
    pub fn of(environment: &dyn Fn(&str) -> Option<String>) -> Self {
        let given = |name: &str| environment(name).filter(|text| !text.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(given);
        let locale = locale.unwrap_or_default().to_lowercase();
        Self {
            draws: given("TERM").is_some_and(|term| term != "dumb"),
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
        }
    }
}

/// The screen. It is there as long as this is kept.
#[derive(Debug)]
pub struct LiveScreen {
    /// How keys were read before, where there are any.
    keys: Option<Termios>,
}

impl LiveScreen {
    /// Takes the screen. Keys come one by one and unseen from now on, Ctrl-C still
    /// as a signal; `key` gets each, on a thread of its own, until it says no.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn open(key: impl FnMut(u8) -> bool + Send + 'static) -> Result<Self> {
        let keys = read_keys();
        let screen = Self { keys };
        if screen.keys.is_some() {
            listen(key);
        }
        write(ENTER)?;
        Ok(screen)
    }

    /// Columns and rows, as they are now.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.into(), size.ws_row.into())
            }
            Ok(_) | Err(_) => USUAL,
        }
    }

    /// Draws lines in the place of those before; each must fit. A line is cleared before
    /// it is written: after the last column that would take the last character away.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn draw(&self, lines: &[String]) -> Result<()> {
        let lines: Vec<String> = lines.iter().map(|line| format!("\x1b[K{line}")).collect();
        write(&format!("\x1b[H{}\x1b[J", lines.join("\r\n")))
    }
}

impl Drop for LiveScreen {
    fn drop(&mut self) {
        let _ = write(LEAVE);
        if let Some(before) = &self.keys {
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, before);
        }
    }
}

/// Lets keys through one by one; gives how it was. Without Ctrl-Z, which would leave
/// the terminal to the shell as it is.
fn read_keys() -> Option<Termios> {
    if !io::stdin().is_terminal() {
        return None;
    }
    let before = tcgetattr(io::stdin()).ok()?;
    let mut now = before.clone();
    now.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO);
    now.special_codes[SpecialCodeIndex::VSUSP] = 0;
    // What was typed already counts.
    tcsetattr(io::stdin(), OptionalActions::Now, &now).ok()?;
    Some(before)
}

/// Ends with the process: a read cannot be given up.
fn listen(mut key: impl FnMut(u8) -> bool + Send + 'static) {
    let listening = move || {
        for byte in io::stdin().lock().bytes() {
            match byte {
                Ok(byte) if key(byte) => {}
                Ok(_) | Err(_) => break,
            }
        }
    };
    let _ = thread::Builder::new()
        .name("keys".to_owned())
        .spawn(listening);
}

fn write(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| written(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_what_its_environment_says() {
        for (term, lang, draws, unicode) in [
            (Some("xterm"), Some("de_CH.UTF-8"), true, true),
            (Some("dumb"), Some("C.utf8"), false, true),
            (Some(""), None, false, false),
            (None, Some("C"), false, false),
        ] {
            let environment = |name: &str| match name {
                "TERM" => term.map(str::to_owned),
                "LANG" => lang.map(str::to_owned),
                _ => Some(String::new()),
            };
            let expected = TerminalKind { draws, unicode };
            assert_eq!(
                TerminalKind::of(&environment),
                expected,
                "{term:?} {lang:?}"
            );
        }
    }
}
