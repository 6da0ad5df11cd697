//! How a comment says that it allows something, and what comes near it.

/// What a comment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// These codes are allowed.
    Codes(Vec<String>),
    /// Nothing that counts, though it looks like it; so it would be right.
    Nearly(String),
}

const BEGIN: &str = "# mq: allow";

/// A code, for who named none.
const EXAMPLE: &str = "MQ209";

/// Every mark of a line and where it begins: at a `#` at the start or behind a
/// blank.
pub(super) fn marks(line: &str) -> impl Iterator<Item = (usize, Mark)> {
    line.match_indices('#').filter_map(|(at, _)| {
        let (before, comment) = line.split_at_checked(at)?;
        let begins = before.is_empty() || before.ends_with([' ', '\t']);
        begins
            .then(|| mark(comment))
            .flatten()
            .map(|mark| (at, mark))
    })
}

fn mark(comment: &str) -> Option<Mark> {
    let rest = loosely_begun(comment)?;
    let codes: Vec<String> = rest
        .split(|c: char| c == ',' || c == ':' || c == '=' || c.is_whitespace())
        .filter(|code| !code.is_empty())
        .map(str::to_owned)
        .collect();
    let exactly = comment.strip_prefix(BEGIN);
    let is_exact = exactly.is_some_and(|codes| codes.starts_with(' '));
    if is_exact && !codes.is_empty() {
        return Some(Mark::Codes(codes));
    }
    let mut meant: Vec<String> = codes
        .iter()
        .map(|code| code.to_ascii_uppercase())
        .filter(|code| is_code(code))
        .collect();
    if meant.is_empty() {
        meant.push(EXAMPLE.to_owned());
    }
    Some(Mark::Nearly(format!("{BEGIN} {}", meant.join(", "))))
}

/// What follows `mq: allow`, however it is spelt.
fn loosely_begun(comment: &str) -> Option<&str> {
    let rest = comment.trim_start_matches('#').trim_start();
    let rest = without_word(rest, "mq")?.trim_start();
    let after_colon = rest.strip_prefix(':');
    let rest = without_word(after_colon.unwrap_or(rest).trim_start(), "allow")?;
    if rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-') {
        return None;
    }
    // Without its colon it may be a sentence about mq.
    let first = rest.split_whitespace().next().unwrap_or_default();
    let is_meant = after_colon.is_some() || is_code(&first.to_ascii_uppercase());
    is_meant.then_some(rest)
}

fn without_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let (begin, rest) = text.split_at_checked(word.len())?;
    begin.eq_ignore_ascii_case(word).then_some(rest)
}

fn is_code(word: &str) -> bool {
    let number = word.strip_prefix("MQ");
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        match marks(line).next() {
            None => "nothing".to_owned(),
            Some((_, Mark::Codes(codes))) => codes.join("+"),
            Some((_, Mark::Nearly(meant))) => format!("meant {meant}"),
        }
    }

    #[test]
    fn a_mark_is_exact_or_told_how() {
        for (line, expected) in [
            ("# mq: allow MQ209", "MQ209"),
            (
                "a: 1 # why # mq: allow MQ209,MQ211  MQ212\t\r\n",
                "MQ209+MQ211+MQ212",
            ),
            ("a: 1 #mq: allow MQ209", "meant # mq: allow MQ209"),
            ("# mq:allow MQ209", "meant # mq: allow MQ209"),
            ("# MQ: allow MQ209", "meant # mq: allow MQ209"),
            ("# mq: Allow mq209, mq211", "meant # mq: allow MQ209, MQ211"),
            ("#  mq:  allow  MQ209", "meant # mq: allow MQ209"),
            ("#\tmq: allow\tMQ209", "meant # mq: allow MQ209"),
            ("# mq: allow\tMQ209", "meant # mq: allow MQ209"),
            ("# mq: allow: MQ209", "meant # mq: allow MQ209"),
            ("## mq: allow MQ209", "meant # mq: allow MQ209"),
            ("# mq allow MQ209", "meant # mq: allow MQ209"),
            ("# mq: allow", "meant # mq: allow MQ209"),
            ("# mq: allow  \r\n", "meant # mq: allow MQ209"),
            ("# mq allows much", "nothing"),
            ("# mq allow lists", "nothing"),
            ("# mq: allowed are MQ209", "nothing"),
            ("a#mq: allow MQ209", "nothing"),
            ("# ménage: allow", "nothing"),
            ("#", "nothing"),
        ] {
            assert_eq!(said(line), expected, "{line:?}");
        }
    }
}
