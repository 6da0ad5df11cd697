//! What the lint has to say, before it is known where that stands in a file.

use crate::diagnostic::Level;
use crate::topology::{ExchangeName, PolicyKind, PolicyName, QueueName};

/// What a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A queue.
    Queue(QueueName),
    /// An exchange.
    Exchange(ExchangeName),
    /// A binding, by its position in the topology.
    Binding(usize),
    /// A policy of either kind.
    Policy(PolicyKind, PolicyName),
    /// The vhost itself.
    Vhost,
}

/// One thing that a broker would accept and that loses messages, or makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable code, `MQ201` and up.
    pub code: &'static str,
    /// Whether it stops an apply.
    pub level: Level,
    /// Whose fault it is.
    pub subject: Subject,
    /// The key of the file it stands under, if it stands under one.
    pub field: Option<&'static str>,
    /// What is wrong, naming the object.
    pub message: String,
    /// What follows from it, in a few words.
    pub label: String,
    /// The way out.
    pub help: String,
}

/// One rule of the lint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its code.
    pub code: &'static str,
    /// How serious every finding of it is.
    pub level: Level,
    /// What it finds, in one line.
    pub finds: &'static str,
}

impl Rule {
    /// A finding of this rule.
    #[must_use]
    pub fn finding(&self, subject: Subject, message: impl Into<String>) -> Finding {
        Finding {
            code: self.code,
            level: self.level,
            subject,
            field: None,
            message: message.into(),
            label: String::new(),
            help: String::new(),
        }
    }
}

impl Finding {
    /// The key of the file it stands under.
    #[must_use]
    pub fn at(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }

    /// What follows from it.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// The way out.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}
