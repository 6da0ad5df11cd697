//! Certificates for tests, made on the spot.
#![expect(
    clippy::unwrap_used,
    reason = "test support: helpers are outside #[test] functions"
)]

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};

use super::TextFile;

/// Who issues certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key, as PEM.
pub(crate) struct Issued {
    pub(crate) cert: String,
    pub(crate) key: String,
}

fn parameters(name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
    let mut parameters = CertificateParams::new(hosts).unwrap();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters
}

fn of_a_ca(name: &str) -> CertificateParams {
    let mut parameters = parameters(name, &[]);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let pem = of_a_ca(name).self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(of_a_ca(name), key),
            pem,
        }
    }

    /// One that exists, by its files.
    pub(crate) fn existing(name: &str, pem: String, key: &str) -> Self {
        Self {
            issuer: Issuer::new(of_a_ca(name), KeyPair::from_pem(key).unwrap()),
            pem,
        }
    }

    /// Its own certificate.
    pub(crate) fn file(&self) -> TextFile {
        TextFile::new("ca.pem", &self.pem)
    }

    pub(crate) fn issue(&self, name: &str, hosts: &[&str]) -> Issued {
        self.issue_with(name, hosts, |_| {})
    }

    /// The same with something unusual about it.
    pub(crate) fn issue_with(
        &self,
        name: &str,
        hosts: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Issued {
        let key = KeyPair::generate().unwrap();
        let mut parameters = parameters(name, hosts);
        change(&mut parameters);
        Issued {
            cert: parameters.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

/// Out of date for years.
pub(crate) fn expired(parameters: &mut CertificateParams) {
    parameters.not_after = rcgen::date_time_ymd(2020, 1, 2);
}

/// In date in centuries.
pub(crate) fn not_yet(parameters: &mut CertificateParams) {
    parameters.not_before = rcgen::date_time_ymd(2400, 1, 2);
}

/// For clients only.
pub(crate) fn for_clients(parameters: &mut CertificateParams) {
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
}

/// What `openssl req -x509` makes: a CA that is used as a server.
pub(crate) fn self_signed(name: &str, hosts: &[&str]) -> Issued {
    let key = KeyPair::generate().unwrap();
    let mut parameters = parameters(name, hosts);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Issued {
        cert: parameters.self_signed(&key).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

impl Issued {
    pub(crate) fn cert_file(&self) -> TextFile {
        TextFile::new("cert.pem", &self.cert)
    }

    pub(crate) fn key_file(&self) -> TextFile {
        TextFile::new("key.pem", &self.key)
    }

    /// Both in one file.
    pub(crate) fn file(&self) -> TextFile {
        TextFile::new("both.pem", &format!("{}{}", self.cert, self.key))
    }
}
