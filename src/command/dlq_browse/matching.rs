//! jq programs that are asked while keys go on: the newest one only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use crate::browse::{BrowsedLetter, Event};
use crate::deadletter::letter_json;
use crate::query::Filter;

/// What is asked.
#[derive(Clone)]
struct Question {
    number: u64,
    program: String,
    letters: Arc<Vec<BrowsedLetter>>,
}

/// Asks programs in the background.
pub(super) struct Matcher {
    newest: Arc<AtomicU64>,
    questions: watch::Sender<Option<Question>>,
}

impl Matcher {
    pub(super) fn start(send: UnboundedSender<Event>) -> Self {
        let (questions, mut waiting) = watch::channel::<Option<Question>>(None);
        let newest = Arc::new(AtomicU64::new(0));
        let now = Arc::clone(&newest);
        tokio::spawn(async move {
            while waiting.changed().await.is_ok() {
                let Some(question) = waiting.borrow_and_update().clone() else {
                    continue;
                };
                let number = question.number;
                let now = Arc::clone(&now);
                let is_stale = move || now.load(Ordering::Relaxed) != number;
                let answer = tokio::task::spawn_blocking(move || answer(&question, &is_stale));
                if let Ok(Some(answer)) = answer.await {
                    let _ = send.send(Event::Matched(number, answer));
                }
            }
        });
        Self { newest, questions }
    }

    pub(super) fn ask(&self, number: u64, program: String, letters: Arc<Vec<BrowsedLetter>>) {
        self.newest.store(number, Ordering::Relaxed);
        let _ = self.questions.send(Some(Question {
            number,
            program,
            letters,
        }));
    }
}

/// What the program says of each letter; `None`: nobody wants to know any more.
fn answer(question: &Question, is_stale: &dyn Fn() -> bool) -> Option<Result<Vec<bool>, String>> {
    let filter = match Filter::parse(&question.program) {
        Ok(filter) => filter,
        Err(error) => return Some(Err(error.message().to_owned())),
    };
    let mut accepted = Vec::with_capacity(question.letters.len());
    for (at, it) in question.letters.iter().enumerate() {
        if is_stale() {
            return None;
        }
        let kept = it.message.message.body.len();
        let json = letter_json(&it.message.message, &it.letter, it.message.body_bytes, kept);
        match filter.accepts(&json) {
            Ok(accepts) => accepted.push(accepts),
            Err(error) => {
                return Some(Err(format!("message {}: {}", at + 1, error.message())));
            }
        }
    }
    Some(Ok(accepted))
}
