//! Log lines on their way to standard error: one event, one line, and nothing in
//! it that could drive a terminal.

use std::io;

use super::{held, progress, text};
use crate::printable::unbroken;

/// What the text of events is written to.
#[derive(Clone, Copy, Debug)]
pub enum LogWriter {
    /// Lines for people.
    Text,
    /// JSON objects.
    Json,
}

impl LogWriter {
    fn line(self, event: &[u8]) -> String {
        let event = String::from_utf8_lossy(event);
        let event = event.strip_suffix('\n').unwrap_or(&event);
        let mut line = match self {
            Self::Text => unbroken(event),
            Self::Json => text::escape_in_json(event),
        };
        line.push('\n');
        line
    }
}

/// Each write is one whole event, as the subscriber makes them.
impl io::Write for LogWriter {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = self.line(event);
        if !held::keeps_log(line.as_bytes()) {
            progress::to_stderr(line.as_bytes());
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_that_drives_nothing() {
        let hostile = "WARN a\x1b[2J\u{9b}31m\u{202e}b\nINFO forged\n";
        let line = LogWriter::Text.line(hostile.as_bytes());
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert!(!line.trim_end().chars().any(char::is_control), "{line:?}");
        let json = "{\"a\":\"\u{9b}\u{7f}\u{202e}é\"}\n";
        let line = LogWriter::Json.line(json.as_bytes());
        assert_eq!(line, "{\"a\":\"\\u009b\\u007f\\u202eé\"}\n");
    }
}
