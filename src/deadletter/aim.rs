//! Where a dead letter goes when it is sent back, and whether it would come
//! straight back.

use std::collections::BTreeSet;

use crate::broker::BrokerFacts;
use crate::deadletter::Letter;
use crate::field::FieldTable;
use crate::message::Death as PastDeath;
use crate::routing::{Death, Held, Message, Router, waits};
use crate::topology::{ExchangeName, QueueName, RoutingKey};

/// Where dead letters are to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayTo {
    /// The exchange and key each was first published with.
    Original,
    /// The queue each failed in, past all exchanges.
    OriginQueue,
    /// All to one exchange; without a key each keeps its original one.
    Exchange(ExchangeName, Option<RoutingKey>),
    /// All to one queue.
    Queue(QueueName),
}

/// Why a dead letter stays where it is, as far as that is known before it is sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Astray {
    /// Neither its deaths nor a worker's headers tell where it came from.
    NoOrigin,
    /// A name among them is none.
    NoName(String),
    /// The exchange does not exist any more.
    NoExchange(ExchangeName),
    /// The exchange takes nothing from clients.
    Internal(ExchangeName),
    /// It would be in the dead-letter queue again at once.
    ComesBack,
}

/// The aim of one dead letter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Aim {
    /// The queue it failed in.
    pub origin: Option<QueueName>,
    /// Where it is published.
    pub exchange: ExchangeName,
    /// With which key.
    pub key: RoutingKey,
    /// The queues it lands in, as far as they can be told.
    pub lands: BTreeSet<QueueName>,
    /// Exchanges on the way of which it cannot be told where they lead.
    pub unknown: BTreeSet<ExchangeName>,
}

impl Aim {
    /// Queues it lands in besides the one it failed in.
    pub fn elsewhere(&self) -> impl Iterator<Item = &QueueName> {
        let origin = self.origin.as_ref();
        self.lands
            .iter()
            .filter(move |queue| Some(*queue) != origin)
    }
}

/// Takes aim for the dead letters of one queue.
#[derive(Debug)]
pub struct Aiming<'a> {
    /// The exchanges, queues and bindings of the vhost.
    pub router: &'a Router<'a>,
    /// The queue they are in.
    pub queue: &'a QueueName,
    /// Where they are to go.
    pub to: &'a ReplayTo,
}

