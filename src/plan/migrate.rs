//! Migrating a queue to other arguments: what is there says what comes next.
//!
//! There is no state file. [`next`] looks at what exists on the broker and gives
//! the one step to take now, so a run that was killed anywhere goes on where it
//! stopped. The temporary objects are named after the queue Q:
//!
//! | name | what |
//! |---|---|
//! | `Q.mq-migrate` | exchange that Q's bindings lead to meanwhile (entry) |
//! | `Q.mq-migrate.aside` | its alternate exchange, and what that one is for |
//! | `Q.mq-migrate.new` | queue of what is published while Q is being changed |
//! | `Q.mq-migrate.old` | queue of what Q held |
//! | `Q.mq-migrate.out`, `.back` | exchanges that copies go through, so that their routing keys stay |
//!
//! While the entry is bound to Q, everything flows as before. With that one
//! binding gone the entry routes nowhere and the alternate exchange takes over:
//! no message is in both queues and none in neither (measured on 3.10.8, 4.0.5
//! and 4.3.6 with three publishers). A message that reaches a queue on several
//! paths is put into it once, so bindings can be moved without a gap by binding
//! first and unbinding afterwards. The binding of `.back` to Q tells whether Q
//! is the queue to be emptied or the one to be filled.

mod argument_types;
mod names;
mod objections;
mod overlap;
mod report;

#[cfg(test)]
mod tests;

use crate::topology::Binding;

pub use argument_types::spellings;
pub use names::MigrateNames;
pub use objections::{Existing, Feeder, harmful_settings, objections, straight_feeders};
pub use overlap::{Overlap, overlap};
pub use report::{MigrateReport, Progress, StepLine};

/// What the broker has, as far as a migration is about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The queue itself.
    pub queue: Option<SeenQueue>,
    /// Bindings to the queue from anything but the temporary exchanges.
    pub feeders: Vec<Binding>,
    /// Bindings to the entry.
    pub moved: Vec<Binding>,
    /// Which of the temporary exchanges and queues exist.
    pub temporary: Temporary,
    /// The entry is bound to the queue.
    pub entry_bound: bool,
    /// The exchange for the way back is bound to the queue.
    pub back_bound: bool,
    /// The alternate exchange is bound to its queue, and the way out to its.
    pub ways_bound: bool,
}

/// The queue under migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenQueue {
    /// It is not as the file says.
    pub differs: bool,
    /// Messages ready in it.
    pub ready: u64,
}

/// The temporary objects that exist; queues with their ready messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one object that exists or not, in any combination"
)]
pub struct Temporary {
    /// `Q.mq-migrate`.
    pub entry: bool,
    /// `Q.mq-migrate.aside`.
    pub aside: bool,
    /// `Q.mq-migrate.out`.
    pub out: bool,
    /// `Q.mq-migrate.back`.
    pub back: bool,
    /// `Q.mq-migrate.new`.
    pub new: Option<u64>,
    /// `Q.mq-migrate.old`.
    pub old: Option<u64>,
}

impl Temporary {
    /// Whether nothing of a migration exists.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    fn is_ready(&self) -> bool {
        self.entry && self.aside && self.out && self.new.is_some() && self.old.is_some()
    }

    fn new_ready(&self) -> u64 {
        self.new.unwrap_or(0)
    }

    fn old_ready(&self) -> u64 {
        self.old.unwrap_or(0)
    }
}

/// One step. Each can be taken again without harm when it was cut short.
#[derive(Clone, Debug, PartialEq)]
pub enum MigrateStep {
    /// Declare the temporary objects that are missing; the entry comes last.
    Declare,
    /// Bind the entry to the queue.
    Open,
    /// Lead these bindings to the entry: bind there, then unbind from the queue.
    MoveBindings(Vec<Binding>),
    /// Unbind the entry from the queue: what is published from now on waits aside.
    Close,
    /// Move what the queue holds into the old queue.
    Empty,
    /// Delete the queue, which is empty and unused.
    Delete,
    /// Declare the queue as the file says.
    Create,
    /// Declare the exchange for the way back and bind it: the queue is to be filled.
    BindBack,
    /// Move the old queue back.
    Refill,
    /// Move what waited aside, and bind the entry to the queue at a moment when
    /// nothing waits.
    CatchUp,
    /// Something waits aside although the entry is bound: turn back, in order.
    TurnBack,
    /// Lead these bindings to the queue again: bind there, then unbind from the entry.
    Restore(Vec<Binding>),
    /// Unbind the entry from the queue; nothing leads to the entry any more.
    Detach,
    /// Delete the temporary objects, queues only if they are empty.
    Clear,
}

impl MigrateStep {
    /// A short word for scripts.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Declare => "declare",
            Self::Open => "open",
            Self::MoveBindings(_) => "move_bindings",
            Self::Close => "close",
            Self::Empty => "empty",
            Self::Delete => "delete",
            Self::Create => "create",
            Self::BindBack => "bind_back",
            Self::Refill => "refill",
            Self::CatchUp => "catch_up",
            Self::TurnBack => "turn_back",
            Self::Restore(_) => "restore_bindings",
            Self::Detach => "detach",
            Self::Clear => "clear",
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Take this step, then look again.
    Take(MigrateStep),
    /// The queue is as the file says and nothing temporary is left.
    Done,
    /// There is neither the queue nor anything of a migration.
    NoQueue,
    /// It is half-way to other arguments than those of the file.
    OtherTarget,
}

