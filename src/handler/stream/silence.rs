//! A bad deploy or a bad message? Told apart by how many different messages in
//! a row a fresh child left without an answer.
//!
//! One message that breaks every child is retried and dead-lettered as any
//! other; children that answer nobody would drain the queue.

use std::collections::BTreeMap;

/// This many different messages in a row mean a bad deploy.
pub(super) const TOO_MANY: usize = 3;

/// What no fresh child answered since the last answer of any child.
#[derive(Debug, Default)]
pub(super) struct Silence {
    unanswered: BTreeMap<u64, Unanswered>,
    anyone_answered: bool,
}

/// Messages that look the same.
#[derive(Debug)]
struct Unanswered {
    highest_attempt: u32,
    messages: usize,
}

impl Silence {
    /// A child answered, whatever it said.
    pub(super) fn answered(&mut self) {
        self.anyone_answered = true;
        self.unanswered.clear();
    }

    /// Whether no child of this worker has answered yet.
    pub(super) const fn is_unbroken(&self) -> bool {
        !self.anyone_answered
    }

    /// A fresh child left a message unanswered. `look` tells messages apart and
    /// is the same on every attempt at one. Says whether that makes a bad deploy.
    pub(super) fn unanswered(&mut self, look: u64, attempt: u32) -> bool {
        self.unanswered
            .entry(look)
            .and_modify(|seen| {
                if attempt > seen.highest_attempt {
                    seen.highest_attempt = attempt;
                } else {
                    // One message does not make the same attempt twice.
                    seen.messages += 1;
                }
            })
            .or_insert(Unanswered {
                highest_attempt: attempt,
                messages: 1,
            });
        self.unanswered
            .values()
            .map(|seen| seen.messages)
            .sum::<usize>()
            >= TOO_MANY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_different_messages_in_a_row_are_a_bad_deploy() {
        let mut silence = Silence::default();
        assert!(!silence.unanswered(1, 1));
        assert!(!silence.unanswered(2, 1));
        assert!(silence.unanswered(3, 1));
        assert!(silence.unanswered(1, 2), "and it stays one");
    }

    #[test]
    fn one_message_is_not_however_often_it_is_tried() {
        let mut silence = Silence::default();
        for attempt in 1..100 {
            assert!(!silence.unanswered(1, attempt));
        }
        assert!(!silence.unanswered(2, 5));
    }

    #[test]
    fn messages_that_look_the_same_are_told_apart_by_their_attempts() {
        let mut silence = Silence::default();
        assert!(!silence.unanswered(1, 1));
        assert!(!silence.unanswered(1, 1));
        assert!(!silence.unanswered(1, 2));
        assert!(silence.unanswered(1, 1));
    }

    #[test]
    fn an_answer_begins_anew() {
        let mut silence = Silence::default();
        assert!(silence.is_unbroken());
        silence.unanswered(1, 1);
        silence.unanswered(2, 1);
        silence.answered();
        assert!(!silence.is_unbroken());
        assert!(!silence.unanswered(3, 1));
        assert!(!silence.unanswered(4, 1));
        assert!(silence.unanswered(5, 1));
    }
}
