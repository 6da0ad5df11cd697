//! The ledger of commands that empty a dead-letter queue: killed, interrupted and
//! cut off at random moments, and afterwards every message is in its queue, in
//! its target or in the file. Nothing is lost; twice is at most what was under way.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "support of tests outside #[test] functions; kills after a time, reports for people"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::process::Signal;
use serde_json::Value as Json;
use tempfile::TempDir;

use crate::proxy::Proxy;
use crate::support::{Mq, Ran, wait_until};
use crate::vhost::Vhost;

/// Messages of one filling of the dead-letter queue.
const MESSAGES: usize = 3000;

/// Strikes in the midst of work, for one command on one broker;
/// `MQ_DLQ_LEDGER_STRIKES` wants another number.
const STRIKES: usize = 17;

/// A run is struck before it would end, of a quick one within this time.
const LATEST: Duration = Duration::from_millis(20);

const DEAD: &str = "dead";
const WORK: &str = "work";

/// A command that takes every message out of `dead`.
#[derive(Clone, Copy)]
struct Mover {
    /// Its arguments; the path is that of a file that is not there yet.
    args: fn(&Path) -> Vec<String>,
    into: Into,
    /// How many messages may be twice after one strike.
    window: usize,
}

/// Where the messages go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Into {
    /// The queue they died in.
    Work,
    /// A file, one JSON line each.
    File,
    /// Standard output, one body each line.
    Output,
    /// The same, but what was put out before a strike is thrown away.
    Nowhere,
}

/// What is done to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Strike {
    Kill,
    Interrupt,
    /// Of its connections, without a goodbye.
    Cut,
    /// The same once the broker has confirmed a message that mq does not hear of.
    CutAtConfirm,
}

impl Strike {
    /// In turns, so that none is left to chance.
    fn of_turn(turn: usize, into: Into) -> Self {
        match turn % 6 {
            0 | 2 | 4 => Self::Kill,
            1 => Self::Interrupt,
            3 if into == Into::Work => Self::CutAtConfirm,
            _ => Self::Cut,
        }
    }

    /// The exit codes of a run that it struck; 0: it was over before.
    fn codes(self) -> &'static [i32] {
        match self {
            Self::Kill => &[0, -1],
            // -1: before it listened to signals.
            Self::Interrupt => &[0, 3, 130, -1],
            Self::Cut | Self::CutAtConfirm => &[0, 3, 69, 75],
        }
    }
}

/// Where every message is, and how often.
#[derive(Debug, Default, PartialEq, Eq)]
struct Audit {
    lost: Vec<usize>,
    /// How many are there more than once, each counted as often as it is too many.
    twice: usize,
    /// What nobody published.
    strange: Vec<usize>,
}

fn audit(published: usize, found: &[usize]) -> Audit {
    let mut times = BTreeMap::new();
    for id in found {
        *times.entry(*id).or_insert(0_usize) += 1;
    }
    let known = |id: &usize| *id < published;
    Audit {
        lost: (0..published)
            .filter(|id| !times.contains_key(id))
            .collect(),
        twice: times.values().map(|times| times - 1).sum(),
        strange: times.into_keys().filter(|id| !known(id)).collect(),
    }
}

/// One dead-letter queue, what empties it, and what was found outside of it.
struct Books {
    vhost: Vhost,
    proxy: Proxy,
    mover: Mover,
    folder: TempDir,
    runs: usize,
    published: usize,
    /// From standard output and files, and from the target to make place.
    put_out: Vec<usize>,
    struck: BTreeMap<Strike, usize>,
    /// Strikes that came while messages were on their way.
    midway: usize,
}

impl Books {
    fn open(mover: Mover, kind: &str) -> Self {
        let vhost = Vhost::new();
        vhost.dead_letters(WORK, DEAD, kind, MESSAGES);
        Self {
            proxy: Proxy::to(vhost.address()),
            vhost,
            mover,
            folder: tempfile::tempdir().unwrap(),
            runs: 0,
            published: MESSAGES,
            put_out: Vec::new(),
            struck: BTreeMap::new(),
            midway: 0,
        }
    }

    fn fill(&mut self) {
        // Behind a message that does not expire none does.
        let back = self.vhost.drain(WORK);
        self.put_out.extend(back.iter().map(|body| number(body)));
        let next = self.published + MESSAGES;
        self.vhost
            .more_dead_letters(WORK, DEAD, self.published..next);
        self.published = next;
    }

