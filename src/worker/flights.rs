//! The deliveries in work, and how many of them are with a handler.

use std::collections::{BTreeMap, BTreeSet};

use crate::retry::BuryReason;

/// One delivery in work.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) attempt: u32,
    pub(super) nack_is_unsafe: bool,
    pub(super) stage: Stage,
}

/// What is being done with it.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// For the word whether its like was done before.
    Claiming,
    /// For a handler to be free.
    Waiting,
    Running,
    /// Held back until its next attempt.
    Held,
    /// Kept to be probed with: something downstream is down.
    Candidate,
    Parking(BuryReason),
    Copying,
    /// Its result is being published.
    Answering,
    /// It is done, which is being remembered.
    Recording,
}

/// All of them, by delivery tag. There may be tens of thousands, so that what is
/// asked at each event is kept and not counted anew.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights {
    all: BTreeMap<u64, Flight>,
    waiting: BTreeSet<u64>,
    running: usize,
}

impl Flights {
    pub(super) const fn new() -> Self {
        Self {
            all: BTreeMap::new(),
            waiting: BTreeSet::new(),
            running: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// How many are with a handler.
    pub(super) const fn running(&self) -> usize {
        self.running
    }

    pub(super) fn get(&self, tag: u64) -> Option<&Flight> {
        self.all.get(&tag)
    }

    /// A new one, which waits for a handler.
    pub(super) fn insert(&mut self, tag: u64, attempt: u32, nack_is_unsafe: bool) {
        self.remove(tag);
        self.all.insert(
            tag,
            Flight {
                attempt,
                nack_is_unsafe,
                stage: Stage::Waiting,
            },
        );
        self.waiting.insert(tag);
    }

    /// Moves one on; an unknown tag is left alone.
    pub(super) fn set(&mut self, tag: u64, stage: Stage) {
        if let Some(mut flight) = self.remove(tag) {
            match stage {
                Stage::Waiting => {
                    self.waiting.insert(tag);
                }
                Stage::Running => self.running += 1,
                Stage::Claiming
                | Stage::Held
                | Stage::Candidate
                | Stage::Parking(_)
                | Stage::Copying
                | Stage::Answering
                | Stage::Recording => {}
            }
            flight.stage = stage;
            self.all.insert(tag, flight);
        }
    }

    /// One attempt more.
    pub(super) fn count_attempt(&mut self, tag: u64) -> Option<u32> {
        let flight = self.all.get_mut(&tag)?;
        flight.attempt = flight.attempt.saturating_add(1);
        Some(flight.attempt)
    }

    pub(super) fn remove(&mut self, tag: u64) -> Option<Flight> {
        let flight = self.all.remove(&tag)?;
        match flight.stage {
            Stage::Waiting => {
                self.waiting.remove(&tag);
            }
            Stage::Running => self.running -= 1,
            Stage::Claiming
            | Stage::Held
            | Stage::Candidate
            | Stage::Parking(_)
            | Stage::Copying
            | Stage::Answering
            | Stage::Recording => {}
        }
        Some(flight)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }

    /// The one that has waited longest for a handler.
    pub(super) fn next_waiting(&self) -> Option<u64> {
        self.waiting.first().copied()
    }

    /// Those whose stage is such a one.
    pub(super) fn tags(&self, such: impl Fn(&Stage) -> bool) -> Vec<u64> {
        let all = self.all.iter();
        all.filter(|(_, flight)| such(&flight.stage))
            .map(|(tag, _)| *tag)
            .collect()
    }
}
