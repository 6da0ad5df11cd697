//! One question of a test, answered by the broker.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::bench::{Bench, is_refusal, seen};
use crate::amqp::Receipt;
use crate::broker::BrokerFacts;
use crate::error::Result;
use crate::proof::{Answer, Asked, Settled, Settling};
use crate::routing::Death;
use crate::topology::{DeliveryLimit, Overflow, QueueName, RoutingTest};

/// How long a message lives that is published to expire.
const SHORT_LIFE: Duration = Duration::from_millis(50);

/// The same where copies of it have to be taken away first.
const LONGER_LIFE: Duration = Duration::from_secs(1);

/// What is done for one question.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Which test.
    pub(super) test: usize,
    /// What is asked.
    pub(super) asked: Asked,
    /// The queues that the message reaches, once that is known.
    pub(super) reached: BTreeSet<QueueName>,
    /// The one of them that it dies in.
    pub(super) origin: Option<QueueName>,
    /// Where it should rest.
    pub(super) target: BTreeSet<QueueName>,
    /// Queues that are left by themselves.
    pub(super) moving: BTreeSet<QueueName>,
}

/// Does it, with nothing else in the queues.
pub(super) async fn answer(
    job: &Job,
    test: &RoutingTest,
    bench: &Bench<'_>,
    facts: &BrokerFacts,
) -> Result<Answer> {
    let random: String = std::iter::repeat_with(fastrand::alphanumeric)
        .take(12)
        .collect();
    let run = Run {
        job,
        test,
        bench,
        facts,
        id: format!("mq-test-{random}"),
    };
    bench.purge().await?;
    let before = bench.counts().await?;
    let done = match (job.asked, &job.origin) {
        (Asked::Dies(death), Some(origin)) => run.kill(death, origin, before).await?,
        _ => run.reach(before).await?,
    };
    match done {
        Ok(before) => run.look(&before).await,
        Err(answer) => Ok(answer),
    }
}

struct Run<'r> {
    job: &'r Job,
    test: &'r RoutingTest,
    bench: &'r Bench<'r>,
    facts: &'r BrokerFacts,
    id: String,
}

/// What is in the queues besides the message that is looked for, or an answer
/// when it need not be looked for.
type Done = std::result::Result<BTreeMap<QueueName, u32>, Answer>;

fn unknown(why: String) -> Done {
    Err(Answer::Unknown(why))
}

impl Run<'_> {
    async fn publish(
        &self,
        expiration: Option<Duration>,
    ) -> Result<std::result::Result<Receipt, Answer>> {
        match self.bench.publish(self.test, &self.id, expiration).await {
            Ok(Receipt::Unknown(error)) => Err(error),
            Ok(receipt) => Ok(Ok(receipt)),
            Err(error) if is_refusal(&error) => {
                Ok(Err(Answer::Impossible(error.message().to_owned())))
            }
            Err(error) => Err(error),
        }
    }

    async fn reach(&self, before: BTreeMap<QueueName, u32>) -> Result<Done> {
        Ok(self.publish(None).await?.map(|_| before))
    }

    async fn kill(
        &self,
        death: Death,
        origin: &QueueName,
        mut before: BTreeMap<QueueName, u32>,
    ) -> Result<Done> {
        let bench = self.bench;
        let overflow = bench.queue(origin).and_then(|queue| queue.overflow);
        let refused = death == Death::MaxLength && overflow == Some(Overflow::RejectPublishDlx);
        if refused {
            before.insert(origin.clone(), bench.fill(origin).await?);
        }
        // What is in a stream stays there, and is told by having no deaths.
        let others: Vec<&QueueName> = self
            .job
            .reached
            .iter()
            .filter(|name| *name != origin && !bench.is_stream(name))
            .collect();
        let life = match (death, others.is_empty()) {
            (Death::Expired, true) => Some(SHORT_LIFE),
            (Death::Expired, false) => Some(LONGER_LIFE),
            _ => None,
        };
        if let Err(answer) = self.publish(life).await? {
            return Ok(Err(answer));
        }
        let getter = bench.getter().await?;
        for name in others {
            match bench.take(&getter, name, &self.id).await? {
                Some(taken) => getter.ack(taken.tag).await?,
                None => {
                    return Ok(unknown(format!(
                        "the copy in queue '{name}' is not there any more"
                    )));
                }
            }
        }
        match death {
            Death::Rejected => match bench.take(&getter, origin, &self.id).await? {
                Some(taken) => getter.dead_letter(taken.tag).await?,
                None => {
                    return Ok(unknown(format!(
                        "queue '{origin}' does not hand the message out"
                    )));
                }
            },
            Death::Expired => {
                if !bench.wait_until_empty(origin).await? {
                    return Ok(unknown(format!(
                        "the message does not expire in queue '{origin}'"
                    )));
                }
            }
            Death::MaxLength if !refused => {
                before.insert(origin.clone(), bench.fill(origin).await?);
            }
            Death::MaxLength => {}
            Death::DeliveryLimit => {
                for _ in 0..=self.delivery_limit(origin) {
                    match bench.take(&getter, origin, &self.id).await? {
                        Some(taken) => getter.return_counted(taken.tag).await?,
                        None => break,
                    }
                }
            }
        }
        Ok(Ok(before))
    }

    fn delivery_limit(&self, origin: &QueueName) -> u32 {
        match self
            .bench
            .queue(origin)
            .and_then(|queue| queue.delivery_limit)
        {
            Some(DeliveryLimit::Finite(limit)) => limit,
            Some(DeliveryLimit::Unlimited) => 0,
            None => self.facts.default_delivery_limit().unwrap_or(0),
        }
    }

    /// Where the copies are once they rest.
    async fn look(&self, before: &BTreeMap<QueueName, u32>) -> Result<Answer> {
        let mut target = self.job.target.clone();
        target.retain(|name| !self.bench.is_stream(name));
        let settling = Settling::new(target, self.job.moving.clone());
        let is_dead = self.job.origin.is_some();
        let settling = if is_dead {
            settling
        } else {
            settling.arrived()
        };
        let held = match self.bench.settle(settling, before).await? {
            Settled::AtRest(held) => held,
            Settled::Restless(held) => {
                let names: Vec<String> = held.iter().map(|name| format!("'{name}'")).collect();
                return Ok(Answer::Unknown(format!(
                    "the message does not come to rest; it was last in {}",
                    names.join(", ")
                )));
            }
        };
        let (mut queues, mut ways) = self.bench.drain(&held, &self.id).await?;
        for (name, deaths) in self.bench.read_streams(&self.id).await? {
            if deaths.is_empty() != is_dead {
                ways.push(seen(&name, &deaths));
                queues.insert(name);
            }
        }
        Ok(Answer::Queues { queues, ways })
    }
}
