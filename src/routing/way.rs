//! A journey as one line for each copy: what somebody reads who asks where a
//! message goes.

use crate::routing::{Journey, Loss, Step};
use crate::topology::{ExchangeName, QueueName, Topology};

/// The way of one copy, from its first death to where it ends.
#[derive(Debug, PartialEq)]
pub struct Way<'j> {
    /// The deaths on the way.
    pub steps: Vec<&'j Step>,
    /// Where it ends.
    pub end: End<'j>,
}

/// Where a way ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End<'j> {
    /// In this queue.
    Rests(&'j QueueName),
    /// Nowhere.
    Lost(&'j Loss),
    /// At an exchange whose routing is not known.
    Unknown(&'j ExchangeName),
    /// Further than it was followed.
    NotFollowed,
}

impl Journey {
    /// The first `most` ways, in the order they are gone.
    #[must_use]
    pub fn ways(&self, most: usize) -> Vec<Way<'_>> {
        let mut ways = Vec::new();
        let mut path: Vec<(&Step, std::slice::Iter<'_, QueueName>)> = Vec::new();
        // A step is followed at once by those of the copies that arrived by it.
        let mut steps = self.steps.iter().peekable();
        let mut entered = steps.next();
        while ways.len() < most {
            if let Some(step) = entered.take() {
                path.push((step, step.arrived.iter()));
                for end in step.losses.iter().map(End::Lost) {
                    ways.push(way(&path, end));
                }
                for end in step.unknown.iter().map(End::Unknown) {
                    ways.push(way(&path, end));
                }
            }
            let Some((_, arrived)) = path.last_mut() else {
                break;
            };
            match arrived.next() {
                None => {
                    path.pop();
                }
                Some(queue) if self.rests.contains(queue) => {
                    ways.push(way(&path, End::Rests(queue)));
                }
                Some(queue) => {
                    entered = steps.next_if(|step| step.queue == *queue);
                    if entered.is_none() {
                        ways.push(way(&path, End::NotFollowed));
                    }
                }
            }
        }
        ways.truncate(most);
        ways
    }

    /// The first `most` ways in words, and whether there are more.
    #[must_use]
    pub fn told(&self, most: usize, topology: &Topology) -> Vec<String> {
        let ways = self.ways(most + 1);
        let mut lines: Vec<String> = ways
            .iter()
            .take(most)
            .map(|way| way.told(topology))
            .collect();
        if ways.len() > most {
            let more = if self.broken_off {
                "… and more, not all of them followed"
            } else {
                "… and more"
            };
            lines.push(more.to_owned());
        }
        lines
    }
}

fn way<'j>(path: &[(&'j Step, std::slice::Iter<'j, QueueName>)], end: End<'j>) -> Way<'j> {
    Way {
        steps: path.iter().map(|(step, _)| *step).collect(),
        end,
    }
}

impl Way<'_> {
    /// The way in words: `dlx / dead → orders.dlq, where it rests`.
    #[must_use]
    pub fn told(&self, topology: &Topology) -> String {
        let mut parts = Vec::new();
        for (number, step) in self.steps.iter().enumerate() {
            if number > 0 {
                parts.push(waiting(&step.queue, topology));
            }
            // The default exchange leads to the queue that stands next anyway.
            if let Some((exchange, key)) = &step.to
                && !exchange.is_empty()
            {
                parts.push(if key.is_empty() {
                    exchange.to_string()
                } else {
                    format!("{exchange} / {key}")
                });
            }
        }
        let origin = self.steps.first().map(|step| &step.queue);
        parts.push(match self.end {
            End::Rests(queue) if Some(queue) == origin => format!("{queue}, back where it began"),
            End::Rests(queue) => format!("{queue}, where it rests"),
            End::Lost(loss @ Loss::Stuck(_)) => loss.to_string(),
            End::Lost(loss) => format!("lost: {loss}"),
            End::Unknown(exchange) => {
                format!("exchange '{exchange}', whose routing is not known here")
            }
            End::NotFollowed => "on and on, not followed any further".to_owned(),
        });
        parts.join(" → ")
    }
}

/// A queue that is waited in.
fn waiting(queue: &QueueName, topology: &Topology) -> String {
    let ttl = topology
        .effective_queue(queue)
        .and_then(|queue| queue.message_ttl);
    match ttl {
        Some(ttl) => format!("{queue} (waits {})", humantime::format_duration(ttl)),
        None => queue.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldTable;
    use crate::routing::{Death, Message, Router};
    use crate::topology::RoutingKey;

    fn told(yaml: &str, most: usize) -> Vec<String> {
        let topology = crate::topologyfile::parsed(yaml);
        let router = Router::new(&topology);
        let key = RoutingKey::new("work").expect("key");
        let message = Message::new(ExchangeName::default_exchange(), key, FieldTable::new());
        let held = router.publish(&message).pop().expect("a copy");
        let journey = router.journey(held, Death::Rejected);
        let ways = journey.ways(most);
        ways.iter().map(|way| way.told(&topology)).collect()
    }

    #[test]
    fn every_copy_has_its_line() {
        let yaml = "
exchanges: { dlx: { type: fanout }, plug: { type: x-random } }
queues:
  work: { dead_letter: { exchange: dlx, key: dead } }
  audit: { bind: [{ exchange: dlx }] }
  retry: { message_ttl: 2s, bind: [{ exchange: dlx }], dead_letter: { exchange: '', key: work } }
  void: { message_ttl: 1m, bind: [{ exchange: dlx }], dead_letter: { exchange: '', key: nobody } }
  odd: { message_ttl: 1s, bind: [{ exchange: dlx }], dead_letter: { exchange: plug } }
";
        assert_eq!(
            told(yaml, 10),
            [
                "dlx / dead → audit, where it rests",
                "dlx / dead → odd (waits 1s) → plug / dead → exchange 'plug', whose routing is not known here",
                "dlx / dead → retry (waits 2s) → work, back where it began",
                "dlx / dead → void (waits 1m) → lost: there is no queue 'nobody'",
            ]
        );
        assert_eq!(told(yaml, 1).len(), 1);
    }

    #[test]
    fn a_way_may_be_no_way_at_all() {
        assert_eq!(
            told("queues: { work: {} }", 10),
            ["lost: the queue has no dead-letter exchange"]
        );
    }

    #[test]
    fn branches_keep_to_their_own_steps() {
        let yaml = "
exchanges: { a: { type: fanout }, b: { type: fanout } }
queues:
  work: { dead_letter: { exchange: a } }
  w1: { message_ttl: 1s, bind: [{ exchange: a }], dead_letter: { exchange: b } }
  w2: { message_ttl: 2s, bind: [{ exchange: a }], dead_letter: { exchange: '', key: end } }
  w3: { message_ttl: 3s, bind: [{ exchange: b }], dead_letter: { exchange: '', key: end } }
  end: {}
";
        assert_eq!(
            told(yaml, 10),
            [
                "a / work → w1 (waits 1s) → b / work → w3 (waits 3s) → end, where it rests",
                "a / work → w2 (waits 2s) → end, where it rests",
            ]
        );
    }
}
