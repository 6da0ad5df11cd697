//! One message with all that is known of it, as text.

use crate::browse::BrowsedLetter;
use crate::browse::page::Page;
use crate::output::full_letter;

/// Where the rest of a long body is.
const MORE: &str = "the whole of it with e (export)";

/// The letter with this number in its queue.
pub(super) fn letter_page(number: usize, letter: &BrowsedLetter, columns: usize) -> Page {
    let kept = letter.message.message.body.len();
    let text = full_letter(number, &letter.message, &letter.letter, kept, MORE);
    // Its indentation would break lines of a hex dump at 80 columns.
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.strip_prefix("   ").unwrap_or(line))
        .collect();
    Page::new(lines.join("\n"), columns)
}
