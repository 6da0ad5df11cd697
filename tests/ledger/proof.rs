//! The proof itself: open the accounts, let everything fail, close the books.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "the report of the test is for people; reads its seed, waits between kills"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lapin::ConnectionProperties;
use lapin::options::BasicGetOptions;

use crate::account::{Account, Books, KINDS, Strategy};
use crate::audit::{Attempt, Rest, audit};
use crate::fault::Struck;
use crate::message::id_of;
use crate::node::{Node, clock};
use crate::vhost::{Vhost, block_on};

/// Seeds of a whole run; 0 is the one without faults.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=20;

/// The broker is killed so long after it was ready.
const BROKER_KILLS: [Duration; 2] = [Duration::from_millis(2500), Duration::from_millis(3500)];

fn seeds() -> Vec<u64> {
    match std::env::var("MQ_LEDGER_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => SEEDS.collect(),
    }
}

/// The types of a seed's queues: in a whole run they take turns, for the sake of
/// the machine; a seed alone has them all.
fn kinds(seed: u64, all: &[u64]) -> &'static [&'static str] {
    match (all.len(), seed % 2) {
        (1, _) => &KINDS,
        (_, 0) => &KINDS[..1],
        _ => &KINDS[1..],
    }
}

/// One account for each type and strategy of each seed, the seeds at once.
fn open(seeds: &[u64]) -> Vec<Account> {
    std::thread::scope(|scope| {
        let opening: Vec<_> = seeds
            .iter()
            .map(|&seed| {
                scope.spawn(move || {
                    let books = Arc::new(Books::new());
                    let mut accounts = Vec::new();
                    for kind in kinds(seed, seeds) {
                        for strategy in Strategy::of(kind) {
                            let books = Arc::clone(&books);
                            accounts.push(Account::open(seed, kind, *strategy, books));
                        }
                    }
                    accounts
                })
            })
            .collect();
        opening
            .into_iter()
            .flat_map(|opened| opened.join().unwrap())
            .collect()
    })
}

/// Each account in a thread of its own.
fn each(accounts: &mut [Account], act: impl Fn(&mut Account) + Sync) {
    std::thread::scope(|scope| {
        for account in accounts {
            scope.spawn(|| act(account));
        }
    });
}

/// Takes everything out of these queues.
fn rests(vhost: &Vhost, queues: &[String]) -> Vec<Rest> {
    block_on(async {
        let properties = ConnectionProperties::default();
        let connection = lapin::Connection::connect(&vhost.url(), properties)
            .await
            .unwrap();
        let channel = connection.create_channel().await.unwrap();
        let mut found = Vec::new();
        for queue in queues {
            let options = BasicGetOptions { no_ack: true };
            while let Some(message) = channel
                .basic_get(queue.as_str().into(), options)
                .await
                .unwrap()
            {
                found.push(Rest {
                    id: id_of(&message.data).unwrap(),
                    queue: queue.clone(),
                });
            }
        }
        connection.close(200, "bye".into()).await.unwrap();
        found
    })
}

/// What became of all accounts.
#[derive(Default)]
struct Report {
    messages: usize,
    attempts: usize,
    dead: usize,
    faults: BTreeMap<String, usize>,
    duplicates: BTreeMap<String, usize>,
    failures: Vec<String>,
}

impl Report {
    fn close(&mut self, account: &Account, rests: &[Rest], broker: &[Struck]) {
        let lines = account.attempts();
        let attempts: Vec<Attempt> = lines
            .iter()
            .filter_map(|line| Attempt::read(line))
            .collect();
        assert_eq!(attempts.len(), lines.len(), "{account}: {lines:?}");
        let mut struck = account.struck.clone();
        struck.extend(broker);
        struck.sort_by(|a, b| a.from.total_cmp(&b.from));
        let mut found = audit(&account.fates, &attempts, rests, &struck);
        found.errors.extend(account.complaints.iter().cloned());
        self.messages += account.fates.len();
        self.attempts += attempts.len();
        self.dead += rests.len();
        for fault in &account.struck {
            *self.faults.entry(fault.fault.to_string()).or_default() += 1;
        }
        for (cause, count) in found.duplicates {
            *self.duplicates.entry(cause).or_default() += count;
        }
        if !found.errors.is_empty() {
            self.failures.push(format!(
                "{account}:\n  {}\n  struck: {struck:?}\n  planned: {:?}\n  again: MQ_LEDGER_SEED={}",
                found.errors.join("\n  "),
                account.plan,
                account.seed
            ));
        }
    }

    fn print(&self, name: &str, broker_kills: usize) {
        println!(
            "ledger, {name}: {} messages, {} attempts, {} in dead-letter queues, {} accounts with failures",
            self.messages,
            self.attempts,
            self.dead,
            self.failures.len()
        );
        if broker_kills > 0 {
            println!("  broker killed: {broker_kills} times for all");
        }
        for (fault, count) in &self.faults {
            println!("  {fault}: {count} times");
        }
        for (cause, count) in &self.duplicates {
            println!("  {count} duplicates, {cause}");
        }
    }
}

/// Drains, counts and closes each account.
fn close(accounts: &mut [Account], broker: &[Struck]) -> Report {
    each(accounts, Account::drain);
    let mut report = Report::default();
    for account in accounts.iter() {
        let found = rests(account.vhost(), &account.queues());
        report.close(account, &found, broker);
    }
    report
}

#[test]
fn every_message_is_accounted_for_whatever_dies() {
    let node = Node::of_environment();
    let start = clock();
    let step = |what: &str| println!("ledger: {what} at {:.1} s", clock() - start);
    let seeds = seeds();
    let (calm, mut accounts) = std::thread::scope(|scope| {
        let calm = scope.spawn(|| close(&mut open(&[0]), &[]));
        let accounts = open(&seeds);
        (calm.join().unwrap(), accounts)
    });
    calm.print(&format!("RabbitMQ {} without faults", node.version), 0);
    // Without faults nothing may happen twice.
    assert!(calm.failures.is_empty(), "{}", calm.failures.join("\n"));
    assert!(calm.duplicates.is_empty(), "{:?}", calm.duplicates);

    step("working");
    let over = AtomicBool::new(false);
    let mut broker = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| each(&mut accounts, |account| account.work(&node, &over)));
        for pause in BROKER_KILLS {
            std::thread::sleep(pause);
            broker.push(node.kill_and_start());
            step("broker is back");
        }
        over.store(true, Ordering::SeqCst);
    });
    step("draining");
    let report = close(&mut accounts, &broker);
    step("closed");
    report.print(&format!("RabbitMQ {}", node.version), broker.len());
    assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
}
