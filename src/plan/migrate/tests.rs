//! A model broker: whatever is cut short and wherever, the end is the same, and
//! at no time is a message in no queue or the order wrong at the end.

use std::collections::BTreeSet;

use super::*;
use crate::topology::{ExchangeName, QueueName, RoutingKey};

/// The broker as far as a migration needs it: three queues as lists of numbered
/// messages, and a publisher whose every message goes to all of `feeders`.
#[derive(Clone, Debug)]
struct Model {
    names: MigrateNames,
    queue: Option<(bool, Vec<u32>)>,
    feeders: Vec<Binding>,
    moved: Vec<Binding>,
    temporary: Temporary,
    entry_bound: bool,
    back_bound: bool,
    ways_bound: bool,
    old: Vec<u32>,
    new: Vec<u32>,
    /// Those in the queue that came over the entry and not as copies.
    direct: Vec<u32>,
    published: u32,
}

fn feeders(count: usize) -> Vec<Binding> {
    let names = names();
    (0..count)
        .map(|n| Binding {
            source: ExchangeName::new(format!("s{n}")).expect("name"),
            key: RoutingKey::new("k").expect("key"),
            ..names.entry_binding()
        })
        .collect()
}

fn names() -> MigrateNames {
    MigrateNames::of(&QueueName::new("q").expect("name")).expect("names")
}

/// A step in its smallest parts, each of which the broker does at once.
#[derive(Clone, Debug)]
enum Part {
    DeclareTemporary,
    DeclareEntry,
    BindEntry,
    UnbindEntry,
    BindToEntry(Binding),
    UnbindFromQueue(Binding),
    BindToQueue(Binding),
    UnbindFromEntry(Binding),
    CopyOut,
    DeleteQueue,
    CreateQueue,
    DeclareBack,
    CopyBack,
    CopyNewBack,
    CopyNewOut,
    CopyDirectBehind,
    DeleteEntry,
    DeleteNew,
    DeleteOld,
    DeleteBack,
}

fn parts(step: &MigrateStep, model: &Model) -> Vec<Part> {
    let held = model.queue.as_ref().map_or(0, |(_, held)| held.len());
    match step {
        MigrateStep::Declare => vec![Part::DeclareTemporary, Part::DeclareEntry],
        MigrateStep::Open => vec![Part::BindEntry],
        MigrateStep::MoveBindings(bindings) => bindings
            .iter()
            .flat_map(|binding| {
                [
                    Part::BindToEntry(binding.clone()),
                    Part::UnbindFromQueue(binding.clone()),
                ]
            })
            .collect(),
        MigrateStep::Close | MigrateStep::Detach => vec![Part::UnbindEntry],
        MigrateStep::Empty => vec![Part::CopyOut; held],
        MigrateStep::Delete => vec![Part::DeleteQueue],
        MigrateStep::Create => vec![Part::CreateQueue],
        MigrateStep::BindBack => vec![Part::DeclareBack],
        MigrateStep::Refill => {
            let mut parts = vec![Part::CopyBack; model.old.len()];
            parts.push(Part::CopyDirectBehind);
            parts
        }
        MigrateStep::CatchUp => {
            // What a run that was cut short left undone.
            let mut parts = vec![Part::CopyDirectBehind];
            parts.extend(vec![Part::CopyNewBack; model.new.len()]);
            if !model.moved.is_empty() {
                parts.push(Part::BindEntry);
            }
            parts
        }
        MigrateStep::TurnBack => {
            let mut parts = vec![Part::CopyNewOut; model.new.len()];
            parts.push(Part::UnbindEntry);
            parts
        }
        MigrateStep::Restore(bindings) => bindings
            .iter()
            .flat_map(|binding| {
                [
                    Part::BindToQueue(binding.clone()),
                    Part::UnbindFromEntry(binding.clone()),
                ]
            })
            .collect(),
        MigrateStep::Clear => vec![
            Part::DeleteEntry,
            Part::DeleteNew,
            Part::DeleteOld,
            Part::DeleteBack,
        ],
    }
}

impl Model {
    fn new(bindings: usize, held: u32) -> Self {
        Self {
            names: names(),
            queue: Some((true, (0..held).collect())),
            feeders: feeders(bindings),
            moved: Vec::new(),
            temporary: Temporary::default(),
            entry_bound: false,
            back_bound: false,
            ways_bound: false,
            old: Vec::new(),
            new: Vec::new(),
            direct: Vec::new(),
            published: held,
        }
    }

