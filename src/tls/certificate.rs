//! What a certificate says of itself: whose it is, who issued it, until when.
//!
//! Only for messages, and for a server's certificate that is itself the trusted
//! one; whether a chain holds is webpki's to say. Read as RFC 5280 lays it out.

use std::fmt::{self, Write as _};
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

/// A distinguished name, such as `CN=broker,O=Shop`, as RFC 4514 writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    whole: String,
    common: Vec<String>,
}

impl Name {
    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        let common = text.strip_prefix("CN=").map(str::to_owned);
        Self {
            whole: text.to_owned(),
            common: common.into_iter().collect(),
        }
    }

    /// What RabbitMQ takes for the user's name with `ssl_cert_login_from =
    /// distinguished_name`: it writes all that is not ASCII as `\C3\B6`.
    pub(super) fn distinguished(&self) -> String {
        let mut text = String::new();
        for byte in self.whole.bytes() {
            match byte {
                b' '..=b'}' => text.push(char::from(byte)),
                other => {
                    let _ = write!(text, "\\{other:02X}");
                }
            }
        }
        text
    }

    /// The same with `ssl_cert_login_from = common_name`; several are joined by commas.
    pub(super) fn common(&self) -> Option<String> {
        (!self.common.is_empty()).then(|| self.common.join(","))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whole.as_str() {
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

/// All attributes, most specific first, as RFC 4514 has them.
fn name(der: &[u8]) -> Option<Name> {
    let mut parts = Vec::new();
    let mut common = Vec::new();
    let mut sets = Der(der);
    while let Some((tag, set)) = sets.next() {
        let mut pairs = Der((tag == SET).then_some(set)?);
        let mut together = Vec::new();
        while let Some(pair) = pairs.take(SEQUENCE) {
            let mut pair = Der(pair);
            let kind = attribute(pair.take(OID)?);
            let (_, value) = pair.next()?;
            let value = String::from_utf8_lossy(value);
            together.push(format!("{kind}={}", escaped(&value)));
            if kind == "CN" {
                common.push(value.into_owned());
            }
        }
        parts.push(together.join("+"));
    }
    parts.reverse();
    Some(Name {
        whole: parts.join(","),
        common,
    })
}

/// An attribute's name as RabbitMQ writes it, else its numbers with dots.
fn attribute(oid: &[u8]) -> String {
    let known = match oid {
        [0x55, 0x04, last] => match last {
            3 => "CN",
            4 => "SN",
            5 => "SERIALNUMBER",
            6 => "C",
            7 => "L",
            8 => "ST",
            9 => "STREET",
            10 => "O",
            11 => "OU",
            12 => "TITLE",
            42 => "GIVENNAME",
            43 => "INITIALS",
            44 => "GENERATIONQUALIFIER",
            65 => "PSEUDONYM",
            _ => "",
        },
        // 0.9.2342.19200300.100.1.1 and .25
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x01] => "UID",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x19] => "DC",
        // 1.2.840.113549.1.9.1
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x01] => "EMAILADDRESS",
        _ => "",
    };
    if known.is_empty() {
        numbers(oid)
    } else {
        known.to_owned()
    }
}

fn numbers(oid: &[u8]) -> String {
    let mut numbers: Vec<u64> = Vec::new();
    let mut number: u64 = 0;
    for byte in oid {
        number = number.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if numbers.is_empty() {
                // The first two are kept in one.
                let first = (number / 40).min(2);
                numbers.push(first);
                number -= first * 40;
            }
            numbers.push(number);
            number = 0;
        }
    }
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    words.join(".")
}

/// RFC 4514, section 2.4.
fn escaped(value: &str) -> String {
    let last = value.chars().count().saturating_sub(1);
    let mut text = String::new();
    for (at, c) in value.chars().enumerate() {
        let is_special = match c {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => true,
            '#' => at == 0,
            ' ' => at == 0 || at == last,
            _ => false,
        };
        if is_special {
            text.push('\\');
        }
        text.push(c);
    }
    text
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
        assert_eq!(read.subject.distinguished(), "CN=broker,O=Sh\\C3\\B6p");
        assert_eq!(read.subject.common().as_deref(), Some("broker"));
        assert!(read.is_self_signed());
        assert!(read.public_key.ends_with(key.public_key_raw()));
        assert_eq!(date(read.not_before), "2020-01-02T00:00:00Z");
        assert_eq!(date(read.not_after), "2051-03-04T00:00:00Z");
        assert_eq!(date(u64::MAX), "the end of time");
    }

    #[test]
    fn names_are_written_as_the_broker_writes_them() {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::new(vec![]).expect("no name");
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in [
            (DnType::CountryName, "DE"),
            (DnType::StateOrProvinceName, "BY"),
            (DnType::LocalityName, "Hof"),
            (DnType::OrganizationName, "A, B+C"),
            (DnType::CustomDnType(vec![2, 5, 4, 13]), "why"),
            (DnType::CommonName, " x#y "),
        ] {
            parameters.distinguished_name.push(kind, value);
        }
        let read = Certificate::read(&certificate(&parameters, &key)).expect("readable");
        assert_eq!(
            read.subject.to_string(),
            r"'CN=\ x#y\ ,2.5.4.13=why,O=A\, B\+C,L=Hof,ST=BY,C=DE'"
        );
        assert_eq!(read.subject.common().as_deref(), Some(" x#y "));
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
