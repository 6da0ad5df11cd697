//! One work queue with its worker and its faults: worked, drained, counted.
#![expect(
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test support outside #[test] functions: waits between faults"
)]

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use lapin::BasicProperties;
use rustix::process::Signal;

use crate::fault::{Fault, Planned, Struck, planned};
use crate::message::{Fate, MAX_ATTEMPTS, body, fates};
use crate::node::{Node, clock};
use crate::proxy::Proxy;
use crate::support::{Mq, Running, Script, TextFile};
use crate::vhost::Vhost;

/// Messages of one queue.
const MESSAGES: usize = 24;

/// Faults of one worker, besides those of its broker.
const FAULTS: usize = 5;

/// How long a worker may take to end its messages once nothing is done to it any more.
const RECOVERY: Duration = Duration::from_secs(90);

/// Acts out the fate in the body and writes down each attempt: id, number, exit
/// code, when it started and when it had done its work. What it does comes at
/// its end or, with every other message, in its middle.
const HANDLER: &str = r#"
read -r began rest </proc/uptime
read -r id codes || exit 1
set -- $codes
[ $# -ge "$MQ_ATTEMPT" ] || set -- 99 99 99 99 99 99 99 99
shift $((MQ_ATTEMPT - 1))
[ $((id % 2)) -eq 0 ] || sleep PAUSE
read -r now rest </proc/uptime
echo "$id $MQ_ATTEMPT $1 $began $now" >>"${0%/*}/attempts"
[ $((id % 2)) -eq 1 ] || sleep PAUSE
exit $1
"#;

/// How failed messages are retried, and the wait queues of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// Retried by copies, for the work queue of a worker confirms no nack.
    Dlx,
    /// The same written out, with a work queue that does.
    Nack,
    Backoff,
    Immediate,
}

impl Strategy {
    /// Those that queues of a type have.
    pub(crate) fn of(kind: &str) -> &'static [Self] {
        match kind {
            "quorum" => &[Self::Dlx, Self::Backoff, Self::Immediate, Self::Nack],
            _ => &[Self::Dlx, Self::Backoff, Self::Immediate],
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Dlx => "dlx",
            Self::Nack => "nack",
            Self::Backoff => "backoff",
            Self::Immediate => "immediate",
        }
    }

    fn retry(self) -> String {
        let how = match self {
            Self::Dlx | Self::Nack => "dlx, delays: [200ms]",
            Self::Backoff => "backoff, delays: [200ms, 400ms]",
            Self::Immediate => "immediate",
        };
        format!("{{ strategy: {how}, max_attempts: {MAX_ATTEMPTS} }}")
    }

    fn wait_queues(self) -> &'static [&'static str] {
        match self {
            Self::Dlx | Self::Nack => &[".retry"],
            Self::Backoff => &[".retry.200ms", ".retry.400ms"],
            Self::Immediate => &[],
        }
    }
}

/// Queue types whose messages survive a node.
pub(crate) const KINDS: [&str; 2] = ["classic", "quorum"];

/// A work queue that keeps what is nacked until its wait queue has it.
const NACK: &str = "
exchanges: { quorum-nack.dlx: { type: direct } }
queues:
  quorum-nack: { SAFE, dead_letter: { exchange: quorum-nack.dlx, key: retry, strategy: at-least-once }, retry: RETRY }
  quorum-nack.retry: { SAFE, message_ttl: 200ms, dead_letter: { exchange: '', key: quorum-nack, strategy: at-least-once }, bind: [ { exchange: quorum-nack.dlx, key: retry } ] }
  quorum-nack.dlq: { type: quorum, delivery_limit: unlimited, bind: [ { exchange: quorum-nack.dlx, key: dead } ] }
";

/// A vhost with a work queue of every type and strategy.
pub(crate) struct Books {
    pub(crate) vhost: Vhost,
    file: TextFile,
}

