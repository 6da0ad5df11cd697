//! The end of one attempt with all that its handler left behind.

use crate::retry::Outcome;

/// The end of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What it means for the message.
    pub outcome: Outcome,
    /// What the handler gave back, whatever the outcome.
    pub result: Option<HandlerResult>,
    /// How the handler ended, for the headers of a dead letter.
    pub trace: Trace,
}

impl Attempt {
    /// One that left nothing behind.
    #[must_use]
    pub fn bare(outcome: Outcome) -> Self {
        Self {
            outcome,
            result: None,
            trace: Trace::default(),
        }
    }

    /// One that was not made, because the message is not as its schema says.
    #[must_use]
    pub fn against_contract(why: String) -> Self {
        Self {
            outcome: Outcome::Poison { why },
            result: None,
            trace: Trace {
                end: Some("schema".to_owned()),
                stderr: None,
            },
        }
    }
}

/// What a handler gave back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerResult {
    /// Byte for byte.
    pub body: Vec<u8>,
    /// If the handler said it.
    pub content_type: Option<String>,
}

/// How a handler ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// In its own terms: `exit 65`, `signal 9`, `HTTP 400`; `schema` where none was asked.
    pub end: Option<String>,
    /// The last lines of its standard error.
    pub stderr: Option<String>,
}
