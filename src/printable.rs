//! Text that came from elsewhere, made safe to show and to paste: control characters
//! escaped, as are the marks that reverse, break or hide text.

/// Line ends and tabs are kept.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\n' | '\t') {
            shown.push(c);
        } else {
            push_escaped(&mut shown, c);
        }
    }
    shown
}

/// On one line, however long: line ends and tabs are escaped too.
#[must_use]
pub fn unbroken(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        push_escaped(&mut shown, c);
    }
    shown
}

/// On one line and at most `width` characters long.
#[must_use]
pub fn one_line(text: &str, width: usize) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        if shown.chars().count() >= width {
            shown.push('…');
            break;
        }
        push_escaped(&mut shown, c);
    }
    shown
}

/// Marks that reverse, break, join or hide text.
#[must_use]
pub fn hides(c: char) -> bool {
    matches!(
        c,
        '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
    )
}

/// As one word of a shell command, for commands that we suggest.
///
/// What cannot be shown is written as octal numbers in `$'…'`, which bash, ksh and
/// zsh know; to a shell that does not it is one word all the same, of other letters.
#[must_use]
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@%+=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    let is_odd = |c: char| c.is_control() || hides(c);
    if !text.contains(is_odd) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut word = "$'".to_owned();
    for c in text.chars() {
        if is_odd(c) || matches!(c, '\'' | '\\') {
            let mut buffer = [0; 4];
            let bytes = c.encode_utf8(&mut buffer).bytes();
            word.extend(bytes.map(|byte| format!("\\{byte:03o}")));
        } else {
            word.push(c);
        }
    }
    word.push('\'');
    word
}

fn push_escaped(shown: &mut String, c: char) {
    if c.is_control() || hides(c) {
        shown.extend(c.escape_default());
    } else {
        shown.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_letter_cannot_drive_the_terminal() {
        assert_eq!(
            printable("a\x1b[31mb\n\u{202e}c"),
            "a\\u{1b}[31mb\n\\u{202e}c"
        );
        assert_eq!(one_line("a\nb", 10), "a\\nb");
        assert_eq!(one_line("abcdef", 3), "abc…");
        assert_eq!(one_line("naïve 日本", 10), "naïve 日本");
        assert_eq!(unbroken("a\tb\r\n\u{9b}"), "a\\tb\\r\\n\\u{9b}");
    }

    #[test]
    fn any_text_is_one_word_of_a_shell_and_shown_as_it_is() {
        for (text, word) in [
            ("orders.dlq", "orders.dlq"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's; rm -rf", r"'it'\''s; rm -rf'"),
            (r"a\b", r"'a\b'"),
            ("a\n'; reboot #\\", r"$'a\012\047; reboot #\134'"),
            ("a\u{2028}\u{1b}[31m", r"$'a\342\200\250\033[31m'"),
        ] {
            assert_eq!(shell_word(text), word);
            assert_eq!(unbroken(word), word);
        }
    }

    #[test]
    fn what_breaks_reverses_or_hides_is_escaped_everywhere() {
        for (c, shown) in [
            ('\u{85}', "\\u{85}"),
            ('\u{61c}', "\\u{61c}"),
            ('\u{200b}', "\\u{200b}"),
            ('\u{2028}', "\\u{2028}"),
            ('\u{2029}', "\\u{2029}"),
            ('\u{202e}', "\\u{202e}"),
            ('\u{2066}', "\\u{2066}"),
            ('\u{feff}', "\\u{feff}"),
            ('\u{2027}', "\u{2027}"),
            ('é', "é"),
        ] {
            let (text, expected) = (format!("a{c}b"), format!("a{shown}b"));
            assert_eq!(printable(&text), expected);
            assert_eq!(unbroken(&text), expected);
            assert_eq!(one_line(&text, 80), expected);
        }
    }
}
