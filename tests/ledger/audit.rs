//! Closing the books: nothing may be missing, and what is there twice must come
//! from a fault that can do that.

use std::collections::BTreeMap;

use crate::fault::{Fault, Struck};
use crate::message::Fate;

/// A fault does harm to attempts that started this long after it, in seconds: a
/// delivery is on its way to a handler for a moment.
const SLACK: f64 = 0.5;

/// One attempt as its handler wrote it down; times in seconds.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) id: usize,
    pub(crate) number: usize,
    pub(crate) code: u8,
    pub(crate) began: f64,
    pub(crate) done: f64,
}

impl Attempt {
    /// Reads a line of the handler.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let attempt = Self {
            id: words.next()?.parse().ok()?,
            number: words.next()?.parse().ok()?,
            code: words.next()?.parse().ok()?,
            began: words.next()?.parse().ok()?,
            done: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(attempt)
    }
}

/// A message that was found in a queue at the end.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    pub(crate) id: usize,
    pub(crate) queue: String,
}

/// What the books say.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// Each a failure of the test.
    pub(crate) errors: Vec<String>,
    /// How many more outcomes than messages, by what they came from.
    pub(crate) duplicates: BTreeMap<String, usize>,
}

/// Compares what should have become of the messages with what did.
pub(crate) fn audit(
    fates: &[Fate],
    attempts: &[Attempt],
    rests: &[Rest],
    struck: &[Struck],
) -> Audit {
    let mut audit = Audit::default();
    for (id, fate) in fates.iter().enumerate() {
        let mine: Vec<&Attempt> = attempts.iter().filter(|attempt| attempt.id == id).collect();
        let handled = mine.iter().filter(|attempt| attempt.code == 0).count();
        let queues: Vec<&str> = rests
            .iter()
            .filter(|rest| rest.id == id)
            .map(|rest| rest.queue.as_str())
            .collect();
        let mut say = |what: &str| {
            audit.errors.push(format!(
                "message {id} {what}: codes {:?}, attempts {}, in {queues:?}",
                fate.0,
                told(&mine)
            ));
        };
        if mine
            .iter()
            .any(|attempt| fate.0.get(attempt.number.wrapping_sub(1)) != Some(&attempt.code))
        {
            say("had an attempt with a number that it should not have");
        }
        let dead = queues
            .iter()
            .filter(|queue| queue.strip_suffix(".dlq").is_some())
            .count();
        if queues.len() > dead {
            say("was left behind by a worker that called the queue empty");
        }
        if dead > 0 && fate.ends_well() {
            say("is a dead letter, though no attempt says so");
        }
        let outcomes = handled + queues.len();
        if outcomes == 0 {
            say("is LOST");
        }
        if outcomes > 1 {
            match cause(&mine, dead, struck) {
                Some(cause) => *audit.duplicates.entry(cause).or_default() += outcomes - 1,
                None => say("is there more than once, and no fault explains it"),
            }
        }
    }
    audit
}

fn told(attempts: &[&Attempt]) -> String {
    let told: Vec<String> = attempts
        .iter()
        .map(|attempt| {
            let (number, code) = (attempt.number, attempt.code);
            format!("{number}→{code} at {}–{}", attempt.began, attempt.done)
        })
        .collect();
    format!("[{}]", told.join(", "))
}

/// The fault that made one message two: it lies between an attempt and the
/// repetition of the same attempt.
fn cause(attempts: &[&Attempt], dead: usize, struck: &[Struck]) -> Option<String> {
    let (first, again) = repetition(attempts)?;
    let between = |from: f64| {
        struck
            .iter()
            .filter(move |fault| fault.to >= from - SLACK && fault.from <= again.began)
            .map(|fault| fault.fault)
    };
    let Some(fault) = between(first.began).next_back() else {
        // Between the failed attempt and this one the broker carries the message
        // from queue to queue, and may do that again after it was killed.
        let before = attempts
            .iter()
            .rfind(|attempt| attempt.number + 1 == first.number)?;
        return between(before.began)
            .rfind(|fault| *fault == Fault::BrokerKilled)
            .map(|fault| format!("{fault}: moved by the broker, and there before too"));
    };
    // Then each of the two went on by itself: one of them was a copy.
    let is_copy = first.code != 0 || dead > 1;
    Some(if is_copy {
        format!("{fault}: a copy was confirmed, its original not acked")
    } else {
        format!("{fault}: handled, not acked")
    })
}

