//! Where a set of routing keys leads from an exchange: the queues that some of
//! them reach, those that all of them reach, and whether each is sure to reach one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use crate::lint::keys::Keys;
use crate::routing::{Router, takes_everything};
use crate::topology::{
    Binding, Destination, ExchangeName, ExchangeType, QueueName, RoutingKey, Topology,
};

/// Ways through more exchanges than this are not judged.
const MOST_STATES: usize = 1_000;

/// Words compared with words, after which no further way is judged.
const MOST_EFFORT: usize = 30_000_000;

/// Where some keys lead.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// The queues that some of them can reach, with the keys that arrive there.
    pub(super) queues: BTreeMap<QueueName, BTreeSet<Keys>>,
    /// The queues that every one of them reaches, whatever headers there are.
    pub(super) certain: BTreeSet<QueueName>,
    /// Whether every one of them reaches a queue for certain.
    pub(super) sure: bool,
    /// Whether something on the way is not known here; then the rest is a guess.
    pub(super) unknown: bool,
    /// The same, but for an exchange that is not there: where all there is is known,
    /// as on a broker, messages to it are dropped.
    pub(super) unknowable: bool,
}

/// Answers that were given before.
#[derive(Default)]
pub(super) struct Flows {
    known: HashMap<(ExchangeName, Keys), Rc<Flow>>,
    effort: usize,
}

/// One exchange with the keys that arrive there.
struct State {
    exchange: ExchangeName,
    keys: Keys,
    /// Where its bindings take some of the keys to, and whether all of them.
    taken: Vec<(To, bool)>,
    alternate: Option<usize>,
    sure: bool,
}

#[derive(Clone)]
enum To {
    Queue(QueueName),
    State(usize),
}

impl Flows {
    pub(super) fn of(
        &mut self,
        router: &Router<'_>,
        exchange: &ExchangeName,
        keys: &Keys,
    ) -> Rc<Flow> {
        let question = (exchange.clone(), keys.clone());
        if let Some(known) = self.known.get(&question) {
            return Rc::clone(known);
        }
        let flow = Rc::new(self.flow(router, exchange, keys));
        self.known.insert(question, Rc::clone(&flow));
        flow
    }

    /// Whether there was too much to judge all of it.
    pub(super) fn is_exhausted(&self) -> bool {
        self.effort > MOST_EFFORT
    }

    fn flow(&mut self, router: &Router<'_>, exchange: &ExchangeName, keys: &Keys) -> Flow {
        let topology = router.topology();
        if exchange.is_empty() {
            return through_default_exchange(topology, keys);
        }
        let mut found = Flow::default();
        let mut states = States::default();
        states.enter(exchange, keys.clone());
        let mut at = 0;
        while let Some(state) = states.all.get(at) {
            if states.all.len() > MOST_STATES || self.is_exhausted() {
                found.unknown = true;
                found.unknowable = true;
                return found;
            }
            let (name, keys) = (state.exchange.clone(), state.keys.clone());
            let kind = topology.exchange(&name).map(|exchange| exchange.kind);
            let is_elsewhere = topology.elsewhere.contains(name.as_str());
            found.unknowable |=
                kind.is_none() && is_elsewhere || matches!(kind, Some(ExchangeType::Plugin(_)));
            let Some(kind) = kind.filter(|kind| !matches!(kind, ExchangeType::Plugin(_))) else {
                found.unknown = true;
                at += 1;
                continue;
            };
            let mut taken = Vec::new();
            for (binding, taken_keys, all) in self.takers(router, &name, &kind, &keys) {
                let to = match &binding.destination {
                    Destination::Queue(queue) => {
                        let arriving = found.queues.entry(queue.clone()).or_default();
                        arriving.insert(taken_keys);
                        To::Queue(queue.clone())
                    }
                    Destination::Exchange(next) => To::State(states.enter(next, taken_keys)),
                };
                taken.push((to, all));
            }
            let alternate = if taken.iter().any(|(_, all)| *all) {
                None
            } else {
                router
                    .alternate(&name)
                    .filter(|alternate| topology.exchange(alternate).is_some())
                    .map(|alternate| states.enter(alternate, keys))
            };
            if let Some(state) = states.all.get_mut(at) {
                state.taken = taken;
                state.alternate = alternate;
            }
            at += 1;
        }
        found.sure = states.settle();
        found.certain = states.certain();
        found
    }

