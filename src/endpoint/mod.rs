//! Where the broker is and who we are there: AMQP and management URLs; and where
//! a handler is that is a URL.
//!
//! Parsed by ourselves because the URI rules trip people (a trailing `/` means
//! the vhost with the empty name) and because a password must never reach an
//! error message: [`Secret`] cannot be printed.

mod handler;
mod management;
mod parameters;
mod redis;

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

use crate::error::{Error, ErrorKind, Result};
use crate::topology::VhostName;

pub use crate::secret::Secret;
pub use handler::HandlerEndpoint;
pub use management::ManagementEndpoint;
use parameters::Parameters;
pub use redis::RedisEndpoint;

/// The URL used when neither flag nor environment names one.
pub const DEFAULT_URL: &str = "amqp://guest:guest@localhost:5672/%2f";

/// Everything a path segment must not hold raw: RabbitMQ names may be any UTF-8.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A name as one path segment of a URL: `/` becomes `%2F`.
#[must_use]
pub fn path_segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// How the AMQP bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// `amqp://`, plain TCP.
    Plain,
    /// `amqps://`, TLS.
    Tls,
}

/// How a login is proved: a SASL mechanism.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mechanism {
    /// With user name and password.
    #[default]
    Plain,
    /// With the client certificate, whose name the broker takes for the user's.
    External,
}

/// One AMQP endpoint with the login to use there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Plain or TLS.
    pub transport: Transport,
    /// Host name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// How the login is proved.
    pub mechanism: Mechanism,
    /// User name; empty where only the broker knows it ([`Mechanism::External`]).
    pub user: String,
    /// Password.
    pub password: Secret,
    /// Virtual host.
    pub vhost: VhostName,
    /// Heartbeat in seconds; 0 switches it off.
    pub heartbeat: u16,
    /// Names of parameters in the URL that have no effect.
    pub ignored: Vec<String>,
}

impl Endpoint {
    /// Reads one `amqp://` or `amqps://` URL.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`], with the corrected URL where the vhost is
    /// empty or its `/` is not escaped, and with the flag to use where a
    /// parameter of RabbitMQ's URI query specification is given as a flag here.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |what: &str| {
            Error::new(
                ErrorKind::Configuration,
                format!("the AMQP URL {} {what}", redacted(text)),
            )
            .hint("write it as amqp://USER:PASSWORD@HOST:5672/VHOST, with / in a name as %2f")
        };
        let url = Url::parse(text).map_err(|error| wrong(&format!("cannot be read ({error})")))?;
        let (transport, port) = match url.scheme() {
            "amqp" => (Transport::Plain, 5672),
            "amqps" => (Transport::Tls, 5671),
            _ => return Err(wrong("begins neither with amqp:// nor with amqps://")),
        };
        let host = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| wrong("names no host"))?;
        let host = decode(host.trim_start_matches('[').trim_end_matches(']'))
            .ok_or_else(|| wrong("has a host that is not UTF-8"))?;
        let parameters = Parameters::of(&url).map_err(|refusal| {
            let error = wrong(&refusal.what);
            refusal.hint.map_or(error.clone(), |hint| error.hint(hint))
        })?;
        if parameters.mechanism == Mechanism::External && transport == Transport::Plain {
            return Err(
                wrong("wants to log in with a certificate, which takes TLS").hint(
                    "write amqps:// and give the certificate with --client-cert (MQ_CLIENT_CERT)",
                ),
            );
        }
        let otherwise = match parameters.mechanism {
            Mechanism::Plain => "guest",
            Mechanism::External => "",
        };
        let user = match url.username() {
            "" => otherwise.to_owned(),
            user => decode(user).ok_or_else(|| wrong("has a user name that is not UTF-8"))?,
        };
        let password = match url.password() {
            None => otherwise.to_owned(),
            Some(password) => {
                decode(password).ok_or_else(|| wrong("has a password that is not UTF-8"))?
            }
        };
        Ok(Self {
            transport,
            host,
            port: url.port().unwrap_or(port),
            mechanism: parameters.mechanism,
            user,
            password: Secret::new(password),
            vhost: vhost_of(&url, text)?,
            heartbeat: parameters.heartbeat.unwrap_or(60),
            ignored: parameters.ignored,
        })
    }

    /// Reads a comma-separated list of URLs, to be tried in that order. A comma
    /// separates only where a new URL begins: passwords may hold one too.
    ///
    /// # Errors
    /// As [`Endpoint::parse`], for the first one that is wrong, and for a comma
    /// without a URL.
    pub fn parse_list(text: &str) -> Result<Vec<Self>> {
        let urls =
            split(text, "amqp").ok_or_else(|| comma_too_many("AMQP URLs (--url, MQ_URL)"))?;
        urls.iter().map(|url| Self::parse(url.trim())).collect()
    }

    /// The same endpoint on another vhost.
    #[must_use]
    pub fn on_vhost(mut self, vhost: VhostName) -> Self {
        self.vhost = vhost;
        self
    }

    /// Host and port as they go into a message or a URL.
    #[must_use]
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.transport {
            Transport::Plain => "amqp",
            Transport::Tls => "amqps",
        };
        write!(f, "{scheme}://")?;
        if !self.user.is_empty() {
            write!(f, "{}@", path_segment(&self.user))?;
        }
        write!(
            f,
            "{}/{}",
            self.address(),
            path_segment(self.vhost.as_str())
        )
    }
}

