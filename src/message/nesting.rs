//! How deep JSON is nested, before anything follows it down: a reader that calls
//! itself for each level ends the process when the stack is used up.

/// Lists and objects that stand in one another at most; text that is no JSON
/// gets some number that is no smaller than what a reader would meet.
#[must_use]
pub fn json_nesting(text: &[u8]) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' => open = open.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    deepest
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_open_counts() {
        for (text, depth) in [
            ("", 0),
            ("1", 0),
            ("[]", 1),
            ("[[],{\"a\":[1]}]", 3),
            ("\"[[[[\"", 0),
            ("[\"a\\\"[[\",[\"\\\\\"]]", 2),
            ("]]]][", 1),
            ("[[[[", 4),
        ] {
            assert_eq!(json_nesting(text.as_bytes()), depth, "{text}");
        }
    }
}
