//! What is done, on a Redis server that several workers share.
//!
//! Before the work a key is claimed for half a minute, renewed while the work
//! lasts, so that two workers that get the same message at once do not both work
//! it. After the work the claim becomes `done` with the time to live. Only
//! commands that every Redis since 2.6.12 and Valkey have are used.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a server is asked, with a clock and a random name"
)]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, RedisError, Value};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::dedupe::desk::{Answer, Request};
use crate::dedupe::{Claim, DedupeKey, Scope};
use crate::endpoint::RedisEndpoint;
use crate::error::{Error, ErrorKind, Result};

/// How long a claim outlives a worker that was killed.
const LEASE: Duration = Duration::from_secs(30);

/// How often another worker's claim is asked about.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// How long a connection and an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// The first pause before a server is asked again; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Most requests that are sent together.
const MOST_AT_ONCE: usize = 1000;

/// How long releasing what is left may take at the end.
const GOODBYE: Duration = Duration::from_secs(1);

const DONE: &[u8] = b"done";

/// Frees a claim if it is still ours.
const RELEASE: &str =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0";

/// Makes a claim last longer, or takes it again if the server forgot it.
const RENEW: &str = "local held=redis.call('get',KEYS[1]) \
     if held==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end \
     if not held then redis.call('set',KEYS[1],ARGV[1],'PX',ARGV[2]) return 1 end return 0";

/// A server, and this worker's name there.
pub(super) struct RedisStore {
    client: Client,
    endpoint: RedisEndpoint,
    prefix: String,
    /// Milliseconds.
    time_to_live: u64,
    worker: String,
    patience: Duration,
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl RedisStore {
    /// Connects. `patience` is how long a server that goes away later is waited for.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when it does not answer,
    /// [`ErrorKind::AccessRefused`] when it refuses the login.
    pub(super) async fn open(
        endpoint: RedisEndpoint,
        scope: &Scope,
        time_to_live: Duration,
        patience: Duration,
    ) -> Result<Self> {
        let client = Client::open(endpoint.reveal()).map_err(|error| {
            Error::new(
                ErrorKind::Configuration,
                format!("the URL of the dedupe store {endpoint} cannot be used: {error}"),
            )
            .hint(
                "write it as redis://HOST:6379/0 or, with TLS, rediss://USER:PASSWORD@HOST:6379/0",
            )
        })?;
        let store = Self {
            client,
            prefix: format!("mq:dedupe:{}:{}:", scope.vhost, scope.queue),
            endpoint,
            time_to_live: u64::try_from(time_to_live.as_millis())
                .unwrap_or(u64::MAX)
                .max(1),
            worker: format!("{:032x}", fastrand::u128(..)),
            patience,
            connection: Mutex::new(None),
        };
        let mut ping = several();
        ping.cmd("PING");
        store
            .ask_once(&ping)
            .await
            .map_err(|error| store.failed(&error))?;
        Ok(store)
    }

    fn name(&self, key: &DedupeKey) -> String {
        format!("{}{key}", self.prefix)
    }

    /// Answers requests until nobody asks any more, then frees what is claimed.
    pub(super) async fn serve(
        self: Arc<Self>,
        mut incoming: UnboundedReceiver<Request>,
        outgoing: UnboundedSender<Answer>,
    ) {
        let mut held = HashSet::new();
        let mut busy: Vec<(u64, DedupeKey)> = Vec::new();
        let mut renewals = interval(LEASE / 3);
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asks = interval(ASK_AGAIN);
        asks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let requests = tokio::select! {
                first = incoming.recv() => {
                    let Some(first) = first else { break };
                    let mut requests = vec![first];
                    while requests.len() < MOST_AT_ONCE
                        && let Ok(next) = incoming.try_recv()
                    {
                        requests.push(next);
                    }
                    requests
                }
                _ = renewals.tick() => {
                    self.renew(&held).await;
                    continue;
                }
                _ = asks.tick(), if !busy.is_empty() => {
                    (busy.drain(..)).map(|(tag, key)| Request::Claim(tag, key)).collect()
                }
            };
            for answer in self.carry_out(&requests, &mut held, &mut busy).await {
                let _ = outgoing.send(answer);
            }
        }
        let _ = timeout(GOODBYE, self.free(&held)).await;
    }