    /// The bindings that take some of the keys, with those keys, and whether they
    /// take all of them whatever headers there are.
    fn takers<'t>(
        &mut self,
        router: &Router<'t>,
        exchange: &ExchangeName,
        kind: &ExchangeType,
        keys: &Keys,
    ) -> Vec<(&'t Binding, Keys, bool)> {
        let all = router.bindings_from(exchange).iter().copied();
        match (kind, keys) {
            (ExchangeType::Direct | ExchangeType::Topic, Keys::Exact(key)) => {
                let Ok(key) = RoutingKey::new(key.as_str()) else {
                    return Vec::new();
                };
                let taking = router.taking(exchange, &key).into_iter();
                taking
                    .map(|binding| (binding, keys.clone(), true))
                    .collect()
            }
            (ExchangeType::Direct, _) => all
                .inspect(|binding| self.effort += keys.effort(binding.key.as_str()))
                .filter(|binding| keys.hold(binding.key.as_str()))
                .map(|binding| (binding, Keys::Exact(binding.key.to_string()), false))
                .collect(),
            (ExchangeType::Topic, _) => all
                .filter_map(|binding| {
                    let pattern = binding.key.as_str();
                    self.effort += keys.effort(pattern);
                    if self.effort > MOST_EFFORT {
                        return None;
                    }
                    let taken = keys.and_pattern(pattern)?;
                    Some((binding, taken, keys.all_taken_by(pattern)))
                })
                .collect(),
            (ExchangeType::Fanout, _) => all.map(|binding| (binding, keys.clone(), true)).collect(),
            (ExchangeType::Headers, _) => all
                .map(|binding| {
                    let always = takes_everything(&binding.arguments);
                    (binding, keys.clone(), always)
                })
                .collect(),
            (ExchangeType::Plugin(_), _) => Vec::new(),
        }
    }
}

fn through_default_exchange(topology: &Topology, keys: &Keys) -> Flow {
    let is_elsewhere = |name: &str| topology.elsewhere.contains(name);
    match keys {
        Keys::Exact(key) => {
            let name = QueueName::new(key.as_str()).ok();
            let there = name
                .filter(|name| topology.queues.contains_key(name) || is_elsewhere(name.as_str()));
            Flow {
                sure: there.is_some(),
                certain: there.iter().cloned().collect(),
                queues: there
                    .into_iter()
                    .map(|queue| (queue, BTreeSet::from([keys.clone()])))
                    .collect(),
                unknown: false,
                unknowable: false,
            }
        }
        // Which of them are names of queues is for the publishers to know.
        Keys::Pattern(_) | Keys::Any => Flow::default(),
    }
}

#[derive(Default)]
struct States {
    all: Vec<State>,
    numbers: HashMap<(ExchangeName, Keys), usize>,
}

impl States {
    fn enter(&mut self, exchange: &ExchangeName, keys: Keys) -> usize {
        let next = self.all.len();
        let number = *self
            .numbers
            .entry((exchange.clone(), keys.clone()))
            .or_insert(next);
        if number == next {
            self.all.push(State {
                exchange: exchange.clone(),
                keys,
                taken: Vec::new(),
                alternate: None,
                sure: false,
            });
        }
        number
    }

    /// Whether the first state is sure. Rings are sure of nothing by themselves,
    /// so it begins with no and goes on as long as something becomes a yes.
    fn settle(&mut self) -> bool {
        loop {
            let mut changed = false;
            for at in (0..self.all.len()).rev() {
                let sure = self.all.get(at).is_some_and(|state| self.is_sure(state));
                if let Some(state) = self.all.get_mut(at)
                    && sure
                    && !state.sure
                {
                    state.sure = true;
                    changed = true;
                }
            }
            if !changed {
                return self.all.first().is_some_and(|state| state.sure);
            }
        }
    }

    /// The queues to which every step from the first state on takes all keys.
    fn certain(&self) -> BTreeSet<QueueName> {
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::from([0]);
        let mut ahead = vec![0];
        while let Some(state) = ahead.pop().and_then(|at| self.all.get(at)) {
            let mut enter = |at: usize| {
                if seen.insert(at) {
                    ahead.push(at);
                }
            };
            for (to, _) in state.taken.iter().filter(|(_, all)| *all) {
                match to {
                    To::Queue(queue) => {
                        found.insert(queue.clone());
                    }
                    To::State(at) => enter(*at),
                }
            }
            if let (true, Some(alternate)) = (state.taken.is_empty(), state.alternate) {
                enter(alternate);
            }
        }
        found
    }

    fn is_sure(&self, state: &State) -> bool {
        let leads_on = |to: &To| match to {
            To::Queue(_) => true,
            To::State(at) => self.all.get(*at).is_some_and(|state| state.sure),
        };
        let all_of_them = state.taken.iter().any(|(to, all)| *all && leads_on(to));
        // What a binding takes never comes to the alternate exchange.
        let rest = state.alternate.is_some_and(|at| leads_on(&To::State(at)))
            && state.taken.iter().all(|(to, _)| leads_on(to));
        all_of_them || rest
    }
}