    fn seen(&self) -> Seen {
        Seen {
            queue: self.queue.as_ref().map(|(differs, held)| SeenQueue {
                differs: *differs,
                ready: held.len() as u64,
            }),
            feeders: self.feeders.clone(),
            moved: self.moved.clone(),
            temporary: Temporary {
                new: self.temporary.new.map(|_| self.new.len() as u64),
                old: self.temporary.old.map(|_| self.old.len() as u64),
                ..self.temporary
            },
            entry_bound: self.entry_bound,
            back_bound: self.back_bound,
            ways_bound: self.ways_bound,
        }
    }

    /// Publishes one message to every source that there ever was.
    fn publish(&mut self) {
        let to_queue = !self.feeders.is_empty() || (!self.moved.is_empty() && self.entry_bound);
        let aside = !self.moved.is_empty() && !self.entry_bound;
        assert!(
            !(to_queue && aside && self.back_bound),
            "in both queues: {self:?}"
        );
        let message = self.published;
        let held = self.queue.as_mut().filter(|_| to_queue);
        match (held, aside) {
            (Some((_, held)), false) => {
                held.push(message);
                if self.back_bound && !self.moved.is_empty() {
                    self.direct.push(message);
                }
            }
            (None, true) => {
                assert!(self.temporary.new.is_some(), "lost: {self:?}");
                self.new.push(message);
            }
            (None, false) if self.feeders.is_empty() && self.moved.is_empty() => return,
            _ => panic!("message {message} went nowhere or twice: {self:?}"),
        }
        self.published += 1;
    }

    fn take(&mut self, part: &Part) {
        let queue = |model: &mut Self| model.queue.as_mut().map(|(_, held)| held.remove(0));
        match part {
            Part::DeclareTemporary => {
                self.temporary.aside = true;
                self.temporary.out = true;
                self.temporary.new.get_or_insert(0);
                self.temporary.old.get_or_insert(0);
                self.ways_bound = true;
            }
            Part::DeclareEntry => self.temporary.entry = true,
            Part::BindEntry => {
                assert!(self.temporary.entry && self.queue.is_some());
                self.entry_bound = true;
            }
            Part::UnbindEntry => self.entry_bound = false,
            Part::BindToEntry(binding) => {
                assert!(self.temporary.entry);
                if !self.moved.contains(binding) {
                    self.moved.push(binding.clone());
                }
            }
            Part::UnbindFromQueue(binding) => self.feeders.retain(|other| other != binding),
            Part::BindToQueue(binding) => {
                if !self.feeders.contains(binding) {
                    self.feeders.push(binding.clone());
                }
            }
            Part::UnbindFromEntry(binding) => self.moved.retain(|other| other != binding),
            Part::CopyOut => {
                let message = queue(self).expect("queue");
                self.old.push(message);
            }
            Part::DeleteQueue => {
                let (_, held) = self.queue.take().expect("queue");
                assert!(held.is_empty(), "messages went with the queue");
                assert!(self.feeders.is_empty() && !self.entry_bound && !self.back_bound);
            }
            Part::CreateQueue => self.queue = Some((false, Vec::new())),
            Part::DeclareBack => {
                self.temporary.back = true;
                self.back_bound = true;
            }
            Part::CopyBack => {
                let message = self.old.remove(0);
                self.queue.as_mut().expect("queue").1.push(message);
            }
            Part::CopyNewBack => {
                let message = self.new.remove(0);
                self.queue.as_mut().expect("queue").1.push(message);
            }
            Part::CopyNewOut => {
                let message = self.new.remove(0);
                self.old.push(message);
            }
            Part::CopyDirectBehind => {
                let (_, held) = self.queue.as_mut().expect("queue");
                held.retain(|message| !self.direct.contains(message));
                held.append(&mut self.direct);
            }
            Part::DeleteEntry => {
                assert!(!self.entry_bound && self.moved.is_empty());
                self.temporary.entry = false;
            }
            Part::DeleteNew => {
                assert!(self.new.is_empty());
                self.temporary.new = None;
                self.temporary.aside = false;
                self.ways_bound = false;
            }
            Part::DeleteOld => {
                assert!(self.old.is_empty());
                self.temporary.old = None;
                self.temporary.out = false;
            }
            Part::DeleteBack => {
                self.temporary.back = false;
                self.back_bound = false;
            }
        }
    }

