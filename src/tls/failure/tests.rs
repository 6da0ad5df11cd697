//! Each way a handshake can fail, with the words for it.

use std::path::Path;

use tokio_rustls::rustls::OtherError;
use tokio_rustls::rustls::pki_types::{ServerName, UnixTime};

use super::super::certificate::Name;
use super::*;
use tokio_rustls::rustls::AlertDescription;

fn certificate(subject: &str, issuer: &str) -> Certificate {
    Certificate {
        subject: Name::of(subject),
        issuer: Name::of(issuer),
        not_before: 1_000_000_000,
        not_after: 2_000_000_000,
        public_key: Vec::new(),
    }
}

struct Given<'a> {
    peer: &'a Certificate,
    trusted: &'a [Certificate],
    ca: Option<&'a Path>,
    asked: bool,
}

fn told(error: &TlsError, given: &Given<'_>, wanted: Wanted) -> String {
    let scene = Scene {
        host: "h",
        wanted,
        peer: Some(given.peer),
        asked: given.asked,
        ca: given.ca,
        trusted: given.trusted,
        identity: None,
        now: 1_500_000_000,
    };
    let error = refusal(error, &scene);
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.way_out().is_some(), "{error}");
    error.to_string()
}

fn at(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
}

#[test]
fn each_flaw_of_a_certificate_is_named_with_the_way_out() {
    let peer = certificate("CN=broker", "CN=ca");
    let given = Given {
        peer: &peer,
        trusted: &[],
        ca: None,
        asked: false,
    };
    let name = ServerName::try_from("h").expect("a name");
    let expired = |time, not_after| CertificateError::ExpiredContext {
        time: at(time),
        not_after: at(not_after),
    };
    for (flaw, parts) in [
        (
            CertificateError::UnknownIssuer,
            ["('CN=broker') is issued by 'CN=ca'", "--ca-cert FILE"],
        ),
        (
            expired(2_000_000_001, 2_000_000_000),
            ["expired on 2033-05-18T03:33:20Z", "renew"],
        ),
        (
            expired(1_500_000_000, 1_400_000_000),
            ["is in date, but one that it rests on", "CA's certificate"],
        ),
        (
            CertificateError::NotValidYet,
            ["not valid before 2001-09-09T01:46:40Z", "clock"],
        ),
        (
            CertificateError::NotValidForNameContext {
                expected: name.clone(),
                presented: vec!["DnsName(\"a\")".to_owned(), "IpAddress(::1)".to_owned()],
            },
            ["is for a, ::1, not for h", "subjectAltName=DNS:h"],
        ),
        (
            CertificateError::NotValidForName,
            ["names no host", "the CN does not count"],
        ),
        (
            CertificateError::InvalidPurpose,
            ["not one for servers", "serverAuth"],
        ),
        (
            CertificateError::Other(OtherError(Arc::from(
                Box::<dyn StdError + Send + Sync>::from("UnsupportedCertVersion"),
            ))),
            ["X.509 version 1", "-extfile"],
        ),
        (
            CertificateError::Revoked,
            ["cannot be trusted: it was revoked", "openssl x509"],
        ),
        (
            CertificateError::UnsupportedSignatureAlgorithmContext {
                signature_algorithm_id: vec![42],
                supported_algorithms: vec![],
            },
            ["such as with SHA-1", "SHA-256"],
        ),
    ] {
        let text = told(&TlsError::from(flaw), &given, Wanted::Amqp);
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }
}

#[test]
fn a_file_of_trusted_certificates_is_named_with_whom_it_trusts() {
    let peer = certificate("CN=broker", "CN=broker");
    let trusted: Vec<Certificate> = ["CN=a", "CN=b", "CN=c", "CN=d"]
        .iter()
        .map(|name| certificate(name, name))
        .collect();
    let given = Given {
        peer: &peer,
        trusted: &trusted,
        ca: Some(Path::new("/ca.pem")),
        asked: false,
    };
    let flaw = TlsError::from(CertificateError::UnknownIssuer);
    let text = told(&flaw, &given, Wanted::Management);
    for part in [
        "is self-signed",
        "/ca.pem trusts 'CN=a', 'CN=b', 'CN=c' and 1 more",
        "management.ssl.certfile",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[test]
fn a_ca_of_the_same_name_with_another_key_is_told_apart() {
    let peer = certificate("CN=broker", "CN=ca");
    let trusted = [certificate("CN=ca", "CN=ca")];
    let given = Given {
        peer: &peer,
        trusted: &trusted,
        ca: Some(Path::new("/ca.pem")),
        asked: false,
    };
    for flaw in [
        CertificateError::UnknownIssuer,
        CertificateError::BadSignature,
    ] {
        let text = told(&TlsError::from(flaw), &given, Wanted::Amqp);
        assert!(
            text.contains("of that very name, but with another key"),
            "{text}"
        );
        assert!(text.contains("made anew"), "{text}");
    }
}

#[test]
fn what_the_other_side_refuses_depends_on_what_it_asked() {
    let peer = certificate("CN=broker", "CN=ca");
    for (asked, alert, part) in [
        (true, AlertDescription::CertificateRequired, "--client-cert"),
        (true, AlertDescription::HandshakeFailure, "--client-cert"),
        (false, AlertDescription::HandshakeFailure, "cipher"),
        (false, AlertDescription::ProtocolVersion, "TLS 1.2 or 1.3"),
        (false, AlertDescription::InternalError, "log"),
    ] {
        let given = Given {
            peer: &peer,
            trusted: &[],
            ca: None,
            asked,
        };
        let text = told(&TlsError::AlertReceived(alert), &given, Wanted::Amqp);
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[test]
fn an_error_of_tls_is_found_wherever_it_hides() {
    let inner = || io::Error::new(io::ErrorKind::InvalidData, TlsError::DecryptError);
    for error in [
        inner(),
        io::Error::other(inner()),
        io::Error::other(Arc::new(inner())),
    ] {
        assert_eq!(cause(&error), Some(&TlsError::DecryptError));
        assert!(!is_hang_up(&error));
    }
    let reset = io::Error::other(io::Error::from(io::ErrorKind::ConnectionReset));
    assert_eq!(cause(&reset), None);
    assert!(is_hang_up(&reset));
}
