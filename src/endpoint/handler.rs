//! Where a handler is that is a URL.

use std::fmt;

use url::Url;

use super::{Secret, decode, redacted};
use crate::error::{Error, ErrorKind, Result};

/// A URL that works messages, with the login to use there.
#[derive(Clone, PartialEq, Eq)]
pub struct HandlerEndpoint {
    url: Url,
    /// User name and password for basic authentication.
    pub login: Option<(String, Secret)>,
}

impl HandlerEndpoint {
    /// Reads an `http://` or `https://` URL.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when it is no such URL.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |what: &str| {
            let shown = redacted(text);
            // Path and query are often tokens.
            let (scheme, rest) = shown.split_at(shown.find("://").map_or(0, |at| at + 3));
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            Error::new(
                ErrorKind::Configuration,
                format!("the handler's URL {scheme}{host} {what}"),
            )
            .hint("write it as http://HOST:8080/PATH or https://HOST/PATH; no message was taken")
        };
        let mut url =
            Url::parse(text).map_err(|error| wrong(&format!("cannot be read ({error})")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("begins neither with http:// nor with https://"));
        }
        let user =
            decode(url.username()).ok_or_else(|| wrong("has a user name that is not UTF-8"))?;
        let password = decode(url.password().unwrap_or_default())
            .ok_or_else(|| wrong("has a password that is not UTF-8"))?;
        // A colon ends the user name (RFC 7617).
        if user.contains(':') {
            return Err(wrong("has a user name with a ':' in it"));
        }
        let login =
            (!user.is_empty() || !password.is_empty()).then(|| (user, Secret::new(password)));
        // Both setters fail only for URLs without a host, which http does not have.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_fragment(None);
        Ok(Self { url, login })
    }

    /// What is asked for, without the login. It may hold a token: not to be shown.
    #[must_use]
    pub const fn url(&self) -> &Url {
        &self.url
    }
}

/// Scheme, host and port: path and query may be as secret as a password.
impl fmt::Display for HandlerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url.origin().ascii_serialization())
    }
}

impl fmt::Debug for HandlerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_login_out_of_the_url() {
        for (text, url, login, shown) in [
            ("http://h", "http://h/", None, "http://h"),
            (
                "https://u%40x:p%3Aq@h:8443/a?b=c#d",
                "https://h:8443/a?b=c",
                Some(("u@x", "p:q")),
                "https://h:8443",
            ),
            (
                "http://:token@[::1]:1/",
                "http://[::1]:1/",
                Some(("", "token")),
                "http://[::1]:1",
            ),
        ] {
            let endpoint = HandlerEndpoint::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(endpoint.url().as_str(), url);
            let found = endpoint.login.as_ref();
            let found = found.map(|(user, password)| (user.as_str(), password.reveal()));
            assert_eq!(found, login);
            assert_eq!(format!("{endpoint}"), shown);
            assert_eq!(format!("{endpoint:?}"), shown);
        }
    }

    #[test]
    fn a_wrong_url_is_told_without_what_is_secret() {
        for (text, what) in [
            ("localhost:8080/x", "begins neither"),
            ("ftp://u:sesame@h/", "begins neither"),
            ("http://u:sesame@h:99999/?token=sesame", "cannot be read"),
            ("http://u:ses?ame@h/", "cannot be read"),
            ("http://u:ses/ame@h/", "http://u:***@h cannot be read"),
            ("http://h:x/sesame?token=sesame", "cannot be read"),
            ("http://", "cannot be read"),
            ("http://u%3Av:sesame@h/", "':'"),
            ("", "cannot be read"),
        ] {
            let error = HandlerEndpoint::parse(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Configuration);
            let told = error.to_string();
            assert!(told.contains(what), "{told}");
            assert!(!told.contains("ses") && !told.contains("ame@"), "{told}");
        }
    }
}
