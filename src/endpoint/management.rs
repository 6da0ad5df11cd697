//! Where the management API is.

use std::fmt;

use url::Url;

use super::{Endpoint, Secret, Transport, comma_too_many, decode, path_segment, redacted, split};
use crate::error::{Error, ErrorKind, Result};

/// The management API of a broker with the login to use there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagementEndpoint {
    base: Url,
    /// User name; empty where the URLs name none because AMQP logs in with a
    /// certificate.
    pub user: String,
    /// Password.
    pub password: Secret,
}

impl ManagementEndpoint {
    /// Reads an `http://` or `https://` URL; a login missing there is taken from `amqp`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when it is no such URL.
    pub fn parse(text: &str, amqp: &Endpoint) -> Result<Self> {
        let wrong = |what: String| {
            Error::new(
                ErrorKind::Configuration,
                format!("the management URL {} {what}", redacted(text)),
            )
            .hint("write it as http://HOST:15672, with the path prefix if the broker has one")
        };
        let mut base =
            Url::parse(text).map_err(|error| wrong(format!("cannot be read ({error})")))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong(
                "begins neither with http:// nor with https://".to_owned(),
            ));
        }
        let user = match base.username() {
            "" => amqp.user.clone(),
            user => {
                decode(user).ok_or_else(|| wrong("has a user name that is not UTF-8".into()))?
            }
        };
        let password = match base.password() {
            None => amqp.password.clone(),
            Some(password) => Secret::new(
                decode(password).ok_or_else(|| wrong("has a password that is not UTF-8".into()))?,
            ),
        };
        // Both setters fail only for URLs without a host, which http does not have.
        let _ = base.set_username("");
        let _ = base.set_password(None);
        base.set_query(None);
        base.set_fragment(None);
        let path = base.path().trim_end_matches('/').trim_end_matches("/api");
        let path = path.to_owned();
        base.set_path(&path);
        Ok(Self {
            base,
            user,
            password,
        })
    }

    /// Reads a comma-separated list of URLs, to be tried in that order.
    ///
    /// # Errors
    /// As [`ManagementEndpoint::parse`], for the first one that is wrong, and for
    /// a comma without a URL.
    pub fn parse_list(text: &str, amqp: &Endpoint) -> Result<Vec<Self>> {
        let urls = split(text, "http").ok_or_else(|| {
            comma_too_many("management URLs (--management-url, MQ_MANAGEMENT_URL)")
        })?;
        urls.iter()
            .map(|url| Self::parse(url.trim(), amqp))
            .collect()
    }

    /// The usual place next to `amqp`: port 15672, or 15671 with TLS.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when the host cannot stand in a URL.
    pub fn inferred(amqp: &Endpoint) -> Result<Self> {
        let (scheme, port) = match amqp.transport {
            Transport::Plain => ("http", 15672),
            Transport::Tls => ("https", 15671),
        };
        let host = if amqp.host.contains(':') {
            format!("[{}]", amqp.host)
        } else {
            amqp.host.clone()
        };
        Self::parse(&format!("{scheme}://{host}:{port}"), amqp)
    }

    /// The host to verify a certificate for, when it is asked over TLS.
    #[must_use]
    pub fn tls_host(&self) -> Option<&str> {
        let host = self.base.host_str().unwrap_or_default();
        (self.base.scheme() == "https").then(|| host.trim_start_matches('[').trim_end_matches(']'))
    }

    /// The URL below `/api/` for path segments, each percent-encoded here.
    #[must_use]
    pub fn api(&self, segments: &[&str]) -> String {
        let mut url = self.base.as_str().trim_end_matches('/').to_owned();
        url.push_str("/api");
        for segment in segments {
            url.push('/');
            url.push_str(&path_segment(segment));
        }
        url
    }
}

impl fmt::Display for ManagementEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.as_str().trim_end_matches('/'))
    }
}