/// The URLs of a list: a comma separates only where a new URL begins, which
/// starts with `scheme`. `None`: there is none next to a comma that separates.
fn split(text: &str, scheme: &str) -> Option<Vec<String>> {
    let mut urls: Vec<String> = Vec::new();
    let mut is_separated = false;
    for piece in text.split(',') {
        let begins = piece.trim_start().starts_with(scheme);
        match urls.last_mut() {
            Some(_) if begins && is_separated => return None,
            Some(url) if !begins => {
                url.push(',');
                url.push_str(piece);
            }
            _ => urls.push(piece.to_owned()),
        }
        is_separated = piece.trim().is_empty();
    }
    let is_one = urls.len() == 1 && text.trim().is_empty();
    (is_one || !is_separated).then_some(urls)
}

fn comma_too_many(list: &str) -> Error {
    Error::new(
        ErrorKind::Configuration,
        format!("the list of {list} has a comma too many: no URL stands between it and the next comma, or an end"),
    )
    .hint("take the comma away; one that belongs to a name or a password is written %2c")
}

fn decode(text: &str) -> Option<String> {
    percent_decode_str(text)
        .decode_utf8()
        .ok()
        .map(std::borrow::Cow::into_owned)
}

/// The URL with its password replaced, however broken it is.
fn redacted(text: &str) -> String {
    // The password of a key may stand in a parameter.
    let text = match text.find("password=") {
        Some(_) => text.split_once('?').map_or(text, |(url, _)| url),
        None => text,
    };
    let after_scheme = text.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = text.split_at(after_scheme);
    let Some(at) = rest.rfind('@') else {
        return text.to_owned();
    };
    let (login, host) = rest.split_at(at);
    match login.split_once(':') {
        Some((user, _)) => format!("{scheme}{user}:***{host}"),
        None => format!("{scheme}***{host}"),
    }
}

