//! Lets the messages of many cases die on a broker, all cases side by side.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "test support: helpers are outside #[test] functions and watch the clock"
)]

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use lapin::message::Delivery;
use lapin::options::{
    BasicCancelOptions, BasicConsumeOptions, BasicGetOptions, BasicPublishOptions,
    BasicRejectOptions, ConfirmSelectOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable as LapinTable;
use lapin::{BasicProperties, Channel, ConnectionProperties};
use mq::routing::Death;
use mq::topology::{Overflow, QueueName};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::case::Case;
use super::expected::{Counts, Expected};
use crate::random::{declare, lapin_table};
use crate::vhost::Vhost;

/// How long what is expected may take; only a difference needs all of it.
const PATIENCE: Duration = Duration::from_secs(6);
/// What nobody expects has come by then: every TTL on the way is shorter.
const STABLE: Duration = Duration::from_millis(600);

/// One case while it runs.
pub(crate) struct Run<'c> {
    pub(crate) case: &'c Case,
    pub(crate) expected: Vec<Expected>,
    /// In which round it went otherwise than expected, and how.
    pub(crate) difference: Option<(usize, Expected)>,
    held: Vec<Delivery>,
    consumes: bool,
    /// Whether what comes again is returned again.
    returns: bool,
    /// Messages that only fill the queue.
    fillers: usize,
}

impl<'c> Run<'c> {
    pub(crate) fn new(case: &'c Case, expected: Vec<Expected>) -> Self {
        Self {
            case,
            expected,
            difference: None,
            held: Vec::new(),
            consumes: false,
            returns: false,
            fillers: 0,
        }
    }

    fn probe(&self) -> String {
        format!("j{}", self.case.number)
    }

    /// What is there, and whether it is what the simulation says.
    fn compare(&self, round: usize, ready: &Counts) -> (bool, Expected) {
        let origin = self.case.origin();
        let mut found = Expected {
            origin: self.held.len(),
            resting: Counts::new(),
        };
        for queue in self.case.topology.queues.keys() {
            let count = ready.get(queue).copied().unwrap_or_default();
            if *queue == origin {
                found.origin += count.saturating_sub(self.fillers);
            } else if count > 0 {
                found.resting.insert(queue.clone(), count);
            }
        }
        let as_expected = self.expected.get(round).is_some_and(|expected| {
            expected.origin == found.origin && expected.resting == found.resting
        });
        (as_expected, found)
    }
}

/// The broker, and what its consumers get.
struct Broker {
    channel: Channel,
    sender: UnboundedSender<(usize, Delivery)>,
    deliveries: UnboundedReceiver<(usize, Delivery)>,
}

