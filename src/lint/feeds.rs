//! Which queues dead letters come to rest in, and from where.

use std::collections::{BTreeMap, BTreeSet};

use crate::broker::BrokerFacts;
use crate::lint::flow::Flows;
use crate::lint::keys::Keys;
use crate::lint::survey::Survey;
use crate::routing::{Death, waits};
use crate::topology::{DeadLetterKey, Destination, Queue, QueueName, QueueType, Topology};

/// Ways of one queue's dead letters that are followed, at most.
const MOST_WAYS: usize = 10_000;

/// A queue whose dead letters come to rest in another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// Where they died.
    pub queue: QueueName,
    /// The deaths that messages can die there; empty: its workers publish there
    /// what they give up, as far as one can see.
    pub reasons: Vec<Death>,
    /// Whether it looks like one in which messages only wait to come back: it
    /// has a message TTL. A work queue can have one too.
    pub waits: bool,
}

/// Every queue in which dead letters of others rest, with those.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feeds {
    /// By the queue they rest in.
    pub into: BTreeMap<QueueName, Vec<Feed>>,
    /// Whether something on the ways is not known: an exchange of a plugin's
    /// type or of others, or too many ways. Then queues may be missing.
    pub unknown: bool,
}

/// Follows the dead letters of every queue, through those they only wait in, on
/// a broker like `facts`.
#[must_use]
pub fn feeds(topology: &Topology, facts: Option<&BrokerFacts>) -> Feeds {
    let survey = Survey::new(topology, facts);
    let mut flows = Flows::default();
    let mut feeds = Feeds::default();
    for (origin, queue) in &survey.queues {
        let (rests, unknown) = survey.rests(origin, queue, &mut flows);
        feeds.unknown |= unknown;
        let reasons = Death::ALL
            .into_iter()
            .map(|(_, death)| death)
            .filter(|death| survey.dies(queue, *death));
        let feed = Feed {
            queue: (*origin).clone(),
            reasons: reasons.collect(),
            waits: waits(queue),
        };
        for rest in rests {
            if !feed.waits || survey.is_given_up(origin, &rest) {
                feeds.into.entry(rest).or_default().push(feed.clone());
            }
        }
    }
    for (name, queue) in &survey.queues {
        if survey.is_dead_letter_queue(name, queue) {
            let known = feeds.into.entry((*name).clone()).or_default();
            // Where queues send to by themselves, others need no explanation.
            if known.is_empty() {
                known.extend(survey.parking(name).into_iter().map(|queue| Feed {
                    queue,
                    reasons: Vec::new(),
                    waits: false,
                }));
            }
        }
    }
    feeds.unknown |= flows.is_exhausted();
    feeds
}

impl Survey<'_> {
    /// The other queues in which dead letters of `origin` rest, and whether
    /// something on the way is not known.
    fn rests(
        &self,
        origin: &QueueName,
        queue: &Queue,
        flows: &mut Flows,
    ) -> (BTreeSet<QueueName>, bool) {
        let mut rests = BTreeSet::new();
        let mut unknown = false;
        let mut keys = match queue.dead_lettering.as_ref().map(|it| &it.key) {
            None => return (rests, unknown),
            Some(DeadLetterKey::Replaced(key)) => BTreeSet::from([Keys::Exact(key.to_string())]),
            Some(DeadLetterKey::Kept) => self.published_keys(origin),
        };
        if keys.is_empty() {
            // Only dead letters come there, with the keys that they have.
            keys.insert(Keys::Any);
        }
        let mut ahead: Vec<(QueueName, Keys)> = keys
            .into_iter()
            .map(|keys| (origin.clone(), keys))
            .collect();
        let mut seen: BTreeSet<(QueueName, Keys)> = ahead.iter().cloned().collect();
        while let Some((name, keys)) = ahead.pop() {
            let found = self
                .queues
                .get(&name)
                .and_then(|q| q.dead_lettering.as_ref());
            let Some(dead_lettering) = found else {
                continue;
            };
            let flow = flows.of(&self.router, &dead_lettering.exchange, &keys);
            unknown |= flow.unknowable;
            for (target, arriving) in flow.queues.iter().filter(|(target, _)| *target != origin) {
                let Some(queue) = self.queues.get(target).filter(|queue| waits(queue)) else {
                    rests.insert(target.clone());
                    continue;
                };
                let onward = match queue.dead_lettering.as_ref().map(|it| &it.key) {
                    Some(DeadLetterKey::Replaced(key)) => {
                        BTreeSet::from([Keys::Exact(key.to_string())])
                    }
                    Some(DeadLetterKey::Kept) | None => arriving.clone(),
                };
                for keys in onward {
                    let way = (target.clone(), keys);
                    if seen.len() >= MOST_WAYS {
                        unknown = true;
                    } else if seen.insert(way.clone()) {
                        ahead.push(way);
                    }
                }
            }
        }
        if self
            .queues
            .get(origin)
            .is_some_and(|queue| queue.kind == Some(QueueType::Stream))
        {
            rests.clear();
        }
        (rests, unknown)
    }

    /// Whether what expires in `origin` is given up in `rest`, and not brought
    /// back to be worked there: such a queue dead-letters nothing itself, gets
    /// nothing but dead letters, and the queues that wait for it are not named
    /// after it, as mq names them.
    fn is_given_up(&self, origin: &QueueName, rest: &QueueName) -> bool {
        let ends = self
            .queues
            .get(rest)
            .is_none_or(|queue| queue.dead_lettering.is_none());
        let own = Destination::Queue(rest.clone());
        let sources = self.router.bindings_to(&own).iter();
        let mut sources = sources.map(|binding| &binding.source);
        ends && sources.all(|source| self.dead_letter_exchanges.contains(source))
            && !origin.as_str().starts_with(rest.as_str())
    }

    /// The queues whose workers park in `rest`, as far as one can see: those that
    /// dead-letter into an exchange which leads there.
    fn parking(&self, rest: &QueueName) -> Vec<QueueName> {
        let own = Destination::Queue(rest.clone());
        let bindings = self.router.bindings_to(&own);
        let parks = |queue: &Queue| {
            queue.dead_lettering.as_ref().is_some_and(|it| {
                queue.message_ttl.is_none()
                    && self.dedicated.contains(&it.exchange)
                    && bindings.iter().any(|binding| binding.source == it.exchange)
            })
        };
        self.queues
            .iter()
            .filter(|(name, queue)| **name != rest && parks(queue))
            .map(|(name, _)| (*name).clone())
            .collect()
    }
}

#[cfg(test)]
mod tests;
