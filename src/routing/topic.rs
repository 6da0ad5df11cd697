//! Topic patterns: words between dots, `*` for one word, `#` for any number.

/// Whether `pattern` takes `key`. The empty key has no word at all, not one
/// empty word (measured on 3.10, 4.0 and 4.3).
#[must_use]
pub fn matches(pattern: &str, key: &str) -> bool {
    let words: Vec<&str> = words_of(key).collect();
    // `reached[i]`: the pattern so far can take exactly the first i words.
    let mut reached = vec![false; words.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for part in words_of(pattern) {
        let mut next = vec![false; words.len() + 1];
        let mut carried = false;
        for (at, slot) in next.iter_mut().enumerate() {
            let here = reached.get(at).copied().unwrap_or(false);
            let before = at
                .checked_sub(1)
                .and_then(|at| Some((reached.get(at)?, words.get(at)?)));
            *slot = match part {
                "#" => {
                    carried |= here;
                    carried
                }
                "*" => before.is_some_and(|(reached, _)| *reached),
                part => before.is_some_and(|(reached, word)| *reached && *word == part),
            };
        }
        reached = next;
    }
    reached.last().copied().unwrap_or(false)
}

pub(super) fn words_of(key: &str) -> impl Iterator<Item = &str> {
    key.split('.').filter(move |_| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stars_and_hashes() {
        for (pattern, key, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a.b.c", false),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.*", "a.b.c", false),
            ("a.#", "a", true),
            ("a.#", "a.b.c", true),
            ("#", "", true),
            ("#", "a.b", true),
            ("*", "", false),
            ("#.", "", false),
            ("#.", ".", true),
            ("", "", true),
            ("", "a", false),
            ("#.b", "b", true),
            ("#.b", "a.a.b", true),
            ("#.b.#", "a.b.c", true),
            ("#.b.#", "a.c", false),
            ("*.#.*", "a", false),
            ("*.#.*", "a.b", true),
            ("#.#", "a", true),
            ("a*", "ab", false),
        ] {
            assert_eq!(matches(pattern, key), expected, "{pattern} {key}");
        }
    }
}