    fn all(&self) -> BTreeSet<u32> {
        let held = self.queue.iter().flat_map(|(_, held)| held);
        held.chain(&self.old).chain(&self.new).copied().collect()
    }
}

/// Runs to the end; the run is cut short after `limit` parts, and a message is
/// published before each part for which `publishes` says so.
fn run(model: &mut Model, limit: usize, publishes: &dyn Fn(usize) -> bool) -> bool {
    let mut taken = 0;
    // A run that goes in circles is a failure.
    for _ in 0..200 {
        let step = match next(&model.seen()) {
            Next::Take(step) => step,
            Next::Done => return true,
            other => panic!("{other:?}: {model:?}"),
        };
        for part in parts(&step, model) {
            if taken == limit {
                return false;
            }
            if publishes(taken) {
                model.publish();
            }
            // While a step is under way the real run looks before it deletes.
            if matches!(part, Part::DeleteQueue)
                && model
                    .queue
                    .as_ref()
                    .is_none_or(|(_, held)| !held.is_empty())
            {
                break;
            }
            model.take(&part);
            taken += 1;
            let all: BTreeSet<u32> = (0..model.published).collect();
            assert_eq!(model.all(), all, "after {part:?}: {model:?}");
        }
    }
    panic!("does not end: {model:?}");
}

/// Every message once and in order, every binding back, nothing left behind.
fn is_as_it_should_be(model: &Model, bindings: usize) {
    let expected: Vec<u32> = (0..model.published).collect();
    assert_eq!(model.queue, Some((false, expected)), "{model:?}");
    assert_eq!(model.feeders.len(), bindings, "{model:?}");
    assert!(model.temporary.is_none() && model.moved.is_empty());
    assert_eq!(model.names, names());
}

#[test]
fn cut_short_after_any_part_it_ends_the_same() {
    for bindings in 0..3 {
        for held in [0, 3] {
            for limit in 0..60 {
                let mut model = Model::new(bindings, held);
                run(&mut model, limit, &|_| false);
                assert!(run(&mut model, usize::MAX, &|_| false));
                is_as_it_should_be(&model, bindings);
            }
        }
    }
}

#[test]
fn cut_short_again_and_again_under_load_nothing_is_lost_and_the_order_stays() {
    for bindings in 1..3 {
        for limit in 1..40 {
            let mut model = Model::new(bindings, 3);
            // Publishes now and then, but not for ever: a moment of quiet is needed.
            let mut ended = false;
            for round in 0..200 {
                ended = run(&mut model, limit, &|taken| taken % 5 == 1 && round < 40);
                if ended {
                    break;
                }
            }
            if !ended {
                assert!(run(&mut model, usize::MAX, &|_| false));
            }
            is_as_it_should_be(&model, bindings);
        }
    }
}

#[test]
fn the_plan_is_what_a_run_does() {
    let model = Model::new(1, 3);
    let words: Vec<&str> = steps_from(&model.seen())
        .iter()
        .map(MigrateStep::word)
        .collect();
    assert_eq!(
        words,
        [
            "declare",
            "open",
            "move_bindings",
            "close",
            "empty",
            "delete",
            "create",
            "bind_back",
            "refill",
            "catch_up",
            "restore_bindings",
            "detach",
            "clear"
        ]
    );
    let words: Vec<&str> = steps_from(&Model::new(0, 0).seen())
        .iter()
        .map(MigrateStep::word)
        .collect();
    assert_eq!(words, ["declare", "delete", "create", "bind_back", "clear"]);
}

#[test]
fn other_arguments_half_way_are_refused_and_a_missing_queue_is_told() {
    let mut model = Model::new(1, 3);
    assert!(!run(&mut model, 12, &|_| false));
    assert!(model.back_bound);
    if let Some((differs, _)) = &mut model.queue {
        *differs = true;
    }
    assert_eq!(next(&model.seen()), Next::OtherTarget);
    assert_eq!(next(&Seen::default()), Next::NoQueue);
}
