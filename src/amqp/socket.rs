//! The byte stream under lapin: TCP or TLS, opened with a limit, and the
//! server's greeting read on its way through.
//!
//! lapin throws the server's properties away, but which arguments are safe to
//! declare depends on the broker's version. So the first frame is parsed a
//! second time here. The same place knows what kind of stranger answered when
//! it was no broker.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a connection gives up waiting"
)]

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use amq_protocol::frame::{AMQPFrame, parse_frame};
use amq_protocol::protocol::AMQPClass;
use amq_protocol::protocol::connection::AMQPMethod;
use amq_protocol::types::AMQPValue;
use async_rs::traits::{Executor, Reactor, RuntimeKit};
use async_rs::util::Task;
use async_rs::{Runtime, Tokio};
use lapin::AsyncTcpStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::broker::BrokerFacts;
use crate::endpoint::{Endpoint, Transport};

/// The greeting never is larger; a peer that sends more without one is no broker.
const MAX_GREETING_BYTES: usize = 128 * 1024;

/// What has been heard from the other side so far.
#[derive(Clone, Default)]
pub(super) struct Greeting(Arc<Mutex<Heard>>);

#[derive(Default)]
struct Heard {
    bytes: Vec<u8>,
    facts: Option<BrokerFacts>,
    cluster: Option<String>,
    broken: Option<Arc<io::Error>>,
    done: bool,
}

impl Greeting {
    /// The broker's own words about itself, once it has spoken.
    pub(super) fn facts(&self) -> Option<BrokerFacts> {
        self.with(|heard| heard.facts.clone())
    }

    /// The name of the cluster that the broker belongs to, once it has spoken.
    pub(super) fn cluster(&self) -> Option<String> {
        self.with(|heard| heard.cluster.clone())
    }

    /// What broke the stream before the greeting was whole. TLS 1.3 lets a client
    /// speak before the server has looked at its certificate: the refusal
    /// arrives here, and lapin would tell it as a lost connection.
    pub(super) fn broken(&self) -> Option<Arc<io::Error>> {
        self.with(|heard| heard.broken.clone())
    }

    /// Keeps an error for [`Self::broken`] and gives one for the caller.
    fn breaks(&self, error: io::Error) -> io::Error {
        self.with(|heard| {
            if heard.done || heard.broken.is_some() {
                return error;
            }
            let kept = Arc::new(error);
            heard.broken = Some(kept.clone());
            io::Error::new(kept.kind(), kept)
        })
    }

    /// What answered, if it was no AMQP broker.
    pub(super) fn stranger(&self) -> Option<&'static str> {
        self.with(|heard| match heard.bytes.as_slice() {
            [] => None,
            bytes if bytes.starts_with(b"HTTP/") => {
                Some("an HTTP server answered: this is the port of a web or management service")
            }
            [0x15, 0x03, ..] => Some("a TLS server answered: write amqps:// for this port"),
            bytes if bytes.starts_with(b"AMQP") => {
                Some("the server speaks another version of AMQP than 0-9-1")
            }
            _ if heard.facts.is_none() => Some("something answered that is no AMQP broker"),
            _ => None,
        })
    }

    fn is_done(&self) -> bool {
        self.with(|heard| heard.done)
    }

    fn hear(&self, new: &[u8]) {
        self.with(|heard| {
            if heard.done {
                return;
            }
            heard.bytes.extend_from_slice(new);
            if let Ok((_, frame)) = parse_frame(heard.bytes.as_slice()) {
                heard.facts = property(&frame, "version").map(|version| {
                    let product = property(&frame, "product");
                    BrokerFacts::new(product.unwrap_or_else(|| "AMQP broker".to_owned()), version)
                });
                heard.cluster = property(&frame, "cluster_name");
                heard.done = true;
            } else if heard.bytes.len() > MAX_GREETING_BYTES {
                heard.done = true;
            }
        });
    }

    fn with<T>(&self, f: impl FnOnce(&mut Heard) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A text among the server's properties.
fn property(frame: &AMQPFrame, name: &str) -> Option<String> {
    let AMQPFrame::Method(_, AMQPClass::Connection(AMQPMethod::Start(start))) = frame else {
        return None;
    };
    match start.server_properties.inner().get(name) {
        Some(AMQPValue::LongString(text)) => Some(text.to_string()),
        _ => None,
    }
}

/// A connected stream that listens to the greeting and gives up waiting for it.
pub(super) struct Socket {
    stream: Stream,
    greeting: Greeting,
    patience: Pin<Box<Sleep>>,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// Connects within `limit`, which also bounds the wait for the greeting.
    pub(super) async fn open(
        endpoint: &Endpoint,
        tls: Option<Arc<ClientConfig>>,
        greeting: Greeting,
        limit: Duration,
    ) -> io::Result<Self> {
        let patience = Box::pin(tokio::time::sleep(limit));
        let opening = async {
            let tcp = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
            tcp.set_nodelay(true)?;
            match (endpoint.transport, tls) {
                (Transport::Tls, Some(config)) => {
                    let name = ServerName::try_from(endpoint.host.clone())
                        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
                    let stream = TlsConnector::from(config).connect(name, tcp).await?;
                    Ok::<_, io::Error>(Stream::Tls(Box::new(stream)))
                }
                _ => Ok(Stream::Plain(tcp)),
            }
        };
        let stream = tokio::time::timeout(limit, opening)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|error| greeting.breaks(error))?;
        Ok(Self {
            stream,
            greeting,
            patience,
        })
    }
}

