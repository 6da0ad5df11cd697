//! A body for people: JSON indented, other text as it is, binary as a hex dump.

use std::fmt::Write as _;

use serde::de::IgnoredAny;

use crate::output::printable;

/// Bytes on one line of a hex dump.
const LINE: usize = 16;

/// Deeper nesting is not indented further: a body is cheap to nest, and its
/// lines would grow with the square of it.
const MOST_INDENTS: usize = 40;

/// What a body is, and its lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShownBody {
    /// `JSON`, `text` or `binary`.
    pub(super) kind: &'static str,
    /// Safe to print.
    pub(super) lines: String,
    /// Bytes that are shown.
    pub(super) shown: usize,
}

/// At most `limit` bytes of a body of `whole` bytes, of which `body` is the
/// beginning.
pub(super) fn shown_body(body: &[u8], whole: usize, limit: usize) -> ShownBody {
    let part = body.get(..limit.min(body.len())).unwrap_or_default();
    let is_cut = part.len() < whole;
    let text = match std::str::from_utf8(part) {
        Ok(text) => Some(text),
        // An error at the very end of a cut body is the cut's own doing.
        Err(error) if is_cut && error.error_len().is_none() => part
            .get(..error.valid_up_to())
            .and_then(|valid| std::str::from_utf8(valid).ok()),
        Err(_) => None,
    };
    let Some(text) = text.filter(|text| is_readable(text)) else {
        return ShownBody {
            kind: "binary",
            lines: hex(part),
            shown: part.len(),
        };
    };
    let is_json = !is_cut
        && text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<IgnoredAny>(text).is_ok();
    ShownBody {
        kind: if is_json { "JSON" } else { "text" },
        lines: if is_json {
            printable(&indented(text))
        } else {
            printable(text)
        },
        shown: text.len(),
    }
}

/// Valid JSON with line ends and indents; numbers, texts and the order stay as
/// they are, digit for digit.
fn indented(json: &str) -> String {
    let mut lines = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut in_text = false;
    let mut is_escaped = false;
    let mut is_empty = false;
    for c in json.chars() {
        if in_text {
            lines.push(c);
            in_text = is_escaped || c != '"';
            is_escaped = c == '\\' && !is_escaped;
            continue;
        }
        if c.is_ascii_whitespace() {
            continue;
        }
        let closes = matches!(c, '}' | ']');
        if closes {
            depth = depth.saturating_sub(1);
        }
        if is_empty != closes {
            next_line(&mut lines, depth);
        }
        is_empty = false;
        lines.push(c);
        match c {
            '{' | '[' => {
                depth += 1;
                is_empty = true;
            }
            ',' => next_line(&mut lines, depth),
            ':' => lines.push(' '),
            '"' => in_text = true,
            _ => {}
        }
    }
    lines
}

fn next_line(lines: &mut String, depth: usize) {
    lines.push('\n');
    lines.extend(std::iter::repeat_n("  ", depth.min(MOST_INDENTS)));
}

/// Text with a NUL in it is no text for people.
fn is_readable(text: &str) -> bool {
    !text.contains('\0')
}

fn hex(bytes: &[u8]) -> String {
    let lines: Vec<String> = bytes
        .chunks(LINE)
        .enumerate()
        .map(|(number, chunk)| {
            let mut line = format!("{:08x} ", number * LINE);
            for at in 0..LINE {
                if at % 8 == 0 {
                    line.push(' ');
                }
                match chunk.get(at) {
                    Some(byte) => {
                        let _ = write!(line, "{byte:02x} ");
                    }
                    None => line.push_str("   "),
                }
            }
            let text: String = chunk
                .iter()
                .map(|byte| match byte {
                    0x20..=0x7e => char::from(*byte),
                    _ => '.',
                })
                .collect();
            format!("{line} |{text}|")
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_shown_as_what_they_are() {
        for (body, whole, limit, kind, lines) in [
            (
                &b"{\"a\":[1,2]}"[..],
                11,
                100,
                "JSON",
                "{\n  \"a\": [\n    1,\n    2\n  ]\n}",
            ),
            // Half of it is no JSON any more.
            (b"{\"a\":[1,2]}", 11, 5, "text", "{\"a\":"),
            (b"7", 1, 100, "text", "7"),
            (b"a\x1b[31m\nb", 7, 100, "text", "a\\u{1b}[31m\nb"),
            ("aé".as_bytes(), 3, 2, "text", "a"),
            (b"", 0, 100, "text", ""),
            (
                b"\xff\x00abcdefghijklmno",
                17,
                100,
                "binary",
                "00000000  ff 00 61 62 63 64 65 66  67 68 69 6a 6b 6c 6d 6e  |..abcdefghijklmn|\n\
                 00000010  6f                                                |o|",
            ),
            (
                b"a\0b",
                3,
                100,
                "binary",
                "00000000  61 00 62                                          |a.b|",
            ),
        ] {
            let shown = shown_body(body, whole, limit);
            assert_eq!((shown.kind, shown.lines.as_str()), (kind, lines));
        }
    }

    #[test]
    fn large_numbers_in_json_are_kept() {
        let body = br#"{"id":12345678901234567890123,"price":0.10}"#;
        let shown = shown_body(body, body.len(), 1000);
        assert!(
            shown.lines.contains("12345678901234567890123"),
            "{}",
            shown.lines
        );
        assert!(shown.lines.contains("0.10"), "{}", shown.lines);
        let odd = br#"{ "a\"{,": {}, "b":[ ], "c" : [[1], "x\\"] }"#;
        let shown = shown_body(odd, odd.len(), 1000);
        assert_eq!(
            shown.lines,
            "{\n  \"a\\\"{,\": {},\n  \"b\": [],\n  \"c\": [\n    [\n      1\n    ],\n    \"x\\\\\"\n  ]\n}"
        );
    }
}
