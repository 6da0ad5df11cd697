//! The `tests:` of a file.

use std::collections::BTreeSet;

use crate::diagnostic::{Diagnostic, Place, Source};
use crate::field::{FieldTable, FieldValue};
use crate::topology::{ExchangeName, QueueName, RoutingKey, RoutingTest, TestOrigin, Topology};
use crate::topologyfile::bindings::required;
use crate::topologyfile::check::Places;
use crate::topologyfile::fields::{Fields, Reader};
use crate::topologyfile::tree::{Node, Value};

const KEYS: [&str; 7] = [
    "name",
    "publish",
    "reaches",
    "rejected",
    "expired",
    "max_length",
    "delivery_limit",
];

const PUBLISH_KEYS: [&str; 3] = ["exchange", "key", "headers"];

pub(super) fn read(
    node: &Node,
    sources: &[Source],
    reader: &mut Reader,
    topology: &mut Topology,
    places: &mut Places,
) {
    for item in reader.items(node, "tests") {
        if let Some(mut test) = read_one(item, reader, places) {
            test.origin = origin(&item.place(), sources);
            topology.tests.push(test);
        }
    }
}

fn read_one(node: &Node, reader: &mut Reader, places: &mut Places) -> Option<RoutingTest> {
    let name = node.entry("name").and_then(|node| match &node.value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    });
    let what = name
        .as_ref()
        .map_or_else(|| "a test".to_owned(), |name| format!("test '{name}'"));
    let fields = reader.fields(node, &what, &KEYS)?;
    if let Some(node) = fields.get("name") {
        reader.text(node, &format!("`name` of {what}"))?;
    }
    let Some(publish) = fields.get("publish") else {
        reader.report(
            Diagnostic::new("MQ107", node.start(), format!("{what} has no `publish`"))
                .help("add the message: `publish: { exchange: NAME, key: KEY }`"),
        );
        return None;
    };
    let (exchange, key, headers) = message(publish, &what, reader, places)?;
    let mut queues = |field: &str| expectation(fields, field, &what, reader, places);
    let test = RoutingTest {
        name: name.unwrap_or_else(|| RoutingTest::default_name(&exchange, &key)),
        exchange,
        key,
        headers,
        reaches: queues("reaches"),
        rejected: queues("rejected"),
        expired: queues("expired"),
        max_length: queues("max_length"),
        delivery_limit: queues("delivery_limit"),
        origin: TestOrigin::default(),
    };
    let expects = |(field, _): &(&str, _)| fields.get(field).is_some();
    if !test.expectations().iter().any(expects) {
        reader.report(
            Diagnostic::new("MQ107", node.start(), format!("{what} expects nothing")).help(
                "add `reaches: [QUEUE]`, or where the message rests after a death: `rejected`, `expired`, `max_length`, `delivery_limit`; `[]` is nowhere",
            ),
        );
        return None;
    }
    Some(test)
}

fn message(
    node: &Node,
    what: &str,
    reader: &mut Reader,
    places: &mut Places,
) -> Option<(ExchangeName, RoutingKey, FieldTable)> {
    let what = format!("`publish` of {what}");
    let fields = reader.fields(node, &what, &PUBLISH_KEYS)?;
    let exchange = required(reader, node, fields, "exchange", &what, ExchangeName::new)?;
    if let Some(node) = fields.get("exchange") {
        places.exchange(&exchange, node.place(), format!("{what} names it"));
    }
    let key = match fields.get("key") {
        Some(node) => reader.name(node, &format!("`key` of {what}"), RoutingKey::new)?,
        None => RoutingKey::empty(),
    };
    let headers = fields.get("headers").map_or_else(FieldTable::new, |node| {
        let headers = reader.table(node, &format!("`headers` of {what}"));
        further_keys(&headers, node, &what, reader);
        headers
    });
    Some((exchange, key, headers))
}

