//! What became of the dead letters that were to be sent back.

use std::collections::BTreeMap;

use crate::deadletter::{Aim, Astray};
use crate::exit::Exit;

/// So many different aims are told apart; messages beyond them are only counted.
const MOST_AIMS: usize = 200;

/// Why a dead letter stays in its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stay {
    /// The filter left it out.
    Filtered,
    /// It is none of those that were marked.
    Unmarked,
    /// The person at the keyboard left it out.
    Skipped,
    /// Its body was opened and closed again as it was.
    Unchanged,
    /// It has nowhere to go.
    Astray(Astray),
    /// It was sent back as often as is allowed.
    TooOften(u64),
    /// Its headers do not fit into a frame.
    HeadersTooLarge,
    /// Its body could not be repaired.
    NotRepaired(String),
    /// No queue took it.
    Unroutable(String),
    /// The queue refused it.
    Refused,
}

impl Stay {
    /// In JSON.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Filtered => "filtered",
            Self::Unmarked => "unmarked",
            Self::Skipped => "skipped",
            Self::Unchanged => "unchanged",
            Self::Astray(Astray::NoOrigin | Astray::NoName(_)) => "no_origin",
            Self::Astray(Astray::NoExchange(_) | Astray::Internal(_)) => "no_exchange",
            Self::Astray(Astray::ComesBack) => "comes_back",
            Self::TooOften(_) => "too_often",
            Self::HeadersTooLarge => "headers_too_large",
            Self::NotRepaired(_) => "not_repaired",
            Self::Unroutable(_) => "unroutable",
            Self::Refused => "refused",
        }
    }

    /// Why, and what to do about it.
    #[must_use]
    pub fn why(&self) -> String {
        match self {
            Self::Filtered => "the filter leaves them out".to_owned(),
            Self::Unmarked => "they are not marked".to_owned(),
            Self::Skipped => "you left them out".to_owned(),
            Self::Unchanged => "their body was left as it is".to_owned(),
            Self::Astray(Astray::NoOrigin) => {
                "nothing tells where they came from: say where to with --exchange or --queue"
                    .to_owned()
            }
            Self::Astray(Astray::NoName(name)) => format!(
                "their headers name '{name}', which is no name: say where to with --exchange or --queue"
            ),
            Self::Astray(Astray::NoExchange(exchange)) => format!(
                "exchange '{exchange}' does not exist any more: declare it, or use --to queue"
            ),
            Self::Astray(Astray::Internal(exchange)) => {
                format!("exchange '{exchange}' is internal and takes nothing: use --to queue")
            }
            Self::Astray(Astray::ComesBack) => {
                "they would be in this queue again at once: say where to with --to queue, --exchange or --queue"
                    .to_owned()
            }
            Self::TooOften(count) => format!(
                "they were sent back {count} times already: find out why they fail, then raise --max-replays"
            ),
            Self::HeadersTooLarge => "their headers do not fit into a frame".to_owned(),
            Self::NotRepaired(why) => format!("their body could not be changed: {why}"),
            Self::Unroutable(said) => {
                format!("no queue takes them ({said}): bind one, or use --to queue or --queue")
            }
            Self::Refused => {
                "the queue refuses them (nack): it is full, or failing".to_owned()
            }
        }
    }

    /// Whether it was asked for.
    #[must_use]
    pub const fn is_a_wish(&self) -> bool {
        matches!(
            self,
            Self::Filtered | Self::Unmarked | Self::Skipped | Self::Unchanged
        )
    }
}

/// How one run went.
#[derive(Clone, Debug, Default)]
pub struct ReplayReport {
    /// Messages that were ready at the start.
    pub ready: u64,
    /// Messages that were taken and decided about.
    pub looked_at: u64,
    /// Messages that are in another queue now; of a dry run, that would be.
    pub moved: u64,
    /// Where they went, and how many each.
    pub aims: BTreeMap<Aim, u64>,
    /// How many more went elsewhere than [`Self::aims`] tells apart.
    pub other_aims: u64,
    /// Why others stay: how many, the first reason of the kind, and whether it
    /// was asked for.
    pub stays: BTreeMap<&'static str, (u64, Stay)>,
    /// Messages that may be both here and where they were sent.
    pub open: u64,
    /// Messages that were replaced by a copy at the end of the queue, because
    /// they would have been lost by going back.
    pub replaced: u64,
    /// Whether it met a message that it had sent back itself.
    pub met_its_own: bool,
    /// Whether it was asked to stop before the end.
    pub interrupted: bool,
}

impl ReplayReport {
    /// A message that is in another queue now.
    pub fn went(&mut self, aim: Aim) {
        self.moved += 1;
        if self.aims.len() < MOST_AIMS || self.aims.contains_key(&aim) {
            *self.aims.entry(aim).or_default() += 1;
        } else {
            self.other_aims += 1;
        }
    }

    /// A message that stays.
    pub fn stayed(&mut self, stay: Stay) {
        self.stays.entry(stay.word()).or_insert((0, stay)).0 += 1;
    }

    /// How many stay.
    #[must_use]
    pub fn stay_count(&self) -> u64 {
        self.stays.values().map(|(count, _)| count).sum()
    }

    /// What the process tells its caller.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let unwished = || self.stays.values().filter(|(_, stay)| !stay.is_a_wish());
        if unwished().next().is_none() && self.open == 0 && !self.interrupted && !self.met_its_own {
            return Exit::Done;
        }
        let only = |word: &str| self.moved == 0 && unwished().all(|(_, stay)| stay.word() == word);
        if self.open > 0 || self.interrupted || self.met_its_own {
            Exit::Partial
        } else if only("unroutable") {
            Exit::Unroutable
        } else if only("refused") {
            Exit::Temporary
        } else {
            Exit::Partial
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(moved: u64, stays: &[Stay]) -> ReplayReport {
        let mut report = ReplayReport {
            moved,
            ..ReplayReport::default()
        };
        for stay in stays {
            report.stayed(stay.clone());
        }
        report
    }

    #[test]
    fn the_exit_code_tells_what_stays() {
        let unroutable = || Stay::Unroutable("NO_ROUTE".to_owned());
        for (moved, stays, exit) in [
            (0, vec![], Exit::Done),
            (
                5,
                vec![Stay::Filtered, Stay::Skipped, Stay::Unchanged],
                Exit::Done,
            ),
            (5, vec![unroutable()], Exit::Partial),
            (0, vec![unroutable(), Stay::Filtered], Exit::Unroutable),
            (0, vec![Stay::Refused], Exit::Temporary),
            (0, vec![Stay::Refused, unroutable()], Exit::Partial),
            (0, vec![Stay::TooOften(3)], Exit::Partial),
        ] {
            assert_eq!(report(moved, &stays).exit(), exit, "{moved} {stays:?}");
        }
        for (open, interrupted, met_its_own) in
            [(1, false, false), (0, true, false), (0, false, true)]
        {
            let report = ReplayReport {
                open,
                met_its_own,
                interrupted,
                ..report(0, &[unroutable()])
            };
            assert_eq!(report.exit(), Exit::Partial);
        }
    }

    #[test]
    fn reasons_are_counted_by_kind() {
        let report = report(0, &[Stay::TooOften(3), Stay::TooOften(4), Stay::Refused]);
        assert_eq!(report.stay_count(), 3);
        assert_eq!(report.stays["too_often"], (2, Stay::TooOften(3)));
    }
}
