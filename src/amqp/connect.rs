//! Connections: opened within a limit, closed within a limit.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lapin::options::ConfirmSelectOptions;
use lapin::types::ShortString;
use lapin::uri::{
    AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo, SASLMechanism,
};
use lapin::{Channel, ConnectionProperties};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::amqp::alarm::{AlarmWatch, Alarms, still_blocked};
use crate::amqp::failure::{explain, refused_by_certificate};
use crate::amqp::socket::{Greeting, Socket, as_lapin_stream, runtime};
use crate::broker::BrokerFacts;
use crate::endpoint::{Endpoint, Mechanism, Transport};
use crate::error::{Error, ErrorKind, Result};
use crate::tls::{Handshake, Tls, Wanted};

/// How long a polite goodbye may take before it is left.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// How large the frames of a connection may be.
///
/// lapin fills buffers of 32 frames each way before it says a word: with the
/// usual 128 KiB frames that is 8 MiB and more than half of the CPU time of a
/// process that publishes one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// 16 KiB: for requests and messages whose headers are known to be small.
    Small,
    /// As large as the broker allows (128 KiB by default).
    Large,
}

impl Frames {
    /// The value to ask for; `None` takes the broker's. Brokers from 4.1 on
    /// refuse less than 8 KiB.
    const fn max_bytes(self) -> Option<u32> {
        match self {
            Self::Small => Some(Self::SMALL_BYTES),
            Self::Large => None,
        }
    }

    const SMALL_BYTES: u32 = 16 * 1024;

    /// What a message with headers and body of these sizes (in bytes) needs:
    /// headers must fit into one frame, and a large body should not be cut
    /// into many.
    #[must_use]
    pub const fn for_message(header_bytes: usize, body_bytes: usize) -> Self {
        if header_bytes < 12 * 1024 && body_bytes < 256 * 1024 {
            Self::Small
        } else {
            Self::Large
        }
    }
}

/// An open AMQP connection.
pub struct Connection {
    inner: lapin::Connection,
    pub(super) alarms: Alarms,
    endpoint: Endpoint,
    tls: Tls,
    facts: BrokerFacts,
    cluster: Option<String>,
    name: String,
    limit: Duration,
    spare: Mutex<Vec<Channel>>,
    opened: AtomicU32,
}

/// A channel that stays open for as long as its connection.
pub struct OpenChannel(pub(super) Channel);

/// Channels after which a connection should be given up for a new one. A
/// refusal ends a channel, and lapin hands the number of such a channel out
/// again with the old error still in it once all 2047 have been used (measured).
const WORN_AFTER: u32 = 1500;

