//! What every rule asks for: the queues with their policies merged, and where
//! their dead letters lead.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::broker::BrokerFacts;
use crate::lint::flow::Flows;
use crate::lint::keys::Keys;
use crate::routing::{Death, Router};
use crate::topology::{
    DeadLetterKey, Destination, ExchangeName, ExchangeType, Queue, QueueName, QueueType, Topology,
};

/// Everything that is asked more than once.
pub(super) struct Survey<'t> {
    pub(super) topology: &'t Topology,
    pub(super) facts: Option<&'t BrokerFacts>,
    pub(super) router: Router<'t>,
    /// Each queue as its policies make it.
    pub(super) queues: BTreeMap<&'t QueueName, Queue>,
    /// Where the dead letters of each queue that has any lead.
    pub(super) dead_letters: BTreeMap<&'t QueueName, DeadLetters>,
    /// Exchanges that take what others take nowhere.
    pub(super) alternates: BTreeSet<ExchangeName>,
    /// Queues for dead letters that no queue sends to by itself.
    resting: BTreeSet<QueueName>,
    /// The queues that send dead letters to each queue.
    pub(super) senders: HashMap<QueueName, Vec<&'t QueueName>>,
}

/// Where the dead letters of a queue lead.
#[derive(Debug, Default)]
pub(super) struct DeadLetters {
    /// The queues that some of them can reach.
    pub(super) targets: BTreeSet<QueueName>,
    /// Keys of which all are lost.
    pub(super) lost: Vec<Keys>,
    /// Keys of which some may be lost.
    pub(super) doubtful: Vec<Keys>,
    /// Whether the way leads through something that is not known here.
    pub(super) unknown: bool,
}

impl<'t> Survey<'t> {
    pub(super) fn new(topology: &'t Topology, facts: Option<&'t BrokerFacts>) -> Self {
        let queues: BTreeMap<&QueueName, Queue> = topology
            .queues
            .keys()
            .filter_map(|name| Some((name, topology.effective_queue(name)?)))
            .collect();
        let router = Router::on(topology, facts);
        let alternates = topology
            .exchanges
            .keys()
            .filter_map(|name| router.alternate(name).cloned())
            .collect();
        let resting = resting(&queues, &router);
        let mut survey = Self {
            topology,
            facts,
            router,
            alternates,
            resting,
            queues,
            dead_letters: BTreeMap::new(),
            senders: HashMap::new(),
        };
        let mut flows = Flows::default();
        let dead_letters: BTreeMap<&QueueName, DeadLetters> = survey
            .queues
            .iter()
            .filter_map(|(name, queue)| Some((*name, survey.lead(name, queue, &mut flows)?)))
            .collect();
        for (name, found) in &dead_letters {
            for target in &found.targets {
                survey
                    .senders
                    .entry(target.clone())
                    .or_default()
                    .push(*name);
            }
        }
        survey.dead_letters = dead_letters;
        survey
    }

    fn lead(&self, name: &QueueName, queue: &Queue, flows: &mut Flows) -> Option<DeadLetters> {
        let dead_lettering = queue.dead_lettering.as_ref()?;
        if queue.kind == Some(QueueType::Stream) {
            return None;
        }
        let exchange = &dead_lettering.exchange;
        let keys = match &dead_lettering.key {
            DeadLetterKey::Replaced(key) => BTreeSet::from([Keys::Exact(key.to_string())]),
            DeadLetterKey::Kept => self.keys_in(name),
        };
        let mut found = DeadLetters::default();
        for keys in keys {
            let flow = flows.of(&self.router, exchange, &keys);
            found.unknown |= flow.unknown;
            found.targets.extend(flow.queues.iter().cloned());
            let can_be_names = exchange.is_empty() && !matches!(keys, Keys::Exact(_));
            if flow.queues.is_empty() && !can_be_names {
                found.lost.push(keys);
            } else if !flow.sure {
                found.doubtful.push(keys);
            }
        }
        Some(found)
    }

    /// The keys that messages in a queue can have: those of its bindings, and
    /// its name where no binding leads to it.
    fn keys_in(&self, name: &QueueName) -> BTreeSet<Keys> {
        let own = Destination::Queue(name.clone());
        let keys: BTreeSet<Keys> = self
            .router
            .bindings_to(&own)
            .iter()
            .map(|binding| {
                let kind = self.topology.exchange(&binding.source).map(|x| x.kind);
                match kind {
                    Some(ExchangeType::Direct) => Keys::Exact(binding.key.to_string()),
                    Some(ExchangeType::Topic) => Keys::of_pattern(binding.key.as_str()),
                    Some(
                        ExchangeType::Fanout | ExchangeType::Headers | ExchangeType::Plugin(_),
                    )
                    | None => Keys::Any,
                }
            })
            .collect();
        if keys.is_empty() {
            BTreeSet::from([Keys::Exact(name.to_string())])
        } else {
            keys
        }
    }

    /// Whether a message can die so in this queue.
    pub(super) fn dies(&self, queue: &Queue, death: Death) -> bool {
        death.happens_in(queue, self.facts)
    }

    /// Whether messages leave this queue by themselves for another one.
    pub(super) fn waits(&self, queue: &Queue) -> bool {
        queue.dead_lettering.is_some() && self.dies(queue, Death::Expired)
    }

    /// Whether some other queue sends dead letters there.
    pub(super) fn is_sent_dead_letters(&self, name: &QueueName) -> bool {
        self.senders
            .get(name)
            .is_some_and(|senders| senders.iter().any(|sender| *sender != name))
    }

    /// Whether dead letters come to rest there: because another queue sends them,
    /// or because workers publish them there at the end of their attempts.
    pub(super) fn is_dead_letter_queue(&self, name: &QueueName, queue: &Queue) -> bool {
        queue.dead_lettering.is_none()
            && (self.is_sent_dead_letters(name) || self.resting.contains(name))
    }
}

/// The queues that a `retry` names for dead letters, and those bound to a
/// dead-letter exchange of a work queue. What only wait queues send to is
/// where messages come back to.
fn resting(queues: &BTreeMap<&QueueName, Queue>, router: &Router<'_>) -> BTreeSet<QueueName> {
    let named = queues
        .values()
        .filter_map(|queue| queue.retry.as_ref()?.dead_letter_queue.clone());
    let exchanges: BTreeSet<&ExchangeName> = queues
        .values()
        .filter(|queue| queue.message_ttl.is_none())
        .filter_map(|queue| Some(&queue.dead_lettering.as_ref()?.exchange))
        .collect();
    let bound = exchanges
        .into_iter()
        .flat_map(|exchange| router.bindings_from(exchange))
        .filter_map(|binding| match &binding.destination {
            Destination::Queue(queue) => Some(queue.clone()),
            Destination::Exchange(_) => None,
        });
    named.chain(bound).collect()
}
