//! Several endpoints: the first that works is taken.

use std::time::Duration;

use crate::amqp::connect::{Connection, Frames};
use crate::endpoint::{Endpoint, Transport};
use crate::error::{Error, ErrorKind, Result};
use crate::tls::Tls;

impl Connection {
    /// Connects to the first endpoint that works. `limit` bounds each step: the
    /// TCP and TLS handshake, the greeting, the login, and every later request.
    ///
    /// # Errors
    /// That of the only endpoint, or of the last one with the others named. What
    /// is wrong on this side, such as a TLS file, ends it at once: the next
    /// endpoint may be one without TLS.
    pub async fn open(
        endpoints: &[Endpoint],
        tls: &Tls,
        name: &str,
        limit: Duration,
        frames: Frames,
    ) -> Result<Self> {
        let mut failures: Vec<Error> = Vec::new();
        let mut over_tls: Option<Error> = None;
        for endpoint in endpoints {
            match Self::open_one(endpoint, tls, name, limit, frames).await {
                Ok(connection) => {
                    if endpoint.transport == Transport::Plain
                        && let Some(error) = &over_tls
                    {
                        tracing::warn!(
                            %endpoint,
                            instead_of = error.message(),
                            "connected without TLS, because the URLs with it did not work"
                        );
                    }
                    return Ok(connection);
                }
                Err(error) if error.kind() == ErrorKind::Configuration => return Err(error),
                Err(error) => {
                    tracing::info!(%endpoint, error = error.message(), "cannot connect");
                    if endpoint.transport == Transport::Tls {
                        over_tls = Some(error.clone());
                    }
                    failures.push(error);
                }
            }
        }
        let last = failures.pop().unwrap_or_else(|| {
            Error::new(ErrorKind::Configuration, "no AMQP URL is given").hint("set --url or MQ_URL")
        });
        if failures.is_empty() {
            return Err(last);
        }
        let others: Vec<&str> = failures.iter().map(Error::message).collect();
        let others = format!("the other URLs did not work either:\n{}", others.join("\n"));
        let hint = match last.way_out() {
            Some(own) => format!("{own}\n{others}"),
            None => others,
        };
        Err(last.hint(hint))
    }
}
