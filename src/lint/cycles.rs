//! Dead letters that come back to where they died.
//!
//! The broker drops a message that returns to a queue it left without having
//! been rejected since (measured on 3.10.8, 4.0.5 and 4.3.6); after a rejection
//! it may return for ever.

use std::collections::{BTreeSet, HashMap};

use crate::lint::rings::rings;
use crate::lint::rule::{CYCLE_WITHOUT_REJECTION, ENDLESS_RETRY, OTHER_DEATH_IN_RETRY};
use crate::lint::survey::Survey;
use crate::lint::{Finding, Subject};
use crate::routing::{Death, waits};
use crate::topology::{DeliveryLimit, Queue, QueueName};

/// Steps after which no further way back is looked for.
const MOST_STEPS: usize = 10_000_000;

/// Queues of a ring that are named in a message.
const MOST_NAMED: usize = 6;

/// The dead-letter edges between queues, by number, as far as they are certain.
struct Graph<'s> {
    queues: Vec<(&'s QueueName, &'s Queue)>,
    /// In ascending order.
    edges: Vec<Vec<usize>>,
    /// Whether messages leave it by expiry.
    waits: Vec<bool>,
    /// Whether messages leave it by any death that is no rejection.
    dies: Vec<bool>,
    /// Whether a copy of what dies there stays somewhere else.
    keeps_copy: Vec<bool>,
}

/// Tells whether it was too much to follow every way back.
pub(super) fn check(survey: &Survey<'_>, findings: &mut Vec<Finding>) -> bool {
    let graph = Graph::new(survey);
    let waiting: Vec<Vec<usize>> = graph
        .edges
        .iter()
        .enumerate()
        .map(|(from, to)| {
            let by_expiry = |at: &usize| graph.is_waiting(from) && graph.is_waiting(*at);
            to.iter().copied().filter(by_expiry).collect()
        })
        .collect();
    for ring in rings(&waiting) {
        if !ring.iter().any(|at| has(&graph.keeps_copy, *at)) {
            findings.extend(graph.dropped_by_expiry(&ring));
        }
    }
    let mut steps = 0;
    for ring in rings(&graph.edges) {
        findings.extend(graph.endless(&ring));
        for at in ring {
            findings.extend(graph.other_death(at, survey, &mut steps));
        }
    }
    steps > MOST_STEPS
}

/// Queues that what they reject comes back to without a wait on the way: the
/// first of each loop.
pub(super) fn pauseless(survey: &Survey<'_>) -> Vec<QueueName> {
    let graph = Graph::new(survey);
    let at_once: Vec<Vec<usize>> = graph
        .edges
        .iter()
        .enumerate()
        .map(|(from, to)| {
            let pauses = |at: &usize| graph.is_waiting(from) || graph.is_waiting(*at);
            to.iter().copied().filter(|at| !pauses(at)).collect()
        })
        .collect();
    let first = rings(&at_once).into_iter().filter_map(|ring| {
        let (name, _) = graph.queues.get(*ring.first()?)?;
        Some((*name).clone())
    });
    first.collect()
}

impl<'s> Graph<'s> {
    fn new(survey: &'s Survey<'_>) -> Self {
        let queues: Vec<(&QueueName, &Queue)> = survey
            .queues
            .iter()
            .map(|(name, queue)| (*name, queue.as_ref()))
            .collect();
        let numbers: HashMap<&QueueName, usize> = queues
            .iter()
            .enumerate()
            .map(|(number, (name, _))| (*name, number))
            .collect();
        let edges = queues
            .iter()
            .map(|(name, _)| {
                let targets = survey.dead_letters.get(*name).map(|found| &found.certain);
                let targets = targets.into_iter().flatten();
                targets
                    .filter_map(|target| numbers.get(target).copied())
                    .collect()
            })
            .collect();
        let of = |is: &dyn Fn(&QueueName, &Queue) -> bool| {
            queues.iter().map(|(name, queue)| is(name, queue)).collect()
        };
        let others = [Death::Expired, Death::MaxLength, Death::DeliveryLimit];
        let rests = |name: &QueueName| {
            let queue = survey.queues.get(name);
            queue.is_some_and(|queue| queue.dead_lettering.is_none())
        };
        let waits = of(&|_, queue| waits(queue));
        let dies = of(&|_, queue| {
            queue.dead_lettering.is_some() && others.iter().any(|death| survey.dies(queue, *death))
        });
        let keeps_copy = of(&|name, _| {
            let found = survey.dead_letters.get(name);
            found.is_some_and(|found| found.certain.iter().any(rests))
        });
        Self {
            queues,
            edges,
            waits,
            dies,
            keeps_copy,
        }
    }

    fn is_waiting(&self, at: usize) -> bool {
        has(&self.waits, at)
    }

    fn dropped_by_expiry(&self, ring: &[usize]) -> Option<Finding> {
        let (name, queue) = self.queues.get(*ring.first()?)?;
        let consequence = if queue.dead_letter_strategy.is_some() {
            "the broker drops what comes back by expiry alone, or keeps it for ever with at-least-once"
        } else {
            "the broker drops what comes back by expiry alone, without a trace"
        };
        let finding = CYCLE_WITHOUT_REJECTION.finding(
            Subject::Queue((*name).clone()),
            format!(
                "messages that expire go round in a ring without a rejection: {}",
                self.named(ring)
            ),
        );
        Some(finding.at("dead_letter").label(consequence).help(
            "end the ring in a queue without `message_ttl`; retries begin with a rejection in the work queue",
        ))
    }

