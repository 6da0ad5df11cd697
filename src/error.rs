//! The one error of the library: what happened, to what, and the way out.
//!
//! An error never carries a secret: whoever builds one names endpoints through
//! [`crate::endpoint::Endpoint`], whose `Display` leaves the password out.

use std::fmt;

use crate::exit::Exit;

/// A result whose error can be shown to the user as it is.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of thing went wrong; decides the exit code and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A check found what it looks for.
    Found,
    /// Flags that contradict each other or make no sense.
    Usage,
    /// A file, line or value that does not say what it must.
    InvalidInput,
    /// A queue, exchange or vhost that does not exist.
    NotFound,
    /// A file given on the command line does not exist.
    InputMissing,
    /// A confirmed message that no queue took.
    Unroutable,
    /// A peer that cannot be reached or went away for good.
    Unavailable,
    /// An invariant of ours does not hold.
    Internal,
    /// A file or stream could not be read or written.
    InputOutput,
    /// The reader of our standard output went away: the quiet end of a pipe.
    ReaderGone,
    /// The broker refused a message for now (nack).
    Refused,
    /// No answer in time; what happened is unknown.
    TimedOut,
    /// Nothing was changed: a decision or permission is missing.
    Blocked,
    /// Something was changed before it failed.
    Partial,
    /// An answer that mq does not understand.
    Protocol,
    /// Login or permission refused.
    AccessRefused,
    /// URL, TLS file or profile.
    Configuration,
}

impl ErrorKind {
    /// The exit code of this kind: the only mapping there is.
    #[must_use]
    pub const fn exit(self) -> Exit {
        match self {
            Self::Found => Exit::No,
            Self::Usage => Exit::Usage,
            Self::InvalidInput | Self::NotFound => Exit::InvalidInput,
            Self::InputMissing => Exit::InputMissing,
            Self::Unroutable => Exit::Unroutable,
            Self::Unavailable => Exit::Unavailable,
            Self::Internal => Exit::Internal,
            Self::InputOutput => Exit::InputOutput,
            Self::ReaderGone => Exit::Done,
            Self::Refused | Self::TimedOut => Exit::Temporary,
            Self::Blocked => Exit::Blocked,
            Self::Partial => Exit::Partial,
            Self::Protocol => Exit::Protocol,
            Self::AccessRefused => Exit::Denied,
            Self::Configuration => Exit::Configuration,
        }
    }
}

/// What happened, where, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

impl Error {
    /// An error that names its object in `message`.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
        }
    }

    /// Adds the way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Puts what was being done in front: `declare queue 'a': …`.
    #[must_use]
    pub fn during(mut self, doing: &str) -> Self {
        self.message = format!("{doing}: {}", self.message);
        self
    }

    /// The same error told as another kind, for instance once part of the work is done.
    #[must_use]
    pub fn as_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// What kind of thing went wrong.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What happened, without the way out.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The way out, where one is known.
    #[must_use]
    pub fn way_out(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  help: {}", hint.replace('\n', "\n        "))?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// What an error of a library comes from in the end. Its own text may repeat a
/// URL with what is secret in it; this says what happened.
#[must_use]
pub fn root<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> &'e (dyn std::error::Error + 'static) {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_way_out_below_what_happened() {
        let error = Error::new(ErrorKind::NotFound, "queue 'a' does not exist")
            .hint("declare it")
            .during("consume");
        assert_eq!(
            error.to_string(),
            "consume: queue 'a' does not exist\n  help: declare it"
        );
        assert_eq!(error.kind().exit(), Exit::InvalidInput);
    }
}
