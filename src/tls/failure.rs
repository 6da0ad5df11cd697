//! What a failed handshake means, in words that name the certificate and the flag.

mod refused;

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::{CertificateError, Error as TlsError, InvalidMessage, PeerIncompatible};

use super::Wanted;
use super::certificate::{Certificate, date};
use super::files::Identity;
use crate::error::{Error, ErrorKind};

pub(super) use refused::hang_up;
use refused::refused;

/// Where it failed, and what was seen before.
pub(super) struct Scene<'a> {
    /// The name that was connected to.
    pub(super) host: &'a str,
    pub(super) wanted: Wanted,
    /// The certificate that the server showed.
    pub(super) peer: Option<&'a Certificate>,
    /// Whether the server asked for a certificate of ours.
    pub(super) asked: bool,
    /// The file of trusted certificates; without one it was the system's store.
    pub(super) ca: Option<&'a Path>,
    pub(super) trusted: &'a [Certificate],
    pub(super) identity: Option<&'a Identity>,
    /// In seconds since 1970.
    pub(super) now: u64,
}

/// The error of rustls in a chain of errors, wherever it hides.
pub(super) fn cause<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e TlsError> {
    walk(error).find_map(|error| error.downcast_ref::<TlsError>())
}

/// Whether the other side ended the connection without a word.
pub(super) fn is_hang_up(error: &(dyn StdError + 'static)) -> bool {
    walk(error).filter_map(as_io).any(|error| {
        matches!(
            error.kind(),
            io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof
        )
    })
}

/// An error and all it comes from. What an [`io::Error`] holds is not its source.
fn walk<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| {
        match as_io(error).and_then(io::Error::get_ref) {
            Some(held) => Some(held as &(dyn StdError + 'static)),
            None => error.source(),
        }
    })
}

fn as_io<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e io::Error> {
    error.downcast_ref::<io::Error>().or_else(|| {
        error
            .downcast_ref::<Arc<io::Error>>()
            .map(|shared| &**shared)
    })
}

pub(super) fn refusal(error: &TlsError, scene: &Scene<'_>) -> Error {
    match error {
        TlsError::InvalidCertificate(wrong) => untrusted(wrong, scene),
        TlsError::AlertReceived(alert) => refused(*alert, scene),
        TlsError::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => {
            let (what, hint) = match scene.wanted {
                Wanted::Amqp => (
                    "what answers there does not speak TLS",
                    "write amqp:// for this port; brokers listen for AMQP over TLS on 5671",
                ),
                Wanted::Management => (
                    "what answers there does not speak TLS",
                    "if it is the management API without TLS (usually 15672), write http:// in --management-url (MQ_MANAGEMENT_URL); HTTPS is usually on 15671, and AMQP's ports (5672, 5671) belong into --url",
                ),
            };
            unavailable(what.to_owned(), hint.to_owned())
        }
        TlsError::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => unavailable(
            format!(
                "{} speaks only versions of TLS older than 1.2",
                server(scene)
            ),
            "switch TLS 1.2 or 1.3 on there (`ssl_options.versions`)".to_owned(),
        ),
        other => unavailable(
            format!("TLS with {} failed: {other}", server(scene)),
            "the log of the server may say more".to_owned(),
        ),
    }
}

fn unavailable(what: String, hint: String) -> Error {
    Error::new(ErrorKind::Unavailable, what).hint(hint)
}

const fn server(scene: &Scene<'_>) -> &'static str {
    match scene.wanted {
        Wanted::Amqp => "the broker",
        Wanted::Management => "the management API",
    }
}

/// The prefix of the settings on RabbitMQ's side.
const fn settings(scene: &Scene<'_>) -> &'static str {
    match scene.wanted {
        Wanted::Amqp => "ssl_options",
        Wanted::Management => "management.ssl",
    }
}

/// The certificate that was shown, as a sentence begins.
fn shown(scene: &Scene<'_>) -> String {
    let mut text = format!("the certificate of {}", scene.host);
    if let Some(peer) = scene.peer {
        let _ = write!(text, " ({})", peer.subject);
    }
    text
}

fn untrusted(wrong: &CertificateError, scene: &Scene<'_>) -> Error {
    let shown = shown(scene);
    let peer = scene.peer;
    match wrong {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            unknown_issuer(&shown, scene)
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            let since = peer.map_or_else(String::new, |it| format!(" on {}", date(it.not_after)));
            let (what, hint) = match peer {
                // The leaf is in date, so it is one above it.
                Some(peer) if is_in_date(wrong, peer) => (
                    format!("{shown} is in date, but one that it rests on has expired"),
                    "renew the CA's certificate, or check this machine's clock",
                ),
                _ => (
                    format!("{shown} expired{since}"),
                    "renew it on the server, or check this machine's clock",
                ),
            };
            unavailable(what, hint.to_owned())
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            let from = peer.map_or_else(String::new, |it| {
                format!(" before {}", date(it.not_before))
            });
            unavailable(
                format!("{shown} is not valid{from}"),
                "check this machine's clock".to_owned(),
            )
        }
        CertificateError::NotValidForName => wrong_name(&shown, &[], scene),
        CertificateError::NotValidForNameContext { presented, .. } => {
            wrong_name(&shown, presented, scene)
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            unavailable(
                format!("{shown} is not one for servers (extended key usage)"),
                "have it made with extendedKeyUsage=serverAuth".to_owned(),
            )
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => unavailable(
            format!("{shown}, or one above it, is signed in a way that is not safe any more, such as with SHA-1, or too rare to be known"),
            "have it signed with SHA-256, SHA-384 or SHA-512, by a key that is RSA, ECDSA (P-256, P-384) or Ed25519"
                .to_owned(),
        ),
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            unavailable(
                format!("{shown} is that of a CA and not one for a server"),
                "if it is meant to be the server's own, name that very certificate with --ca-cert FILE (MQ_CA_CERT)"
                    .to_owned(),
            )
        }
        CertificateError::Other(other) if other.to_string().contains("UnsupportedCertVersion") => {
            unavailable(
                format!("{shown} is one of X.509 version 1, which names no host"),
                format!(
                    "have it made with subjectAltName={}: `openssl x509 -req` needs -extfile for that",
                    alternative(scene.host)
                ),
            )
        }
        other => unavailable(
            format!("{shown} cannot be trusted: {}", flaw(other)),
            "have it made again; `openssl x509 -noout -text -in FILE` shows what is in it"
                .to_owned(),
        ),
    }
}

/// The flaws that have no way out of their own.
const fn flaw(wrong: &CertificateError) -> &'static str {
    match wrong {
        CertificateError::BadEncoding => "it is damaged",
        CertificateError::Revoked => "it was revoked",
        CertificateError::UnhandledCriticalExtension => {
            "it has a critical extension that is not known here"
        }
        _ => "it is made in a way that is not taken",
    }
}

/// Whether the certificate itself was in date at the time of the check.
fn is_in_date(wrong: &CertificateError, peer: &Certificate) -> bool {
    match wrong {
        CertificateError::ExpiredContext { time, .. } => time.as_secs() <= peer.not_after,
        _ => false,
    }
}

fn unknown_issuer(shown: &str, scene: &Scene<'_>) -> Error {
    let issued = match scene.peer {
        Some(peer) if peer.is_self_signed() => "is self-signed".to_owned(),
        Some(peer) => format!("is issued by {}", peer.issuer),
        None => "is issued by somebody".to_owned(),
    };
    match scene.ca {
        None => unavailable(
            format!("{shown} {issued} and the system's store does not trust that"),
            match scene.peer {
                Some(peer) if peer.is_self_signed() => {
                    "name that very certificate with --ca-cert FILE (MQ_CA_CERT)".to_owned()
                }
                _ => "name the CA's certificate with --ca-cert FILE (MQ_CA_CERT)".to_owned(),
            },
        ),
        Some(path) if is_of_another_key(scene) => unavailable(
            format!(
                "{shown} {issued}, and {} trusts one of that very name, but with another key",
                path.display()
            ),
            "the CA may have been made anew: take its present certificate from where the server has its own, and name that with --ca-cert (MQ_CA_CERT)"
                .to_owned(),
        ),
        Some(path) => {
            let trusted: Vec<String> = scene
                .trusted
                .iter()
                .take(3)
                .map(|one| one.subject.to_string())
                .collect();
            let more = scene.trusted.len().saturating_sub(trusted.len());
            let more = if more == 0 {
                String::new()
            } else {
                format!(" and {more} more")
            };
            unavailable(
                format!(
                    "{shown} {issued}, but {} trusts {}{more}",
                    path.display(),
                    trusted.join(", ")
                ),
                format!(
                    "name the CA of this server with --ca-cert (MQ_CA_CERT); where a CA stands between, the server must send its certificate too, in `{}.certfile`",
                    settings(scene)
                ),
            )
        }
    }
}

/// Whether who issued it is trusted by name: then it can only be the key.
fn is_of_another_key(scene: &Scene<'_>) -> bool {
    scene.peer.is_some_and(|peer| {
        let mut trusted = scene.trusted.iter();
        trusted.any(|one| one.subject == peer.issuer)
    })
}

fn wrong_name(shown: &str, presented: &[String], scene: &Scene<'_>) -> Error {
    let names: Vec<&str> = presented.iter().map(|name| plain(name)).collect();
    if names.is_empty() {
        return unavailable(
            format!("{shown} names no host"),
            format!(
                "have it made with subjectAltName={}; the CN does not count",
                alternative(scene.host)
            ),
        );
    }
    unavailable(
        format!(
            "{shown} is for {}, not for {}",
            names.join(", "),
            scene.host
        ),
        format!(
            "connect by one of these names, or have it made with subjectAltName={} too",
            alternative(scene.host)
        ),
    )
}

fn alternative(host: &str) -> String {
    match host.parse::<std::net::IpAddr>() {
        Ok(_) => format!("IP:{host}"),
        Err(_) => format!("DNS:{host}"),
    }
}

/// `DnsName("broker")` as webpki writes it, without the wrapping.
fn plain(presented: &str) -> &str {
    presented
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .map_or(presented, |name| name.trim_matches('"'))
}

#[cfg(test)]
mod tests;