/// The first attempt that was made twice, and its repetition.
fn repetition<'a>(attempts: &[&'a Attempt]) -> Option<(&'a Attempt, &'a Attempt)> {
    let mut sorted = attempts.to_vec();
    sorted.sort_by(|a, b| (a.number.cmp(&b.number)).then(a.began.total_cmp(&b.began)));
    let pairs = sorted.iter().zip(sorted.iter().skip(1));
    pairs
        .map(|(first, second)| (*first, *second))
        .find(|(first, second)| first.number == second.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(number: usize, code: u8, began: f64) -> Attempt {
        Attempt {
            id: 0,
            number,
            code,
            began,
            done: began + 0.1,
        }
    }

    fn rest(queue: &str) -> Rest {
        Rest {
            id: 0,
            queue: queue.to_owned(),
        }
    }

    fn at(fault: Fault, when: f64) -> Struck {
        Struck {
            fault,
            from: when,
            to: when,
        }
    }

    #[test]
    fn a_message_that_is_nowhere_is_lost() {
        let fates = [Fate(vec![1, 0])];
        let found = audit(&fates, &[attempt(1, 1, 1.0)], &[], &[]);
        assert!(found.errors[0].contains("is LOST"), "{found:?}");
        let found = audit(&fates, &[attempt(1, 1, 1.0)], &[rest("w.retry")], &[]);
        assert!(found.errors[0].contains("left behind"), "{found:?}");
        let found = audit(&fates, &[attempt(1, 1, 1.0), attempt(2, 0, 2.0)], &[], &[]);
        assert!(found.errors.is_empty(), "{found:?}");
    }

    #[test]
    fn what_is_there_twice_needs_a_fault_between() {
        let fates = [Fate(vec![0])];
        let attempts = [attempt(1, 0, 1.0), attempt(1, 0, 5.0)];
        for (when, is_explained) in [(0.4, false), (1.2, true), (4.9, true), (5.1, false)] {
            let faults = [at(Fault::ConnectionCut, when)];
            let found = audit(&fates, &attempts, &[], &faults);
            assert_eq!(found.errors.is_empty(), is_explained, "{when} {found:?}");
            assert_eq!(found.duplicates.len(), usize::from(is_explained));
        }
        assert_eq!(audit(&fates, &attempts, &[], &[]).errors.len(), 1);
    }

    #[test]
    fn two_dead_letters_of_one_message_are_a_copy_whose_original_was_not_acked() {
        let fates = [Fate(vec![65])];
        let attempts = [attempt(1, 65, 1.0), attempt(1, 65, 5.0)];
        let rests = [rest("w.dlq"), rest("w.dlq")];
        let faults = [at(Fault::CutAtConfirm, 2.0)];
        let found = audit(&fates, &attempts, &rests, &faults);
        let cause = "connection cut at a confirm: a copy was confirmed, its original not acked";
        assert_eq!(found.duplicates.get(cause), Some(&1), "{found:?}");
    }

    #[test]
    fn only_the_broker_doubles_what_it_carries() {
        let fates = [Fate(vec![1, 0])];
        let attempts = [attempt(1, 1, 1.0), attempt(2, 0, 5.0), attempt(2, 0, 5.1)];
        for (fault, is_explained) in [(Fault::BrokerKilled, true), (Fault::ConnectionCut, false)] {
            let found = audit(&fates, &attempts, &[], &[at(fault, 2.0)]);
            assert_eq!(found.errors.is_empty(), is_explained, "{found:?}");
        }
    }

    #[test]
    fn an_attempt_with_a_wrong_number_is_told() {
        let fates = [Fate(vec![1, 0])];
        let attempts = [attempt(1, 1, 1.0), attempt(3, 0, 2.0)];
        assert!(!audit(&fates, &attempts, &[], &[]).errors.is_empty());
    }
}
