//! Whether something downstream is down, and which message it is probed with.
//!
//! Failed attempts in a row are the sign. While it lasts failures cost no
//! attempts, and one message at a time is tried at growing intervals. Two take
//! turns, so that a bad one which always fails cannot make an outage of its own.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::retry::Outcome;
use crate::worker::Pausing;
use crate::worker::event::LONGEST_HOLD;

/// The wait before the first probe; it doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Messages that take turns, once one has failed as a probe.
const CANDIDATES: usize = 2;

/// What an outcome says about what is downstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// Nothing new: it is settled as always.
    Nothing,
    /// An outage begins with it.
    Outage {
        /// What was taken for one.
        sign: String,
        /// The failure.
        why: String,
    },
    /// The outage goes on: this was its probe.
    ProbeFailed,
    /// The outage goes on: this was begun before it, or settles nothing.
    StillDown,
}

/// What is to be done next in an outage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Give these back, which were held long enough, and wait.
    Rest {
        /// Those that go back.
        released: Vec<u64>,
        /// How long.
        wait: Duration,
    },
    /// Try this one.
    Probe(u64),
}

/// What is known of an outage.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    pausing: Option<Pausing>,
    failed_in_a_row: u32,
    now: Option<Pause>,
    /// Whether there ever was one.
    was: bool,
    /// Probes that failed while another succeeded: their next failure is their own.
    suspects: BTreeSet<u64>,
}

#[derive(Clone, Debug)]
struct Pause {
    phase: Phase,
    wait: Duration,
    /// In hand, the next one to be tried first.
    candidates: VecDeque<Candidate>,
    takes_one: bool,
    a_probe_failed: bool,
    waited: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    tag: u64,
    held: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The next wait is to be ordered.
    Idle,
    Resting(Duration),
    /// A probe is due as soon as there is a message.
    Due,
    Probing(u64),
}

impl Outage {
    pub(super) const fn new(pausing: Option<Pausing>) -> Self {
        Self {
            pausing,
            failed_in_a_row: 0,
            now: None,
            was: false,
            suspects: BTreeSet::new(),
        }
    }

    pub(super) const fn is_now(&self) -> bool {
        self.now.is_some()
    }

    pub(super) const fn was(&self) -> bool {
        self.was
    }

    /// Messages in hand beyond those in work when it is over.
    pub(super) const fn most_candidates() -> usize {
        CANDIDATES
    }

    /// The waits of the present one, summed.
    pub(super) fn waited(&self) -> Duration {
        self.now.as_ref().map_or(Duration::ZERO, |now| now.waited)
    }

    /// Whether a message that comes is wanted.
    pub(super) fn takes_messages(&self) -> bool {
        self.now.as_ref().is_none_or(|now| now.takes_one)
    }

    /// Takes the outcome of an attempt into account. `may_begin`: an outage
    /// that nobody would wait out does not begin.
    pub(super) fn judge(&mut self, tag: u64, outcome: &Outcome, may_begin: bool) -> Sign {
        let Some(pausing) = self.pausing else {
            return Sign::Nothing;
        };
        let is_suspect = self.suspects.remove(&tag);
        let was_probe = self.probe_ended(tag);
        let (why, says_down) = match outcome {
            Outcome::Done => {
                self.failed_in_a_row = 0;
                self.drop_candidate(tag);
                return Sign::Nothing;
            }
            Outcome::Failed { why, .. } => (why.clone(), false),
            Outcome::DownstreamDown { why } => (why.clone(), true),
            Outcome::Poison { .. } | Outcome::CannotStart { .. } | Outcome::Interrupted => {
                self.drop_candidate(tag);
                return Sign::Nothing;
            }
        };
        if let Some(pause) = &mut self.now {
            pause.a_probe_failed |= was_probe;
            return if was_probe {
                Sign::ProbeFailed
            } else {
                Sign::StillDown
            };
        }
        if is_suspect && !says_down {
            return Sign::Nothing;
        }
        if !says_down {
            self.failed_in_a_row = self.failed_in_a_row.saturating_add(1);
        }
        if !may_begin || (!says_down && self.failed_in_a_row < pausing.after) {
            return Sign::Nothing;
        }
        let sign = match (says_down, self.failed_in_a_row) {
            (true, _) => "the handler said that something it needs is down".to_owned(),
            (false, 1) => "an attempt failed".to_owned(),
            (false, count) => format!("{count} attempts in a row failed"),
        };
        Sign::Outage { sign, why }
    }

    /// The wait before the first probe.
    pub(super) fn first_wait(&self) -> Duration {
        self.pausing
            .map_or(FIRST_WAIT, |pausing| FIRST_WAIT.min(longest(pausing)))
    }

