//! One session's dealings with the store: claims before the work, records after it.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the store meets the clock and a thread of its own"
)]

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

use crate::dedupe::file::FileStore;
use crate::dedupe::store::{Kept, Store};
use crate::dedupe::{Claim, Claims, DedupeKey};
use crate::error::{Error, ErrorKind, Result};
use crate::message::Delivery;

/// How long what was asked of the store last may take when a session ends.
const CLOSING: Duration = Duration::from_secs(3);

/// What the store says.
#[derive(Debug)]
pub enum Answer {
    /// Whether a delivery may be worked.
    Claimed {
        /// Its tag.
        tag: u64,
        /// What the store says of its key.
        result: Result<Claim>,
    },
    /// Whether deliveries are recorded as done.
    Recorded {
        /// Their tags.
        tags: Vec<u64>,
        /// Recorded, or why not.
        result: Result<()>,
    },
}

/// What is asked of a store.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    /// May it be worked? Asked of servers only.
    Claim(u64, DedupeKey),
    /// It is done.
    Record(u64, DedupeKey),
    /// It was not done: somebody else may.
    Release(DedupeKey),
}

/// The store as one session sees it.
pub struct Desk {
    store: Store,
    claims: Claims,
    recorded: BTreeSet<u64>,
    ready: VecDeque<Answer>,
    requests: Option<UnboundedSender<Request>>,
    answers: UnboundedReceiver<Answer>,
    writer: Option<JoinHandle<()>>,
}

impl Desk {
    pub(super) fn open(store: Store) -> Self {
        let (requests, incoming) = mpsc::unbounded_channel();
        let (outgoing, answers) = mpsc::unbounded_channel();
        let writer = match &store.kept {
            Kept::File(file) => {
                let file = Arc::clone(file);
                Some(thread::spawn(move || write(&file, incoming, &outgoing)))
            }
            Kept::Redis(server) => {
                tokio::spawn(Arc::clone(server).serve(incoming, outgoing));
                None
            }
        };
        Self {
            store,
            claims: Claims::default(),
            recorded: BTreeSet::new(),
            ready: VecDeque::new(),
            requests: Some(requests),
            answers,
            writer,
        }
    }

    /// Asks whether a delivery may be worked; [`Self::next`] has the answer. One
    /// whose like is in work here waits for that one.
    pub fn claim(&mut self, tag: u64, delivery: &Delivery) {
        match DedupeKey::of(delivery, &self.store.by, &self.store.scope) {
            None => self.ready.push_back(Answer::Claimed {
                tag,
                result: Ok(Claim::Mine),
            }),
            Some(key) if self.claims.enter(tag, key) => self.ask(tag, key),
            Some(_) => {}
        }
    }

    fn ask(&mut self, tag: u64, key: DedupeKey) {
        match &self.store.kept {
            Kept::File(file) => {
                let result = file
                    .is_done(&key, now())
                    .map(|done| if done { Claim::Done } else { Claim::Mine });
                self.ready.push_back(Answer::Claimed { tag, result });
            }
            Kept::Redis(_) => self.request(Request::Claim(tag, key)),
        }
    }

    /// Records a delivery as done; [`Self::next`] tells when that is safe.
    pub fn record(&mut self, tag: u64) {
        match self.claims.held_by(tag) {
            Some(key) => self.request(Request::Record(tag, key)),
            None => self.ready.push_back(Answer::Recorded {
                tags: vec![tag],
                result: Ok(()),
            }),
        }
    }

    /// A delivery is settled: the next one of its key may ask.
    pub fn forget(&mut self, tag: u64) {
        let recorded = self.recorded.remove(&tag);
        let Some((key, next)) = self.claims.leave(tag) else {
            return;
        };
        match next {
            // The claim on a server passes on with it.
            Some(next) => self.ask(next, key),
            None if recorded => {}
            None => match &self.store.kept {
                Kept::File(_) => {}
                Kept::Redis(_) => self.request(Request::Release(key)),
            },
        }
    }

    /// The next answer. Safe to drop while waiting.
    pub async fn next(&mut self) -> Answer {
        if let Some(answer) = self.ready.pop_front() {
            return answer;
        }
        match self.answers.recv().await {
            Some(answer) => self.noted(answer),
            // Whoever answers ends only with us, unless it broke.
            None => self.broken().await,
        }
    }

    /// The next answer, if it is there already.
    pub fn next_now(&mut self) -> Option<Answer> {
        if let Some(answer) = self.ready.pop_front() {
            return Some(answer);
        }
        let answer = self.answers.try_recv().ok()?;
        Some(self.noted(answer))
    }

    fn noted(&mut self, answer: Answer) -> Answer {
        if let Answer::Recorded {
            tags,
            result: Ok(()),
        } = &answer
        {
            self.recorded.extend(tags);
        }
        answer
    }

    async fn broken(&mut self) -> Answer {
        let tags = self.claims.holders();
        if tags.is_empty() {
            return std::future::pending().await;
        }
        Answer::Recorded {
            tags,
            result: Err(gone()),
        }
    }

    fn request(&mut self, request: Request) {
        let sent = (self.requests.as_ref()).is_some_and(|requests| requests.send(request).is_ok());
        if sent {
            return;
        }
        match request {
            Request::Claim(tag, _) => self.ready.push_back(Answer::Claimed {
                tag,
                result: Err(gone()),
            }),
            Request::Record(tag, _) => self.ready.push_back(Answer::Recorded {
                tags: vec![tag],
                result: Err(gone()),
            }),
            Request::Release(_) => {}
        }
    }

    /// Lets the store finish what it was asked last. 3 s at most.
    pub async fn close(mut self) {
        self.requests = None;
        let answered = async { while self.answers.recv().await.is_some() {} };
        if timeout(CLOSING, answered).await.is_err() {
            tracing::warn!("the dedupe store did not answer in time");
            return;
        }
        if let Some(writer) = self.writer.take() {
            // It has nothing left to do but to end.
            let _ = writer.join();
        }
    }
}

/// What a thread of its own does for a file: several records are one commit.
fn write(
    file: &FileStore,
    mut incoming: UnboundedReceiver<Request>,
    outgoing: &UnboundedSender<Answer>,
) {
    while let Some(first) = incoming.blocking_recv() {
        let mut tags = Vec::new();
        let mut keys = Vec::new();
        let mut request = Some(first);
        while let Some(next) = request {
            match next {
                Request::Record(tag, key) => {
                    tags.push(tag);
                    keys.push(key);
                }
                Request::Claim(..) | Request::Release(_) => {}
            }
            request = incoming.try_recv().ok();
        }
        let result = file.record(&keys, now());
        if outgoing.send(Answer::Recorded { tags, result }).is_err() {
            return;
        }
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::Internal, "the dedupe store's own thread ended")
        .hint("the file may be damaged; the worker's messages are back in their queue")
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
