//! Which messages of a queue are meant.

use serde_json::Value as Json;

use crate::deadletter::{Marked, Stay};
use crate::error::Result;
use crate::message::Delivery;
use crate::query::Filter;

/// Which messages of a queue are meant.
pub(super) enum Chosen {
    /// Every one.
    All,
    /// Those that a jq program says yes to.
    Filter(Filter),
    /// Those that were marked, each once.
    Marked(Marked),
}

impl Chosen {
    /// By what was typed on the command line.
    ///
    /// # Errors
    /// When the filter is no jq program.
    pub(super) fn by(filter: Option<&str>) -> Result<Self> {
        Ok(match filter {
            None => Self::All,
            Some(code) => Self::Filter(Filter::parse(code)?),
        })
    }

    /// Whether a message's JSON is needed to tell.
    pub(super) const fn asks_a_filter(&self) -> bool {
        matches!(self, Self::Filter(_))
    }

    /// Whether it is known that no further message is meant.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Marked(marked) if marked.is_over())
    }

    /// Why the message is not meant; `None`: it is. `json` is asked only where
    /// [`Self::asks_a_filter`] says so.
    ///
    /// # Errors
    /// When the filter fails: then nothing is known about the message.
    pub(super) fn leaves_out(&mut self, delivery: &Delivery, json: &Json) -> Result<Option<Stay>> {
        Ok(match self {
            Self::All => None,
            Self::Filter(filter) => (!filter.accepts(json)?).then_some(Stay::Filtered),
            Self::Marked(marked) => (!marked.meets(delivery)).then_some(Stay::Unmarked),
        })
    }
}
