//! Dead letters grouped by where they came from, why, and with which error; how
//! often they were tried; and from when to when they died.

use std::collections::BTreeMap;

use crate::deadletter::Letter;

/// The longest error that groups are told apart by, in characters.
const ERROR_CHARS: usize = 200;

/// Letters of one origin, reason and error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The queue they failed in.
    pub origin: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// The first line of the error, shortened.
    pub error: Option<String>,
    /// How many.
    pub count: usize,
    /// Fewest and most attempts among them, where they were counted.
    pub attempts: Option<(u64, u64)>,
    /// The first death among them, seconds since 1970.
    pub first_death: Option<u64>,
    /// The last one.
    pub last_death: Option<u64>,
}

/// Letters at a glance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The groups, largest first.
    pub groups: Vec<Group>,
    /// The group of each letter, by its place among the groups.
    pub group_of: Vec<usize>,
    /// How many letters had so many attempts; `None`: nobody counted them.
    pub attempts: BTreeMap<Option<u64>, usize>,
    /// The first death of all, seconds since 1970.
    pub first_death: Option<u64>,
    /// The last one.
    pub last_death: Option<u64>,
}

/// Summarises letters in their order.
#[must_use]
pub fn summarise<'a>(letters: impl IntoIterator<Item = &'a Letter>) -> Summary {
    let mut summary = Summary::default();
    let mut groups: Vec<(usize, Group)> = Vec::new();
    let mut known = BTreeMap::new();
    for letter in letters {
        let error = letter.error.as_deref().and_then(first_line);
        let key = (letter.origin.clone(), letter.reason.clone(), error.clone());
        let at = *known.entry(key).or_insert_with(|| {
            let group = Group {
                origin: letter.origin.clone(),
                reason: letter.reason.clone(),
                error,
                count: 0,
                attempts: None,
                first_death: None,
                last_death: None,
            };
            groups.push((groups.len(), group));
            groups.len() - 1
        });
        summary.group_of.push(at);
        *summary.attempts.entry(letter.attempts).or_default() += 1;
        summary.first_death = earliest(summary.first_death, letter.first_death);
        summary.last_death = summary.last_death.max(letter.last_death);
        let Some((_, group)) = groups.get_mut(at) else {
            continue;
        };
        group.count += 1;
        if let Some(attempts) = letter.attempts {
            let (least, most) = group.attempts.unwrap_or((attempts, attempts));
            group.attempts = Some((least.min(attempts), most.max(attempts)));
        }
        group.first_death = earliest(group.first_death, letter.first_death);
        group.last_death = group.last_death.max(letter.last_death);
    }
    groups.sort_by(|(_, a), (_, b)| {
        b.count
            .cmp(&a.count)
            .then_with(|| (&a.origin, &a.reason, &a.error).cmp(&(&b.origin, &b.reason, &b.error)))
    });
    let mut places = vec![0; groups.len()];
    for (place, (before, _)) in groups.iter().enumerate() {
        if let Some(slot) = places.get_mut(*before) {
            *slot = place;
        }
    }
    for group in &mut summary.group_of {
        *group = places.get(*group).copied().unwrap_or_default();
    }
    summary.groups = groups.into_iter().map(|(_, group)| group).collect();
    summary
}

/// The first line of an error that says something, shortened.
#[must_use]
pub fn first_line(error: &str) -> Option<String> {
    let line = error.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut short: String = line.chars().take(ERROR_CHARS).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    Some(short)
}

fn earliest(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Properties;

    fn letter(origin: &str, error: &str, attempts: Option<u64>, time: u64) -> Letter {
        Letter {
            origin: Some(origin.to_owned()),
            reason: Some("exhausted".to_owned()),
            error: Some(error.to_owned()),
            attempts,
            first_death: Some(time),
            last_death: Some(time),
            ..Letter::read(&Properties::default())
        }
    }

    #[test]
    fn groups_by_origin_reason_and_error_largest_first() {
        let letters = [
            letter("b", "no stock", Some(1), 5),
            letter("a", "exit 1\nat line 7", Some(3), 9),
            letter("a", "exit 1\nat line 8", None, 2),
            letter("a", "  \nexit 1", Some(5), 7),
            letter("a", "exit 2", Some(5), 7),
        ];
        let summary = summarise(&letters);
        assert_eq!(summary.group_of, [2, 0, 0, 0, 1]);
        let first = summary.groups.first().expect("group");
        assert_eq!((first.origin.as_deref(), first.count), (Some("a"), 3));
        assert_eq!(first.error.as_deref(), Some("exit 1"));
        assert_eq!(first.attempts, Some((3, 5)));
        assert_eq!((first.first_death, first.last_death), (Some(2), Some(9)));
        let attempts: Vec<_> = summary.attempts.into_iter().collect();
        assert_eq!(
            attempts,
            [(None, 1), (Some(1), 1), (Some(3), 1), (Some(5), 2)]
        );
        assert_eq!(
            (summary.first_death, summary.last_death),
            (Some(2), Some(9))
        );
        assert_eq!(summarise(&[]), Summary::default());
    }

    #[test]
    fn an_error_is_its_first_line() {
        assert_eq!(first_line("\n a \nb").as_deref(), Some("a"));
        assert_eq!(first_line(" \n"), None);
        let long = first_line(&"é".repeat(300)).expect("line");
        assert_eq!(long.chars().count(), ERROR_CHARS + 1);
    }
}