impl Connection {
    /// Connects to this one or says why not.
    pub(super) async fn open_one(
        endpoint: &Endpoint,
        tls: &Tls,
        name: &str,
        limit: Duration,
        frames: Frames,
    ) -> Result<Self> {
        let doing = format!("connect to {endpoint}");
        let greeting = Greeting::default();
        let handshake = handshake(endpoint, tls, limit).map_err(|error| error.during(&doing))?;
        let connected =
            Self::attempt(endpoint, handshake.as_ref(), name, limit, frames, &greeting).await;
        let inner = match connected {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => {
                if let (Some(handshake), Some(broken)) = (&handshake, greeting.broken())
                    && let Some(error) = handshake.explain(&*broken, &endpoint.host, Wanted::Amqp)
                {
                    return Err(error.during(&doing));
                }
                let mut error = explain(&error, &doing);
                if endpoint.mechanism == Mechanism::External
                    && let Some(names) = handshake.as_ref().and_then(Handshake::login_names)
                {
                    error = refused_by_certificate(error, &names);
                }
                if let Some(stranger) = greeting.stranger() {
                    error = Error::new(ErrorKind::Unavailable, stranger)
                        .hint("check the port in the URL: brokers listen for AMQP on 5672 and for AMQP over TLS on 5671")
                        .during(&doing);
                }
                return Err(error);
            }
            Err(_) => {
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    format!("{doing}: the broker greeted but did not finish the login in time"),
                )
                .hint("it may be overloaded or stopping; run this again"));
            }
        };
        let facts = greeting.facts().unwrap_or_else(|| BrokerFacts::new("", ""));
        tracing::debug!(%endpoint, broker = %facts, "connected");
        Ok(Self {
            alarms: Alarms::of(&inner),
            inner,
            endpoint: endpoint.clone(),
            tls: tls.clone(),
            facts,
            cluster: greeting.cluster(),
            name: name.to_owned(),
            limit,
            spare: Mutex::new(Vec::new()),
            opened: AtomicU32::new(0),
        })
    }

    /// The cluster that greets at an endpoint, whether it lets us in or not.
    pub async fn cluster_at(endpoint: &Endpoint, tls: &Tls, limit: Duration) -> Option<String> {
        let greeting = Greeting::default();
        let handshake = handshake(endpoint, tls, limit).ok()?;
        let attempt = Self::attempt(
            endpoint,
            handshake.as_ref(),
            "mq",
            limit,
            Frames::Small,
            &greeting,
        )
        .await;
        if let Ok(Ok(connection)) = attempt {
            let _ = timeout(CLOSE_LIMIT, connection.close(200, ShortString::from("bye"))).await;
        }
        greeting.cluster()
    }

    /// One attempt to log in; `greeting` hears what the broker says of itself.
    async fn attempt(
        endpoint: &Endpoint,
        handshake: Option<&Handshake>,
        name: &str,
        limit: Duration,
        frames: Frames,
        greeting: &Greeting,
    ) -> std::result::Result<lapin::Result<lapin::Connection>, Elapsed> {
        let tls = handshake.map(Handshake::config);
        let heard = greeting.clone();
        let target = endpoint.clone();
        let connecting = lapin::Connection::connector(
            uri(endpoint, frames),
            runtime(),
            async move |_, _| {
                Socket::open(&target, tls.clone(), heard.clone(), limit)
                    .await
                    .map(as_lapin_stream)
                    .map_err(lapin::Error::from)
            },
            ConnectionProperties::default().with_connection_name(name.into()),
        );
        // Socket ends its own waits; this bounds what lapin waits for after the greeting.
        timeout(limit.saturating_mul(3), connecting).await
    }

    /// What kind of broker it is.
    #[must_use]
    pub const fn facts(&self) -> &BrokerFacts {
        &self.facts
    }

    /// The name of the broker's cluster, by which it can be told from another one.
    #[must_use]
    pub fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    /// The name it gave itself, by which others can tell it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The largest frame, in bytes on the wire: the smaller of what the broker allows
    /// and what was asked for.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        match self.inner.configuration().frame_max() {
            // Neither side has a limit.
            0 => usize::MAX,
            bytes => usize::try_from(bytes).unwrap_or(usize::MAX),
        }
    }

    /// Whether so many channels were used up that a new connection should take over.
    #[must_use]
    pub fn is_worn(&self) -> bool {
        self.opened.load(Ordering::Relaxed) >= WORN_AFTER
    }

    /// How TLS is spoken, for another connection to the same broker.
    #[must_use]
    pub const fn tls(&self) -> &Tls {
        &self.tls
    }

    /// Which endpoint it is connected to.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Says goodbye and waits for the answer, so that everything sent before
    /// has reached the broker. Gives up after two seconds: a connection blocked
    /// by an alarm never answers.
    pub async fn close(self) {
        let closing = async {
            // A channel that was dropped is still being closed. Told to close the
            // connection meanwhile, lapin breaks it off at once, and with it
            // what it has not sent yet (measured: acks were lost). Another
            // channel opens only after that.
            let _behind = self.inner.create_channel().await?;
            self.inner.close(200, ShortString::from("bye")).await
        };
        goodbye(closing).await;
    }

    /// The same when this is the only channel that ever was, and nothing is under
    /// way on it: a round trip less.
    pub async fn close_with(self, OpenChannel(channel): OpenChannel) {
        goodbye(self.inner.close(200, ShortString::from("bye"))).await;
        drop(channel);
    }

    /// A channel of one's own.
    pub(super) async fn channel(&self) -> Result<Channel> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.within("open a channel", self.inner.create_channel())
            .await
    }

    /// A channel of one's own on which every message that is published is confirmed.
    pub(super) async fn confirm_channel(&self) -> Result<Channel> {
        let channel = self.channel().await?;
        let selecting = channel.confirm_select(ConfirmSelectOptions::default());
        self.within("switch publisher confirms on", selecting)
            .await?;
        Ok(channel)
    }

    /// A channel for single requests; give it back with [`Self::give_back`].
    pub(super) async fn lend(&self) -> Result<Channel> {
        let spare = self.spare().pop();
        match spare {
            Some(channel) if channel.status().connected() => Ok(channel),
            _ => self.channel().await,
        }
    }

    /// Keeps a channel for the next request, unless the broker closed it.
    pub(super) fn give_back(&self, channel: Channel) {
        if channel.status().connected() {
            self.spare().push(channel);
        }
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, Vec<Channel>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the broker has stopped reading from this connection (alarm).
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.alarms.are_on()
    }

    /// Tells of each alarm that blocks this connection, and of its end.
    #[must_use]
    pub fn alarm_watch(&self) -> AlarmWatch {
        self.alarms.watch()
    }

    /// Waits while the broker blocks, at most `limit` from the beginning of that.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] once it is over.
    pub async fn wait_out_alarm(&self, limit: Duration) -> Result<()> {
        let waited = self.alarms.wait_out(limit).await;
        waited.map_err(|reason| still_blocked(&reason, limit))
    }

    /// Runs one request within the limit; `doing` words its error.
    pub(super) async fn within<T>(
        &self,
        doing: &str,
        request: impl Future<Output = lapin::Result<T>>,
    ) -> Result<T> {
        match timeout(self.limit, request).await {
            Ok(answer) => answer.map_err(|error| explain(&error, doing)),
            Err(_) => Err(self.timed_out(doing)),
        }
    }

    pub(super) fn timed_out(&self, doing: &str) -> Error {
        let error = Error::new(
            ErrorKind::TimedOut,
            format!("{doing}: no answer from {} in time", self.endpoint),
        );
        if self.is_blocked() {
            error.hint("the broker blocks publishers: a memory or disk alarm is on; see `rabbitmqctl list_alarms`")
        } else {
            error.hint(
                "the broker may be overloaded; run this again, or give it longer with --timeout",
            )
        }
    }

    pub(super) const fn limit(&self) -> Duration {
        self.limit
    }
}

