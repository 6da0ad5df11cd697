//! What it means when the other side does not go on.

use tokio_rustls::rustls::AlertDescription;

use super::super::certificate::{Certificate, date};
use super::{Scene, server, settings, unavailable};
use crate::error::Error;

/// A server that does not like what it sees may just hang up.
pub(in super::super) fn hang_up(scene: &Scene<'_>) -> Option<Error> {
    match scene.identity {
        _ if !scene.asked => None,
        None => Some(no_client_certificate(scene)),
        Some(identity) => Some(unavailable(
            format!(
                "{} hung up when it saw the client certificate in {} ({}, issued by {}, {})",
                server(scene),
                identity.path.display(),
                identity.certificate.subject,
                identity.certificate.issuer,
                in_date(&identity.certificate, scene.now)
            ),
            is_taken_when(scene),
        )),
    }
}

fn no_client_certificate(scene: &Scene<'_>) -> Error {
    unavailable(
        format!(
            "{} wants a client certificate, and none was given",
            server(scene)
        ),
        "give it with --client-cert FILE (MQ_CLIENT_CERT) and --client-key FILE (MQ_CLIENT_KEY)"
            .to_owned(),
    )
}

/// The other side says that it does not go on.
pub(super) fn refused(alert: AlertDescription, scene: &Scene<'_>) -> Error {
    let server = server(scene);
    match scene.identity {
        None if scene.asked => no_client_certificate(scene),
        Some(identity) if scene.asked && is_about_certificates(alert) => {
            let ours = &identity.certificate;
            unavailable(
                format!(
                    "{server} refuses the client certificate in {} ({}): {}",
                    identity.path.display(),
                    ours.subject,
                    reason(alert, ours, scene.now)
                ),
                is_taken_when(scene),
            )
        }
        _ => {
            let hint = match alert {
                AlertDescription::ProtocolVersion => {
                    "switch TLS 1.2 or 1.3 on there (`ssl_options.versions`)"
                }
                AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
                    "it has no cipher in common with us, or its certificate is of an unusual kind; its log says more"
                }
                _ => "its log says more",
            };
            unavailable(
                format!("{server} refused the TLS handshake ({})", name(alert)),
                hint.to_owned(),
            )
        }
    }
}

/// Why it may not like our certificate.
fn reason(alert: AlertDescription, ours: &Certificate, now: u64) -> String {
    match alert {
        // Erlang says so of one that is not valid yet, too.
        AlertDescription::CertificateExpired => in_date(ours, now),
        _ if ours.is_self_signed() => {
            "it is self-signed, and not one that the server trusts".to_owned()
        }
        AlertDescription::UnknownCA => format!("it does not know its issuer {}", ours.issuer),
        AlertDescription::CertificateRevoked => "it was revoked".to_owned(),
        AlertDescription::AccessDenied => {
            "it is good, but what it is for is not allowed".to_owned()
        }
        AlertDescription::UnsupportedCertificate => {
            "it is not one for clients, or signed in a way that the server does not take, such as with SHA-1"
                .to_owned()
        }
        _ => format!(
            "it says only {}; a signature with SHA-1 or a key that is too short are usual reasons",
            name(alert)
        ),
    }
}

/// The name that the RFCs give an alert, such as `handshake_failure`.
fn name(alert: AlertDescription) -> String {
    let mut text = String::new();
    let mut after_small = false;
    for c in format!("{alert:?}").chars() {
        if after_small && c.is_ascii_uppercase() {
            text.push('_');
        }
        after_small = c.is_ascii_lowercase();
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// Whether it is in date by our clock.
fn in_date(ours: &Certificate, now: u64) -> String {
    let (from, until) = (date(ours.not_before), date(ours.not_after));
    if now < ours.not_before {
        format!("it is not valid before {from}")
    } else if now > ours.not_after {
        format!("it expired on {until}")
    } else {
        format!("by the clock here it is in date, from {from} until {until}")
    }
}

fn is_taken_when(scene: &Scene<'_>) -> String {
    format!(
        "it must be in date and issued by a CA in `{}.cacertfile` of the server; what is between goes into --client-cert too",
        settings(scene)
    )
}

const fn is_about_certificates(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRequired
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::HandshakeFailure
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::certificate::Name;
    use super::*;

    #[test]
    fn alerts_have_their_names_of_the_rfcs() {
        for (alert, expected) in [
            (AlertDescription::HandshakeFailure, "handshake_failure"),
            (AlertDescription::UnknownCA, "unknown_ca"),
        ] {
            assert_eq!(name(alert), expected);
        }
    }

    #[test]
    fn why_a_client_certificate_is_refused_is_said_in_words() {
        let issued = Certificate {
            subject: Name::of("CN=me"),
            issuer: Name::of("CN=ca"),
            not_before: 1_000_000_000,
            not_after: 2_000_000_000,
            public_key: Vec::new(),
        };
        let own = Certificate {
            issuer: Name::of("CN=me"),
            ..issued.clone()
        };
        let expired = AlertDescription::CertificateExpired;
        for (ours, alert, now, part) in [
            (
                &issued,
                expired,
                999_999_999,
                "it is not valid before 2001-09-09T01:46:40Z",
            ),
            (
                &issued,
                expired,
                2_000_000_001,
                "it expired on 2033-05-18T03:33:20Z",
            ),
            (
                &issued,
                expired,
                1_500_000_000,
                "by the clock here it is in date, from 2001",
            ),
            (&own, expired, 1, "it is not valid before"),
            (
                &issued,
                AlertDescription::UnknownCA,
                0,
                "does not know its issuer 'CN=ca'",
            ),
            (&own, AlertDescription::UnknownCA, 0, "self-signed"),
            (&own, AlertDescription::BadCertificate, 0, "self-signed"),
            (
                &issued,
                AlertDescription::BadCertificate,
                0,
                "says only bad_certificate; a signature with SHA-1",
            ),
            (&issued, AlertDescription::HandshakeFailure, 0, "SHA-1"),
            (
                &issued,
                AlertDescription::UnsupportedCertificate,
                0,
                "SHA-1",
            ),
        ] {
            let text = reason(alert, ours, now);
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }
}
