//! How a message leaves a queue without an ack, and where that leads it.

use std::collections::BTreeSet;
use std::fmt;

use crate::broker::BrokerFacts;
use crate::field::FieldValue;
use crate::routing::{Message, Routed, Router};
use crate::topology::{
    DeadLetterKey, DeadLetterStrategy, DeliveryLimit, ExchangeName, Overflow, Queue, QueueName,
    QueueType, RoutingKey,
};

/// Why a message leaves a queue without an ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Death {
    /// A consumer rejected it, not to be requeued.
    Rejected,
    /// Its time to live was over.
    Expired,
    /// The queue was full.
    MaxLength,
    /// It was returned to a quorum queue too often.
    DeliveryLimit,
}

impl Death {
    /// Every death with the reason that `x-death` gives for it.
    pub const ALL: [(&'static str, Self); 4] = [
        ("rejected", Self::Rejected),
        ("expired", Self::Expired),
        ("maxlen", Self::MaxLength),
        ("delivery_limit", Self::DeliveryLimit),
    ];

    /// The reason in `x-death`.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::MaxLength => "maxlen",
            Self::DeliveryLimit => "delivery_limit",
        }
    }

    /// Whether a message can die so in this queue (with its policies merged).
    ///
    /// A limit that is not set is 20 on quorum queues since 4.0; without
    /// `facts` a broker of that age is assumed. An `expiration` of the message
    /// itself is not asked about here. Streams know no death.
    #[must_use]
    pub fn happens_in(self, queue: &Queue, facts: Option<&BrokerFacts>) -> bool {
        let is_quorum = queue.kind == Some(QueueType::Quorum);
        if queue.kind == Some(QueueType::Stream) {
            return false;
        }
        match self {
            Self::Rejected => true,
            Self::Expired => queue.message_ttl.is_some(),
            Self::MaxLength => {
                let limited = queue.max_length.is_some() || queue.max_length_bytes.is_some();
                limited
                    && match queue.overflow {
                        None | Some(Overflow::DropHead | Overflow::RejectPublishDlx) => true,
                        Some(Overflow::RejectPublish) => false,
                    }
            }
            Self::DeliveryLimit => {
                is_quorum
                    && match queue.delivery_limit {
                        Some(DeliveryLimit::Finite(_)) => true,
                        Some(DeliveryLimit::Unlimited) => false,
                        None => facts.is_none_or(|f| f.default_delivery_limit().is_some()),
                    }
            }
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

/// A copy of a message in a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Where it is.
    pub queue: QueueName,
    /// As it was published to get there.
    pub message: Message,
    /// The queues it died in and why, the newest last; a pair stands once. In
    /// the broker's order, which before 3.13 is not that of time.
    pub deaths: Vec<(QueueName, Death)>,
}

/// Why a copy is gone, or can be reached by nobody.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// The queue has no dead-letter exchange.
    NoDeadLetterExchange,
    /// The dead-letter exchange is declared nowhere.
    NoExchange(ExchangeName),
    /// The exchange leads this key (and these headers) to no queue.
    Unrouted(ExchangeName, RoutingKey),
    /// It would return to this queue without a rejection since it left it; the
    /// broker drops it (rule measured on 3.10.8, 4.0.5 and 4.3.6).
    Cycle(QueueName),
    /// One of the others, and the queue dead-letters at least once: it keeps the
    /// message for ever, unseen.
    Stuck(Box<Loss>),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDeadLetterExchange => f.write_str("the queue has no dead-letter exchange"),
            Self::NoExchange(exchange) => {
                write!(f, "exchange '{exchange}' is not declared")
            }
            Self::Unrouted(exchange, key) if exchange.is_empty() => {
                write!(f, "there is no queue '{key}'")
            }
            Self::Unrouted(exchange, key) => {
                write!(f, "exchange '{exchange}' leads key '{key}' nowhere")
            }
            Self::Cycle(queue) => write!(
                f,
                "it would return to queue '{queue}' without a rejection since it left it, and the broker drops such a message"
            ),
            Self::Stuck(loss) => write!(f, "kept in the queue for ever, unseen: {loss}"),
        }
    }
}

/// What one death does with one copy.
#[derive(Debug)]
pub struct Departure<'t> {
    /// As it is published to the dead-letter exchange; `None`: there is none.
    pub message: Option<Message>,
    /// Where that leads.
    pub routed: Routed<'t>,
    /// The copies that arrive.
    pub arrived: Vec<Held>,
    /// What becomes of the rest.
    pub losses: BTreeSet<Loss>,
}

/// The copies of a message that was routed.
pub(super) fn copies(routed: &Routed<'_>, message: &Message) -> Vec<Held> {
    routed
        .queues()
        .map(|queue| Held {
            queue: queue.clone(),
            message: message.clone(),
            deaths: Vec::new(),
        })
        .collect()
}

impl<'t> Router<'t> {
    /// The copies of a published message, one in each queue it reaches.
    #[must_use]
    pub fn publish(&self, message: &Message) -> Vec<Held> {
        copies(&self.route(message), message)
    }

