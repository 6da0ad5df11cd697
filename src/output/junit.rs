//! JUnit XML, as CI systems read it.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where a report meets the file system"
)]

use std::fmt::Write as _;
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::output::printable;
use crate::output::proof::check_lines;
use crate::proof::{Proof, ProofReport};

/// Writes such a report to a file, which may be a device.
///
/// # Errors
/// [`ErrorKind::InputOutput`].
pub fn write_junit(path: &Path, xml: &str) -> Result<()> {
    std::fs::write(path, xml).map_err(|error| {
        Error::new(
            ErrorKind::InputOutput,
            format!("cannot write {}: {error}", path.display()),
        )
        .hint("check --junit: is the directory there, and may you write to it?")
    })
}

/// The report as one test suite.
#[must_use]
pub fn junit_xml(report: &ProofReport) -> String {
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\"",
        report.proofs.len(),
        report.failed()
    );
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"mq topology test\" {counts}>\n"
    );
    for proof in &report.proofs {
        case(proof, &mut xml);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn case(proof: &Proof, xml: &mut String) {
    let file = attribute(&proof.origin.file);
    let _ = write!(
        xml,
        "    <testcase classname=\"{file}\" name=\"{}\" file=\"{file}\" line=\"{}\"",
        attribute(&proof.name),
        proof.origin.line
    );
    if proof.passed() {
        xml.push_str("/>\n");
        return;
    }
    let lines: Vec<String> = proof.checks.iter().flat_map(check_lines).collect();
    let first = lines.first().map_or("", String::as_str);
    let _ = write!(
        xml,
        ">\n      <failure type=\"expectation\" message=\"{}\">{}:{}\n{}</failure>\n    </testcase>\n",
        attribute(first),
        escaped(&proof.origin.file),
        proof.origin.line,
        escaped(&lines.join("\n"))
    );
}

/// Readers make blanks of line ends and tabs in attributes, if these are not named.
pub(super) fn attribute(text: &str) -> String {
    escaped(text).replace('\n', "&#10;").replace('\t', "&#9;")
}

/// XML has no way to say most control characters, so they are shown in Rust's.
pub(super) fn escaped(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\'' => xml.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => xml.extend(c.escape_unicode()),
            c => xml.push(c),
        }
    }
    xml
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_keeps_its_lines() {
        assert_eq!(attribute("a\n\tb\r&"), "a&#10;&#9;b\\r&amp;");
    }

    #[test]
    fn what_xml_cannot_hold_is_escaped() {
        assert_eq!(
            escaped("<a b=\"c\">&'\u{1b}[31m\u{0}\u{ffff}é\n"),
            "&lt;a b=&quot;c&quot;&gt;&amp;&apos;\\u{1b}[31m\\u{0}\\u{ffff}é\n"
        );
    }
}