    /// It begins with the failure of this message, the first to probe with.
    pub(super) fn begin(&mut self, tag: u64) {
        self.was = true;
        self.failed_in_a_row = 0;
        self.now = Some(Pause {
            phase: Phase::Idle,
            wait: self.first_wait(),
            candidates: VecDeque::from([Candidate {
                tag,
                held: Duration::ZERO,
            }]),
            takes_one: false,
            a_probe_failed: false,
            waited: Duration::ZERO,
        });
    }

    /// It is over: gives what was held to probe with.
    pub(super) fn end(&mut self) -> Vec<u64> {
        let Some(pause) = self.now.take() else {
            return Vec::new();
        };
        let tags: Vec<u64> = pause.candidates.iter().map(|one| one.tag).collect();
        self.suspects.extend(&tags);
        tags
    }

    /// What comes next; `None` while something is under way, or a probe is due
    /// and no handler is free.
    pub(super) fn next(&mut self, a_handler_is_free: bool) -> Option<Next> {
        let longest = longest(self.pausing?);
        let pause = self.now.as_mut()?;
        match pause.phase {
            Phase::Resting(_) | Phase::Probing(_) => None,
            Phase::Due if !a_handler_is_free => None,
            Phase::Due => {
                let tag = pause.candidates.front()?.tag;
                pause.candidates.rotate_left(1);
                pause.phase = Phase::Probing(tag);
                Some(Next::Probe(tag))
            }
            Phase::Idle => {
                let wait = pause.wait;
                let mut released = Vec::new();
                pause.candidates.retain_mut(|candidate| {
                    candidate.held = candidate.held.saturating_add(wait);
                    let stays = candidate.held <= LONGEST_HOLD;
                    if !stays {
                        released.push(candidate.tag);
                    }
                    stays
                });
                pause.phase = Phase::Resting(wait);
                pause.waited = pause.waited.saturating_add(wait);
                pause.wait = wait.saturating_mul(2).min(longest);
                Some(Next::Rest { released, wait })
            }
        }
    }

    /// Whether one more message is to be taken now; says so once.
    pub(super) fn takes_one_more(&mut self) -> bool {
        match &mut self.now {
            Some(pause) if !pause.takes_one && pause.candidates.len() < pause.wanted() => {
                pause.takes_one = true;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Whether it wants a message and has none at all.
    pub(super) fn has_no_candidate(&self) -> bool {
        self.now
            .as_ref()
            .is_some_and(|now| now.candidates.is_empty())
    }

    /// A message came; whether it is one to probe with.
    pub(super) fn probe_came(&mut self, tag: u64) -> bool {
        let Some(pause) = &mut self.now else {
            return false;
        };
        pause.takes_one = false;
        // Nobody tells how much of the wait is left.
        let held = match pause.phase {
            Phase::Resting(wait) => wait,
            Phase::Idle | Phase::Due | Phase::Probing(_) => Duration::ZERO,
        };
        // One that was never tried before those that failed.
        pause.candidates.push_front(Candidate { tag, held });
        true
    }

    pub(super) fn rested(&mut self) {
        if let Some(pause) = &mut self.now
            && matches!(pause.phase, Phase::Resting(_))
        {
            pause.phase = Phase::Due;
        }
    }

    /// What was held comes back by itself; the next session takes one message
    /// and tries it at once.
    pub(super) fn connection_lost(&mut self) {
        self.suspects.clear();
        if let Some(pause) = &mut self.now {
            pause.candidates.clear();
            pause.phase = Phase::Due;
            pause.takes_one = true;
            pause.a_probe_failed = false;
        }
    }

    /// Whether this was the probe under way.
    fn probe_ended(&mut self, tag: u64) -> bool {
        match &mut self.now {
            Some(pause) if pause.phase == Phase::Probing(tag) => {
                pause.phase = Phase::Idle;
                true
            }
            Some(_) | None => false,
        }
    }

    /// It is settled and cannot be probed with again.
    pub(super) fn drop_candidate(&mut self, tag: u64) {
        if let Some(pause) = &mut self.now {
            pause.candidates.retain(|candidate| candidate.tag != tag);
        }
    }
}

impl Pause {
    const fn wanted(&self) -> usize {
        if self.a_probe_failed { CANDIDATES } else { 1 }
    }
}

fn longest(pausing: Pausing) -> Duration {
    if pausing.probe_wait.as_nanos() < LONGEST_HOLD.as_nanos() {
        pausing.probe_wait
    } else {
        LONGEST_HOLD
    }
}

#[cfg(test)]
mod tests;
