//! All that can become of one message: the queues it reaches, and from each the
//! journey after every death it can die there.

use std::collections::BTreeSet;

use crate::broker::BrokerFacts;
use crate::routing::death::copies;
use crate::routing::{Death, Hop, Journey, Message, Router};
use crate::topology::{ExchangeName, ExchangeType, QueueName, Topology};

/// What can become of one message.
#[derive(Debug)]
pub struct Outlook<'t> {
    /// As it is published.
    pub message: Message,
    /// The queues it reaches.
    pub reached: Vec<Reached<'t>>,
    /// Exchanges on the way whose routing is not known.
    pub unknown: BTreeSet<ExchangeName>,
}

/// A queue that a message reaches.
#[derive(Debug)]
pub struct Reached<'t> {
    /// The queue.
    pub queue: QueueName,
    /// Each exchange on the way to it, with the hop out of it.
    pub path: Vec<(ExchangeName, Hop<'t>)>,
    /// Every death it can die there; `None`: the queue is declared elsewhere, so
    /// nobody knows.
    pub deaths: Option<Vec<(Death, Journey)>>,
}

impl<'t> Router<'t> {
    /// All that can become of the message on a broker like `facts`.
    #[must_use]
    pub fn outlook(&self, message: Message, facts: Option<&BrokerFacts>) -> Outlook<'t> {
        let routed = self.route(&message);
        let copies = copies(&routed, &message);
        let reached = copies.into_iter().map(|held| {
            let queue = held.queue.clone();
            let path = routed.path(&queue);
            let path = path.into_iter().map(|(name, hop)| (name.clone(), hop));
            let declared = self.topology().effective_queue(&queue);
            Reached {
                path: path.collect(),
                deaths: declared.map(|declared| {
                    Death::ALL
                        .into_iter()
                        .filter(|(_, death)| death.happens_in(&declared, facts))
                        .map(|(_, death)| (death, self.journey(held.clone(), death)))
                        .collect()
                }),
                queue,
            }
        });
        Outlook {
            reached: reached.collect(),
            message,
            unknown: routed.unknown,
        }
    }
}

/// Why it is not known how an exchange routes.
#[must_use]
pub fn unknown_because(topology: &Topology, exchange: &ExchangeName) -> String {
    match topology.exchange(exchange).map(|exchange| exchange.kind) {
        Some(ExchangeType::Plugin(kind)) => format!(
            "exchange '{exchange}' is of the type '{kind}', which mq does not simulate: where it leads is not known here"
        ),
        _ => {
            format!("exchange '{exchange}' is declared elsewhere: where it leads is not known here")
        }
    }
}
