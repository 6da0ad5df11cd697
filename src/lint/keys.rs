//! Sets of routing keys: what can be known of a key before there is a message.

use crate::routing::topic_matches;

/// The keys that messages can have somewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Keys {
    /// This one.
    Exact(String),
    /// Those that a topic pattern takes.
    Pattern(String),
    /// Any.
    Any,
}

impl Keys {
    /// The keys that a topic pattern takes, as simply as they can be said.
    pub(super) fn of_pattern(pattern: &str) -> Self {
        if pattern == "#" {
            Self::Any
        } else if words(pattern).any(|word| matches!(word, "*" | "#")) {
            Self::Pattern(pattern.to_owned())
        } else {
            Self::Exact(pattern.to_owned())
        }
    }

    /// Whether this one key is among them.
    pub(super) fn hold(&self, key: &str) -> bool {
        match self {
            Self::Exact(own) => own == key,
            Self::Pattern(pattern) => topic_matches(pattern, key),
            Self::Any => true,
        }
    }

    /// The keys of both, `None` if there are none. Where that is no single set,
    /// the narrower of the two stands for it.
    pub(super) fn and_pattern(&self, pattern: &str) -> Option<Self> {
        match self {
            Self::Exact(key) => topic_matches(pattern, key).then(|| self.clone()),
            Self::Any => Some(Self::of_pattern(pattern)),
            Self::Pattern(own) => overlap(own, pattern).then(|| match Self::of_pattern(pattern) {
                exact @ Self::Exact(_) => exact,
                Self::Pattern(other) if covers(own, &other) => Self::Pattern(other),
                Self::Any | Self::Pattern(_) => self.clone(),
            }),
        }
    }

    /// Whether a topic pattern takes every one of them. A no may be wrong where
    /// two patterns say the same in different words.
    pub(super) fn all_taken_by(&self, pattern: &str) -> bool {
        match self {
            Self::Exact(key) => topic_matches(pattern, key),
            Self::Pattern(own) => covers(pattern, own),
            Self::Any => covers(pattern, "#"),
        }
    }

    /// How much work it is to compare them with a pattern, in words against words.
    pub(super) fn effort(&self, pattern: &str) -> usize {
        match self {
            Self::Pattern(own) if may_overlap(own, pattern) => {
                let count = |key: &str| words(key).count() + 1;
                count(own) * count(pattern)
            }
            Self::Exact(_) | Self::Pattern(_) | Self::Any => 1,
        }
    }

    /// How a person would say it.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Exact(key) => format!("'{key}'"),
            Self::Pattern(pattern) => format!("those that match '{pattern}'"),
            Self::Any => "any".to_owned(),
        }
    }
}

fn words(key: &str) -> impl Iterator<Item = &str> {
    key.split('.').filter(move |_| !key.is_empty())
}

/// Whether the first words leave it possible that some key matches both.
fn may_overlap(a: &str, b: &str) -> bool {
    match (words(a).next(), words(b).next()) {
        (Some(a), Some(b)) => a == b || [a, b].iter().any(|word| matches!(*word, "*" | "#")),
        _ => true,
    }
}

