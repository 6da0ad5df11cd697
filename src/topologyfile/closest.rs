//! What a misspelt word was most likely meant to be.

/// The candidate that `text` was most likely meant to be.
pub(crate) fn closest<'a>(
    text: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = text.chars().count();
    candidates
        .filter_map(|candidate| {
            let count = candidate.chars().count();
            let most = 1.max(count / 3);
            // The distance is never less than that of the lengths, which is
            // found at once: thousands of names may be asked for thousands.
            if length.abs_diff(count) > most {
                return None;
            }
            let distance = strsim::damerau_levenshtein(text, candidate);
            (distance <= most).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closest_finds_a_slip_and_no_stranger() {
        let known = ["type", "durable", "message_ttl"];
        let near = |text| closest(text, known.iter().copied());
        assert_eq!(near("typ"), Some("type"));
        assert_eq!(near("durabel"), Some("durable"));
        assert_eq!(near("message-ttl"), Some("message_ttl"));
        assert_eq!(near("bindings"), None);
    }
}
