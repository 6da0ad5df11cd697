//! What rustls asks during a handshake, answered and recorded.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_rustls::rustls::client::ResolvesClientCert;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::{
    CryptoProvider, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, Error as TlsError, SignatureScheme,
};

use super::certificate::Certificate;

/// What was seen of a server.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// The certificate it showed, as DER.
    pub(super) peer: Option<Vec<u8>>,
    /// Whether it asked for one of ours.
    pub(super) asked: bool,
}

/// Checks a server's certificate.
#[derive(Debug)]
pub(super) struct Verifying {
    chain: Option<Arc<dyn ServerCertVerifier>>,
    trusted: Arc<[CertificateDer<'static>]>,
    provider: Arc<CryptoProvider>,
    record: Arc<Mutex<Record>>,
}

impl Verifying {
    /// `chain` decides; without one every certificate is good. `trusted` may
    /// hold servers' own certificates.
    pub(super) fn new(
        chain: Option<Arc<dyn ServerCertVerifier>>,
        trusted: Arc<[CertificateDer<'static>]>,
        provider: Arc<CryptoProvider>,
        record: Arc<Mutex<Record>>,
    ) -> Self {
        Self {
            chain,
            trusted,
            provider,
            record,
        }
    }
}

impl ServerCertVerifier for Verifying {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        lock(&self.record).peer = Some(end_entity.to_vec());
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        chain
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            .or_else(|error| {
                // `openssl req -x509` makes a CA of what is meant for a server;
                // webpki takes no CA for a server, not even the one that was
                // named as trusted.
                if self.trusted.iter().any(|one| one == end_entity) {
                    verify_named(end_entity, server_name, now)
                } else {
                    Err(error)
                }
            })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// A certificate that is trusted as it is still has to be for this host and in date.
fn verify_named(
    certificate: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, TlsError> {
    verify_server_name(&ParsedCertificate::try_from(certificate)?, server_name)?;
    let read = Certificate::read(certificate).ok_or(CertificateError::BadEncoding)?;
    if now.as_secs() < read.not_before {
        return Err(CertificateError::NotValidYet.into());
    }
    if now.as_secs() > read.not_after {
        return Err(CertificateError::Expired.into());
    }
    Ok(ServerCertVerified::assertion())
}

/// Shows our certificate when it is asked for.
#[derive(Debug)]
pub(super) struct Presenting {
    key: Option<Arc<CertifiedKey>>,
    record: Arc<Mutex<Record>>,
}

impl Presenting {
    pub(super) const fn new(key: Option<Arc<CertifiedKey>>, record: Arc<Mutex<Record>>) -> Self {
        Self { key, record }
    }
}

impl ResolvesClientCert for Presenting {
    fn resolve(
        &self,
        _root_hint_subjects: &[&[u8]],
        _sigschemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        lock(&self.record).asked = true;
        self.key.clone()
    }

    fn has_certs(&self) -> bool {
        self.key.is_some()
    }
}

fn lock(record: &Mutex<Record>) -> std::sync::MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}
