//! Words in a picture: escaped, cut, and measured without knowing the font.

use unicode_width::UnicodeWidthStr as _;

use crate::printable::{one_line, unbroken};

/// For XML, which forbids control characters even as references.
pub(super) fn escaped(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for c in unbroken(text).chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => xml.extend(c.escape_unicode()),
            c => xml.push(c),
        }
    }
    xml
}

/// At most that many letters, escaped ones included.
pub(super) fn shortened(text: &str, letters: usize) -> String {
    one_line(text, letters)
}

/// What a letter of the fonts with equal widths takes of the font's size.
const EQUAL: f64 = 0.61;

/// What a letter of the other fonts takes on average, with something to spare.
const VARIED: f64 = 0.54;

/// Of names and labels.
pub(super) fn width_of_name(text: &str, size: f64) -> f64 {
    count(text.width()) * size * EQUAL
}

/// Of everything else.
pub(super) fn width(text: &str, size: f64) -> f64 {
    count(text.width()) * size * VARIED
}

/// A small number as a length.
#[expect(clippy::cast_precision_loss, reason = "letters and lines are few")]
pub(super) fn count(number: usize) -> f64 {
    number as f64
}
