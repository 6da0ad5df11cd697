//! Versions of RabbitMQ, as they are typed.

/// A version of RabbitMQ: two numbers with a dot between them, and perhaps a
/// patch that begins with a number.
pub(super) fn version(text: &str) -> Result<String, String> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let mut parts = text.splitn(3, '.');
    let begins = [parts.next(), parts.next()]
        .into_iter()
        .all(|part| part.is_some_and(is_number));
    let ends = parts.next().is_none_or(|patch| {
        patch.starts_with(|c: char| c.is_ascii_digit())
            && patch
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-.+~".contains(&b))
    });
    if begins && ends {
        Ok(text.to_owned())
    } else {
        Err("a version looks like 3.10 or 4.0.5".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_numbers() {
        for right in ["3.10", "4.0.5", "4.2.0-rc.1", "3.13.7.1", "3.10.8+deb12"] {
            assert!(version(right).is_ok(), "{right}");
        }
        for wrong in [
            "", "3", "3.", "abc", "4.x", "3.10.x", "3.10.", "4.0.5 ", "-1.0", "4.0.5\n",
        ] {
            assert!(version(wrong).is_err(), "{wrong:?}");
        }
    }
}
