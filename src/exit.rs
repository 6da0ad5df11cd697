//! Exit codes: the one table that feeds the process, `--help` and the README.
//!
//! The numbers are sysexits as `rabbitmqctl` uses them, plus 1, 2 and 3 for
//! answers that are no failure of ours. This module does not know what went
//! wrong; [`crate::error::ErrorKind`] does.

/// What the process tells its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything asked for was done.
    Done,
    /// The answer to the question asked is no.
    No,
    /// Nothing was changed: a permission or a manual decision is missing.
    Blocked,
    /// Some of it was done; the report says what.
    Partial,
    /// The command line makes no sense.
    Usage,
    /// The input, or a name in it, is wrong.
    InvalidInput,
    /// An input file is missing.
    InputMissing,
    /// A published message reached no queue.
    Unroutable,
    /// The broker or something downstream cannot be reached.
    Unavailable,
    /// A bug in mq.
    Internal,
    /// Reading or writing a file or stream failed.
    InputOutput,
    /// Try again later; nothing was lost.
    Temporary,
    /// The broker said something mq does not understand.
    Protocol,
    /// Credentials or a permission were refused.
    Denied,
    /// A URL, a TLS file or a profile is wrong.
    Configuration,
    /// The second signal during a drain: 128 + its number.
    Signal(u8),
}

/// Every fixed code with its meaning, in the order they are documented.
pub const TABLE: [(Exit, &str); 15] = [
    (
        Exit::Done,
        "done; clean drain on SIGTERM, SIGINT or SIGHUP; the reader closed our pipe",
    ),
    (
        Exit::No,
        "the answer is no: a check found what it looks for",
    ),
    (
        Exit::Blocked,
        "blocked: needs a decision of yours; nothing was changed",
    ),
    (
        Exit::Partial,
        "partly done; the report says what was and what was not",
    ),
    (Exit::Usage, "usage: the command line makes no sense"),
    (
        Exit::InvalidInput,
        "invalid input, or a named object does not exist",
    ),
    (Exit::InputMissing, "an input file is missing"),
    (Exit::Unroutable, "a published message reached no queue"),
    (
        Exit::Unavailable,
        "broker or downstream unavailable, or the connection lost for good",
    ),
    (Exit::Internal, "a bug in mq"),
    (
        Exit::InputOutput,
        "reading or writing a file or stream failed",
    ),
    (
        Exit::Temporary,
        "temporary: timeout, refused publish, or a confirm that never came; safe to run again",
    ),
    (
        Exit::Protocol,
        "the broker answered something mq does not understand",
    ),
    (Exit::Denied, "credentials or permission refused"),
    (
        Exit::Configuration,
        "configuration: a URL, the password file, a TLS file or the certificate store",
    ),
];

impl Exit {
    /// The number given to the operating system.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Blocked => 2,
            Self::Partial => 3,
            Self::Usage => 64,
            Self::InvalidInput => 65,
            Self::InputMissing => 66,
            Self::Unroutable => 67,
            Self::Unavailable => 69,
            Self::Internal => 70,
            Self::InputOutput => 74,
            Self::Temporary => 75,
            Self::Protocol => 76,
            Self::Denied => 77,
            Self::Configuration => 78,
            Self::Signal(number) => 128_u8.saturating_add(number),
        }
    }
}

/// The table as the end of `mq --help` shows it.
#[must_use]
pub fn help() -> String {
    let mut text = String::from("Exit codes:\n");
    for (exit, meaning) in TABLE {
        text.push_str(&format!("  {:>5}  {meaning}\n", exit.code()));
    }
    text.push_str("  128+n  second signal n while draining");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_ascending() {
        let codes: Vec<u8> = TABLE.iter().map(|(exit, _)| exit.code()).collect();
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
    }

    #[test]
    fn a_signal_is_128_and_its_number() {
        assert_eq!(Exit::Signal(15).code(), 143);
    }
}
