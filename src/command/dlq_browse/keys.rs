//! Keys, as the terminal tells them.

use ratatui::crossterm::event::{
    Event as Told, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, read as next,
};
use tokio::sync::mpsc::UnboundedSender;

use crate::browse::{Event, Key};
use crate::error::{Error, ErrorKind, Result};

/// Reads them on a thread of its own, for nobody can end such a read.
///
/// # Errors
/// When no thread can be started.
pub(super) fn read(send: UnboundedSender<Event>) -> Result<()> {
    std::thread::Builder::new()
        .name("keys".to_owned())
        .spawn(move || {
            while let Ok(told) = next() {
                if let Some(event) = event(told)
                    && send.send(event).is_err()
                {
                    break;
                }
            }
        })
        .map(|_| ())
        .map_err(|error| {
            Error::new(
                ErrorKind::InputOutput,
                format!("cannot read keys from the terminal: {error}"),
            )
        })
}

fn event(told: Told) -> Option<Event> {
    match told {
        Told::Key(told) if told.kind != KeyEventKind::Release => key(told).map(Event::Key),
        Told::Paste(text) => Some(Event::Paste(text)),
        Told::Resize(columns, rows) => Some(Event::Resize(columns, rows)),
        _ => None,
    }
}

fn key(told: KeyEvent) -> Option<Key> {
    if told.modifiers.contains(KeyModifiers::CONTROL) {
        return match told.code {
            KeyCode::Char('c') => Some(Key::Interrupt),
            KeyCode::Char('z') => Some(Key::Suspend),
            KeyCode::Char('l') => Some(Key::Redraw),
            KeyCode::Char('u' | 'w') => Some(Key::ClearLine),
            KeyCode::Char('h') => Some(Key::Backspace),
            KeyCode::Char('n') => Some(Key::Down),
            KeyCode::Char('p') => Some(Key::Up),
            KeyCode::Char('f') => Some(Key::PageDown),
            KeyCode::Char('b') => Some(Key::PageUp),
            _ => None,
        };
    }
    if told.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    Some(match told.code {
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::F(5) => Key::Reload,
        KeyCode::Char(c) => Key::Char(c),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_keys_are_text() {
        for (code, modifiers, expected) in [
            (KeyCode::Char('q'), KeyModifiers::NONE, Some(Key::Char('q'))),
            (
                KeyCode::Char('R'),
                KeyModifiers::SHIFT,
                Some(Key::Char('R')),
            ),
            (KeyCode::Char('q'), KeyModifiers::ALT, None),
            (KeyCode::Char('x'), KeyModifiers::CONTROL, None),
            (
                KeyCode::Char('c'),
                KeyModifiers::CONTROL,
                Some(Key::Interrupt),
            ),
            (KeyCode::F(5), KeyModifiers::NONE, Some(Key::Reload)),
            (KeyCode::F(1), KeyModifiers::NONE, None),
        ] {
            assert_eq!(key(KeyEvent::new(code, modifiers)), expected, "{code:?}");
        }
        let mut released = KeyEvent::new(KeyCode::Char('p'), KeyModifiers::NONE);
        released.kind = KeyEventKind::Release;
        assert!(event(Told::Key(released)).is_none());
    }
}
