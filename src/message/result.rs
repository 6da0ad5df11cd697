//! What a handler gave back, as a message.

use crate::error::Result;
use crate::message::{Delivery, DeliveryMode, Properties, Publication, first_route};
use crate::retry::HandlerResult;
use crate::topology::{ExchangeName, QueueName, RoutingKey};

/// Where results are published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultTo {
    /// An exchange, with a key of its own or the one the message first came with.
    Exchange {
        /// The exchange.
        exchange: ExchangeName,
        /// `None`: the message's own.
        key: Option<RoutingKey>,
    },
    /// The queue that the message names in `reply_to`, through the default
    /// exchange; without one there is nobody to answer.
    ReplyTo,
}

/// The result of a message of `queue`. It carries the message's correlation id,
/// or its message id where it has none, as requesters expect.
///
/// # Errors
/// When a key is no routing key.
pub fn result_of(
    delivery: &Delivery,
    queue: &QueueName,
    result: &HandlerResult,
    to: &ResultTo,
) -> Result<Option<Publication>> {
    let properties = &delivery.properties;
    let (exchange, routing_key) = match to {
        ResultTo::Exchange { exchange, key } => {
            let key = match key {
                Some(key) => key.clone(),
                None => RoutingKey::new(first_route(delivery, queue.as_str()).1)?,
            };
            (exchange.clone(), key)
        }
        ResultTo::ReplyTo => match &properties.reply_to {
            Some(reply_to) if !reply_to.is_empty() => (
                ExchangeName::default_exchange(),
                RoutingKey::new(reply_to.clone())?,
            ),
            Some(_) | None => return Ok(None),
        },
    };
    let correlation_id = properties.correlation_id.as_ref();
    Ok(Some(Publication {
        exchange,
        routing_key,
        properties: Properties {
            content_type: result.content_type.clone(),
            correlation_id: correlation_id.or(properties.message_id.as_ref()).cloned(),
            delivery_mode: Some(DeliveryMode::Persistent),
            ..Properties::default()
        },
        body: result.body.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_finds_its_way_and_its_request() {
        let queue = QueueName::new("work").expect("queue");
        let result = HandlerResult {
            body: vec![0, 255],
            content_type: Some("text/plain".to_owned()),
        };
        let mut delivery = Delivery {
            exchange: "tasks".to_owned(),
            routing_key: "task.new".to_owned(),
            redelivered: false,
            properties: Properties {
                message_id: Some("m".to_owned()),
                ..Properties::default()
            },
            body: Vec::new(),
        };
        let exchange = ExchangeName::new("results").expect("exchange");
        let own = ResultTo::Exchange {
            exchange: exchange.clone(),
            key: None,
        };
        let fixed = ResultTo::Exchange {
            exchange,
            key: Some(RoutingKey::new("done").expect("key")),
        };
        let found = |delivery: &Delivery, to: &ResultTo| {
            let found = result_of(delivery, &queue, &result, to).expect("keys");
            found.map(|publication| {
                assert_eq!(publication.body, [0, 255]);
                let id = publication.properties.correlation_id.unwrap_or_default();
                format!("{} {} {id}", publication.exchange, publication.routing_key)
            })
        };
        assert_eq!(
            found(&delivery, &own).as_deref(),
            Some("results task.new m")
        );
        assert_eq!(found(&delivery, &fixed).as_deref(), Some("results done m"));
        assert_eq!(found(&delivery, &ResultTo::ReplyTo), None);
        delivery.properties.reply_to = Some("answers".to_owned());
        delivery.properties.correlation_id = Some("c".to_owned());
        assert_eq!(
            found(&delivery, &ResultTo::ReplyTo).as_deref(),
            Some(" answers c")
        );
    }
}