    /// The next run, and the file of it.
    fn run(&mut self) -> (Mq, PathBuf) {
        self.runs += 1;
        let file = self.folder.path().join(format!("run-{}.jsonl", self.runs));
        let url = self.vhost.url_at("guest", "guest", &self.proxy.address);
        let mq = self.vhost.mq((self.mover.args)(&file)).env("MQ_URL", url);
        (mq, file)
    }

    /// Writes down what a run put out; how many messages.
    fn write_down(&mut self, ran: &Ran, file: &Path) -> usize {
        let found = match self.mover.into {
            Into::Work => return self.vhost.ready(WORK) as usize,
            Into::Nowhere if ran.code != 0 => return ran.stdout.lines().count(),
            Into::Output | Into::Nowhere => bodies(&ran.stdout),
            Into::File => ids(&std::fs::read_to_string(file).unwrap_or_default()),
        };
        self.put_out.extend(&found);
        found.len()
    }

    /// Runs to the end without a strike; how long it took.
    fn calm(&mut self) -> Duration {
        let (mq, file) = self.run();
        let began = Instant::now();
        let ran = mq.run().code(0);
        let took = began.elapsed();
        self.write_down(&ran, &file);
        took
    }

    /// Strikes a run after `pause`. Whether the queue may still hold something.
    fn strike(&mut self, strike: Strike, pause: Duration) -> bool {
        let before = match self.mover.into {
            Into::Work => self.vhost.ready(WORK) as usize,
            _ => 0,
        };
        let (mq, file) = self.run();
        let mut running = mq.spawn();
        std::thread::sleep(pause);
        let in_time = running.is_running();
        match strike {
            Strike::Kill | Strike::Interrupt if !in_time => {}
            Strike::Kill => running.signal(Signal::KILL),
            Strike::Interrupt => running.signal(Signal::INT),
            Strike::Cut => self.proxy.cut(),
            Strike::CutAtConfirm => self.proxy.cut_at_confirm(),
        }
        let ran = running.wait();
        self.proxy.spare_confirms();
        let (codes, said) = (strike.codes(), &ran.stderr);
        assert!(codes.contains(&ran.code), "{strike:?}: {} {said}", ran.code);
        assert!(!said.contains("panicked"), "{strike:?}: {said}");
        let after = self.write_down(&ran, &file);
        let is_clean = strike != Strike::Interrupt || ran.code >= 0 || after == before;
        assert!(is_clean, "an interrupt in the midst of work killed it");
        *self.struck.entry(strike).or_default() += 1;
        if in_time && ran.code != 0 && after > before {
            self.midway += 1;
        }
        ran.code != 0
    }

    /// Runs until the queue is empty: what a struck run had out comes back late.
    fn empty(&mut self) {
        wait_until("the dead-letter queue to be empty", || {
            self.calm();
            self.vhost.ready(DEAD) == 0
        });
    }

    fn audit(&self) -> Audit {
        let mut found = self.put_out.clone();
        for queue in [DEAD, WORK] {
            let bodies = self.vhost.drain(queue);
            found.extend(bodies.iter().map(|body| number(body)));
        }
        audit(self.published, &found)
    }
}

fn number(body: &[u8]) -> usize {
    std::str::from_utf8(body).unwrap().parse().unwrap()
}

/// The lines that are whole: a process that was killed may leave half of one.
fn whole_lines(text: &str) -> impl Iterator<Item = &str> {
    text.rfind('\n')
        .and_then(|end| text.get(..end))
        .unwrap_or_default()
        .lines()
}

/// One number a line.
fn bodies(text: &str) -> Vec<usize> {
    whole_lines(text)
        .map(|line| number(line.as_bytes()))
        .collect()
}

/// The numbers in a file of messages.
fn ids(text: &str) -> Vec<usize> {
    whole_lines(text)
        .map(|line| {
            let message: Json = serde_json::from_str(line).unwrap();
            number(message.get("body").unwrap().as_str().unwrap().as_bytes())
        })
        .collect()
}

fn wanted(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |number| number.parse().unwrap())
}

