//! Where requests go: the nodes of a broker, of which the first that can be
//! reached is asked, and kept.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value as Json;

use crate::endpoint::ManagementEndpoint;
use crate::error::{Error, ErrorKind, Result, root};
use crate::tls::{Handshake, Tls, Wanted, trusting_nobody};

/// The nodes, and which of them is asked.
#[derive(Debug)]
pub(super) struct Reach {
    first: Node,
    others: Vec<Node>,
    /// 0 is the first.
    current: AtomicUsize,
}

/// What is asked.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) path: &'a [&'a str],
    pub(super) parameters: &'a [(&'a str, &'a str)],
    pub(super) body: Option<&'a Json>,
}

impl Reach {
    /// Nothing is sent yet; `limit` bounds each request to each node.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when TLS cannot be set up, or when there is
    /// no endpoint or one without a user.
    pub(super) fn new(
        endpoints: Vec<ManagementEndpoint>,
        tls: &Tls,
        limit: Duration,
    ) -> Result<Self> {
        let mut nodes = endpoints.into_iter().map(|it| Node::new(it, tls, limit));
        let first = nodes.next().ok_or_else(|| {
            Error::new(ErrorKind::Configuration, "no management URL is given")
                .hint("set --management-url or MQ_MANAGEMENT_URL")
        })??;
        Ok(Self {
            first,
            others: nodes.collect::<Result<_>>()?,
            current: AtomicUsize::new(0),
        })
    }

    /// The node that is asked now.
    pub(super) fn endpoint(&self) -> &ManagementEndpoint {
        &self.node(self.current.load(Ordering::Relaxed)).endpoint
    }

    fn node(&self, index: usize) -> &Node {
        index
            .checked_sub(1)
            .and_then(|index| self.others.get(index))
            .unwrap_or(&self.first)
    }

    /// Sends to the current node, and while that cannot be connected to, to each
    /// of the others. Once a request may have arrived it is not sent again.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`]: that of the last, with the others named.
    pub(super) async fn send(&self, ask: &Ask<'_>, doing: &str) -> Result<Response> {
        let count = self.others.len() + 1;
        let start = self.current.load(Ordering::Relaxed);
        let mut failures: Vec<Error> = Vec::new();
        let mut over_tls: Option<Error> = None;
        for step in 0..count {
            let index = (start + step) % count;
            let node = self.node(index);
            match node.request(ask).send().await {
                Ok(response) => {
                    self.current.store(index, Ordering::Relaxed);
                    if node.handshake.is_none()
                        && let Some(error) = &over_tls
                    {
                        tracing::warn!(
                            endpoint = %node.endpoint,
                            instead_of = error.message(),
                            "asked the management API without TLS, because the URLs with it did not work"
                        );
                    }
                    return Ok(response);
                }
                Err(error) => {
                    let told = node.unreachable(&error, doing);
                    tracing::info!(error = told.message(), "cannot connect");
                    if node.handshake.is_some() {
                        over_tls = Some(told.clone());
                    }
                    failures.push(told);
                    if !error.is_connect() {
                        break;
                    }
                }
            }
        }
        let last = failures
            .pop()
            .unwrap_or_else(|| Error::new(ErrorKind::Internal, "no request was sent"));
        if failures.is_empty() {
            return Err(last);
        }
        let mut hint = last.way_out().unwrap_or_default().to_owned();
        hint.push_str("\nother nodes could not be reached either:");
        for failure in &failures {
            hint.push('\n');
            hint.push_str(failure.message());
        }
        Err(last.hint(hint))
    }

    /// What a failed wait for the rest of an answer means.
    pub(super) fn unreachable(&self, error: &reqwest::Error, doing: &str) -> Error {
        self.node(self.current.load(Ordering::Relaxed))
            .unreachable(error, doing)
    }
}

/// One place to ask.
#[derive(Debug)]
struct Node {
    endpoint: ManagementEndpoint,
    http: Client,
    handshake: Option<Handshake>,
}

