//! TLS for AMQP and the management API: one set of files, one way to verify, one
//! way to say what is wrong.
//!
//! Nothing is read before the first TLS connection, and then once. What happened
//! in a handshake is recorded per [`Handshake`], because TLS itself says little:
//! which certificate was shown, and whether one of ours was asked for.
//!
//! Servers are checked by rustls: TLS 1.2 and 1.3, the whole chain, its dates and
//! the name connected to, which may be an IP address. Revocation is not checked.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where dates of certificates meet the clock"
)]

mod certificate;
mod failure;
mod files;
mod verify;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls_platform_verifier::Verifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::{Error, ErrorKind, Result};

use certificate::Certificate;
use failure::{Scene, refusal};
use files::Identity;
use verify::{Presenting, Record, Verifying};

/// The files and the switch that were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM with the certificates to trust instead of the system's store.
    pub ca_cert: Option<PathBuf>,
    /// PEM with the certificate to show and the chain above it.
    pub client_cert: Option<PathBuf>,
    /// PEM with its key; else it stands in the certificate's file.
    pub client_key: Option<PathBuf>,
    /// Whether any certificate of a server is taken.
    pub insecure: bool,
}

/// How TLS is to be spoken. Clones share what was read.
#[derive(Clone, Debug)]
pub struct Tls(Arc<Settings>);

#[derive(Debug)]
struct Settings {
    files: TlsFiles,
    loaded: OnceLock<Result<Loaded>>,
}

/// What the files hold.
#[derive(Debug)]
struct Loaded {
    provider: Arc<CryptoProvider>,
    /// `None`: any certificate is taken.
    verifier: Option<Arc<dyn ServerCertVerifier>>,
    /// The certificates of `ca_cert`.
    trusted: Arc<[CertificateDer<'static>]>,
    identity: Option<Identity>,
}

impl Tls {
    /// Nothing is read yet.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a key without a certificate.
    pub fn new(files: TlsFiles) -> Result<Self> {
        if let (Some(key), None) = (&files.client_key, &files.client_cert) {
            return Err(Error::new(
                ErrorKind::Usage,
                format!(
                    "--client-key (MQ_CLIENT_KEY) names {}, but there is no --client-cert",
                    key.display()
                ),
            )
            .hint("give the certificate of this key with --client-cert FILE (MQ_CLIENT_CERT)"));
        }
        Ok(Self(Arc::new(Settings {
            files,
            loaded: OnceLock::new(),
        })))
    }

    /// Whether a certificate of ours can be shown.
    #[must_use]
    pub fn has_client_cert(&self) -> bool {
        self.0.files.client_cert.is_some()
    }

    /// Whether something was asked for that only TLS can do.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        self.0.files != TlsFiles::default()
    }

    /// Prepares connections to one server. The first call reads the files, each
    /// within `limit`, or the system's store.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when one of them cannot be used.
    pub fn handshake(&self, limit: Duration) -> Result<Handshake> {
        let settings = &self.0;
        let loaded = settings
            .loaded
            .get_or_init(|| load(&settings.files, limit))
            .as_ref()
            .map_err(Clone::clone)?;
        let record: Arc<Mutex<Record>> = Arc::default();
        let config = ClientConfig::builder_with_provider(loaded.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::new(ErrorKind::Internal, format!("TLS: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifying::new(
                loaded.verifier.clone(),
                loaded.trusted.clone(),
                loaded.provider.clone(),
                record.clone(),
            )))
            .with_client_cert_resolver(Arc::new(Presenting::new(
                loaded.identity.as_ref().map(Identity::key),
                record.clone(),
            )));
        Ok(Handshake {
            tls: self.clone(),
            config: Arc::new(config),
            record,
        })
    }
}