    async fn carry_out(
        &self,
        requests: &[Request],
        held: &mut HashSet<DedupeKey>,
        busy: &mut Vec<(u64, DedupeKey)>,
    ) -> Vec<Answer> {
        let mut pipe = several();
        for request in requests {
            match request {
                Request::Claim(_, key) => {
                    let name = self.name(key);
                    let lease = millis(LEASE);
                    (pipe.cmd("SET").arg(&name).arg(&self.worker))
                        .arg("NX")
                        .arg("PX")
                        .arg(lease);
                    pipe.cmd("GET").arg(name);
                }
                Request::Record(_, key) => {
                    (pipe.cmd("SET").arg(self.name(key)).arg(DONE))
                        .arg("PX")
                        .arg(self.time_to_live);
                }
                Request::Release(key) => self.release(&mut pipe, key),
            }
        }
        let said = self.ask(&pipe).await;
        let mut words = said.as_ref().map_or(&[][..], Vec::as_slice).iter();
        let failed = said.as_ref().err();
        let mut answers = Vec::new();
        let mut recorded = Vec::new();
        for request in requests {
            match *request {
                Request::Claim(tag, key) => {
                    let _set = words.next();
                    let holder = words.next();
                    match (failed, holder) {
                        (Some(error), _) => answers.push(Answer::Claimed {
                            tag,
                            result: Err(error.clone()),
                        }),
                        (None, Some(Value::BulkString(holder))) if holder == DONE => {
                            answers.push(Answer::Claimed {
                                tag,
                                result: Ok(Claim::Done),
                            });
                        }
                        (None, Some(Value::BulkString(holder)))
                            if holder == self.worker.as_bytes() =>
                        {
                            held.insert(key);
                            answers.push(Answer::Claimed {
                                tag,
                                result: Ok(Claim::Mine),
                            });
                        }
                        // Another worker's; or it ended in between.
                        (None, _) => busy.push((tag, key)),
                    }
                }
                Request::Record(tag, key) => {
                    let _set = words.next();
                    held.remove(&key);
                    recorded.push(tag);
                }
                Request::Release(key) => {
                    let _deleted = words.next();
                    held.remove(&key);
                    busy.retain(|(_, other)| *other != key);
                }
            }
        }
        if !recorded.is_empty() {
            answers.push(Answer::Recorded {
                tags: recorded,
                result: failed.map_or(Ok(()), |error| Err(error.clone())),
            });
        }
        answers
    }

    fn release(&self, pipe: &mut Pipeline, key: &DedupeKey) {
        (pipe.cmd("EVAL").arg(RELEASE).arg(1))
            .arg(self.name(key))
            .arg(&self.worker);
    }

    async fn free(&self, held: &HashSet<DedupeKey>) {
        if held.is_empty() {
            return;
        }
        let mut pipe = several();
        for key in held {
            self.release(&mut pipe, key);
        }
        // What is not freed ends by itself.
        let _ = self.ask_once(&pipe).await;
    }

    async fn renew(&self, held: &HashSet<DedupeKey>) {
        if held.is_empty() {
            return;
        }
        let mut pipe = several();
        for key in held {
            (pipe.cmd("EVAL").arg(RENEW).arg(1))
                .arg(self.name(key))
                .arg(&self.worker)
                .arg(millis(LEASE));
        }
        if let Err(error) = self.ask_once(&pipe).await {
            tracing::warn!(store = %self.endpoint, %error, "claims could not be renewed");
        }
    }

    /// Asks until there is an answer or patience runs out. Everything that is
    /// asked may be asked twice.
    async fn ask(&self, pipe: &Pipeline) -> Result<Vec<Value>> {
        let deadline = Instant::now() + self.patience;
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.ask_once(pipe).await {
                Ok(said) => return Ok(said),
                Err(error) => error,
            };
            if is_refusal(&error) || Instant::now() + pause > deadline {
                return Err(self.failed(&error));
            }
            if pause == FIRST_PAUSE {
                tracing::warn!(store = %self.endpoint, %error, "the dedupe store does not answer; asking again");
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn ask_once(&self, pipe: &Pipeline) -> std::result::Result<Vec<Value>, RedisError> {
        let mut kept = self.connection.lock().await;
        let mut connection = match kept.take() {
            Some(connection) => connection,
            None => {
                let limits = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(ANSWER_LIMIT))
                    .set_response_timeout(Some(ANSWER_LIMIT));
                (self.client)
                    .get_multiplexed_async_connection_with_config(&limits)
                    .await?
            }
        };
        let said: Vec<Value> = pipe.query_async(&mut connection).await?;
        *kept = Some(connection);
        // One refusal among many answers would be hard to read.
        said.into_iter().map(Value::extract_error).collect()
    }

    fn failed(&self, error: &RedisError) -> Error {
        let kind = if is_refusal(error) {
            ErrorKind::AccessRefused
        } else {
            ErrorKind::Unavailable
        };
        Error::new(
            kind,
            format!("the dedupe store {} cannot be used: {error}", self.endpoint),
        )
        .hint("check that the server runs and takes this login; messages that were not done are back in their queue")
    }
}

/// Commands that are sent together, each with an answer of its own.
fn several() -> Pipeline {
    let mut pipe = redis::pipe();
    pipe.ignore_errors();
    pipe
}

/// What asking again cannot change.
fn is_refusal(error: &RedisError) -> bool {
    let code = error.code().unwrap_or_default();
    error.kind() == redis::ErrorKind::AuthenticationFailed
        || ["NOAUTH", "WRONGPASS", "NOPERM"].contains(&code)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
