//! Dead letters grouped by where they came from and why.

use std::collections::BTreeMap;

use crate::deadletter::Letter;

/// Letters of one origin and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The queue they failed in.
    pub origin: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// How many.
    pub count: usize,
    /// Fewest and most attempts among them, where they were counted.
    pub attempts: Option<(u64, u64)>,
    /// The first death among them, seconds since 1970.
    pub first_death: Option<u64>,
    /// The last one.
    pub last_death: Option<u64>,
}

/// The groups, largest first.
#[must_use]
pub fn summarise<'a>(letters: impl IntoIterator<Item = &'a Letter>) -> Vec<Group> {
    let mut groups: BTreeMap<(Option<String>, Option<String>), Group> = BTreeMap::new();
    for letter in letters {
        let group = groups
            .entry((letter.origin.clone(), letter.reason.clone()))
            .or_insert_with(|| Group {
                origin: letter.origin.clone(),
                reason: letter.reason.clone(),
                count: 0,
                attempts: None,
                first_death: None,
                last_death: None,
            });
        group.count += 1;
        if let Some(attempts) = letter.attempts {
            let (least, most) = group.attempts.unwrap_or((attempts, attempts));
            group.attempts = Some((least.min(attempts), most.max(attempts)));
        }
        group.first_death = earliest(group.first_death, letter.first_death);
        group.last_death = group.last_death.max(letter.last_death);
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups
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
    use crate::message::DeathHistory;

    fn letter(origin: &str, reason: &str, attempts: Option<u64>, time: u64) -> Letter {
        Letter {
            origin: Some(origin.to_owned()),
            reason: Some(reason.to_owned()),
            error: None,
            attempts,
            first_death: Some(time),
            last_death: Some(time),
            exchange: None,
            routing_keys: Vec::new(),
            deaths: DeathHistory::default(),
        }
    }

    #[test]
    fn groups_by_origin_and_reason_largest_first() {
        let letters = [
            letter("b", "poison", Some(1), 5),
            letter("a", "exhausted", Some(3), 9),
            letter("a", "exhausted", None, 2),
            letter("a", "exhausted", Some(5), 7),
        ];
        let groups = summarise(&letters);
        assert_eq!(groups.len(), 2);
        let first = groups.first().expect("group");
        assert_eq!((first.origin.as_deref(), first.count), (Some("a"), 3));
        assert_eq!(first.attempts, Some((3, 5)));
        assert_eq!((first.first_death, first.last_death), (Some(2), Some(9)));
        assert!(summarise(&[]).is_empty());
    }
}
