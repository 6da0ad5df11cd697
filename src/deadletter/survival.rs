//! Whether a message that was taken survives being put back, by the count it has;
//! and the copy that takes its place where it does not.

use crate::deadletter::PeekRisk;
use crate::field::FieldValue;
use crate::message::{Delivery, Properties, Publication};
use crate::topology::{ExchangeName, QueueName, RoutingKey};

/// Whether a nack with requeue leaves the message in its queue.
///
/// Up to 4.2 a return is counted and then compared with the limit, on 4.3 the
/// count is compared as it came (measured on 3.10.8, 4.0.5 and 4.3.6). Where the
/// limit is not known, nothing is sure. A client can have written any count, but
/// the broker's own is never larger than what it shows.
#[must_use]
pub fn survives_return(risk: &PeekRisk, properties: &Properties) -> bool {
    let count = properties
        .headers
        .get("x-delivery-count")
        .and_then(FieldValue::as_integer)
        .unwrap_or(0)
        .max(0);
    match risk {
        PeekRisk::Safe => true,
        PeekRisk::Counts { limit, .. } => count.saturating_add(1) <= *limit,
        PeekRisk::CarriedCount { limit } => count <= *limit,
        PeekRisk::LosesAtOnce { .. }
        | PeekRisk::UnknownLimit
        | PeekRisk::Impossible
        | PeekRisk::Unknown(_) => false,
    }
}

/// The copy to be confirmed in `queue` before the original is acked: the same
/// message without its counts. `CC` would send it to other queues too, so its
/// keys move to `mq-cc`; a `user_id` that is not `user` would be refused.
#[must_use]
pub fn replacement(message: &Delivery, queue: &QueueName, user: &str) -> Publication {
    let mut properties = message.properties.clone();
    let headers = &mut properties.headers;
    for name in ["x-delivery-count", "x-acquired-count"] {
        headers.remove(name);
    }
    if let Some(keys) = headers.remove("CC") {
        headers.insert("mq-cc".to_owned(), keys);
    }
    headers.remove("BCC");
    if properties.user_id.as_deref() != Some(user) {
        properties.user_id = None;
    }
    Publication {
        exchange: ExchangeName::default_exchange(),
        routing_key: RoutingKey::of_queue(queue),
        properties,
        body: message.body.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::table_from_json;
    use crate::topology::QueueType;
    use serde_json::{Value as Json, json};

    fn with(headers: &Json) -> Properties {
        Properties {
            headers: table_from_json(headers.as_object().expect("object")),
            ..Properties::default()
        }
    }

    #[test]
    fn the_last_return_that_is_survived() {
        let counts = PeekRisk::Counts { looks: 3, limit: 2 };
        let carried = PeekRisk::CarriedCount { limit: 2 };
        for (risk, count, survives) in [
            (&counts, json!(null), true),
            (&counts, json!(1), true),
            (&counts, json!(2), false),
            (&counts, json!(i64::MAX), false),
            (&counts, json!(-9), true),
            (&counts, json!("2"), true),
            (&carried, json!(null), true),
            (&carried, json!(2), true),
            (&carried, json!(3), false),
            (&PeekRisk::Safe, json!(99), true),
            (&PeekRisk::LosesAtOnce { limit: -1 }, json!(0), false),
            (&PeekRisk::UnknownLimit, json!(0), false),
            (
                &PeekRisk::Unknown(QueueType::from_name("x")),
                json!(0),
                false,
            ),
        ] {
            let properties = with(&json!({ "x-delivery-count": count }));
            assert_eq!(
                survives_return(risk, &properties),
                survives,
                "{risk:?} {count}"
            );
        }
        let nothing_to_survive = PeekRisk::Counts { looks: 1, limit: 0 };
        assert!(!survives_return(
            &nothing_to_survive,
            &Properties::default()
        ));
    }

    #[test]
    fn a_copy_is_the_same_message_and_goes_nowhere_else() {
        let mut properties = with(&json!({
            "x-delivery-count": 3, "x-acquired-count": 4, "CC": ["a"], "x-death": [], "tenant": "t",
        }));
        properties.user_id = Some("somebody".to_owned());
        properties.priority = Some(3);
        let message = Delivery {
            exchange: "dlx".to_owned(),
            routing_key: "k".to_owned(),
            redelivered: true,
            properties,
            body: vec![0, 255],
        };
        let queue = QueueName::new("dead").expect("name");
        let copy = replacement(&message, &queue, "guest");
        assert!(copy.exchange.is_empty());
        assert_eq!(copy.routing_key.as_str(), "dead");
        assert_eq!(copy.body, [0, 255]);
        assert_eq!(copy.properties.priority, Some(3));
        assert_eq!(copy.properties.user_id, None);
        let expected = with(&json!({"mq-cc": ["a"], "x-death": [], "tenant": "t"}));
        assert_eq!(copy.properties.headers, expected.headers);
        assert_eq!(
            replacement(&message, &queue, "somebody")
                .properties
                .user_id
                .as_deref(),
            Some("somebody")
        );
    }
}
