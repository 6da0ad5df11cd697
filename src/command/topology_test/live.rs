//! The tests on a broker: in a temporary vhost, which goes whatever happens.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::mpsc::UnboundedReceiver;

use super::super::session::Session;
use super::super::signals;
use super::super::topology_plan::refusal;
use super::bench::Bench;
use super::provoke::{Job, answer};
use super::simulated;
use super::vhost::TemporaryVhost;
use crate::broker::BrokerFacts;
use crate::error::{Error, ErrorKind, Result};
use crate::management::{Management, Right};
use crate::output;
use crate::proof::{Answer, Asked, MOST_HELD, MOST_WAIT, ProofReport, cannot_die, prepared, waits};
use crate::routing::{Death, Message, Router};
use crate::topology::{QueueName, QueueType, RoutingTest, Topology};

/// How it ended.
pub(super) enum Ended {
    /// With an answer to everything.
    Proved(ProofReport),
    /// By a signal of that number.
    Stopped(u8),
}

/// Does all tests on the broker.
pub(super) async fn prove(topology: &Topology, session: &mut Session) -> Result<Ended> {
    must_be_whole(topology)?;
    let (management, facts) = reach_broker(topology, session).await.map_err(or_offline)?;
    tracing::info!(
        "in the temporary vhost a message TTL over {}ms is {}ms in wait queues, delivery and length limits over {MOST_HELD} are {MOST_HELD}",
        MOST_WAIT.as_millis(),
        MOST_WAIT.as_millis()
    );
    let signals = signals::listen().map_err(|error| {
        Error::new(
            ErrorKind::Internal,
            format!("signals cannot be listened to: {error}"),
        )
    })?;
    let mut report = simulated(topology, Some(&facts));
    report.broker = Some(format!("{facts} at {}", management.endpoint()));
    let names = topology.queues.keys();
    let mut live = Live {
        topology,
        router: Router::on(topology, &facts),
        waiting: names
            .filter(|name| waits(topology, name))
            .cloned()
            .collect(),
        facts,
        management: &management,
        session,
        signals,
    };
    live.prove(report).await
}

/// What is declared elsewhere is not in a temporary vhost.
fn must_be_whole(topology: &Topology) -> Result<()> {
    let declared = |name: &String| {
        topology.queues.keys().any(|queue| queue.as_str() == name)
            || topology
                .exchanges
                .keys()
                .any(|exchange| exchange.as_str() == name)
    };
    let missing: Vec<&str> = topology
        .elsewhere
        .iter()
        .filter(|name| !declared(name))
        .map(String::as_str)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidInput,
        format!(
            "what is declared elsewhere cannot be tested with --live: {}",
            missing.join(", ")
        ),
    )
    .hint("give the files that declare it too, or test without --live"))
}

fn or_offline(error: Error) -> Error {
    let hint = error.way_out().unwrap_or_default().to_owned();
    let offline = "without --live the tests need no broker";
    error.hint(format!("{hint}\n{offline}").trim_start().to_owned())
}

/// Everything that can stand against it, asked before anything is created.
async fn reach_broker(topology: &Topology, session: &Session) -> Result<(Management, BrokerFacts)> {
    let cluster = session.greeted_by().await;
    if cluster.is_none() {
        // Says why nobody greets.
        let connection = session
            .connect("mq topology test", crate::amqp::Frames::Small)
            .await?;
        connection.close().await;
    }
    let management = session.management_of(cluster.as_deref()).await?;
    management.must_have(Right::Vhosts).await?;
    let facts = management.facts().await?;
    match refusal(topology, &facts) {
        Some(refusal) => Err(refusal),
        None => Ok((management, facts)),
    }
}

struct Live<'l> {
    topology: &'l Topology,
    router: Router<'l>,
    /// The queues that are left by themselves.
    waiting: BTreeSet<QueueName>,
    facts: BrokerFacts,
    management: &'l Management,
    session: &'l mut Session,
    signals: UnboundedReceiver<u8>,
}