/// The one step that what is there asks for.
#[must_use]
pub fn next(seen: &Seen) -> Next {
    let temporary = &seen.temporary;
    if temporary.is_none() {
        return match seen.queue {
            None => Next::NoQueue,
            Some(queue) if queue.differs => Next::Take(MigrateStep::Declare),
            Some(_) => Next::Done,
        };
    }
    if seen.back_bound {
        filling(seen)
    } else {
        Next::Take(emptying(seen))
    }
}

/// The queue is still the one to be emptied, or not there at all.
fn emptying(seen: &Seen) -> MigrateStep {
    let temporary = &seen.temporary;
    let as_wanted = seen.queue.is_some_and(|queue| !queue.differs);
    let holds_any = temporary.new_ready() + temporary.old_ready() > 0;
    if !temporary.entry && as_wanted && !holds_any {
        // The end of another run, of which only deleting was left.
        return MigrateStep::Clear;
    }
    if !temporary.is_ready() || !seen.ways_bound {
        return MigrateStep::Declare;
    }
    // Before anything leads to the entry, it must lead to the queue.
    if !seen.feeders.is_empty() && !seen.entry_bound && seen.moved.is_empty() {
        return MigrateStep::Open;
    }
    if !seen.feeders.is_empty() {
        return MigrateStep::MoveBindings(seen.feeders.clone());
    }
    if seen.entry_bound {
        return MigrateStep::Close;
    }
    match seen.queue {
        None => MigrateStep::Create,
        Some(queue) if queue.ready > 0 => MigrateStep::Empty,
        Some(queue) if queue.differs => MigrateStep::Delete,
        Some(_) => MigrateStep::BindBack,
    }
}

/// The queue is the one to be filled.
fn filling(seen: &Seen) -> Next {
    let temporary = &seen.temporary;
    if seen.queue.is_some_and(|queue| queue.differs) {
        return Next::OtherTarget;
    }
    if seen.entry_bound {
        if temporary.new_ready() + temporary.old_ready() > 0 {
            return Next::Take(MigrateStep::TurnBack);
        }
        return Next::Take(if seen.moved.is_empty() {
            MigrateStep::Detach
        } else {
            MigrateStep::Restore(seen.moved.clone())
        });
    }
    // Bindings that somebody declared meanwhile would let messages in twice.
    if !seen.moved.is_empty() && !seen.feeders.is_empty() {
        return Next::Take(MigrateStep::MoveBindings(seen.feeders.clone()));
    }
    Next::Take(if temporary.old_ready() > 0 {
        MigrateStep::Refill
    } else if !seen.moved.is_empty() || temporary.new_ready() > 0 {
        MigrateStep::CatchUp
    } else {
        MigrateStep::Clear
    })
}

impl Seen {
    /// What is there once `step` was taken and nothing was published meanwhile.
    #[must_use]
    pub fn after(&self, step: &MigrateStep) -> Self {
        let mut seen = self.clone();
        match step {
            MigrateStep::Declare => {
                seen.temporary = Temporary {
                    entry: true,
                    aside: true,
                    out: true,
                    new: Some(self.temporary.new_ready()),
                    old: Some(self.temporary.old_ready()),
                    ..self.temporary
                };
                seen.ways_bound = true;
            }
            MigrateStep::Open => seen.entry_bound = true,
            MigrateStep::MoveBindings(bindings) => {
                seen.feeders.clear();
                for binding in bindings {
                    if !seen.moved.contains(binding) {
                        seen.moved.push(binding.clone());
                    }
                }
            }
            MigrateStep::Close | MigrateStep::Detach => seen.entry_bound = false,
            MigrateStep::Empty => {
                let ready = self.queue.map_or(0, |queue| queue.ready);
                seen.temporary.old = Some(self.temporary.old_ready() + ready);
                seen.set_ready(0);
            }
            MigrateStep::Delete => seen.queue = None,
            MigrateStep::Create => {
                seen.queue = Some(SeenQueue {
                    differs: false,
                    ready: 0,
                });
            }
            MigrateStep::BindBack => {
                seen.temporary.back = true;
                seen.back_bound = true;
            }
            MigrateStep::Refill => {
                seen.set_ready(self.held() + self.temporary.old_ready());
                seen.temporary.old = Some(0);
            }
            MigrateStep::CatchUp => {
                seen.set_ready(self.held() + self.temporary.new_ready());
                seen.temporary.new = self.temporary.new.map(|_| 0);
                seen.entry_bound = !self.moved.is_empty();
            }
            MigrateStep::TurnBack => {
                seen.temporary.old = Some(self.temporary.old_ready() + self.temporary.new_ready());
                seen.temporary.new = Some(0);
                seen.entry_bound = false;
            }
            MigrateStep::Restore(_) => {
                seen.feeders.append(&mut seen.moved);
            }
            MigrateStep::Clear => {
                seen.temporary = Temporary::default();
                seen.back_bound = false;
                seen.ways_bound = false;
            }
        }
        seen
    }

    fn held(&self) -> u64 {
        self.queue.map_or(0, |queue| queue.ready)
    }

    fn set_ready(&mut self, ready: u64) {
        if let Some(queue) = &mut self.queue {
            queue.ready = ready;
        }
    }
}

/// Every step from here to the end, as far as it can be seen from here.
#[must_use]
pub fn steps_from(seen: &Seen) -> Vec<MigrateStep> {
    // Each step is taken once, and Empty and Delete may be needed again.
    const LONGEST: usize = 40;
    let mut seen = seen.clone();
    let mut steps = Vec::new();
    while steps.len() < LONGEST
        && let Next::Take(step) = next(&seen)
    {
        seen = seen.after(&step);
        steps.push(step);
    }
    steps
}
