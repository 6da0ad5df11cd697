//! Passwords: usable, never printable.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Sha256, Sha512};

/// A password: usable, never printable.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a password.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The password itself, for the one place that sends it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The algorithm that [`PasswordHash::of`] uses, and that brokers use when none is said.
pub const SHA_256: &str = "rabbit_password_hashing_sha256";

const SHA_512: &str = "rabbit_password_hashing_sha512";

/// Bytes of salt in front of a hash (passwords.md).
const SALT_BYTES: usize = 4;

/// A password as a broker keeps it. Not printable either: it can be guessed against.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash {
    /// Base64 of four bytes of salt and the hash of salt and password; empty:
    /// no password logs in.
    pub hash: String,
    /// `rabbit_password_hashing_sha256` and the like.
    pub algorithm: String,
}

impl PasswordHash {
    /// Hashes a password with SHA-256 and the given salt.
    #[must_use]
    pub fn of(password: &Secret, salt: [u8; SALT_BYTES]) -> Self {
        let mut bytes = salt.to_vec();
        bytes.extend(salted::<Sha256>(&salt, password));
        Self {
            hash: BASE64.encode(bytes),
            algorithm: SHA_256.to_owned(),
        }
    }

    /// The hash of a user that no password logs in.
    #[must_use]
    pub fn of_nothing() -> Self {
        Self {
            hash: String::new(),
            algorithm: SHA_256.to_owned(),
        }
    }

    /// Whether it is the hash of this password. An algorithm that is not known
    /// here (MD5, a plugin's) is the hash of nothing.
    #[must_use]
    pub fn is_of(&self, password: &Secret) -> bool {
        let Ok(bytes) = BASE64.decode(&self.hash) else {
            return false;
        };
        let Some((salt, hash)) = bytes.split_at_checked(SALT_BYTES) else {
            return false;
        };
        match self.algorithm.as_str() {
            SHA_256 => salted::<Sha256>(salt, password) == hash,
            SHA_512 => salted::<Sha512>(salt, password) == hash,
            _ => false,
        }
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "*** ({})", self.algorithm)
    }
}

fn salted<D: sha2::Digest>(salt: &[u8], password: &Secret) -> Vec<u8> {
    let mut digest = D::new();
    digest.update(salt);
    digest.update(password.reveal().as_bytes());
    digest.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_as_the_broker_documents() {
        // The example of passwords.md: salt 908DC60A, password test12.
        let known = PasswordHash {
            hash: "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR".to_owned(),
            algorithm: SHA_256.to_owned(),
        };
        let password = Secret::new("test12");
        assert!(known.is_of(&password));
        assert!(!known.is_of(&Secret::new("test13")));
        assert_eq!(PasswordHash::of(&password, [0x90, 0x8d, 0xc6, 0x0a]), known);
        assert!(!PasswordHash::of_nothing().is_of(&Secret::new("")));
        let unknown = PasswordHash {
            algorithm: "rabbit_password_hashing_md5".to_owned(),
            ..known
        };
        assert!(!unknown.is_of(&password));
    }

    #[test]
    fn neither_can_be_printed() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "***");
        let hash = PasswordHash::of(&secret, [1; 4]);
        assert!(!format!("{hash:?}").contains(&hash.hash));
    }
}