/// Empties the queue again and again while it is struck, and closes the books.
/// What was found, how many strikes there were, and the strikes told.
fn struck(mover: Mover, kind: &str, strikes: usize) -> (Audit, usize, String) {
    let seed = wanted("MQ_LEDGER_SEED", 1) as u64;
    let mut random = Rng::with_seed(seed);
    let mut books = Books::open(mover, kind);
    // The first is not counted on: it waits for the broker's statistics.
    books.calm();
    books.fill();
    let took = books.calm().max(LATEST);
    books.fill();
    let mut tries = 0;
    while books.midway < strikes {
        let strike = Strike::of_turn(tries, mover.into);
        tries += 1;
        assert!(tries <= 8 * strikes, "strikes miss: {:?}", books.struck);
        // Late ones are more often: at first a process only connects.
        let pause = took.mul_f64(random.f64().sqrt());
        if !books.strike(strike, pause) {
            books.fill();
        }
    }
    books.empty();
    let told = format!("{kind}, seed {seed}, {:?}", books.struck);
    (books.audit(), tries, told)
}

/// The proof for one command.
fn prove(name: &str, mover: Mover, strikes: usize) {
    for (kind, strikes) in [("classic", strikes.div_ceil(2)), ("quorum", strikes / 2)] {
        let (found, tries, told) = struck(mover, kind, strikes);
        println!("{name}, {told}: {} twice", found.twice);
        assert!(found.lost.is_empty(), "{name}, {told}: {found:?}");
        assert!(found.strange.is_empty(), "{name}, {told}: {found:?}");
        assert!(
            found.twice <= tries * mover.window,
            "{name}, {told}: {found:?}"
        );
    }
}

/// A command line and a file at its end.
fn words(line: &str, file: &Path) -> Vec<String> {
    let words = line.split(' ').map(str::to_owned);
    words.chain([file.to_str().unwrap().to_owned()]).collect()
}

const PREFETCH: usize = 100;

fn print_all(_: &Path) -> Vec<String> {
    let prefetch = PREFETCH.to_string();
    let args = [
        "consume",
        DEAD,
        "--print",
        "--until-empty",
        "--quiet",
        "--prefetch",
        &prefetch,
    ];
    args.map(str::to_owned).to_vec()
}

fn strikes() -> usize {
    wanted("MQ_DLQ_LEDGER_STRIKES", STRIKES)
}

/// Lines that are written and made safe before their messages are acked together.
const LINES: usize = 1000;

#[test]
fn an_export_that_removes_loses_nothing() {
    let args = |file: &Path| words("dlq export dead --remove --quiet --to", file);
    let mover = Mover {
        args,
        into: Into::File,
        window: LINES,
    };
    prove("dlq export --remove", mover, strikes());
}

/// Publishes that are unconfirmed at once.
const WINDOW: usize = 256;

#[test]
fn a_replay_loses_nothing() {
    let mover = Mover {
        args: |_| {
            ["dlq", "replay", DEAD, "--quiet"]
                .map(str::to_owned)
                .to_vec()
        },
        into: Into::Work,
        window: WINDOW,
    };
    prove("dlq replay", mover, strikes());
}

#[test]
fn a_purge_has_everything_in_its_backup() {
    let args = |file: &Path| words("dlq purge dead --yes --quiet --backup", file);
    let mover = Mover {
        args,
        into: Into::File,
        window: LINES,
    };
    prove("dlq purge", mover, strikes());
}

#[test]
fn an_audit_tells_what_is_lost_twice_or_strange() {
    for (found, lost, twice, strange) in [
        (&[0, 1, 2][..], &[][..], 0, &[][..]),
        (&[2, 0], &[1], 0, &[]),
        (&[0, 1, 2, 2, 2, 0], &[], 3, &[]),
        (&[0, 1, 2, 7], &[], 0, &[7]),
        (&[], &[0, 1, 2], 0, &[]),
    ] {
        let expected = Audit {
            lost: lost.to_vec(),
            twice,
            strange: strange.to_vec(),
        };
        assert_eq!(audit(3, found), expected, "{found:?}");
    }
    assert_eq!(bodies("1\n2\n33"), [1, 2]);
    assert_eq!(ids("{\"body\":\"1\"}\n{\"body\":\"2"), [1]);
}

#[test]
fn what_is_printed_before_its_ack_is_not_lost() {
    let mover = Mover {
        args: print_all,
        into: Into::Output,
        window: PREFETCH,
    };
    prove("consume --print", mover, 4);
}

/// The proof of the proof.
#[test]
fn what_a_command_throws_away_is_noticed() {
    let mover = Mover {
        args: print_all,
        into: Into::Nowhere,
        window: PREFETCH,
    };
    let (found, _, told) = struck(mover, "classic", 2);
    assert!(!found.lost.is_empty(), "{told}: {found:?}");
}
