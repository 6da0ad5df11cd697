//! Where it is remembered what is done.

use std::fmt;
use std::path::PathBuf;

use crate::endpoint::RedisEndpoint;
use crate::error::{Error, ErrorKind, Result};

/// A file of our own, or a server that several workers share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    /// An embedded store: one file, one worker.
    File(PathBuf),
    /// A Redis server.
    Redis(RedisEndpoint),
}

impl StoreAddress {
    /// Reads a path or a `redis://` or `rediss://` URL.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when the URL makes no sense, or is one of
    /// something else.
    pub fn parse(text: &str) -> Result<Self> {
        if RedisEndpoint::is_one(text) {
            return Ok(Self::Redis(RedisEndpoint::parse(text)?));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!("a dedupe store at {scheme}://… is none that mq knows"),
            )
            .hint("name a file, or a Redis server as redis://HOST:6379/0"));
        }
        if text.is_empty() {
            return Err(Error::new(
                ErrorKind::Configuration,
                "the dedupe store has an empty name",
            )
            .hint("name a file, or a Redis server as redis://HOST:6379/0"));
        }
        Ok(Self::File(PathBuf::from(text)))
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Redis(endpoint) => write!(f, "{endpoint}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_files_and_redis_urls_are_servers() {
        for text in ["a.redb", "/var/lib/mq/a", "./redis", "C:a"] {
            let address = StoreAddress::parse(text).expect(text);
            assert_eq!(address, StoreAddress::File(PathBuf::from(text)));
        }
        let redis = StoreAddress::parse("redis://:secret@h/1").expect("redis");
        assert_eq!(
            format!("{redis} {redis:?}"),
            "redis://h:6379/1 Redis(redis://h:6379/1)"
        );
        for text in ["", "sqlite://a.db", "memcached://:secret@h", "redis://"] {
            let error = StoreAddress::parse(text).expect_err(text);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
