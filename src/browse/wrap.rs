//! Text in columns: broken or cut by what is seen, never inside of a character.

use ratatui::style::Style;
use ratatui::text::Span;
use unicode_width::UnicodeWidthStr as _;

/// Columns of a tab.
const TAB: &str = "    ";

/// Lines of at most `columns` columns, broken between words where that is near,
/// and indented like their beginning. Line ends and tabs are those of `text`;
/// everything else in it must be printable.
pub(super) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut lines = Vec::new();
    for line in text.lines() {
        let line = steady(&line.replace('\t', TAB));
        let indent = line.len() - line.trim_start_matches(' ').len();
        let indent = " ".repeat(indent.min(columns / 2));
        let span = Span::raw(line);
        let mut part = String::new();
        let mut used = 0;
        for grapheme in span.styled_graphemes(Style::default()) {
            let width = grapheme.symbol.width();
            if used + width > columns {
                // A space at the break is the break.
                let breaks = grapheme.symbol == " ";
                let rest = if breaks {
                    String::new()
                } else {
                    after_last_word(&mut part, columns)
                };
                lines.push(std::mem::replace(&mut part, format!("{indent}{rest}")));
                used = part.width();
                if breaks {
                    continue;
                }
            }
            part.push_str(grapheme.symbol);
            used += width;
        }
        lines.push(part);
    }
    lines
}

/// Characters of which terminals disagree how wide they are, as escapes: one
/// that takes another width than we think leaves its rest behind on the screen.
fn steady(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // Variation selectors, halves of flags, colours of skin, tags.
            '\u{fe00}'..='\u{fe0f}'
            | '\u{1f1e6}'..='\u{1f1ff}'
            | '\u{1f3fb}'..='\u{1f3ff}'
            | '\u{e0000}'..='\u{e01ef}' => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Takes a word that does not fit off the line, if it began in its last third.
fn after_last_word(part: &mut String, columns: usize) -> String {
    match part.rfind(' ') {
        Some(space)
            if part
                .get(..space)
                .is_some_and(|front| front.width() * 3 > columns * 2) =>
        {
            let word = part.split_off(space + 1);
            part.truncate(space);
            word
        }
        _ => String::new(),
    }
}

/// Exactly `columns` columns: cut with an ellipsis, or filled with spaces.
pub(super) fn fitted(text: &str, columns: usize) -> String {
    let text = steady(text);
    let text = text.as_str();
    let width = text.width();
    if width <= columns {
        return format!("{text}{}", " ".repeat(columns - width));
    }
    let Some(room) = columns.checked_sub(1) else {
        return String::new();
    };
    let mut part = String::new();
    let mut used = 0;
    for grapheme in Span::raw(text).styled_graphemes(Style::default()) {
        let width = grapheme.symbol.width();
        if used + width > room {
            break;
        }
        part.push_str(grapheme.symbol);
        used += width;
    }
    format!("{part}…{}", " ".repeat(room - used))
}

/// The same, with the text at the right.
pub(super) fn right(text: &str, columns: usize) -> String {
    let spaces = columns.saturating_sub(text.width());
    fitted(&format!("{}{text}", " ".repeat(spaces)), columns)
}

/// The end of what is typed: what does not fit in front is left out.
pub(super) fn tail(text: &str, columns: usize) -> String {
    let text = steady(text);
    let mut tail = text.as_str();
    while tail.width() > columns {
        let mut rest = tail.chars();
        rest.next();
        tail = rest.as_str();
    }
    tail.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_what_is_seen() {
        for (text, columns, shown) in [
            ("abc", 5, "abc  "),
            ("abcdef", 4, "abc…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日… "),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("🧑🧑", 3, "🧑…"),
            ("❤\u{fe0f}", 10, "❤\\u{fe0f} "),
            ("🇩", 10, "\\u{1f1e9} "),
            ("abc", 1, "…"),
            ("abc", 0, ""),
            ("", 2, "  "),
        ] {
            assert_eq!(fitted(text, columns), shown, "{text}");
        }
        assert_eq!(right("12", 4), "  12");
        assert_eq!(right("12345", 4), "123…");
        assert_eq!(tail("abcdef", 3), "def");
    }

    #[test]
    fn long_lines_go_on_in_the_next_one() {
        for (text, columns, lines) in [
            ("abcdef", 4, vec!["abcd", "ef"]),
            ("a\n\nb", 4, vec!["a", "", "b"]),
            ("a\tb", 10, vec!["a    b"]),
            ("日本語", 5, vec!["日本", "語"]),
            ("日本", 0, vec!["日", "本"]),
            ("  abcdef", 4, vec!["  ab", "  cd", "  ef"]),
            ("ab cdefg hi", 8, vec!["ab cdefg", "hi"]),
            ("abcdef ghi", 8, vec!["abcdef", "ghi"]),
            ("a bcdefghi", 8, vec!["a bcdefg", "hi"]),
            ("", 4, vec![]),
        ] {
            assert_eq!(wrapped(text, columns), lines, "{text}");
        }
    }
}