/// A broker closes the channel of who publishes anything else.
fn further_keys(headers: &FieldTable, node: &Node, what: &str, reader: &mut Reader) {
    for name in ["CC", "BCC"] {
        let is_fine = match headers.get(name) {
            None => true,
            Some(FieldValue::Array(keys)) => keys.iter().all(|key| {
                key.as_text()
                    .is_some_and(|text| RoutingKey::new(text).is_ok())
            }),
            Some(_) => false,
        };
        if !is_fine {
            reader.report(
                Diagnostic::new(
                    "MQ103",
                    node.place(),
                    format!("the header `{name}` of {what} is no list of keys"),
                )
                .label("a broker refuses such a message")
                .help(format!("write `{name}: [KEY]`")),
            );
        }
    }
}

fn expectation(
    fields: Fields<'_>,
    field: &str,
    what: &str,
    reader: &mut Reader,
    places: &mut Places,
) -> Option<BTreeSet<QueueName>> {
    let node = fields.get(field)?;
    let what = format!("`{field}` of {what}");
    if matches!(node.value, Value::Null) {
        // "Nowhere" must not be what somebody forgot to fill in.
        reader.report(
            Diagnostic::new("MQ102", node.place(), format!("{what} is nothing"))
                .label("expected a list of queues")
                .help("write `[QUEUE]`, or `[]` for no queue at all"),
        );
        return None;
    }
    let mut queues = BTreeSet::new();
    for item in reader.items(node, &what) {
        let of_existing = |text: String| QueueName::of_existing(&text);
        if let Some(name) = reader.name(item, &format!("an item of {what}"), of_existing) {
            places.queue(&name, item.place(), format!("{what} names it"));
            queues.insert(name);
        }
    }
    Some(queues)
}

fn origin(place: &Place, sources: &[Source]) -> TestOrigin {
    let Some(source) = sources.get(place.source) else {
        return TestOrigin::default();
    };
    let before = source.text.get(..place.bytes.start).unwrap_or_default();
    TestOrigin {
        file: source.name.clone(),
        line: before.matches('\n').count() + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::render;

    fn parsed(text: &str) -> Topology {
        let source = Source {
            name: "t.yaml".to_owned(),
            text: text.to_owned(),
        };
        crate::topologyfile::parse(std::slice::from_ref(&source), &|_| None)
            .unwrap_or_else(|found| panic!("{}", render(&found, &[source])))
    }

    const FILE: &str = "version: 1
exchanges: { in: { type: topic } }
queues: { work: { bind: [{ exchange: in, key: 'a.#' }] }, dlq: {} }
elsewhere: { queues: [theirs] }
tests:
  - name: first
    publish: { exchange: in, key: a.b, headers: { n: 1, CC: [x] } }
    reaches: [work, theirs]
    rejected: []
  - { publish: { exchange: '', key: work }, reaches: [work], max_length: [dlq] }
";

    #[test]
    fn reads_every_key_and_where_the_test_stands() {
        let topology = parsed(FILE);
        let [first, second] = topology.tests.as_slice() else {
            panic!("two tests");
        };
        assert_eq!((first.name.as_str(), first.origin.line), ("first", 6));
        assert_eq!(first.headers.get("n"), Some(&FieldValue::I64(1)));
        assert_eq!(first.reaches.as_ref().map(BTreeSet::len), Some(2));
        assert_eq!(first.rejected, Some(BTreeSet::new()));
        assert_eq!(first.expired, None);
        assert_eq!(
            (second.name.as_str(), second.origin.line),
            ("default exchange / work", 10)
        );
        assert_eq!(second.origin.file, "t.yaml");
    }

    #[test]
    fn written_out_and_under_other_names_they_are_the_same_tests() {
        let topology = parsed(FILE);
        let text = crate::topologyfile::expanded(&topology).expect("yaml").text;
        let mut again = parsed(&text);
        for (again, test) in again.tests.iter_mut().zip(&topology.tests) {
            again.origin = test.origin.clone();
        }
        assert_eq!(again.tests, topology.tests);

        let prefixed = topology.prefixed("p.").expect("prefixed");
        let second = prefixed.tests.last().expect("a test");
        assert_eq!(second.key.as_str(), "p.work");
        let dlq = QueueName::new("p.dlq").expect("name");
        assert_eq!(second.max_length, Some(BTreeSet::from([dlq])));
        let first = prefixed.tests.first().expect("a test");
        assert_eq!(
            (first.exchange.as_str(), first.key.as_str()),
            ("p.in", "a.b")
        );
    }
}
