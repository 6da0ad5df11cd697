//! Where the metrics are served.

use std::net::IpAddr;

use crate::error::{Error, ErrorKind, Result};
use crate::printable::one_line;

/// A host and a port to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name or an address, without brackets.
    pub host: String,
    /// 0 for any free one.
    pub port: u16,
}

impl Address {
    /// Reads `HOST:PORT`, `[IPV6]:PORT` or `PORT`, which is on this machine only.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when it is none of these.
    pub fn parse(text: &str) -> Result<Self> {
        let nonsense = || {
            Error::new(
                ErrorKind::Configuration,
                format!("--metrics '{}' is no address to listen at", one_line(text, 100)),
            )
            .hint("write HOST:PORT, [::1]:PORT, or PORT for 127.0.0.1 only; 0.0.0.0:PORT listens on every network")
        };
        let (host, port) = match text.rsplit_once(':') {
            None => ("127.0.0.1", text),
            Some((host, port)) => match host.strip_prefix('[') {
                Some(bracketed) => {
                    let host = bracketed.strip_suffix(']').ok_or_else(nonsense)?;
                    if !matches!(host.parse(), Ok(IpAddr::V6(_))) {
                        return Err(nonsense());
                    }
                    (host, port)
                }
                None => (host, port),
            },
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let is_host = text.starts_with('[') || (!host.is_empty() && host.chars().all(is_name));
        let is_port = !port.is_empty() && port.chars().all(|c| c.is_ascii_digit());
        if !is_host || !is_port {
            return Err(nonsense());
        }
        Ok(Self {
            host: host.to_owned(),
            port: port.parse().map_err(|_| nonsense())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_on_this_machine_only() {
        for (text, host, port) in [
            ("9464", "127.0.0.1", 9464),
            ("0", "127.0.0.1", 0),
            ("0.0.0.0:9464", "0.0.0.0", 9464),
            ("localhost:1", "localhost", 1),
            ("[::1]:9464", "::1", 9464),
        ] {
            let address = Address::parse(text).expect(text);
            assert_eq!((address.host.as_str(), address.port), (host, port));
        }
    }

    #[test]
    fn nonsense_is_told_with_the_way_out() {
        for text in [
            "",
            ":",
            ":9464",
            "localhost",
            "localhost:",
            "70000",
            "::1",
            "[::1]",
            "[::1:1",
            "[127.0.0.1]:1",
            "http://localhost:1",
            "+1",
            "a b:1",
            "\x1b:1",
            "1:2:3",
        ] {
            let error = Address::parse(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Configuration, "{text}");
            assert!(
                error
                    .way_out()
                    .is_some_and(|help| help.contains("HOST:PORT"))
            );
            assert!(!error.message().contains('\x1b'));
        }
    }
}