    /// What the broker does when this copy dies.
    #[must_use]
    pub fn die(&self, held: Held, death: Death) -> Departure<'t> {
        let queue = self.topology().effective_queue(&held.queue);
        let at_least_once = queue.as_ref().is_some_and(|queue| {
            queue.dead_letter_strategy == Some(DeadLetterStrategy::AtLeastOnce)
                && queue.kind == Some(QueueType::Quorum)
                && queue.overflow == Some(Overflow::RejectPublish)
        });
        let lost = |loss: Loss| {
            if at_least_once {
                Loss::Stuck(Box::new(loss))
            } else {
                loss
            }
        };
        let gone = |message, loss| Departure {
            message,
            routed: Routed::default(),
            arrived: Vec::new(),
            losses: BTreeSet::from([loss]),
        };
        let Some(dead_lettering) = queue.and_then(|queue| queue.dead_lettering) else {
            return gone(None, Loss::NoDeadLetterExchange);
        };
        let exchange = dead_lettering.exchange;
        let is_there = self.topology().exchange(&exchange).is_some()
            || self.topology().elsewhere.contains(exchange.as_str());
        let (message, deaths) = self.dead_letter(held, death, &exchange, dead_lettering.key);
        if !is_there {
            return gone(Some(message), lost(Loss::NoExchange(exchange)));
        }
        let routed = self.route(&message);
        let mut losses = BTreeSet::new();
        if routed.is_empty() && routed.unknown.is_empty() {
            let key = message.keys.first().cloned();
            let key = key.unwrap_or_else(RoutingKey::empty);
            losses.insert(lost(Loss::Unrouted(exchange, key)));
        }
        let (dropped, reached): (Vec<&QueueName>, Vec<_>) = routed
            .queues()
            .partition(|target| is_cycle(&deaths, death, target));
        // What another target takes is settled with that.
        let is_taken = !reached.is_empty();
        losses.extend(dropped.into_iter().map(|target| {
            let cycle = Loss::Cycle(target.clone());
            if is_taken { cycle } else { lost(cycle) }
        }));
        // The last one takes the history itself: a chain of thousands of
        // queues copies nothing.
        let mut deaths = Some(deaths);
        let count = reached.len();
        let arrived = reached
            .into_iter()
            .enumerate()
            .map(|(number, queue)| Held {
                queue: queue.clone(),
                message: message.clone(),
                deaths: if number + 1 == count {
                    deaths.take().unwrap_or_default()
                } else {
                    deaths.clone().unwrap_or_default()
                },
            })
            .collect();
        Departure {
            message: Some(message),
            routed,
            arrived,
            losses,
        }
    }

    /// The message as it is dead-lettered, and its deaths with this one.
    fn dead_letter(
        &self,
        held: Held,
        death: Death,
        exchange: &ExchangeName,
        key: DeadLetterKey,
    ) -> (Message, Vec<(QueueName, Death)>) {
        let Held {
            queue,
            mut message,
            mut deaths,
        } = held;
        let told = [
            ("queue", queue.as_str()),
            ("reason", death.reason()),
            ("exchange", message.exchange.as_str()),
        ]
        .map(|(what, value)| (what, FieldValue::text(value)));
        let mut tell = |which: &str| {
            for (what, value) in &told {
                let name = format!("x-{which}-death-{what}");
                message.headers.insert(name, value.clone());
            }
        };
        // Headers exchanges see these (measured on 3.10.8, 4.0.5 and 4.3.6).
        if deaths.is_empty() {
            tell("first");
        }
        if self.has_message_containers() {
            tell("last");
        } else {
            // What it says is not simulated, only that it is there.
            let name = "x-death".to_owned();
            message.headers.insert(name, FieldValue::Void);
        }
        let entry = (queue, death);
        if !self.has_message_containers() {
            // 3.10.8 turns the list around at each death (measured).
            deaths.reverse();
        }
        if let Some(before) = deaths.iter().rposition(|other| *other == entry) {
            deaths.remove(before);
        }
        deaths.push(entry);
        message.exchange = exchange.clone();
        if let DeadLetterKey::Replaced(key) = key {
            message.keys = vec![key];
            // Since 3.13 it is taken from what consumers see only, headers
            // exchanges still find it (measured on 3.10.8, 4.0.5 and 4.3.6).
            if !self.has_message_containers() {
                message.headers.remove("CC");
            }
        }
        (message, deaths)
    }
}

/// The broker's cycle detection: from the newest death back to the last one in
/// the target queue, none was a rejection (measured on 3.10.8, 4.0.5 and 4.3.6).
fn is_cycle(deaths: &[(QueueName, Death)], death: Death, target: &QueueName) -> bool {
    if death == Death::Rejected {
        return false;
    }
    let Some(last) = deaths.iter().rposition(|(queue, _)| queue == target) else {
        return false;
    };
    deaths
        .iter()
        .skip(last)
        .all(|(_, death)| *death != Death::Rejected)
}
