//! A message put in the place of itself.

use crate::field::{FieldTable, FieldValue};
use crate::message::copied::{BLIND_COPIES, CARBON_COPIES};
use crate::message::{Delivery, Publication, without_delivery_headers};
use crate::topology::{ExchangeName, QueueName, RoutingKey};

/// A copy for the end of `queue`, of a message of it that would be lost by going
/// back. Its count of deliveries begins anew; its deaths stay, so that it reads
/// like the original. `CC` would send it to other queues too and is kept as
/// `mq-cc`; a `user_id` other than `user`, who we are, would be refused.
#[must_use]
pub fn replacement(delivery: &Delivery, queue: &QueueName, user: &str) -> Publication {
    let mut properties = without_delivery_headers(&delivery.properties);
    set_copies_aside(&mut properties.headers);
    if properties
        .user_id
        .as_ref()
        .is_some_and(|theirs| theirs != user)
    {
        properties.user_id = None;
    }
    Publication {
        exchange: ExchangeName::default_exchange(),
        routing_key: RoutingKey::of_queue(queue),
        properties,
        body: delivery.body.clone(),
    }
}

/// Renames the headers by which a broker sends copies to other queues, for a message
/// that is to go to one place only. Whether there were any.
pub fn set_copies_aside(headers: &mut FieldTable) -> bool {
    let mut had_any = false;
    for (name, aside) in [("CC", CARBON_COPIES), ("BCC", BLIND_COPIES)] {
        if let Some(keys) = headers.remove(name) {
            headers.insert(aside.to_owned(), keys);
            had_any = true;
        }
    }
    had_any
}

/// How often a quorum queue says that the message was returned to it; 0 where it
/// does not say so, and for classic queues a number that means nothing. A client
/// can have written any number, and 4.x shows it at the first delivery: below 0
/// it would hide the count of the broker, which is 0 then.
#[must_use]
pub fn delivery_count(delivery: &Delivery) -> i64 {
    delivery
        .properties
        .headers
        .get("x-delivery-count")
        .and_then(FieldValue::as_integer)
        .unwrap_or(0)
        .max(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::table_from_json;
    use crate::message::Properties;
    use serde_json::json;

    #[test]
    fn it_reads_like_the_original_and_goes_nowhere_else() {
        let headers = json!({"x-death": [{"queue": "q"}], "x-delivery-count": 21,
                             "x-acquired-count": 3, "CC": ["a"], "mine": 1});
        let delivery = Delivery {
            exchange: "dlx".to_owned(),
            routing_key: "k".to_owned(),
            redelivered: true,
            properties: Properties {
                headers: table_from_json(headers.as_object().expect("object")),
                user_id: Some("other".to_owned()),
                ..Properties::default()
            },
            body: b"body".to_vec(),
        };
        assert_eq!(delivery_count(&delivery), 21);
        let queue = QueueName::new("dlq").expect("name");
        let copy = replacement(&delivery, &queue, "me");
        assert_eq!(
            (copy.exchange.as_str(), copy.routing_key.as_str()),
            ("", "dlq")
        );
        let expected = json!({"x-death": [{"queue": "q"}], "mq-cc": ["a"], "mine": 1});
        assert_eq!(
            copy.properties.headers,
            table_from_json(expected.as_object().expect("object"))
        );
        assert_eq!(
            (copy.properties.user_id, copy.body),
            (None, b"body".to_vec())
        );
        let mut forged = delivery.clone();
        forged
            .properties
            .headers
            .insert("x-delivery-count".to_owned(), FieldValue::I64(-9));
        assert_eq!(delivery_count(&forged), 0);
        let mut ours = delivery;
        ours.properties.user_id = Some("me".to_owned());
        assert_eq!(
            replacement(&ours, &queue, "me")
                .properties
                .user_id
                .as_deref(),
            Some("me")
        );
    }
}
