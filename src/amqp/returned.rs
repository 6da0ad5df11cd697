//! Which of the messages under way came back.
//!
//! Brokers return a message as they would deliver it: without its `BCC` header,
//! with an `expiration` such as `00012` written as `12`, and with the headers of
//! their interceptors (`timestamp_in_ms`, `x-routed-by`, …).

use std::borrow::Cow;

use crate::field::FieldTable;
use crate::message::{Properties, Publication};

/// The header that no receiver sees.
const BCC: &str = "BCC";

/// A message that came back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned<'r> {
    pub(super) exchange: &'r str,
    pub(super) routing_key: &'r str,
    pub(super) properties: &'r Properties,
    pub(super) body: &'r [u8],
}

/// The place of the message that came back; `None`: none of `sent`, or it cannot
/// be told which. Messages that are routed by the same have the same fate, so any
/// of them will do.
pub(super) fn which_came_back<'m>(
    back: Returned<'_>,
    sent: impl Iterator<Item = (usize, &'m Publication)>,
) -> Option<usize> {
    let alike: Vec<(usize, &Publication)> = sent
        .filter(|(_, message)| {
            message.exchange.as_str() == back.exchange
                && message.routing_key.as_str() == back.routing_key
                && message.body == back.body
        })
        .collect();
    let of = |is_it: &dyn Fn(&Properties) -> bool| {
        let mut found = alike
            .iter()
            .filter(|(_, message)| is_it(&message.properties));
        let (at, first) = found.next()?;
        let headers = &first.properties.headers;
        Some((*at, found.all(|(_, m)| m.properties.headers == *headers)))
    };
    of(&|properties| *without_bcc(properties) == *back.properties)
        .or_else(|| of(&|properties| became(properties, back.properties)))
        .and_then(|(at, is_certain)| is_certain.then_some(at))
}

fn without_bcc(properties: &Properties) -> Cow<'_, Properties> {
    if !properties.headers.contains_key(BCC) {
        return Cow::Borrowed(properties);
    }
    let mut bare = properties.clone();
    bare.headers = bare
        .headers
        .into_iter()
        .filter(|(name, _)| name != BCC)
        .collect::<FieldTable>();
    Cow::Owned(bare)
}

/// Whether a broker may have made `back` of what was sent.
fn became(sent: &Properties, back: &Properties) -> bool {
    sent.message_id == back.message_id
        && (sent.headers.iter())
            .all(|(name, value)| name == BCC || back.headers.get(name) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldValue;
    use crate::topology::{ExchangeName, RoutingKey};

    fn message(id: &str, headers: &[(&str, &str)], expiration: Option<&str>) -> Publication {
        Publication {
            exchange: ExchangeName::new("e".to_owned()).expect("name"),
            routing_key: RoutingKey::new("k".to_owned()).expect("key"),
            properties: Properties {
                message_id: (!id.is_empty()).then(|| id.to_owned()),
                expiration: expiration.map(str::to_owned),
                headers: headers
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), FieldValue::text(*value)))
                    .collect(),
                ..Properties::default()
            },
            body: b"x".to_vec(),
        }
    }

    #[test]
    fn what_a_broker_altered_is_known_again_or_nothing_is_said() {
        let of = |headers: &[(&str, &str)]| message("", headers, None);
        for (what, sent, back, expected) in [
            (
                "itself",
                vec![of(&[("a", "1")])],
                of(&[("a", "1")]),
                Some(0),
            ),
            ("equals", vec![of(&[]), of(&[])], of(&[]), Some(0)),
            ("no other", vec![of(&[("a", "1")])], of(&[("a", "2")]), None),
            (
                "BCC is taken out",
                vec![of(&[("a", "2")]), of(&[("a", "1"), ("BCC", "b")])],
                of(&[("a", "1")]),
                Some(1),
            ),
            (
                "BCC may have led elsewhere",
                vec![of(&[]), of(&[("BCC", "b")])],
                of(&[]),
                None,
            ),
            (
                "a number is written anew",
                vec![
                    message("1", &[], Some("12")),
                    message("2", &[], Some("00012")),
                ],
                message("2", &[], Some("12")),
                Some(1),
            ),
            (
                "headers are added",
                vec![
                    message("1", &[("a", "1")], None),
                    message("2", &[("a", "1")], None),
                ],
                message("2", &[("a", "1"), ("x-routed-by", "n")], None),
                Some(1),
            ),
            (
                "exact before altered",
                vec![of(&[]), of(&[("a", "1")])],
                of(&[("a", "1")]),
                Some(1),
            ),
            (
                "two that are routed differently",
                vec![of(&[]), of(&[("a", "1")])],
                of(&[("a", "1"), ("x-routed-by", "n")]),
                None,
            ),
        ] {
            let back = Returned {
                exchange: back.exchange.as_str(),
                routing_key: back.routing_key.as_str(),
                properties: &back.properties,
                body: &back.body,
            };
            assert_eq!(
                which_came_back(back, sent.iter().enumerate()),
                expected,
                "{what}"
            );
        }
    }
}
