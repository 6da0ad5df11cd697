//! The files with certificates and keys: what is in them, or what is wrong with them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _, SectionKind};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::certificate::Certificate;
use crate::error::{Error, ErrorKind, Result};
use crate::given_file;

/// What a file is for; words its errors.
#[derive(Clone, Copy)]
enum Role {
    Ca,
    Cert,
    Key,
}

impl Role {
    const fn what(self) -> &'static str {
        match self {
            Self::Ca => "CA certificate file",
            Self::Cert => "client certificate file",
            Self::Key => "client key file",
        }
    }

    const fn flag(self) -> &'static str {
        match self {
            Self::Ca => "--ca-cert (MQ_CA_CERT)",
            Self::Cert => "--client-cert (MQ_CLIENT_CERT)",
            Self::Key => "--client-key (MQ_CLIENT_KEY)",
        }
    }
}

/// A certificate of ours with its key.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) path: PathBuf,
    pub(super) certificate: Certificate,
    key: Arc<CertifiedKey>,
}

impl Identity {
    pub(super) fn key(&self) -> Arc<CertifiedKey> {
        self.key.clone()
    }
}

/// The certificates to trust.
pub(super) fn ca_certificates(
    path: &Path,
    limit: Duration,
) -> Result<Vec<CertificateDer<'static>>> {
    certificates(&read(path, Role::Ca, limit)?, path, Role::Ca)
}

/// A verifier that trusts these certificates and no others.
pub(super) fn trusting(
    path: &Path,
    certificates: &[CertificateDer<'static>],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>> {
    let unusable = |number: usize, error: &dyn std::fmt::Display| {
        wrong(
            path,
            Role::Ca,
            &format!(
                "holds something that is no usable certificate (the {number}. of it: {error})"
            ),
        )
    };
    let mut roots = RootCertStore::empty();
    for (at, certificate) in certificates.iter().enumerate() {
        roots
            .add(certificate.clone())
            .map_err(|error| unusable(at + 1, &error))?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| unusable(certificates.len(), &error))?;
    Ok(verifier)
}

/// Our certificate and its key, which stands in `key` or in the same file.
pub(super) fn identity(
    cert: &Path,
    key: Option<&Path>,
    provider: &CryptoProvider,
    limit: Duration,
) -> Result<Identity> {
    let cert_text = read(cert, Role::Cert, limit)?;
    let chain = certificates(&cert_text, cert, Role::Cert)?;
    let key_der = match key {
        Some(path) => private_key(&read(path, Role::Key, limit)?, path, Role::Key)?,
        None => private_key(&cert_text, cert, Role::Cert)?,
    };
    let certificate = chain
        .first()
        .and_then(|der| Certificate::read(der))
        .ok_or_else(|| {
            wrong(
                cert,
                Role::Cert,
                "begins with a certificate that cannot be read",
            )
        })?;
    let key_path = key.unwrap_or(cert).display();
    let signing = provider
        .key_provider
        .load_private_key(key_der)
        .map_err(|_| {
            Error::new(
                ErrorKind::Configuration,
                format!("the key in {key_path} cannot be used"),
            )
            .hint("keys can be RSA from 2048 bits on, ECDSA P-256 or P-384, or Ed25519")
        })?;
    // Not rustls' own check: it reads no X.509 version 1, which `openssl x509
    // -req` makes without extensions, and which brokers take of a client.
    if signing
        .public_key()
        .is_some_and(|ours| *ours != *certificate.public_key)
    {
        return Err(Error::new(
            ErrorKind::Configuration,
            format!(
                "the key in {key_path} is not the one of the first certificate in {}",
                cert.display()
            ),
        )
        .hint("the client's own certificate must come first, its chain after it; check --client-cert and --client-key"));
    }
    Ok(Identity {
        path: cert.to_owned(),
        certificate,
        key: Arc::new(CertifiedKey::new(chain, signing)),
    })
}

fn read(path: &Path, role: Role, limit: Duration) -> Result<Vec<u8>> {
    let bytes = given_file::read(path, limit).map_err(|error| {
        Error::new(
            ErrorKind::Configuration,
            format!(
                "cannot read the {} {}: {error}",
                role.what(),
                path.display()
            ),
        )
        .hint(format!("check {}", role.flag()))
    })?;
    // Editors of Windows put a byte order mark in front, which is no part of PEM.
    Ok(match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => rest.to_vec(),
        None => bytes,
    })
}