impl Books {
    pub(crate) fn new() -> Self {
        let safe = "type: quorum, delivery_limit: unlimited, overflow: reject-publish";
        let nack = NACK
            .replace("SAFE", safe)
            .replace("RETRY", &Strategy::Nack.retry());
        let mut text = format!("version: 1{nack}workers:\n");
        for kind in KINDS {
            for strategy in Strategy::of(kind) {
                if *strategy == Strategy::Nack {
                    continue;
                }
                let name = format!("{kind}-{}", strategy.word());
                let retry = strategy.retry();
                text.push_str(&format!("  {name}: {{ type: {kind}, retry: {retry} }}\n"));
            }
        }
        let vhost = Vhost::new();
        let file = TextFile::new("t.yaml", &text);
        vhost.mq(["topology", "apply", &file.path()]).run().code(0);
        Self { vhost, file }
    }
}

/// The messages of one queue, and what was done to its worker.
pub(crate) struct Account {
    pub(crate) seed: u64,
    pub(crate) queue: String,
    strategy: Strategy,
    books: Arc<Books>,
    pub(crate) fates: Vec<Fate>,
    pub(crate) plan: Vec<Planned>,
    pub(crate) struck: Vec<Struck>,
    /// What a worker did that it should not.
    pub(crate) complaints: Vec<String>,
    /// What the last worker said, if it was not through when it was stopped.
    unfinished: Option<String>,
    handler: Script,
    proxy: Proxy,
}

impl fmt::Display for Account {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "seed {}, queue {}", self.seed, self.queue)
    }
}

