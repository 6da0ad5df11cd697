//! What a certificate says of itself: whose it is, who issued it, until when.
//!
//! Only for messages, and for a server's certificate that is itself the trusted
//! one; whether a chain holds is webpki's to say. Read as RFC 5280 lays it out.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

/// The parts of a certificate that are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Certificate {
    pub(super) subject: Name,
    pub(super) issuer: Name,
    /// In seconds since 1970.
    pub(super) not_before: u64,
    /// In seconds since 1970.
    pub(super) not_after: u64,
    /// Its subjectPublicKeyInfo, as DER.
    pub(super) public_key: Vec<u8>,
}

/// A distinguished name, such as `CN=broker,O=Shop`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name(String);

#[cfg(test)]
impl Name {
    pub(super) fn of(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            "" => f.write_str("without a name"),
            name => write!(f, "'{name}'"),
        }
    }
}

/// A time as people read it, in UTC.
pub(super) fn date(seconds: u64) -> String {
    UNIX_EPOCH
        .checked_add(Duration::from_secs(seconds))
        .filter(|_| seconds < YEAR_9999)
        .map_or_else(
            || "the end of time".to_owned(),
            |time| humantime::format_rfc3339_seconds(time).to_string(),
        )
}

/// Where RFC 5280 says "never", and where calendars of libraries end.
const YEAR_9999: u64 = 253_370_764_800;

const INTEGER: u8 = 0x02;
const OID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;

impl Certificate {
    /// Reads DER; `None` where it is no certificate.
    pub(super) fn read(der: &[u8]) -> Option<Self> {
        let mut outer = Der(Der(der).take(SEQUENCE)?);
        let mut body = Der(outer.take(SEQUENCE)?);
        let _ = body.take(VERSION);
        body.take(INTEGER)?;
        body.take(SEQUENCE)?;
        let issuer = name(body.take(SEQUENCE)?)?;
        let mut validity = Der(body.take(SEQUENCE)?);
        let not_before = validity.time()?;
        let not_after = validity.time()?;
        let subject = name(body.take(SEQUENCE)?)?;
        let from_key_on = body.0;
        body.take(SEQUENCE)?;
        let length = from_key_on.len() - body.0.len();
        Some(Self {
            subject,
            issuer,
            not_before,
            not_after,
            public_key: from_key_on.get(..length)?.to_vec(),
        })
    }

    /// Whether it was issued by nobody else.
    pub(super) fn is_self_signed(&self) -> bool {
        self.subject == self.issuer
    }
}

/// The rest of some DER.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The content of the next element, whatever its tag.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            // Longer than 4 GiB no certificate is.
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let length = bytes
                    .iter()
                    .fold(0_usize, |length, byte| (length << 8) | usize::from(*byte));
                (length, rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The content of the next element if it has this tag; else nothing is taken.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let before = self.0;
        match self.next() {
            Some((found, content)) if found == tag => Some(content),
            _ => {
                self.0 = before;
                None
            }
        }
    }

    /// The next element as seconds since 1970.
    fn time(&mut self) -> Option<u64> {
        let (tag, content) = self.next()?;
        let text = std::str::from_utf8(content).ok()?;
        let (year, rest) = match tag {
            UTC_TIME => {
                let (year, rest) = text.split_at_checked(2)?;
                let year: u64 = year.parse().ok()?;
                (year + if year < 50 { 2000 } else { 1900 }, rest)
            }
            GENERALIZED_TIME => {
                let (year, rest) = text.split_at_checked(4)?;
                (year.parse().ok()?, rest)
            }
            _ => return None,
        };
        let digits = rest.strip_suffix('Z')?;
        let part = |at: usize| -> Option<u64> { digits.get(at..at + 2)?.parse().ok() };
        let stamp = format!(
            "{year:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
            part(0)?,
            part(2)?,
            part(4)?,
            part(6)?,
            part(8)?
        );
        let time = humantime::parse_rfc3339(&stamp).ok()?;
        // Before 1970 there was no X.509.
        time.duration_since(UNIX_EPOCH).ok().map(|it| it.as_secs())
    }
}

/// The attributes that people know, most specific first; others are left out.
fn name(der: &[u8]) -> Option<Name> {
    let mut parts = Vec::new();
    let mut sets = Der(der);
    while let Some((tag, set)) = sets.next() {
        let mut pairs = Der((tag == SET).then_some(set)?);
        while let Some(pair) = pairs.take(SEQUENCE) {
            let mut pair = Der(pair);
            let oid = pair.take(OID)?;
            let (_, value) = pair.next()?;
            let known = match oid {
                [0x55, 0x04, 0x03] => "CN",
                [0x55, 0x04, 0x0a] => "O",
                [0x55, 0x04, 0x0b] => "OU",
                _ => continue,
            };
            parts.push(format!("{known}={}", String::from_utf8_lossy(value)));
        }
    }
    parts.reverse();
    Some(Name(parts.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    fn certificate(parameters: &CertificateParams, key: &KeyPair) -> Vec<u8> {
        let made = parameters.self_signed(key).expect("a certificate");
        made.der().to_vec()
    }

    #[test]
    fn says_whose_it_is_and_until_when() {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::new(vec!["h".to_owned()]).expect("a name");
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters
            .distinguished_name
            .push(DnType::OrganizationName, "Shöp");
        parameters
            .distinguished_name
            .push(DnType::CommonName, "broker");
        parameters.not_before = date_time_ymd(2020, 1, 2);
        parameters.not_after = date_time_ymd(2051, 3, 4);
        let read = Certificate::read(&certificate(&parameters, &key)).expect("readable");
        assert_eq!(read.subject.to_string(), "'CN=broker,O=Shöp'");
        assert!(read.is_self_signed());
        assert!(read.public_key.ends_with(key.public_key_raw()));
        assert_eq!(date(read.not_before), "2020-01-02T00:00:00Z");
        assert_eq!(date(read.not_after), "2051-03-04T00:00:00Z");
        assert_eq!(date(u64::MAX), "the end of time");
    }

    #[test]
    fn what_is_no_certificate_is_none() {
        let key = KeyPair::generate().expect("a key");
        let whole = certificate(&CertificateParams::new(vec![]).expect("no name"), &key);
        assert!(Certificate::read(&whole).is_some());
        for length in 0..whole.len() {
            // Shorter by any amount, the outermost length does not fit.
            assert_eq!(Certificate::read(&whole[..length]), None, "{length}");
        }
        for junk in [
            &b"junk"[..],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0],
            &[0x30, 0x80],
        ] {
            assert_eq!(Certificate::read(junk), None, "{junk:?}");
        }
    }
}