fn wrong(path: &Path, role: Role, what: &str) -> Error {
    Error::new(
        ErrorKind::Configuration,
        format!("the {} {} {what}", role.what(), path.display()),
    )
    .hint(format!("check {}", role.flag()))
}

/// DER is one SEQUENCE, of a length that is short (a byte of it), long or, in BER,
/// unknown. No text begins with the latter two.
fn is_der(bytes: &[u8]) -> bool {
    match bytes {
        [0x30, 0x80..=0x84, ..] => true,
        [0x30, length, rest @ ..] => usize::from(*length) == rest.len(),
        _ => false,
    }
}

type Section = (SectionKind, Vec<u8>);

fn sections(bytes: &[u8], path: &Path, role: Role) -> Result<Vec<Section>> {
    if is_der(bytes) {
        return Err(wrong(path, role, "is not PEM but DER or PKCS#12").hint(format!(
            "convert it with `openssl x509 -inform der`, `openssl pkey -inform der` or `openssl pkcs12 -nodes`, and name the new file with {}",
            role.flag()
        )));
    }
    Section::pem_slice_iter(bytes)
        .collect::<std::result::Result<_, pem::Error>>()
        .map_err(|error| {
            // Neither text repeats what is in the file.
            let what = match error {
                pem::Error::MissingSectionEnd { .. } => "ends within a PEM section",
                _ => "is damaged: a PEM section cannot be read",
            };
            wrong(path, role, what)
        })
}

fn certificates(bytes: &[u8], path: &Path, role: Role) -> Result<Vec<CertificateDer<'static>>> {
    let sections = sections(bytes, path, role)?;
    let certificates: Vec<_> = sections
        .iter()
        .filter(|(kind, _)| *kind == SectionKind::Certificate)
        .map(|(_, der)| CertificateDer::from(der.clone()))
        .collect();
    if certificates.is_empty() {
        let instead = if sections.is_empty() {
            "holds no certificate: there is no PEM section BEGIN CERTIFICATE in it"
        } else {
            "holds no certificate, only something else, such as a key"
        };
        return Err(wrong(path, role, instead));
    }
    Ok(certificates)
}

fn private_key(bytes: &[u8], path: &Path, role: Role) -> Result<PrivateKeyDer<'static>> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && (text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED"))
    {
        return Err(wrong(path, role, "holds a key that is encrypted with a password").hint(
            "decrypt it with `openssl pkey -in KEY -out NEW`, keep NEW readable for you only, and name it with --client-key (MQ_CLIENT_KEY)",
        ));
    }
    let key = sections(bytes, path, role)?
        .into_iter()
        .find_map(|(kind, der)| PrivateKeyDer::from_pem(kind, der));
    key.ok_or_else(|| match role {
        Role::Key => wrong(
            path,
            role,
            "holds no private key: there is no PEM section BEGIN PRIVATE KEY, BEGIN RSA PRIVATE KEY or BEGIN EC PRIVATE KEY in it",
        ),
        Role::Cert | Role::Ca => wrong(
            path,
            role,
            "holds no private key, and there is no --client-key",
        )
        .hint("give the key of the certificate in --client-cert with --client-key FILE (MQ_CLIENT_KEY)"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn der_is_told_from_text() {
        for (bytes, is) in [
            (&[0x30, 0x82, 0x01, 0x0a, 0x02][..], true),
            (&[0x30, 0x81, 0x87, 0x02], true),
            (&[0x30, 0x80, 0x02], true),
            (&[0x30, 0x02, 0x05, 0x00], true),
            (b"0.1", false),
            (b"0", false),
            (b"", false),
            (b"-----BEGIN", false),
        ] {
            assert_eq!(is_der(bytes), is, "{bytes:?}");
        }
    }
}
