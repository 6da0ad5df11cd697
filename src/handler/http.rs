//! One request per message: POST, the body byte for byte, the rest in headers.
//!
//! The status of the answer settles the message. Nothing is sent twice and no
//! redirect is followed: whether there is another attempt is the worker's to say.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where requests are sent and timed"
)]

mod answer;
mod body;
mod request;

use std::fmt::Display;
use std::pin::pin;
use std::time::{Duration, SystemTime};

use reqwest::header::{CONTENT_TYPE, HeaderName, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::endpoint::HandlerEndpoint;
use crate::error::{Error, ErrorKind, Result, root};
use crate::handler::{Job, told};
use crate::retry::{Attempt, HandlerResult, Outcome, Trace};
use crate::tls::trusting_nobody;

use answer::{Answer, outcome};
use body::{Rest, read};
use request::headers;

/// How much of an answer is read where only its status counts, in bytes: enough
/// for the reason of a failure, and for the connection to serve again.
const GLANCE: usize = 4096;

/// And for how long: an answer may have no end.
const GLANCE_LIMIT: Duration = Duration::from_secs(1);

/// The largest result, in bytes: RabbitMQ 4 refuses larger messages unless told
/// otherwise (`max_message_size`).
const MAX_RESULT: usize = 16 * 1024 * 1024;

/// The longest content type that a message can have, in bytes (AMQP short string).
const MAX_CONTENT_TYPE: usize = 255;

/// Many servers close a connection that was idle for 5 s; a request that meets
/// the close would be a failed attempt.
const IDLE_LIMIT: Duration = Duration::from_secs(4);

/// A URL that every message is sent to.
#[derive(Clone, Debug)]
pub struct Http {
    endpoint: HandlerEndpoint,
    client: Client,
    connect_limit: Duration,
    limit: Duration,
}

impl Http {
    /// Prepares requests; nothing is sent yet. `connect_limit` bounds the way to
    /// the server (names, TCP, TLS), `limit` the whole of one attempt.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when TLS cannot be set up.
    pub fn new(
        endpoint: HandlerEndpoint,
        connect_limit: Duration,
        limit: Duration,
    ) -> Result<Self> {
        let mut client = Client::builder();
        if endpoint.url().scheme() == "http" {
            // Else the system's store would be read for nothing.
            client = client.tls_backend_preconfigured(trusting_nobody());
        }
        let client = client
            .user_agent(concat!("mq/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(connect_limit)
            .pool_idle_timeout(IDLE_LIMIT)
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            // A proxy meant for the web would see every message.
            .no_proxy()
            .build()
            .map_err(|error| {
                Error::new(
                    ErrorKind::Configuration,
                    format!("cannot set up HTTP: {error}"),
                )
                .hint("check the system's certificate store")
            })?;
        Ok(Self {
            endpoint,
            client,
            connect_limit,
            limit,
        })
    }

    /// Runs one attempt to its end. Once `kill` turns true the request is
    /// dropped and the outcome is [`Outcome::Interrupted`].
    pub(super) async fn run(&self, job: Job, mut kill: watch::Receiver<bool>) -> Attempt {
        let mut limit = pin!(sleep(self.limit));
        let sent = tokio::select! {
            sent = self.send(&job) => sent,
            () = &mut limit => return self.timed_out(),
            () = told(&mut kill) => return Attempt::bare(Outcome::Interrupted),
        };
        let mut response = match sent {
            Ok(response) => response,
            Err(error) => return self.unanswered(&error),
        };
        let mut body = Vec::new();
        let rest = if job.wants_result {
            tokio::select! {
                rest = read(&mut response, &mut body, MAX_RESULT) => rest,
                () = &mut limit => Rest::Late,
                () = told(&mut kill) => return Attempt::bare(Outcome::Interrupted),
            }
        } else {
            // The status is known, and all that is asked for.
            timeout(GLANCE_LIMIT, read(&mut response, &mut body, GLANCE))
                .await
                .unwrap_or(Rest::Late)
        };
        self.judge(&response, body, &rest, job.wants_result)
    }

    async fn send(&self, job: &Job) -> reqwest::Result<Response> {
        let mut request = self
            .client
            .post(self.endpoint.url().clone())
            .headers(headers(job))
            .body(job.delivery.body.clone());
        if let Some((user, password)) = &self.endpoint.login {
            request = request.basic_auth(user, Some(password.reveal()));
        }
        request.send().await
    }

    fn judge(
        &self,
        response: &Response,
        body: Vec<u8>,
        rest: &Rest,
        wants_result: bool,
    ) -> Attempt {
        let header = |name: HeaderName| response.headers().get(name)?.to_str().ok();
        let status = response.status();
        let answer = Answer {
            status: status.as_u16(),
            retry_after: header(RETRY_AFTER),
            location: header(LOCATION),
            said: body.get(..GLANCE.min(body.len())).unwrap_or_default(),
        };
        let incomplete = match rest {
            Rest::Nothing => None,
            Rest::TooMuch => Some("its body is over 16 MiB".to_owned()),
            Rest::Broken(why) => Some(format!("its body broke off: {why}")),
            Rest::Late => Some(format!(
                "its body did not end within {}",
                told_as(self.limit)
            )),
        };
        let outcome = match (outcome(&answer, SystemTime::now()), incomplete) {
            // Done without the result that was asked for is not done.
            (Outcome::Done, Some(what)) if wants_result => Outcome::Failed {
                why: format!("HTTP {}, but {what}", answer.status),
                wait: None,
            },
            (outcome, _) => outcome,
        };
        let result = (wants_result && *rest == Rest::Nothing).then(|| HandlerResult {
            body,
            content_type: header(CONTENT_TYPE)
                .filter(|kind| !kind.is_empty() && kind.len() <= MAX_CONTENT_TYPE)
                .map(str::to_owned),
        });
        Attempt {
            outcome,
            result,
            trace: Trace {
                end: Some(format!("HTTP {}", status.as_u16())),
                stderr: None,
            },
        }
    }

    fn timed_out(&self) -> Attempt {
        let limit = told_as(self.limit);
        let why = format!("no answer from {} within {limit}", self.endpoint);
        failed(why, "timeout")
    }

    fn unanswered(&self, error: &reqwest::Error) -> Attempt {
        let endpoint = &self.endpoint;
        let cause = root(error);
        if !error.is_connect() {
            let why = format!("{endpoint} broke off without an answer ({cause})");
            return failed(why, "broken off");
        }
        let why = if error.is_timeout() {
            let limit = told_as(self.connect_limit);
            format!("cannot connect to {endpoint} within {limit}")
        } else {
            format!("cannot connect to {endpoint} ({cause})")
        };
        failed(why, "connect")
    }
}

/// The whole of the answer did not come; another attempt may have one.
fn failed(why: String, end: &str) -> Attempt {
    Attempt {
        outcome: Outcome::Failed { why, wait: None },
        result: None,
        trace: Trace {
            end: Some(end.to_owned()),
            stderr: None,
        },
    }
}

fn told_as(limit: Duration) -> impl Display {
    humantime::format_duration(limit)
}