fn vhost_of(url: &Url, text: &str) -> Result<VhostName> {
    let corrected = |vhost: &str| {
        let mut url = url.clone();
        url.set_path(&format!("/{vhost}"));
        redacted(url.as_str())
    };
    let path = url.path();
    let segment = match path {
        "" => return VhostName::new("/"),
        "/" => {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!(
                    "the AMQP URL {} ends in '/', which names the vhost with the empty name",
                    redacted(text)
                ),
            )
            .hint(format!(
                "for the default vhost write {} or leave the last '/' away",
                corrected("%2f")
            )));
        }
        path => path.strip_prefix('/').unwrap_or(path),
    };
    if segment.contains('/') {
        return Err(Error::new(
            ErrorKind::Configuration,
            format!(
                "the AMQP URL {} has a '/' inside its vhost that is not escaped",
                redacted(text)
            ),
        )
        .hint(format!(
            "write it as %2f: {}",
            corrected(&segment.replace('/', "%2f"))
        )));
    }
    let name = decode(segment).ok_or_else(|| {
        Error::new(
            ErrorKind::Configuration,
            format!(
                "the AMQP URL {} has a vhost that is not UTF-8",
                redacted(text)
            ),
        )
    })?;
    VhostName::new(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str) -> Endpoint {
        Endpoint::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn reads_what_people_write() {
        for (url, host, port, user, vhost) in [
            ("amqp://localhost", "localhost", 5672, "guest", "/"),
            ("amqp://localhost/%2f", "localhost", 5672, "guest", "/"),
            ("amqps://u:p@h/shop", "h", 5671, "u", "shop"),
            ("amqp://u%40x:p%2Fq@h:1/a%20b%2Fc", "h", 1, "u@x", "a b/c"),
            ("amqp://[::1]:5673/v", "::1", 5673, "guest", "v"),
        ] {
            let parsed = endpoint(url);
            assert_eq!(
                (
                    parsed.host.as_str(),
                    parsed.port,
                    parsed.user.as_str(),
                    parsed.vhost.as_str()
                ),
                (host, port, user, vhost),
                "{url}"
            );
        }
    }

    #[test]
    fn explains_an_empty_or_unescaped_vhost_with_the_corrected_url() {
        for (url, fix) in [
            ("amqp://h/", "amqp://h/%2f"),
            ("amqp://h//", "amqp://h/%2f"),
            ("amqp://h/a/b", "amqp://h/a%2fb"),
        ] {
            let error = Endpoint::parse(url).expect_err(url);
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(error.to_string().contains(fix), "{url}: {error}");
        }
    }

    #[test]
    fn never_shows_a_password() {
        let shown = endpoint("amqp://u:sesame@h/v");
        assert!(!format!("{shown} {shown:?}").contains("sesame"));
        for broken in [
            "http://u:sesame@h/v",
            "amqp://u:sesame@h:99999/v",
            "amqp://u:sesame@/v",
            "amqp://u:sesame@h/",
            "u:sesame@h",
            "amqps://h/v?certfile=c&password=sesame",
        ] {
            let error = Endpoint::parse(broken).expect_err(broken);
            assert!(!error.to_string().contains("sesame"), "{error}");
        }
    }

    #[test]
    fn a_comma_separates_urls_but_not_passwords() {
        let list = |text: &str| -> Vec<(String, String)> {
            Endpoint::parse_list(text)
                .unwrap_or_else(|error| panic!("{text}: {error}"))
                .into_iter()
                .map(|one| (one.password.reveal().to_owned(), one.host))
                .collect()
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(list("amqp://u:a,b@h/v"), [pair("a,b", "h")]);
        assert_eq!(
            list("amqp://u:p@h/v, amqps://u:q@i/v"),
            [pair("p", "h"), pair("q", "i")]
        );
        let error = Endpoint::parse_list("amqp://u:ses,ame@h:x/v").expect_err("bad port");
        assert!(!error.to_string().contains("ses"), "{error}");
    }

    #[test]
    fn a_comma_without_a_url_is_told() {
        let amqp = endpoint("amqp://h");
        for pattern in ["U,", "U, ", ",U", "U,,U", "U, ,U", "U,U,"] {
            let one = pattern.replace('U', "amqp://u:sesame@h/v");
            let two = pattern.replace('U', "http://u:sesame@h:15672");
            for error in [
                Endpoint::parse_list(&one).expect_err(&one),
                ManagementEndpoint::parse_list(&two, &amqp).expect_err(&two),
            ] {
                assert_eq!(error.kind(), ErrorKind::Configuration);
                assert!(error.message().contains("a comma too many"), "{error}");
                assert!(!error.to_string().contains("sesame"), "{error}");
            }
        }
        for good in ["amqp://u:a,,b@h/v", "amqp://u:,@h/v", "amqp://h/v%2c"] {
            assert!(Endpoint::parse_list(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_certificate_can_be_the_login() {
        let named = endpoint("amqps://shop@h/v?auth_mechanism=external");
        assert_eq!(named.mechanism, Mechanism::External);
        assert_eq!(named.to_string(), "amqps://shop@h:5671/v");
        let unnamed = endpoint("amqps://h/v?auth_mechanism=EXTERNAL&heartbeat=5");
        assert_eq!((unnamed.user.as_str(), unnamed.heartbeat), ("", 5));
        assert_eq!(unnamed.to_string(), "amqps://h:5671/v");
        let error = Endpoint::parse("amqp://h/v?auth_mechanism=external").expect_err("no TLS");
        assert!(error.to_string().contains("write amqps://"), "{error}");
    }

    #[test]
    fn management_is_next_door_unless_said_otherwise() {
        let amqp = endpoint("amqps://u:p@h/v");
        let inferred = ManagementEndpoint::inferred(&amqp).expect("inferred");
        assert_eq!(inferred.to_string(), "https://h:15671");
        let given = ManagementEndpoint::parse("http://a:b@m:1/rabbit/", &amqp).expect("given");
        assert_eq!(
            given.api(&["queues", "/", "a b/é"]),
            "http://m:1/rabbit/api/queues/%2F/a%20b%2F%C3%A9"
        );
        assert_eq!((given.user.as_str(), given.password.reveal()), ("a", "b"));
    }
}
