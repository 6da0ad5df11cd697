//! Something that is done with messages.

use super::frame::Frame;
use super::lists::grouped;
use super::text;
use crate::browse::action::{Action, Step, What, shown_name};
use crate::browse::wrap::{tail, wrapped};
use crate::deadletter::ReplayTo;
use crate::output::one_line;

pub(super) fn draw(frame: &mut Frame<'_>, action: &Action) {
    let what = match action.what {
        What::Replay(_) => "replay",
        What::Export => "export",
        What::Purge => "purge",
    };
    let queue = one_line(&action.queue, 40);
    frame.title(&format!("mq dlq browse › {queue} › {what}"));
    let messages = match action.count {
        1 => "1 message".to_owned(),
        count => format!("{} messages", grouped(count)),
    };
    frame.counts(&format!(
        "{what} {messages} of queue '{queue}'{}",
        to(action)
    ));
    match &action.step {
        Step::Types { line, error } => types(frame, action, line, error, &messages),
        Step::Runs {
            is_preview,
            looked,
            stops,
        } => runs(frame, action, *is_preview, *looked, *stops),
        Step::Confirm(page) => {
            text(frame, page);
            let other = match action.what {
                What::Replay(ReplayTo::Original) => "straight to the queue instead",
                _ => "through its exchange instead",
            };
            frame.keys(&[
                ("y", "do it"),
                ("n Esc", "leave it"),
                ("t", other),
                ("↑↓", "scroll"),
            ]);
        }
        Step::Report { page, can_turn, .. } => {
            text(frame, page);
            if *can_turn {
                frame.keys(&[("Enter", "go on"), ("t", "straight to the queue instead")]);
            } else {
                frame.keys(&[("↑↓", "scroll"), ("Enter", "go on")]);
            }
        }
    }
}

fn to(action: &Action) -> &'static str {
    match action.what {
        What::Replay(ReplayTo::Original) => " to where each was published",
        What::Replay(_) => " to the queue each failed in",
        What::Export | What::Purge => "",
    }
}

fn types(frame: &mut Frame<'_>, action: &Action, line: &str, error: &str, messages: &str) {
    let (they_stay, they_are, them) = if action.count == 1 {
        ("it stays", "It is", "it")
    } else {
        ("they stay", "They are", "them")
    };
    let words = if action.what == What::Export {
        format!(
            "Write {messages} to a file in this folder, as mq dlq export does; {they_stay} in the queue. A file that is there is not written over.\n\nIts name; without one it is named after the queue and the time:"
        )
    } else {
        format!(
            "Remove {messages} from the queue. {they_are} written to a file in this folder first, from which mq publish --jsonl can bring {them} back.\n\nType the queue's name to go on: {}",
            shown_name(&action.queue)
        )
    };
    let lines = wrapped(&words, frame.columns());
    for (row, line) in lines.iter().enumerate() {
        frame.line(row + 3, line);
    }
    let room = frame.columns().saturating_sub(4);
    let typed = tail(&one_line(line, usize::MAX), room);
    frame.line(lines.len() + 4, &format!("> {typed}▏"));
    frame.status(error);
    frame.keys(&[("Enter", "do it"), ("Esc", "leave it")]);
}

fn runs(frame: &mut Frame<'_>, action: &Action, is_preview: bool, looked: u64, stops: u8) {
    let doing = if is_preview {
        "looking where they would land; nothing is sent"
    } else {
        "under way"
    };
    frame.line(3, &format!("{doing} …"));
    frame.line(
        4,
        &format!(
            "{} of {} messages of the queue looked at",
            grouped(looked),
            grouped(action.ready)
        ),
    );
    frame.status(match stops {
        0 => "",
        1 => "stopping in order; what is under way is waited for",
        _ => "stopping at once",
    });
    frame.keys(&[("Esc", "stop in order"), ("Esc again", "at once")]);
}
