//! A strict reader of Prometheus' text format, and of HTTP as far as it is asked for.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test support: helpers are outside #[test] functions"
)]

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// What one series is told apart by: its name and its labels, in their order.
pub(crate) type Key = (String, Vec<(String, String)>);

/// A page that was read.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    pub(crate) series: BTreeMap<Key, f64>,
    /// Names and types, in their order.
    pub(crate) kinds: Vec<(String, String)>,
}

impl Exposition {
    /// Reads a page; whatever Prometheus' own reader or `promtool check metrics`
    /// would complain of fails the test.
    #[track_caller]
    pub(crate) fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has no end");
        let mut page = Self::default();
        let mut helped = None;
        for line in text.strip_suffix('\n').unwrap().split('\n') {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(!help.is_empty() && !help.contains('\\'), "{line}");
                helped = Some(name.to_owned());
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(helped.as_deref(), Some(name), "HELP comes first");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                assert!(page.kinds.iter().all(|(other, _)| other != name), "{line}");
                page.kinds.push((name.to_owned(), kind.to_owned()));
            } else {
                page.sample(line);
            }
        }
        page.check_histograms();
        page
    }

    #[track_caller]
    fn sample(&mut self, line: &str) {
        let (name, rest) = line.split_once('{').unwrap_or_else(|| panic!("{line}"));
        assert!(is_name(name), "{line}");
        let (family, kind) = self.kinds.last().unwrap();
        let is_ours = if kind == "histogram" {
            ["_bucket", "_sum", "_count"]
                .iter()
                .any(|part| name.strip_suffix(part) == Some(family))
        } else {
            name == family
        };
        assert!(is_ours, "{line} stands below {family}");
        let (labels, value) = read_labels(rest, line);
        let number: f64 = value.strip_prefix(' ').unwrap().parse().unwrap();
        assert!(number >= 0.0 && number.is_finite(), "{line}");
        let twice = self.series.insert((name.to_owned(), labels), number);
        assert!(twice.is_none(), "{line} is there twice");
    }

    /// Buckets grow, and the last one is the count.
    #[track_caller]
    fn check_histograms(&self) {
        let mut seen: BTreeMap<Key, Vec<(f64, f64)>> = BTreeMap::new();
        for ((name, labels), value) in &self.series {
            if let Some(family) = name.strip_suffix("_bucket") {
                let (le, rest): (Vec<_>, Vec<_>) =
                    labels.iter().cloned().partition(|(label, _)| label == "le");
                let [(_, le)] = le.as_slice() else {
                    panic!("{name} {labels:?}")
                };
                let bound = if le == "+Inf" {
                    f64::INFINITY
                } else {
                    le.parse().unwrap()
                };
                let key = (family.to_owned(), rest);
                seen.entry(key).or_default().push((bound, *value));
            }
        }
        for ((family, labels), mut buckets) in seen {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
            let (bound, all) = *buckets.last().unwrap();
            assert!(bound.is_infinite(), "{family} {labels:?}");
            let count = (format!("{family}_count"), labels.clone());
            assert!(
                self.series
                    .get(&count)
                    .is_some_and(|count| count.total_cmp(&all).is_eq())
            );
            assert!(self.series.contains_key(&(format!("{family}_sum"), labels)));
        }
    }

    /// The sum of the series of this name that have these labels; all count whole things.
    #[track_caller]
    pub(crate) fn sum(&self, name: &str, having: &[(&str, &str)]) -> u64 {
        let has = |labels: &[(String, String)]| {
            having
                .iter()
                .all(|(label, value)| labels.iter().any(|(has, is)| has == label && is == value))
        };
        let found: Vec<f64> = self
            .series
            .iter()
            .filter(|((is, labels), _)| is == name && has(labels))
            .map(|(_, value)| *value)
            .collect();
        assert!(!found.is_empty(), "there is no {name} with {having:?}");
        let sum: f64 = found.iter().sum();
        sum.to_string().parse().unwrap()
    }
}

fn is_name(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_first) && name.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

/// Labels up to the closing brace, and what stands behind it.
#[track_caller]
fn read_labels<'t>(text: &'t str, line: &str) -> (Vec<(String, String)>, &'t str) {
    let mut labels: Vec<(String, String)> = Vec::new();
    let mut rest = text;
    loop {
        let (label, quoted) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
        assert!(is_name(label), "{line}");
        let mut value = String::new();
        let mut chars = quoted.char_indices();
        let end = loop {
            match chars.next().unwrap_or_else(|| panic!("{line}")) {
                (at, '"') => break at + 1,
                (_, '\\') => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, c @ ('\\' | '"'))) => value.push(c),
                    other => panic!("{other:?} is escaped: {line}"),
                },
                (_, c) => value.push(c),
            }
        };
        assert!(labels.iter().all(|(other, _)| other != label), "{line}");
        labels.push((label.to_owned(), value));
        let behind = quoted.get(end..).unwrap();
        if let Some(value) = behind.strip_prefix('}') {
            return (labels, value);
        }
        rest = behind.strip_prefix(',').unwrap_or_else(|| panic!("{line}"));
    }
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// As they came, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(is, _)| is == name)
            .map(|(_, value)| value.as_str())
    }
}

/// One request on a connection of its own; nothing, when nobody answers.
pub(crate) fn ask(address: &str, method: &str, path: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    Some(Answer {
        status,
        headers,
        body: body.to_owned(),
    })
}
