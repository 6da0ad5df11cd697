//! What routing sees of a message.

use crate::field::{FieldTable, FieldValue};
use crate::topology::{ExchangeName, RoutingKey};

/// A message on its way to an exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Where it is published.
    pub exchange: ExchangeName,
    /// The routing key first, then those of the headers `CC` and `BCC`.
    pub keys: Vec<RoutingKey>,
    /// Its headers, without `BCC`, which the broker takes away.
    pub headers: FieldTable,
}

impl Message {
    /// A message as a client publishes it. What stands in `CC` or `BCC` and is
    /// no text is left out; a broker would refuse the message.
    #[must_use]
    pub fn new(exchange: ExchangeName, key: RoutingKey, mut headers: FieldTable) -> Self {
        let mut keys = vec![key];
        keys.extend(further_keys(headers.get("CC")));
        keys.extend(further_keys(headers.get("BCC")));
        headers.remove("BCC");
        Self {
            exchange,
            keys,
            headers,
        }
    }
}

fn further_keys(header: Option<&FieldValue>) -> Vec<RoutingKey> {
    let Some(FieldValue::Array(values)) = header else {
        return Vec::new();
    };
    values
        .iter()
        .filter_map(|value| RoutingKey::new(value.as_text()?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cc_and_bcc_are_further_keys() {
        let list = |text: &str| FieldValue::Array(vec![FieldValue::text(text), FieldValue::I64(1)]);
        let headers = FieldTable::from([
            ("CC".to_owned(), list("copy")),
            ("BCC".to_owned(), list("blind")),
        ]);
        let name = ExchangeName::new("x").expect("name");
        let message = Message::new(name, RoutingKey::new("key").expect("key"), headers);
        let keys: Vec<&str> = message.keys.iter().map(RoutingKey::as_str).collect();
        assert_eq!(keys, ["key", "copy", "blind"]);
        assert_eq!(message.headers.keys().collect::<Vec<_>>(), ["CC"]);
    }
}