impl futures_io::AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(bytes);
        let polled = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
        };
        if polled.is_pending() && !self.greeting.is_done() {
            // lapin waits for a silent peer for ever; an error here ends its wait.
            ready!(self.patience.as_mut().poll(cx));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        ready!(polled).map_err(|error| self.greeting.breaks(error))?;
        if buffer.filled().is_empty() {
            // An end here is news only if there was no greeting.
            self.greeting.breaks(io::ErrorKind::UnexpectedEof.into());
        }
        self.greeting.hear(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl futures_io::AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
        .map_err(|error| self.greeting.breaks(error))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
        .map_err(|error| self.greeting.breaks(error))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// The tokio runtime as lapin wants it, with [`Socket`] for its streams.
#[derive(Clone, Debug)]
pub(super) struct SocketRuntime(Tokio);

/// The runtime lapin runs on: the one we are in.
pub(super) fn runtime() -> Runtime<SocketRuntime> {
    Runtime::new(SocketRuntime(Tokio::current()))
}

/// What lapin takes for a stream.
pub(super) fn as_lapin_stream(socket: Socket) -> AsyncTcpStream<Socket> {
    AsyncTcpStream::Plain(socket)
}

impl RuntimeKit for SocketRuntime {}

impl Executor for SocketRuntime {
    type Task<T: Send + 'static> = <Tokio as Executor>::Task<T>;

    fn block_on<T, F: Future<Output = T>>(&self, f: F) -> T {
        self.0.block_on(f)
    }

    fn spawn<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        f: F,
    ) -> Task<Self::Task<T>> {
        self.0.spawn(f)
    }

    fn spawn_blocking<T: Send + 'static, F: FnOnce() -> T + Send + 'static>(
        &self,
        f: F,
    ) -> Task<Self::Task<T>> {
        self.0.spawn_blocking(f)
    }
}

impl Reactor for SocketRuntime {
    type TcpStream = Socket;
    type Sleep = <Tokio as Reactor>::Sleep;

    /// Never used: every stream of ours is opened by [`Socket::open`].
    fn register<H: io::Read + io::Write + Send + 'static>(
        &self,
        _: H,
    ) -> io::Result<impl futures_io::AsyncRead + futures_io::AsyncWrite + Send + Unpin + 'static>
    {
        Err::<Socket, _>(io::ErrorKind::Unsupported.into())
    }

    fn sleep(&self, dur: Duration) -> Self::Sleep {
        self.0.sleep(dur)
    }

    fn interval(
        &self,
        dur: Duration,
    ) -> impl futures_util::Stream<Item = Instant> + Send + 'static {
        self.0.interval(dur)
    }

    /// Never used either.
    fn tcp_connect_addr(
        &self,
        _: SocketAddr,
    ) -> impl Future<Output = io::Result<Socket>> + Send + 'static {
        std::future::ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_stranger_by_its_first_bytes() {
        for (bytes, expected) in [
            (&b""[..], None),
            (b"HTTP/1.1 400 Bad Request\r\n", Some("an HTTP server")),
            (&[0x15, 0x03, 0x01, 0x00, 0x02], Some("a TLS server")),
            (b"AMQP\x00\x01\x00\x00", Some("another version")),
            (b"SSH-2.0-OpenSSH\r\n", Some("no AMQP broker")),
        ] {
            let greeting = Greeting::default();
            greeting.hear(bytes);
            let stranger = greeting.stranger();
            assert_eq!(stranger.is_some(), expected.is_some(), "{bytes:?}");
            if let (Some(stranger), Some(expected)) = (stranger, expected) {
                assert!(stranger.contains(expected), "{stranger}");
            }
        }
    }
}
