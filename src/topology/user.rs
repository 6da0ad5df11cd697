//! Users of the cluster, and what they may do in a vhost.

use std::collections::BTreeSet;

use crate::error::{Error, ErrorKind, Result};
use crate::secret::{PasswordHash, Secret};
use crate::topology::{ExchangeName, Name, Pattern, UserName};

/// Where a user's password comes from; never from the file itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Password {
    /// The environment variable of that name.
    Environment(String),
    /// The first line of that file.
    File(String),
    /// Read already.
    Known(Secret),
    /// The hash, as brokers export it.
    Hash(PasswordHash),
}

/// One user of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// `None` leaves it as it is; a new user then has none and cannot log in with one.
    pub password: Option<Password>,
    /// `administrator`, `monitoring`, `policymaker`, `management`, or a plugin's.
    pub tags: BTreeSet<String>,
    /// What people should know; not sent to the broker.
    pub description: Option<String>,
}

/// What a user may do with the objects of a vhost, by patterns of their names;
/// the empty pattern means nothing at all (access-control.md).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Declare and delete.
    pub configure: Pattern,
    /// Publish and bind to.
    pub write: Pattern,
    /// Consume and bind from.
    pub read: Pattern,
}

/// What a user may publish to and bind from one topic exchange, by patterns of
/// routing keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicPermission {
    /// Keys to publish with.
    pub write: Pattern,
    /// Keys to bind with.
    pub read: Pattern,
}

/// A permission on a topic exchange is known by both.
pub type TopicPermissionKey = (UserName, ExchangeName);

impl Permissions {
    /// The same permissions for objects whose names begin with `prefix`.
    ///
    /// # Errors
    /// For a pattern that would take others' objects too.
    pub fn prefixed(&self, user: &UserName, prefix: &str) -> Result<Self> {
        let one = |pattern: &Pattern| match pattern.as_str() {
            "" | "^$" => Ok(pattern.clone()),
            // Everything, in a copy, is everything of the copy.
            ".*" => Pattern::new("^")?
                .prefixed(prefix)
                .ok_or_else(|| unanchored(user, pattern)),
            _ => pattern
                .prefixed(prefix)
                .ok_or_else(|| unanchored(user, pattern)),
        };
        Ok(Self {
            configure: one(&self.configure)?,
            write: one(&self.write)?,
            read: one(&self.read)?,
        })
    }
}

fn unanchored(user: &UserName, pattern: &Pattern) -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        format!(
            "the pattern '{pattern}' in the permissions of user '{user}' does not begin with ^, so a copy with a prefix would take objects of others"
        ),
    )
    .hint("anchor it with ^, or leave --prefix away")
}

/// The name of a user in a copy: only users that the file declares are copied.
///
/// # Errors
/// When the user is not declared, for then everybody shares it.
pub(super) fn prefixed_user(user: &UserName, declared: bool, prefix: &str) -> Result<UserName> {
    if declared {
        return Name::new(format!("{prefix}{user}"));
    }
    Err(Error::new(
        ErrorKind::InvalidInput,
        format!(
            "the file gives permissions to user '{user}' but does not declare it, so a copy with a prefix would change what the user may do elsewhere in the vhost"
        ),
    )
    .hint("declare the user under `users:`, or use --vhost NAME --create-vhost instead of --prefix"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_of_a_copy_are_for_the_copy_alone() {
        let user = UserName::new("app").expect("name");
        let pattern = |text: &str| Pattern::new(text).expect("pattern");
        let permissions = |configure: &str| Permissions {
            configure: pattern(configure),
            write: pattern("^orders|^x"),
            read: pattern(".*"),
        };
        let copy = permissions("").prefixed(&user, "ci.").expect("copy");
        assert_eq!(copy.configure, pattern(""));
        assert_eq!(copy.write, pattern("^ci\\.(?:orders|^x)"));
        assert_eq!(copy.read, pattern("^ci\\."));
        assert!(permissions("orders").prefixed(&user, "ci.").is_err());
    }
}
