//! A person decides about each message.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a person answers on standard input"
)]

use std::io::BufRead as _;

use tokio::sync::mpsc;

use super::edit::Editor;
use crate::deadletter::{Aim, Letter};
use crate::error::{Error, ErrorKind, Result};
use crate::message::Delivery;
use crate::output::{self, question_text};

/// What a person wants of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Replay,
    Skip,
    Quit,
    /// Nobody answers any more.
    Gone,
}

/// Who answers on standard input.
pub(in crate::command) struct Person {
    lines: mpsc::Receiver<String>,
    /// Answers are read one by one, when they are asked for.
    ask: std::sync::mpsc::Sender<()>,
    editor: Option<String>,
    /// Nobody is asked any more: all others are to be sent.
    all: bool,
}

impl Person {
    pub(super) fn new(editor: Option<String>) -> Result<Self> {
        let (ask, asked) = std::sync::mpsc::channel::<()>();
        let (send, lines) = mpsc::channel(1);
        // A thread of its own: nobody can end a read of standard input.
        std::thread::Builder::new()
            .name("answers".to_owned())
            .spawn(move || {
                while asked.recv().is_ok() {
                    let mut line = String::new();
                    match std::io::stdin().lock().read_line(&mut line) {
                        Ok(read) if read > 0 => {
                            if send.blocking_send(line).is_err() {
                                break;
                            }
                        }
                        _ => break,
                    }
                }
            })
            .map_err(|error| {
                Error::new(
                    ErrorKind::InputOutput,
                    format!("cannot read answers from standard input: {error}"),
                )
            })?;
        Ok(Self {
            lines,
            ask,
            editor,
            all: false,
        })
    }

    /// Shows the message and waits for an answer; `body` is changed when the
    /// person edits it. At the end of standard input nobody is there.
    pub(super) async fn ask(
        &mut self,
        number: u64,
        delivery: &Delivery,
        letter: &Letter,
        aim: &Aim,
        body: &mut Vec<u8>,
    ) -> Result<Answer> {
        if self.all {
            return Ok(Answer::Replay);
        }
        output::talk(&question_text(number, delivery, letter, aim, body));
        loop {
            output::talk("replay, skip, edit, all others too, quit? [r/s/e/a/q]");
            let answer = match self.ask.send(()) {
                Ok(()) => self.lines.recv().await,
                Err(_) => None,
            };
            match answer.as_deref().map(str::trim) {
                Some("r" | "replay") => return Ok(Answer::Replay),
                Some("s" | "skip") => return Ok(Answer::Skip),
                Some("a" | "all") => {
                    self.all = true;
                    return Ok(Answer::Replay);
                }
                None => return Ok(Answer::Gone),
                Some("q" | "quit") => return Ok(Answer::Quit),
                Some("e" | "edit") => match Editor::new(self.editor.clone()) {
                    Err(error) => output::talk(&format!("mq: {error}")),
                    Ok(editor) => match editor.open(body).await {
                        Err(error) => output::talk(&format!("mq: {error}")),
                        Ok(None) => output::talk("the body is left as it is"),
                        Ok(Some(changed)) => {
                            *body = changed;
                            output::talk(&question_text(number, delivery, letter, aim, body));
                        }
                    },
                },
                Some(_) => {}
            }
        }
    }
}
