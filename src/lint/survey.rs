//! What every rule asks for: the queues with their policies merged, and where
//! their dead letters lead.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::broker::BrokerFacts;
use crate::lint::dead_ends::{dedicated, resting};
use crate::lint::flow::Flows;
use crate::lint::keys::Keys;
use crate::routing::{Death, Router, waits};
use crate::topology::{
    Binding, DeadLetterKey, Destination, ExchangeName, ExchangeType, Queue, QueueName, QueueType,
    Topology,
};

/// More sets of keys than this are not followed into one queue.
const MOST_KEYS: usize = 10_000;

/// Everything that is asked more than once.
pub(super) struct Survey<'t> {
    pub(super) topology: &'t Topology,
    pub(super) facts: Option<&'t BrokerFacts>,
    pub(super) router: Router<'t>,
    /// Each queue as its policies make it.
    pub(super) queues: BTreeMap<&'t QueueName, Cow<'t, Queue>>,
    /// Where the dead letters of each queue that has any lead.
    pub(super) dead_letters: BTreeMap<&'t QueueName, DeadLetters>,
    /// Exchanges that queues send their dead letters to.
    pub(super) dead_letter_exchanges: BTreeSet<ExchangeName>,
    /// Those of them to which no work queue is bound.
    pub(super) dedicated: BTreeSet<ExchangeName>,
    /// Exchanges that take what others take nowhere.
    pub(super) alternates: BTreeSet<ExchangeName>,
    /// Queues for dead letters that no queue sends to by itself.
    resting: BTreeSet<QueueName>,
    /// The queues that send dead letters to each queue.
    pub(super) senders: HashMap<QueueName, Vec<&'t QueueName>>,
    /// Whether it was too large to be judged in full.
    pub(super) is_too_large: bool,
}

/// Where the dead letters of a queue lead.
#[derive(Debug, Default)]
pub(super) struct DeadLetters {
    /// The queues that some of them can reach.
    pub(super) targets: BTreeSet<QueueName>,
    /// The queues that all messages of one kind reach, whatever headers they have.
    pub(super) certain: BTreeSet<QueueName>,
    /// Keys of which all are lost, with the queue that messages of that key come
    /// back from; `None` for those that publishers give.
    pub(super) lost: Vec<(Keys, Option<QueueName>)>,
    /// Keys of which some may be lost.
    pub(super) doubtful: Vec<Keys>,
    /// Whether the way leads through something that is not known here.
    pub(super) unknown: bool,
    /// Whether some keys were left out because there are too many.
    too_many_keys: bool,
}

/// The keys that messages in each queue can have, with the queue that sent them.
type Arrivals = BTreeMap<QueueName, BTreeMap<Keys, Option<QueueName>>>;

impl<'t> Survey<'t> {
    pub(super) fn new(topology: &'t Topology, facts: Option<&'t BrokerFacts>) -> Self {
        let queues: BTreeMap<&QueueName, Cow<'_, Queue>> = topology
            .queues
            .iter()
            .filter_map(|(name, queue)| {
                let effective = if topology.policies.is_empty() {
                    Cow::Borrowed(queue)
                } else {
                    Cow::Owned(topology.effective_queue(name)?)
                };
                Some((name, effective))
            })
            .collect();
        let router = Router::on(topology, facts);
        let alternates = topology
            .exchanges
            .keys()
            .filter_map(|name| router.alternate(name).cloned())
            .collect();
        let dead_letter_exchanges: BTreeSet<ExchangeName> = queues
            .values()
            .filter_map(|queue| Some(queue.dead_lettering.as_ref()?.exchange.clone()))
            .collect();
        let dedicated = dedicated(&dead_letter_exchanges, &queues, &router);
        let resting = resting(&queues, &router, &dedicated);
        let mut survey = Self {
            topology,
            facts,
            router,
            dead_letter_exchanges,
            dedicated,
            alternates,
            resting,
            queues,
            dead_letters: BTreeMap::new(),
            senders: HashMap::new(),
            is_too_large: false,
        };
        let mut flows = Flows::default();
        survey.dead_letters = survey.follow(&mut flows);
        let judged = survey
            .dead_letters
            .values()
            .all(|found| !found.too_many_keys);
        survey.is_too_large = flows.is_exhausted() || !judged;
        for (name, found) in &survey.dead_letters {
            for target in &found.targets {
                survey
                    .senders
                    .entry(target.clone())
                    .or_default()
                    .push(*name);
            }
        }
        survey
    }