async fn goodbye(closing: impl Future<Output = lapin::Result<()>>) {
    match timeout(CLOSE_LIMIT, closing).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "no goodbye: the connection is gone"),
        Err(_) => tracing::debug!("the broker did not answer our goodbye"),
    }
}

fn uri(endpoint: &Endpoint, frames: Frames) -> AMQPUri {
    AMQPUri {
        scheme: match endpoint.transport {
            Transport::Plain => AMQPScheme::AMQP,
            Transport::Tls => AMQPScheme::AMQPS,
        },
        authority: AMQPAuthority {
            userinfo: AMQPUserInfo {
                username: endpoint.user.clone(),
                password: endpoint.password.reveal().to_owned(),
            },
            host: endpoint.host.clone(),
            port: endpoint.port,
        },
        vhost: endpoint.vhost.as_str().to_owned(),
        query: AMQPQueryString {
            heartbeat: Some(endpoint.heartbeat),
            frame_max: frames.max_bytes(),
            auth_mechanism: match endpoint.mechanism {
                Mechanism::Plain => None,
                Mechanism::External => Some(SASLMechanism::External),
            },
            ..AMQPQueryString::default()
        },
    }
}

/// What is wrong on this side is known before anything is sent.
fn handshake(endpoint: &Endpoint, tls: &Tls, limit: Duration) -> Result<Option<Handshake>> {
    if endpoint.mechanism == Mechanism::External && !tls.has_client_cert() {
        return Err(Error::new(
            ErrorKind::Configuration,
            "the URL says auth_mechanism=external, but there is no client certificate to log in with",
        )
        .hint("give it with --client-cert FILE (MQ_CLIENT_CERT) and --client-key FILE (MQ_CLIENT_KEY)"));
    }
    match endpoint.transport {
        Transport::Plain => Ok(None),
        Transport::Tls => {
            Handshake::server_name(&endpoint.host)?;
            tls.handshake(limit).map(Some)
        }
    }
}