/// Whether some key matches both patterns.
fn overlap(a: &str, b: &str) -> bool {
    if !may_overlap(a, b) {
        return false;
    }
    let b: Vec<&str> = words(b).collect();
    // `reached[i]`: some key takes the words of `a` so far and the first i of `b`.
    let mut reached = vec![false; b.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    skip_hashes(&mut reached, &b);
    for word in words(a) {
        let at = |reached: &[bool], at: usize| reached.get(at).copied().unwrap_or(false);
        let mut next = vec![false; b.len() + 1];
        for (i, other) in std::iter::once(None).chain(b.iter().map(Some)).enumerate() {
            let here = at(&reached, i);
            let before = i.checked_sub(1).is_some_and(|i| at(&reached, i));
            let value = match (word, other) {
                // `#` of `a` takes nothing, or the word that `b` takes here.
                ("#", Some(_)) => here || i.checked_sub(1).is_some_and(|i| at(&next, i)),
                ("#", None) => here,
                (_, None) => false,
                // `#` of `b` takes this word and may go on.
                (_, Some(&"#")) => before || here,
                (word, Some(other)) => before && (word == "*" || *other == "*" || word == *other),
            };
            if let Some(slot) = next.get_mut(i) {
                *slot = value;
            }
        }
        skip_hashes(&mut next, &b);
        reached = next;
    }
    reached.last().copied().unwrap_or(false)
}

/// `#` may take no word at all.
fn skip_hashes(reached: &mut [bool], pattern: &[&str]) {
    for (i, word) in pattern.iter().enumerate() {
        if *word == "#"
            && reached.get(i).copied().unwrap_or(false)
            && let Some(next) = reached.get_mut(i + 1)
        {
            *next = true;
        }
    }
}

/// Whether every key of `inner` matches `outer`: `inner` is read as a key in
/// which `*` is taken by wildcards only, and `#` by `#` only.
fn covers(outer: &str, inner: &str) -> bool {
    let inner = in_order(inner);
    let outer = in_order(outer);
    let mut reached = vec![false; inner.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for part in outer {
        let mut next = vec![false; inner.len() + 1];
        let mut carried = false;
        for (at, slot) in next.iter_mut().enumerate() {
            let here = reached.get(at).copied().unwrap_or(false);
            let before = at
                .checked_sub(1)
                .and_then(|at| Some((*reached.get(at)?, *inner.get(at)?)));
            *slot = match part {
                "#" => {
                    carried |= here;
                    carried
                }
                "*" => before.is_some_and(|(reached, word)| reached && word != "#"),
                part => before.is_some_and(|(reached, word)| reached && word == part),
            };
        }
        reached = next;
    }
    reached.last().copied().unwrap_or(false)
}

/// The words with each run of wildcards as its stars and then one `#`:
/// `#.*`, `*.#` and `#.*.#` take the same keys.
fn in_order(pattern: &str) -> Vec<&str> {
    let mut ordered = Vec::new();
    let mut has_hash = false;
    for word in words(pattern) {
        match word {
            "#" => has_hash = true,
            "*" => ordered.push("*"),
            literal => {
                if has_hash {
                    ordered.push("#");
                    has_hash = false;
                }
                ordered.push(literal);
            }
        }
    }
    if has_hash {
        ordered.push("#");
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_overlap_and_cover() {
        for (a, b, overlaps, a_covers) in [
            ("order.*", "order.paid", true, true),
            ("order.*", "invoice.*", false, false),
            ("order.*", "*.paid", true, false),
            ("order.#", "order.*", true, true),
            ("order.#", "order", true, true),
            ("#", "", true, true),
            ("*", "", false, false),
            ("#.paid", "order.#", true, false),
            ("#.*", "*.#", true, true),
            ("a.#.b", "a.b", true, true),
            ("a.#.b", "a.c.#", true, false),
            ("a.*.b", "a.b", false, false),
            ("#.#", "a.#", true, true),
        ] {
            assert_eq!(overlap(a, b), overlaps, "{a} and {b}");
            assert_eq!(overlap(b, a), overlaps, "{b} and {a}");
            assert_eq!(covers(a, b), a_covers, "{a} covers {b}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_key_of_both_means_that_they_overlap(
            a in "([ab*#]|)(\\.([ab*#]|)){0,3}",
            b in "([ab*#]|)(\\.([ab*#]|)){0,3}",
            key in "([ab]|)(\\.([ab]|)){0,4}",
        ) {
            let (in_a, in_b) = (topic_matches(&a, &key), topic_matches(&b, &key));
            if in_a && in_b {
                proptest::prop_assert!(overlap(&a, &b), "{} {} {}", a, b, key);
            }
            if covers(&a, &b) && in_b {
                proptest::prop_assert!(in_a, "{} covers {} but not {}", a, b, key);
            }
        }

        #[test]
        fn without_wildcards_covering_is_matching(a in "([ab*#]|)(\\.([ab*#]|)){0,3}", key in "([ab]|)(\\.([ab]|)){0,3}") {
            proptest::prop_assert_eq!(covers(&a, &key), topic_matches(&a, &key));
            proptest::prop_assert_eq!(overlap(&a, &key), topic_matches(&a, &key));
        }
    }
}