impl Account {
    /// Publishes the messages, each confirmed.
    pub(crate) fn open(seed: u64, kind: &str, strategy: Strategy, books: Arc<Books>) -> Self {
        let queue = format!("{kind}-{}", strategy.word());
        // Another stream of numbers for each queue of a seed.
        let salt: u64 = queue.bytes().map(u64::from).sum();
        let mut random = Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(salt));
        let fates = fates(&mut random, MESSAGES);
        let plan = if seed == 0 {
            Vec::new()
        } else {
            planned(&mut random, FAULTS)
        };
        let messages: Vec<(Vec<u8>, BasicProperties)> = fates
            .iter()
            .enumerate()
            .map(|(id, fate)| {
                let persistent = BasicProperties::default().with_delivery_mode(2);
                (body(id, fate), persistent)
            })
            .collect();
        books.vhost.publish_raw(&queue, &messages);
        // Without faults there is nothing to wait for.
        let pause = if seed == 0 { "0.01" } else { "0.6" };
        Self {
            seed,
            queue,
            strategy,
            fates,
            plan,
            struck: Vec::new(),
            complaints: Vec::new(),
            unfinished: None,
            handler: Script::new(&HANDLER.replace("PAUSE", pause)),
            proxy: Proxy::to(books.vhost.address()),
            books,
        }
    }

    pub(crate) fn vhost(&self) -> &Vhost {
        &self.books.vhost
    }

    /// Every queue that a message of it can be in.
    pub(crate) fn queues(&self) -> Vec<String> {
        let ends = ["", ".dlq"];
        ends.iter()
            .chain(self.strategy.wait_queues())
            .map(|end| format!("{}{end}", self.queue))
            .collect()
    }

    pub(crate) fn attempts(&self) -> Vec<String> {
        self.handler.lines("attempts")
    }

    fn consume(&self, flags: &[&str]) -> Mq {
        let mut args: Vec<OsString> = vec!["consume".into(), (&self.queue).into()];
        let path = self.books.file.path();
        let always = ["--prefetch", "4", "--topology", &path];
        args.extend(always.iter().chain(flags).map(Into::into));
        args.extend(["--exec".into(), self.handler.path()]);
        self.books.vhost.mq(args)
    }

    /// Starts a worker and waits until it survives the loss of its connection:
    /// one that has not been connected yet may give up.
    fn start(&mut self, node: &Node) -> Option<Running> {
        let _up = node.keep_up();
        let vhost = &self.books.vhost;
        let user = vhost.endpoint();
        let url = vhost.url_at(&user.user, user.password.reveal(), &self.proxy.address);
        let mut worker = self
            .consume(&["--reconnect-for", "120s", "-v"])
            .env("MQ_URL", url)
            .spawn();
        let deadline = Instant::now() + Duration::from_mins(2);
        while !worker.stderr_so_far().contains("retries") {
            if !worker.is_running() || Instant::now() > deadline {
                self.complain("a worker did not start", worker);
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(worker)
    }

    fn complain(&mut self, what: &str, worker: Running) {
        worker.signal(Signal::KILL);
        let ran = worker.wait();
        let said = last_lines(&ran.stderr);
        self.complaints
            .push(format!("{what} (exit {}):\n    {said}", ran.code));
    }

    /// Works while everything goes wrong, until `over` and then to the end.
    pub(crate) fn work(&mut self, node: &Node, over: &AtomicBool) {
        let Some(mut worker) = self.start(node) else {
            return;
        };
        let mut plan = self.plan.clone().into_iter();
        let mut next = plan.next();
        let mut due = Instant::now() + next.map_or(Duration::ZERO, |next| next.pause);
        let mut armed = None;
        let mut deadline = None;
        loop {
            let is_struck = next.is_some();
            std::thread::sleep(Duration::from_millis(if is_struck { 100 } else { 400 }));
            if !worker.is_running() {
                self.complain("a worker ended by itself", worker);
                match self.start(node) {
                    Some(again) => worker = again,
                    None => return,
                }
            }
            if let Some(from) = armed
                && !self.proxy.waits_for_confirm()
            {
                self.note(Fault::CutAtConfirm, from);
                armed = None;
            }
            let Some(fault) = next else {
                if !over.load(Ordering::SeqCst) {
                    continue;
                }
                let deadline = *deadline.get_or_insert_with(|| Instant::now() + RECOVERY);
                if self.is_through() || Instant::now() > deadline {
                    break;
                }
                continue;
            };
            if Instant::now() < due {
                continue;
            }
            if let Some(from) = armed.take()
                && !self.proxy.spare_confirms()
            {
                self.note(Fault::CutAtConfirm, from);
            }
            match fault.fault {
                Fault::WorkerKilled => {
                    let from = clock();
                    worker.signal(Signal::KILL);
                    worker.wait();
                    self.note(Fault::WorkerKilled, from);
                    match self.start(node) {
                        Some(again) => worker = again,
                        None => return,
                    }
                }
                Fault::ConnectionCut => {
                    let from = clock();
                    self.proxy.cut();
                    self.note(Fault::ConnectionCut, from);
                }
                Fault::CutAtConfirm => {
                    armed = Some(clock());
                    self.proxy.cut_at_confirm();
                }
                Fault::BrokerKilled => {}
            }
            next = plan.next();
            due = Instant::now() + next.map_or(Duration::ZERO, |next| next.pause);
        }
        if let Some(from) = armed
            && !self.proxy.spare_confirms()
        {
            self.note(Fault::CutAtConfirm, from);
        }
        let is_through = self.is_through();
        worker.signal(Signal::TERM);
        let ran = worker.wait();
        if !is_through {
            self.unfinished = Some(last_lines(&ran.stderr));
        }
        if ran.code != 0 {
            self.complaints.push(format!(
                "a worker told to stop exited {}:\n{}",
                ran.code, ran.stderr
            ));
        }
    }

    fn note(&mut self, fault: Fault, from: f64) {
        let to = clock();
        self.struck.push(Struck { fault, from, to });
    }

    /// Whether every message has had its last attempt.
    pub(crate) fn is_through(&self) -> bool {
        let mut last = vec![false; self.fates.len()];
        for line in self.attempts() {
            let mut words = line.split(' ');
            let id: Option<usize> = words.next().and_then(|word| word.parse().ok());
            let attempt: Option<usize> = words.next().and_then(|word| word.parse().ok());
            if let (Some(id), Some(attempt)) = (id, attempt)
                && self
                    .fates
                    .get(id)
                    .is_some_and(|fate| fate.0.len() == attempt)
            {
                last[id] = true;
            }
        }
        last.into_iter().all(|is| is)
    }

    /// A worker without faults takes what is left.
    pub(crate) fn drain(&mut self) {
        let ran = self.consume(&["--until-empty", "-o", "json"]).run();
        if ran.code != 0 {
            self.complaints.push(format!(
                "the last worker exited {}:\n{}",
                ran.code, ran.stderr
            ));
            return;
        }
        let received = ran.json()["received"].as_u64().unwrap_or_default();
        if let Some(said) = self.unfinished.take()
            && received > 0
        {
            self.complaints.push(format!(
                "the worker stood still at {:.1}: {RECOVERY:?} after the last fault {received} deliveries were left for the next one; it said last:\n    {said}",
                clock()
            ));
        }
    }
}

fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n    ")
}
