//! Where a Redis server is.

use std::fmt;

use url::Url;

use super::{Secret, redacted};
use crate::error::{Error, ErrorKind, Result};

/// A Redis server, its database and login.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisEndpoint {
    url: Secret,
    shown: String,
}

impl RedisEndpoint {
    /// Whether a text is meant to be such a URL, rather than a path.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        ["redis:", "rediss:"]
            .iter()
            .any(|scheme| text.starts_with(scheme))
    }

    /// Reads `redis://USER:PASSWORD@HOST:6379/DATABASE`; `rediss://` with TLS.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when it is no such URL.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |what: &str| {
            Error::new(
                ErrorKind::Configuration,
                format!("the URL {} of the dedupe store {what}", redacted(text)),
            )
            .hint(
                "write it as redis://HOST:6379/0 or, with TLS, rediss://USER:PASSWORD@HOST:6379/0",
            )
        };
        let url = Url::parse(text).map_err(|error| wrong(&format!("cannot be read ({error})")))?;
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
            return Err(wrong("names no host"));
        };
        let database = url.path().trim_start_matches('/');
        if !database.is_empty() && database.parse::<u32>().is_err() {
            return Err(wrong("names a database that is no number"));
        }
        let port = url.port().unwrap_or(6379);
        let scheme = url.scheme();
        Ok(Self {
            shown: format!("{scheme}://{host}:{port}/{database}"),
            url: Secret::new(text),
        })
    }

    /// All of it, for the one place that connects.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.url.reveal()
    }
}

/// Without the login.
impl fmt::Display for RedisEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for RedisEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_everything_but_the_login() {
        for (text, shown) in [
            ("redis://h", "redis://h:6379/"),
            ("redis://h:7000/3", "redis://h:7000/3"),
            ("rediss://u:secret@h/0", "rediss://h:6379/0"),
            ("redis://:secret@[::1]:1/", "redis://[::1]:1/"),
        ] {
            let endpoint = RedisEndpoint::parse(text).expect(text);
            assert_eq!(endpoint.to_string(), shown);
            assert_eq!(format!("{endpoint:?}"), shown);
            assert_eq!(endpoint.reveal(), text);
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for text in [
            "redis://:secret@",
            "redis://:secret@h/zero",
            "redis:secret",
            "redis://:secret@h:99999/",
        ] {
            assert!(RedisEndpoint::is_one(text));
            let error = RedisEndpoint::parse(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Configuration, "{text}");
            assert!(
                text == "redis:secret" || !error.to_string().contains("secret"),
                "{error}"
            );
        }
        assert!(!RedisEndpoint::is_one("store.redb"));
        assert!(!RedisEndpoint::is_one("./redis/store"));
    }
}