/// For clients that speak plain HTTP only: trusts nobody and reads nothing.
#[must_use]
pub fn trusting_nobody() -> ClientConfig {
    ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

/// Connections to one server, and what was seen of it.
#[derive(Clone, Debug)]
pub struct Handshake {
    tls: Tls,
    config: Arc<ClientConfig>,
    record: Arc<Mutex<Record>>,
}

impl Handshake {
    /// What a TLS client needs.
    #[must_use]
    pub fn config(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }

    /// A host as TLS names it: a DNS name or an IP address.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when it is neither.
    pub fn server_name(host: &str) -> Result<ServerName<'static>> {
        ServerName::try_from(host.to_owned()).map_err(|_| {
            Error::new(
                ErrorKind::Configuration,
                format!("no certificate can be for the host '{host}': it is neither a DNS name nor an IP address"),
            )
            .hint("check the host in the URL")
        })
    }

    /// The names of our certificate that a broker may take for the user's.
    #[must_use]
    pub fn login_names(&self) -> Option<LoginNames> {
        let loaded = self.tls.0.loaded.get()?.as_ref().ok()?;
        let subject = &loaded.identity.as_ref()?.certificate.subject;
        Some(LoginNames {
            distinguished: subject.distinguished(),
            common: subject.common(),
        })
    }

    /// What went wrong, when `error` comes from TLS: with the name that the
    /// certificate had to be for, and the way out.
    #[must_use]
    pub fn explain(
        &self,
        error: &(dyn std::error::Error + 'static),
        host: &str,
        wanted: Wanted,
    ) -> Option<Error> {
        let settings = &self.tls.0;
        let loaded = settings.loaded.get()?.as_ref().ok()?;
        let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        let peer = record.peer.as_deref().and_then(Certificate::read);
        let trusted: Vec<Certificate> = loaded
            .trusted
            .iter()
            .filter_map(|der| Certificate::read(der))
            .collect();
        let scene = Scene {
            host,
            wanted,
            peer: peer.as_ref(),
            asked: record.asked,
            ca: settings.files.ca_cert.as_deref(),
            trusted: &trusted,
            identity: loaded.identity.as_ref(),
            now: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_secs()),
        };
        match failure::cause(error) {
            Some(cause) => {
                tracing::debug!(%cause, "TLS failed");
                Some(refusal(cause, &scene))
            }
            None if failure::is_hang_up(error) => failure::hang_up(&scene),
            None => None,
        }
    }
}

/// What a broker may take for the user's name when a certificate is the login:
/// `ssl_cert_login_from` decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginNames {
    /// `distinguished_name`, the default.
    pub distinguished: String,
    /// `common_name`, where the certificate has one.
    pub common: Option<String>,
}

/// What is spoken inside TLS; decides what a message calls the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// AMQP, at a broker.
    Amqp,
    /// HTTP, at a management API.
    Management,
}

fn load(files: &TlsFiles, limit: Duration) -> Result<Loaded> {
    let provider = Arc::new(ring::default_provider());
    let identity = files
        .client_cert
        .as_deref()
        .map(|cert| files::identity(cert, files.client_key.as_deref(), &provider, limit))
        .transpose()?;
    let trusted: Arc<[CertificateDer<'static>]> = match &files.ca_cert {
        Some(path) if !files.insecure => files::ca_certificates(path, limit)?.into(),
        _ => Arc::default(),
    };
    let verifier = if files.insecure {
        tracing::warn!(
            "--insecure: whose certificate a server shows is not checked, so anybody between here and there can read and change everything, passwords included"
        );
        None
    } else if let Some(path) = &files.ca_cert {
        Some(files::trusting(path, &trusted, &provider)?)
    } else {
        Some(system_store(&provider)?)
    };
    Ok(Loaded {
        provider,
        verifier,
        trusted,
        identity,
    })
}

fn system_store(provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>> {
    match Verifier::new(provider.clone()) {
        Ok(verifier) => Ok(Arc::new(verifier)),
        Err(error) => Err(Error::new(
            ErrorKind::Configuration,
            format!("cannot use the system's certificate store: {error}"),
        )
        .hint("name the CA with --ca-cert FILE (MQ_CA_CERT), install the package ca-certificates, or point SSL_CERT_FILE at a bundle")),
    }
}