impl Aiming<'_> {
    /// Where this one goes. `headers` are those it will have then.
    ///
    /// # Errors
    /// Why it has to stay.
    pub fn aim(&self, letter: &Letter, headers: &FieldTable) -> Result<Aim, Astray> {
        let (origin, first_exchange, keys) = self.first(letter);
        let origin = origin.map(name).transpose()?;
        let (exchange, keys) = match self.to {
            ReplayTo::Queue(queue) => (
                ExchangeName::default_exchange(),
                vec![RoutingKey::of_queue(queue)],
            ),
            ReplayTo::OriginQueue => (
                ExchangeName::default_exchange(),
                vec![RoutingKey::of_queue(
                    origin.as_ref().ok_or(Astray::NoOrigin)?,
                )],
            ),
            ReplayTo::Exchange(exchange, Some(key)) => (exchange.clone(), vec![key.clone()]),
            ReplayTo::Exchange(exchange, None) => (exchange.clone(), all(keys)?),
            ReplayTo::Original => (
                ExchangeName::new(first_exchange.ok_or(Astray::NoOrigin)?)
                    .map_err(|_| Astray::NoName(first_exchange.unwrap_or_default().to_owned()))?,
                all(keys)?,
            ),
        };
        self.must_take_it(&exchange)?;
        let ways = keys.into_iter().map(|key| {
            let message = Message::new(exchange.clone(), key.clone(), headers.clone());
            let routed = self.router.route(&message);
            Aim {
                origin: origin.clone(),
                exchange: exchange.clone(),
                key,
                lands: routed.queues().cloned().collect(),
                unknown: routed.unknown,
            }
        });
        // It was published with several keys (CC): the one that leads home is meant.
        let ways: Vec<Aim> = ways.collect();
        let leads_home = |aim: &&Aim| {
            origin
                .as_ref()
                .is_some_and(|origin| aim.lands.contains(origin))
        };
        let chosen = ways.iter().find(leads_home).or(ways.first());
        let aim = chosen.cloned().ok_or(Astray::NoOrigin)?;
        if aim.lands.contains(self.queue) {
            return Err(Astray::ComesBack);
        }
        Ok(aim)
    }

    /// Queue, exchange and keys of its first publish. A worker that retries by
    /// publishing into a wait queue leaves a first death there: the queue it
    /// failed in is the first one that is no wait queue, if there is one.
    fn first<'l>(&self, letter: &'l Letter) -> (Option<&'l str>, Option<&'l str>, &'l [String]) {
        let told = (
            letter.origin.as_deref(),
            letter.exchange.as_deref(),
            letter.routing_keys.as_slice(),
        );
        let is_wait_queue = |queue: &str| {
            QueueName::new(queue)
                .ok()
                .and_then(|name| self.router.topology().effective_queue(&name))
                .is_some_and(|queue| waits(&queue))
        };
        if !letter.origin.as_deref().is_some_and(is_wait_queue) {
            return told;
        }
        letter
            .deaths
            .deaths
            .iter()
            .rev()
            .filter(|death| !is_wait_queue(&death.queue))
            .min_by_key(|death| death.time.unwrap_or(u64::MAX))
            .map_or(told, |death: &PastDeath| {
                (
                    Some(death.queue.as_str()),
                    Some(death.exchange.as_str()),
                    death.routing_keys.as_slice(),
                )
            })
    }

    /// The broker would close the channel on a message to any other exchange.
    fn must_take_it(&self, exchange: &ExchangeName) -> Result<(), Astray> {
        match self.router.topology().exchange(exchange) {
            None => Err(Astray::NoExchange(exchange.clone())),
            Some(declared) if declared.internal => Err(Astray::Internal(exchange.clone())),
            Some(_) => Ok(()),
        }
    }
}

fn name(queue: &str) -> Result<QueueName, Astray> {
    QueueName::of_existing(queue).map_err(|_| Astray::NoName(queue.to_owned()))
}

fn all(keys: &[String]) -> Result<Vec<RoutingKey>, Astray> {
    if keys.is_empty() {
        return Err(Astray::NoOrigin);
    }
    keys.iter()
        .map(|key| RoutingKey::new(key.clone()).map_err(|_| Astray::NoName(key.clone())))
        .collect()
}

/// How messages that land in a queue can be dead letters in `back` again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComingBack {
    /// By themselves, unless they are consumed before: they expire.
    Unconsumed,
    /// When they fail again.
    Failed,
    /// Not: another failure takes them elsewhere, or loses them.
    Not,
}

impl ComingBack {
    /// What becomes of messages in `queue` on a broker like `facts`.
    #[must_use]
    pub fn of(
        router: &Router<'_>,
        queue: &QueueName,
        back: &QueueName,
        facts: &BrokerFacts,
    ) -> Self {
        let Some(declared) = router.topology().effective_queue(queue) else {
            return Self::Not;
        };
        let leads_back = |death: Death| {
            if !death.happens_in(&declared, Some(facts)) {
                return false;
            }
            let held = Held {
                queue: queue.clone(),
                message: Message::new(
                    ExchangeName::default_exchange(),
                    RoutingKey::of_queue(queue),
                    FieldTable::new(),
                ),
                deaths: Vec::new(),
            };
            router.journey(held, death).rests.contains(back)
        };
        if leads_back(Death::Expired) {
            Self::Unconsumed
        } else if Death::ALL.into_iter().any(|(_, death)| leads_back(death)) {
            Self::Failed
        } else {
            Self::Not
        }
    }

    /// In JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unconsumed => "unless_consumed",
            Self::Failed => "if_it_fails",
            Self::Not => "no",
        }
    }
}

#[cfg(test)]
mod tests;