    /// Follows dead letters with the keys they have until no new key arrives anywhere.
    fn follow(&self, flows: &mut Flows) -> BTreeMap<&'t QueueName, DeadLetters> {
        let mut found: BTreeMap<&QueueName, DeadLetters> = BTreeMap::new();
        let mut arrivals = Arrivals::new();
        let mut ahead: Vec<(QueueName, Keys)> = Vec::new();
        for (name, queue) in &self.queues {
            let Some(dead_lettering) = &queue.dead_lettering else {
                continue;
            };
            let keys = match &dead_lettering.key {
                DeadLetterKey::Replaced(key) => BTreeSet::from([Keys::Exact(key.to_string())]),
                DeadLetterKey::Kept => self.published_keys(name),
            };
            for keys in keys {
                arrivals
                    .entry((*name).clone())
                    .or_default()
                    .insert(keys.clone(), None);
                ahead.push(((*name).clone(), keys));
            }
        }
        while let Some((name, keys)) = ahead.pop() {
            let Some((name, queue)) = self.queues.get_key_value(&name) else {
                continue;
            };
            let Some(dead_lettering) = &queue.dead_lettering else {
                continue;
            };
            if queue.kind == Some(QueueType::Stream) {
                continue;
            }
            let exchange = &dead_lettering.exchange;
            let flow = flows.of(&self.router, exchange, &keys);
            let here = found.entry(*name).or_default();
            here.unknown |= flow.unknown;
            here.targets.extend(flow.queues.keys().cloned());
            here.certain.extend(flow.certain.iter().cloned());
            // Which keys are names of queues is for the publishers to know.
            let can_be_names = exchange.is_empty() && !matches!(keys, Keys::Exact(_));
            if flow.queues.is_empty() && !can_be_names {
                let sender = arrivals.get(*name).and_then(|known| known.get(&keys));
                let sender = sender.cloned().flatten();
                here.lost.push((keys, sender));
            } else if !flow.sure {
                here.doubtful.push(keys);
            }
            for (target, arriving) in &flow.queues {
                let keeps = self.queues.get(target).is_some_and(|queue| {
                    let dead_lettering = queue.dead_lettering.as_ref();
                    dead_lettering.is_some_and(|it| it.key == DeadLetterKey::Kept)
                });
                if !keeps {
                    continue;
                }
                let known = arrivals.entry(target.clone()).or_default();
                for keys in arriving {
                    if known.len() >= MOST_KEYS {
                        if let Some((target, _)) = self.queues.get_key_value(target) {
                            let target = found.entry(*target).or_default();
                            target.unknown = true;
                            target.too_many_keys = true;
                        }
                    } else if !known.contains_key(keys) {
                        known.insert(keys.clone(), Some((*name).clone()));
                        ahead.push((target.clone(), keys.clone()));
                    }
                }
            }
        }
        found
    }

    /// The keys that publishers can give messages of a queue: those of its
    /// bindings, and its name where nothing is bound to it. Into a dedicated
    /// dead-letter exchange nobody publishes.
    pub(super) fn published_keys(&self, name: &QueueName) -> BTreeSet<Keys> {
        let own = Destination::Queue(name.clone());
        let bindings = self.router.bindings_to(&own);
        if bindings.is_empty() {
            return BTreeSet::from([Keys::Exact(name.to_string())]);
        }
        bindings
            .iter()
            .filter(|binding| !self.dedicated.contains(&binding.source))
            .map(|binding| self.keys_of(binding))
            .collect()
    }

    /// The keys that messages have which come by a binding.
    pub(super) fn keys_of(&self, binding: &Binding) -> Keys {
        let kind = self.topology.exchange(&binding.source).map(|x| x.kind);
        match kind {
            Some(ExchangeType::Direct) => Keys::Exact(binding.key.to_string()),
            Some(ExchangeType::Topic) => Keys::of_pattern(binding.key.as_str()),
            Some(ExchangeType::Fanout | ExchangeType::Headers | ExchangeType::Plugin(_)) | None => {
                Keys::Any
            }
        }
    }

    /// Whether a message can die so in this queue.
    pub(super) fn dies(&self, queue: &Queue, death: Death) -> bool {
        death.happens_in(queue, self.facts)
    }

    /// Whether some other queue sends dead letters there that do not only come
    /// back from waiting.
    pub(super) fn is_sent_dead_letters(&self, name: &QueueName) -> bool {
        self.senders.get(name).is_some_and(|senders| {
            senders.iter().any(|sender| {
                let waits = self.queues.get(*sender).is_some_and(|q| waits(q));
                *sender != name && !waits
            })
        })
    }

    /// Whether dead letters come to rest there: because another queue sends them,
    /// or because workers publish them there at the end of their attempts.
    pub(super) fn is_dead_letter_queue(&self, name: &QueueName, queue: &Queue) -> bool {
        queue.dead_lettering.is_none()
            && (self.is_sent_dead_letters(name) || self.resting.contains(name))
    }
}