/// Lets all of them die; each run tells its difference.
pub(crate) async fn drive(vhost: &Vhost, runs: &mut [Run<'_>]) {
    let mut topology = mq::topology::Topology::default();
    for run in &*runs {
        let part = run.case.topology.clone();
        topology.exchanges.extend(part.exchanges);
        topology.queues.extend(part.queues);
        topology.bindings.extend(part.bindings);
    }
    declare(vhost, &topology).await;
    let connection = lapin::Connection::connect(&vhost.url(), ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    let confirms = ConfirmSelectOptions::default();
    channel.confirm_select(confirms).await.unwrap();
    let (sender, deliveries) = unbounded_channel();
    let mut broker = Broker {
        channel,
        sender,
        deliveries,
    };
    broker.begin(runs).await;
    broker.hand_out(runs).await;
    let rounds = runs.iter().map(|run| run.expected.len()).max();
    for round in 0..rounds.unwrap_or_default() {
        for run in runs.iter_mut() {
            if round < run.expected.len() && run.difference.is_none() {
                broker.kill(run, round).await;
            }
        }
        broker.settle(runs, round).await;
    }
    tokio::time::sleep(STABLE).await;
    broker.settle(runs, usize::MAX).await;
    broker.look_inside(runs).await;
    connection.close(200, "bye".into()).await.unwrap();
}

impl Broker {
    /// Publishes every message; whose first death is at a consumer's hands has
    /// one waiting.
    async fn begin(&self, runs: &mut [Run<'_>]) {
        for (number, run) in runs.iter_mut().enumerate() {
            let first = run.case.deaths.first();
            if matches!(first, Some(Death::Rejected | Death::DeliveryLimit)) {
                run.consumes = true;
                let mut consumer = self
                    .channel
                    .basic_consume(
                        run.case.origin().as_str().into(),
                        run.probe().as_str().into(),
                        BasicConsumeOptions::default(),
                        LapinTable::default(),
                    )
                    .await
                    .unwrap();
                let sender = self.sender.clone();
                tokio::spawn(async move {
                    while let Some(Ok(delivery)) = consumer.next().await {
                        if sender.send((number, delivery)).is_err() {
                            break;
                        }
                    }
                });
            } else if run.case.settings().overflow == Some(Overflow::RejectPublishDlx) {
                self.fill(run).await;
            }
        }
        let mut confirms = Vec::new();
        for run in &*runs {
            let mut properties =
                BasicProperties::default().with_headers(lapin_table(&run.case.headers));
            if let Some(expiration) = run.case.expiration {
                let milliseconds = expiration.as_millis().to_string();
                properties = properties.with_expiration(milliseconds.as_str().into());
            }
            let message = &run.case.message;
            let key = message.keys.first().unwrap();
            let confirm = self
                .channel
                .basic_publish(
                    message.exchange.as_str().into(),
                    key.as_str().into(),
                    BasicPublishOptions::default(),
                    run.probe().as_bytes(),
                    properties,
                )
                .await
                .unwrap();
            confirms.push(confirm);
        }
        for confirm in confirms {
            confirm.await.unwrap();
        }
    }

    /// Waits until every consumer has its message.
    async fn hand_out(&mut self, runs: &mut [Run<'_>]) {
        while runs.iter().any(|run| run.consumes && run.held.is_empty()) {
            let next = tokio::time::timeout(PATIENCE, self.deliveries.recv()).await;
            let (number, delivery) = next.unwrap().unwrap();
            runs.get_mut(number).unwrap().held.push(delivery);
        }
    }

    /// Puts another message into the queue; a full one may refuse it.
    async fn fill(&self, run: &mut Run<'_>) {
        let confirm = self
            .channel
            .basic_publish(
                "".into(),
                run.case.origin().as_str().into(),
                BasicPublishOptions::default(),
                b"filler",
                BasicProperties::default(),
            )
            .await
            .unwrap();
        let is_refused = confirm.await.unwrap().is_nack();
        let refuses = run.case.settings().overflow == Some(Overflow::RejectPublish);
        assert_eq!(is_refused, refuses, "{}", run.case);
        run.fillers += usize::from(!is_refused);
    }

    /// Takes what consumers got since.
    async fn take(&mut self, runs: &mut [Run<'_>]) {
        while let Ok((number, delivery)) = self.deliveries.try_recv() {
            let run = runs.get_mut(number).unwrap();
            if run.returns && delivery.redelivered {
                requeue(&delivery).await;
            } else {
                run.held.push(delivery);
            }
        }
    }

    /// Brings about the death of this round, of all copies there are.
    async fn kill(&self, run: &mut Run<'_>, round: usize) {
        let Some(death) = run.case.deaths.get(round) else {
            return;
        };
        match death {
            Death::Rejected => {
                for delivery in run.held.drain(..) {
                    let drop = BasicRejectOptions { requeue: false };
                    delivery.reject(drop).await.unwrap();
                }
            }
            Death::DeliveryLimit => {
                run.returns = true;
                for delivery in run.held.drain(..) {
                    requeue(&delivery).await;
                }
            }
            Death::Expired => self.give_back(run).await,
            Death::MaxLength => {
                self.give_back(run).await;
                if run.case.settings().overflow != Some(Overflow::RejectPublishDlx) {
                    self.fill(run).await;
                }
            }
        }
    }

    async fn give_back(&self, run: &mut Run<'_>) {
        if run.consumes {
            run.consumes = false;
            self.channel
                .basic_cancel(run.probe().as_str().into(), BasicCancelOptions::default())
                .await
                .unwrap();
            for delivery in run.held.drain(..) {
                requeue(&delivery).await;
            }
        }
    }

    /// Waits until all is as expected; what does not become so is a difference.
    async fn settle(&mut self, runs: &mut [Run<'_>], round: usize) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.take(runs).await;
            let ready = self.ready(runs).await;
            self.take(runs).await;
            let mut is_settled = true;
            let is_late = Instant::now() > deadline;
            for run in runs.iter_mut().filter(|run| run.difference.is_none()) {
                let round = round.min(run.expected.len() - 1);
                let (as_expected, found) = run.compare(round, &ready);
                is_settled &= as_expected;
                if is_late && !as_expected {
                    run.difference = Some((round, found));
                }
            }
            if is_settled || is_late {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ready messages of every queue.
    async fn ready(&self, runs: &[Run<'_>]) -> Counts {
        let queues: Vec<&QueueName> = runs
            .iter()
            .flat_map(|run| run.case.topology.queues.keys())
            .collect();
        let asked = queues.iter().map(|queue| {
            let options = QueueDeclareOptions {
                passive: true,
                ..QueueDeclareOptions::default()
            };
            let queue = queue.as_str().into();
            self.channel
                .queue_declare(queue, options, LapinTable::default())
        });
        let answers = join_all(asked).await;
        queues
            .into_iter()
            .zip(answers)
            .map(|(queue, answer)| (queue.clone(), answer.unwrap().message_count() as usize))
            .collect()
    }

    /// What rests are copies of the case's own message.
    async fn look_inside(&self, runs: &[Run<'_>]) {
        for run in runs.iter().filter(|run| run.difference.is_none()) {
            let resting = run.expected.last().map(|last| &last.resting);
            for queue in resting.into_iter().flat_map(Counts::keys) {
                let options = BasicGetOptions { no_ack: true };
                while let Some(got) = self
                    .channel
                    .basic_get(queue.as_str().into(), options)
                    .await
                    .unwrap()
                {
                    assert_eq!(got.data, run.probe().as_bytes(), "{queue}");
                }
            }
            for delivery in &run.held {
                assert_eq!(delivery.data, run.probe().as_bytes());
            }
        }
    }
}

async fn requeue(delivery: &Delivery) {
    let back = BasicRejectOptions { requeue: true };
    delivery.reject(back).await.unwrap();
}