    /// A retry loop that ends only if whoever consumes there counts.
    fn endless(&self, ring: &[usize]) -> Option<Finding> {
        let is_bounded = |at: &usize| {
            self.queues
                .get(*at)
                .is_some_and(|(_, queue)| queue.retry.is_some())
        };
        if ring.iter().any(is_bounded) {
            return None;
        }
        let work = ring.iter().find(|at| !self.is_waiting(**at))?;
        let (name, _) = self.queues.get(*work)?;
        let pause = if ring.iter().any(|at| self.is_waiting(*at)) {
            ""
        } else {
            ", without a pause"
        };
        let finding = ENDLESS_RETRY.finding(
            Subject::Queue((*name).clone()),
            format!(
                "a message that queue '{name}' rejects comes back to it{pause}: {}",
                self.named(ring)
            ),
        );
        Some(
            finding
                .at("dead_letter")
                .label("one that always fails goes round for ever")
                .help(format!(
                    "say how it ends: `retry: {{ max_attempts: 5, dead_letter_queue: NAME }}` is what `mq consume {}` keeps; other consumers must count in x-death",
                    name.shell_quoted()
                )),
        )
    }

    /// A death that is no rejection, in a queue to which other such deaths lead back.
    fn other_death(&self, at: usize, survey: &Survey<'_>, steps: &mut usize) -> Option<Finding> {
        let (name, queue) = self.queues.get(at)?;
        // What waits there itself is judged as a ring of expiries.
        if self.is_waiting(at) {
            return None;
        }
        let (death, field, what) = if survey.dies(queue, Death::DeliveryLimit) {
            let what = match queue.delivery_limit {
                Some(DeliveryLimit::Finite(limit)) => format!("its delivery limit of {limit}"),
                Some(DeliveryLimit::Unlimited) | None => {
                    "its delivery limit (20 where none is set, since RabbitMQ 4.0)".to_owned()
                }
            };
            (Death::DeliveryLimit, "delivery_limit", what)
        } else if survey.dies(queue, Death::MaxLength) {
            let what = "its length limit, which drops the oldest message".to_owned();
            (Death::MaxLength, "max_length", what)
        } else {
            return None;
        };
        if !self.leads_back(at, steps) {
            return None;
        }
        let help = match death {
            Death::DeliveryLimit => {
                "write `delivery_limit: unlimited`; `mq consume` bounds crashes itself"
            }
            Death::MaxLength | Death::Expired | Death::Rejected => {
                "leave the length limit out: with `reject-publish` a retry that finds the queue full would be dropped as well"
            }
        };
        let finding = OTHER_DEATH_IN_RETRY.finding(
            Subject::Queue((*name).clone()),
            format!("messages leave queue '{name}' also by {what}, and then come back to it without a rejection"),
        );
        Some(
            finding
                .at(field)
                .label("the broker drops those without a trace (with at-least-once it keeps them for ever, unseen)")
                .help(help),
        )
    }

    /// Whether a message can come back without a rejection, and leaves no copy behind.
    fn leads_back(&self, home: usize, steps: &mut usize) -> bool {
        let mut seen = BTreeSet::new();
        let mut ahead = vec![home];
        let mut comes_back = false;
        while let Some(at) = ahead.pop() {
            let edges = self.edges.get(at).map_or(&[] as &[usize], Vec::as_slice);
            *steps += 1;
            if *steps > MOST_STEPS || has(&self.keeps_copy, at) {
                return false;
            }
            if edges.binary_search(&home).is_ok() {
                comes_back = true;
                continue;
            }
            *steps += edges.len();
            let further = edges.iter().copied();
            ahead.extend(further.filter(|next| has(&self.dies, *next) && seen.insert(*next)));
        }
        comes_back
    }

    /// One way round a ring, in words.
    fn named(&self, ring: &[usize]) -> String {
        let within: BTreeSet<usize> = ring.iter().copied().collect();
        let Some(first) = ring.first().copied() else {
            return String::new();
        };
        let name = |at: usize| {
            let queue = self.queues.get(at);
            queue.map_or_else(String::new, |(name, _)| format!("'{name}'"))
        };
        let mut seen = BTreeSet::new();
        let mut words = Vec::new();
        let mut at = first;
        while seen.insert(at) {
            if words.len() == MOST_NAMED {
                words.push("…".to_owned());
                break;
            }
            words.push(name(at));
            let next = self.edges.get(at).into_iter().flatten().copied();
            let mut next = next.filter(|next| within.contains(next));
            let Some(further) = next
                .clone()
                .find(|next| !seen.contains(next))
                .or_else(|| next.next())
            else {
                break;
            };
            at = further;
        }
        words.push(name(at));
        words.join(" → ")
    }
}

fn has(which: &[bool], at: usize) -> bool {
    which.get(at).copied().unwrap_or(false)
}
