//! The HTTP server of `--metrics`: `/metrics`, `/healthz` and `/readyz`.
//!
//! It runs beside the worker and reads copies of its status. A connection
//! answers one request and is closed, and none lives long: a client that sends
//! or reads nothing costs a little memory for a few seconds.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the start of the process is dated and a server pauses"
)]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{sleep, timeout};

use crate::error::{Error, ErrorKind, Result};
use crate::metrics::{Address, Labels, metrics_text};
use crate::worker::{Phase, Status};

/// Most connections at once; a further one ends the oldest.
const MOST_CONNECTIONS: usize = 64;

/// For the head of a request to arrive.
const HEAD_LIMIT: Duration = Duration::from_secs(5);

/// The longest life of a connection.
const CONNECTION_LIMIT: Duration = Duration::from_secs(10);

/// The most of a request that is read, in bytes.
const LARGEST_HEAD: usize = 16 * 1024;

/// After a failed accept, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// A server that answers as long as it is kept.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

/// What answers are made of.
struct Source<R> {
    labels: Labels,
    started: Duration,
    read: R,
}

impl Server {
    /// Listens at an address and answers with what `read` gives.
    ///
    /// # Errors
    /// When nobody can listen there: [`ErrorKind::Unavailable`] if it is in use,
    /// [`ErrorKind::AccessRefused`] if it is not permitted, else
    /// [`ErrorKind::Configuration`].
    pub async fn start(
        address: &Address,
        labels: Labels,
        read: impl Fn() -> Status + Send + Sync + 'static,
    ) -> Result<Self> {
        let bound = TcpListener::bind((address.host.as_str(), address.port)).await;
        let listener = bound.map_err(|error| cannot_listen(address, &error))?;
        let bound = listener.local_addr();
        let started = SystemTime::now().duration_since(UNIX_EPOCH);
        let source = Arc::new(Source {
            labels,
            started: started.unwrap_or_default(),
            read,
        });
        Ok(Self {
            address: bound.map_err(|error| cannot_listen(address, &error))?,
            accepting: tokio::spawn(accept(listener, source)),
        })
    }

    /// Where it really listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn cannot_listen(address: &Address, error: &io::Error) -> Error {
    let at = format!(
        "cannot serve metrics at {}, port {}",
        address.host, address.port
    );
    let (kind, way_out) = match error.kind() {
        io::ErrorKind::AddrInUse => (
            ErrorKind::Unavailable,
            "another program, perhaps another worker, listens there: stop it or choose another port; port 0 takes any that is free",
        ),
        io::ErrorKind::PermissionDenied => (
            ErrorKind::AccessRefused,
            "choose a port from 1024 up, or grant the permission",
        ),
        _ => (
            ErrorKind::Configuration,
            "check --metrics: it must be an address of this machine",
        ),
    };
    Error::new(kind, format!("{at}: {error}")).hint(way_out)
}

async fn accept<R: Fn() -> Status + Send + Sync + 'static>(
    listener: TcpListener,
    source: Arc<Source<R>>,
) {
    let mut open = Open::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let serving = tokio::spawn(serve(stream, Arc::clone(&source)));
                open.add(serving.abort_handle());
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// The connections, the oldest first; they end with it.
#[derive(Default)]
struct Open {
    connections: VecDeque<AbortHandle>,
}

impl Open {
    fn add(&mut self, connection: AbortHandle) {
        self.connections.retain(|open| !open.is_finished());
        if self.connections.len() >= MOST_CONNECTIONS
            && let Some(oldest) = self.connections.pop_front()
        {
            oldest.abort();
        }
        self.connections.push_back(connection);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        for connection in &self.connections {
            connection.abort();
        }
    }
}

async fn serve<R: Fn() -> Status + Send + Sync + 'static>(
    stream: TcpStream,
    source: Arc<Source<R>>,
) {
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let answer = source.answer(request.method(), request.uri().path());
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .keep_alive(false)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    // Whatever a client does wrong is its own affair.
    let _ = timeout(CONNECTION_LIMIT, connection).await;
}

impl<R: Fn() -> Status> Source<R> {
    fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        let is_known = matches!(path, "/metrics" | "/healthz" | "/readyz");
        if is_known && method != Method::GET && method != Method::HEAD {
            let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            let methods = HeaderValue::from_static("GET, HEAD");
            refused.headers_mut().insert(ALLOW, methods);
            return refused;
        }
        match path {
            "/metrics" => {
                let page = metrics_text(&self.labels, self.started, &(self.read)());
                of_type(StatusCode::OK, TEXT_FORMAT, page)
            }
            "/healthz" if (self.read)().is_stuck() => text(
                StatusCode::SERVICE_UNAVAILABLE,
                "stuck: the worker's loop has not turned for a minute\n",
            ),
            "/healthz" => text(StatusCode::OK, "healthy\n"),
            "/readyz" => match (self.read)().phase() {
                Phase::Working => text(StatusCode::OK, "ready\n"),
                other => text(
                    StatusCode::SERVICE_UNAVAILABLE,
                    format!("{}\n", other.word()),
                ),
            },
            _ => text(
                StatusCode::NOT_FOUND,
                "there are /metrics, /healthz and /readyz\n",
            ),
        }
    }
}

fn text(status: StatusCode, said: impl Into<Bytes>) -> Response<Full<Bytes>> {
    of_type(status, PLAIN, said)
}

fn of_type(
    status: StatusCode,
    kind: &'static str,
    said: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(said.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

#[cfg(test)]
mod tests;