impl Node {
    fn new(endpoint: ManagementEndpoint, tls: &Tls, limit: Duration) -> Result<Self> {
        if endpoint.user.is_empty() {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!("there is no user to ask the management API at {endpoint} with: the AMQP URL logs in with a certificate"),
            )
            .hint("name one in the management URL: --management-url https://USER:PASSWORD@HOST:15671 (MQ_MANAGEMENT_URL)"));
        }
        let handshake = match endpoint.tls_host() {
            Some(host) => {
                Handshake::server_name(host)?;
                Some(tls.handshake(limit)?)
            }
            None => None,
        };
        let config = handshake
            .as_ref()
            .map_or_else(trusting_nobody, |it| (*it.config()).clone());
        let scheme = endpoint.tls_host().map_or("http", |_| "https");
        let http = Client::builder()
            .timeout(limit)
            .connect_timeout(limit)
            // A proxy meant for the web would see the broker's password.
            .no_proxy()
            .tls_backend_preconfigured(config)
            // The password must not leave the server it is meant for, nor TLS.
            .redirect(Policy::custom(move |attempt| {
                if attempt.url().scheme() == scheme && attempt.previous().len() < 5 {
                    attempt.follow()
                } else {
                    attempt.stop()
                }
            }))
            .build()
            .map_err(|error| {
                Error::new(
                    ErrorKind::Configuration,
                    format!("cannot set up HTTP: {error}"),
                )
            })?;
        Ok(Self {
            endpoint,
            http,
            handshake,
        })
    }

    fn request(&self, ask: &Ask<'_>) -> RequestBuilder {
        let request = self
            .http
            .request(ask.method.clone(), self.endpoint.api(ask.path))
            .basic_auth(&self.endpoint.user, Some(self.endpoint.password.reveal()))
            .query(ask.parameters);
        match ask.body {
            Some(body) => request.json(body),
            None => request,
        }
    }

    fn unreachable(&self, error: &reqwest::Error, doing: &str) -> Error {
        let endpoint = &self.endpoint;
        if error.is_timeout() {
            return Error::new(
                ErrorKind::Unavailable,
                format!("{doing}: the management API at {endpoint} did not answer in time"),
            )
            .hint("check host and port, or give it longer with --timeout");
        }
        if let (Some(handshake), Some(host)) = (&self.handshake, endpoint.tls_host())
            && let Some(told) = handshake.explain(error, host, Wanted::Management)
        {
            return told.during(&format!(
                "{doing}: cannot reach the management API at {endpoint}"
            ));
        }
        let (cause, hint) = match stranger(error, self.handshake.is_some()) {
            Some((cause, hint)) => (cause.to_owned(), hint),
            None => (
                root(error).to_string(),
                "enable it on the broker (`rabbitmq-plugins enable rabbitmq_management`), or set --management-url (MQ_MANAGEMENT_URL)",
            ),
        };
        Error::new(
            ErrorKind::Unavailable,
            format!("{doing}: cannot reach the management API at {endpoint} ({cause})"),
        )
        .hint(hint)
    }
}

/// What answers there when it is not HTTP; HTTP itself only knows that it is not.
fn stranger(error: &reqwest::Error, over_tls: bool) -> Option<(&'static str, &'static str)> {
    let cause = root(error);
    let hung_up = cause
        .downcast_ref::<io::Error>()
        .is_some_and(|it| it.kind() == io::ErrorKind::UnexpectedEof);
    let text = cause.to_string();
    if text.starts_with("invalid HTTP") {
        Some((
            "what answers there does not speak HTTP",
            if over_tls {
                "AMQP's ports (5671, 5672) belong into --url; the management API over HTTPS is usually on 15671"
            } else {
                "if it is the port for HTTPS (usually 15671), write https:// in --management-url (MQ_MANAGEMENT_URL); AMQP's ports (5672, 5671) belong into --url"
            },
        ))
    } else if hung_up || text.contains("close_notify") || text.starts_with("connection closed") {
        Some((
            "the other side closed the connection without an answer",
            if over_tls {
                "the node may be stopping; else check the port: the management API over HTTPS is usually on 15671; AMQP's ports belong into --url"
            } else {
                "the node may be stopping; else check the port: a management API over HTTPS wants https:// in --management-url (MQ_MANAGEMENT_URL), and is usually on 15671; without TLS it is on 15672"
            },
        ))
    } else {
        None
    }
}