/// Answers by test and what was asked.
type Answers = BTreeMap<(usize, Asked), Answer>;

/// Jobs that are done in the same vhost.
struct Group {
    keep: BTreeSet<QueueName>,
    prepared: Topology,
    jobs: Vec<Job>,
}

enum GroupEnded {
    Done(Answers),
    Stopped(u8),
}

impl Live<'_> {
    async fn prove(&mut self, mut report: ProofReport) -> Result<Ended> {
        // In queues that are stayed in, whatever is reached can be seen.
        let all: BTreeSet<QueueName> = self.topology.queues.keys().cloned().collect();
        let reaching = Group {
            prepared: prepared(self.topology, &all),
            keep: all,
            jobs: self.reach_jobs(&report),
        };
        let mut answers = match self.run(reaching).await? {
            GroupEnded::Done(answers) => answers,
            GroupEnded::Stopped(number) => return Ok(Ended::Stopped(number)),
        };
        for group in self.death_groups(&report, &mut answers) {
            match self.run(group).await? {
                GroupEnded::Done(more) => {
                    for (key, answer) in more {
                        let whole = match answers.remove(&key) {
                            Some(before) => before.and(answer),
                            None => answer,
                        };
                        answers.insert(key, whole);
                    }
                }
                GroupEnded::Stopped(number) => return Ok(Ended::Stopped(number)),
            }
        }
        for (number, proof) in report.proofs.iter_mut().enumerate() {
            for check in &mut proof.checks {
                check.live = answers.remove(&(number, check.asked));
            }
        }
        Ok(Ended::Proved(report))
    }

    fn reach_jobs(&self, report: &ProofReport) -> Vec<Job> {
        let tests = self.topology.tests.iter().enumerate();
        tests
            .map(|(number, test)| {
                let routed = self.router.route(&message(test));
                let target = if routed.unknown.is_empty() {
                    routed.queues().cloned().collect()
                } else {
                    expected(report, number, Asked::Reaches)
                };
                Job {
                    test: number,
                    asked: Asked::Reaches,
                    reached: BTreeSet::new(),
                    origin: None,
                    target,
                    moving: BTreeSet::new(),
                }
            })
            .collect()
    }

    /// What has to be done for every death, once it is known what is reached.
    /// What cannot be done is answered at once.
    fn death_groups(&self, report: &ProofReport, answers: &mut Answers) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (number, test) in self.topology.tests.iter().enumerate() {
            for (asked, _) in Asked::of(test) {
                let Asked::Dies(death) = asked else {
                    continue;
                };
                match self.death_jobs(number, test, death, report, answers) {
                    Ok(jobs) => {
                        for job in jobs {
                            self.sort_in(job, &mut groups);
                        }
                    }
                    Err(answer) => {
                        answers.insert((number, asked), answer);
                    }
                }
            }
        }
        groups
    }

    fn sort_in(&self, job: Job, groups: &mut Vec<Group>) {
        // Its consumer may take its time: there a message is never out of it.
        let keep: BTreeSet<QueueName> = job.origin.iter().cloned().collect();
        let keep = &keep & &self.waiting;
        match groups.iter_mut().find(|group| group.keep == keep) {
            Some(group) => group.jobs.push(job),
            None => groups.push(Group {
                prepared: prepared(self.topology, &keep),
                keep,
                jobs: vec![job],
            }),
        }
    }

    fn death_jobs(
        &self,
        number: usize,
        test: &RoutingTest,
        death: Death,
        report: &ProofReport,
        answers: &Answers,
    ) -> std::result::Result<Vec<Job>, Answer> {
        let reached = match answers.get(&(number, Asked::Reaches)) {
            Some(Answer::Queues { queues, .. }) => queues,
            Some(failed) => return Err(failed.clone()),
            None => return Err(Answer::Unknown("it was not published".to_owned())),
        };
        let copies = self.router.publish(&message(test));
        let mut jobs = Vec::new();
        for origin in reached {
            let Some(queue) = self.topology.effective_queue(origin) else {
                continue;
            };
            if queue.kind == Some(QueueType::Stream) {
                continue;
            }
            if let Some(why) = cannot_die(origin, &queue, death, Some(&self.facts)) {
                return Err(Answer::Impossible(why));
            }
            let held = copies.iter().find(|held| held.queue == *origin);
            let target = match held {
                Some(held) => self.router.journey(held.clone(), death).rests,
                None => expected(report, number, Asked::Dies(death)),
            };
            let mut moving = self.waiting.clone();
            moving.remove(origin);
            jobs.push(Job {
                test: number,
                asked: Asked::Dies(death),
                reached: reached.clone(),
                origin: Some(origin.clone()),
                target,
                moving,
            });
        }
        if jobs.is_empty() {
            return Err(Answer::Impossible(
                "it reaches no queue in which it could die".to_owned(),
            ));
        }
        Ok(jobs)
    }

    /// Does the jobs in a vhost of their own, which is deleted whatever happens.
    async fn run(&mut self, group: Group) -> Result<GroupEnded> {
        if let Ok(number) = self.signals.try_recv() {
            return Ok(GroupEnded::Stopped(number));
        }
        let vhost = TemporaryVhost::choose(self.management)?;
        // Not given up half-way: a request under way could create it behind us.
        if let Err(error) = vhost
            .create(&group.prepared, self.session.known_user()?)
            .await
        {
            vhost.delete_after_all().await;
            return Err(or_offline(error));
        }
        tracing::info!(vhost = ?vhost.name(), jobs = group.jobs.len(), "testing in a temporary vhost");
        self.session.use_vhost(vhost.name());
        let working = work(&group, self.topology, self.session, &self.facts);
        let stopped = tokio::select! {
            done = working => Err(done),
            Some(number) = self.signals.recv() => Ok(number),
        };
        match stopped {
            Ok(number) => {
                output::talk(&format!(
                    "mq: signal {number}: deleting the temporary vhost '{}'",
                    vhost.name()
                ));
                vhost.delete().await?;
                Ok(GroupEnded::Stopped(number))
            }
            Err(Ok(answers)) => {
                vhost.delete().await?;
                Ok(GroupEnded::Done(answers))
            }
            Err(Err(error)) => {
                vhost.delete_after_all().await;
                Err(error)
            }
        }
    }
}

async fn work(
    group: &Group,
    topology: &Topology,
    session: &Session,
    facts: &BrokerFacts,
) -> Result<Answers> {
    let mut bench = Bench::set_up(&group.prepared, session).await?;
    let mut answers = Answers::new();
    for job in &group.jobs {
        bench.refresh().await?;
        let Some(test) = topology.tests.get(job.test) else {
            continue;
        };
        tracing::debug!(test = ?test.name, asked = job.asked.key(), origin = ?job.origin, "testing");
        let answer = match answer(job, test, &bench, facts).await {
            Ok(answer) => answer,
            // One queue may be at fault; a broker that is gone shows in the next line.
            Err(error) if error.kind() == ErrorKind::TimedOut && !bench.is_blocked() => {
                bench.reconnect().await?;
                Answer::Unknown(error.message().to_owned())
            }
            Err(error) => return Err(error.during(&format!("test '{}'", test.name))),
        };
        let key = (job.test, job.asked);
        let whole = match answers.remove(&key) {
            Some(before) => Answer::and(before, answer),
            None => answer,
        };
        answers.insert(key, whole);
    }
    bench.close().await;
    Ok(answers)
}

fn message(test: &RoutingTest) -> Message {
    Message::new(
        test.exchange.clone(),
        test.key.clone(),
        test.headers.clone(),
    )
}

/// What a test expects: the best guess where nothing can be simulated.
fn expected(report: &ProofReport, number: usize, asked: Asked) -> BTreeSet<QueueName> {
    let proof = report.proofs.get(number);
    let check = proof.and_then(|proof| proof.checks.iter().find(|check| check.asked == asked));
    check
        .map(|check| check.expected.clone())
        .unwrap_or_default()
}
