//! Dead-letter queues as the brokers themselves make them: for every reason, from
//! and into both queue types, with messages that carry all that AMQP allows.
#![expect(clippy::unwrap_used, reason = "test support outside #[test] functions")]

use std::collections::VecDeque;

use futures_util::StreamExt as _;
use lapin::options::{
    BasicConsumeOptions, BasicNackOptions, BasicPublishOptions, BasicQosOptions,
    BasicRejectOptions, ConfirmSelectOptions,
};
use lapin::types::{AMQPValue, DecimalValue, FieldArray, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, ConnectionProperties};
use reqwest::Method;
use serde_json::{Value as Json, json};

use crate::vhost::{Vhost, block_on};

/// Publishes that are unconfirmed at once.
const IN_FLIGHT: usize = 1000;

/// Why a broker takes a message out of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Rejected,
    Expired,
    MaxLen,
    DeliveryLimit,
}

impl Reason {
    /// Those that queues of a type know.
    pub(crate) fn of(kind: &str) -> &'static [Self] {
        let all = &[
            Self::Rejected,
            Self::Expired,
            Self::MaxLen,
            Self::DeliveryLimit,
        ];
        if kind == "quorum" { all } else { &all[..3] }
    }

    /// The broker's word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::MaxLen => "maxlen",
            Self::DeliveryLimit => "delivery_limit",
        }
    }

    /// What makes a queue's messages die of it at once, as keys of a policy;
    /// a rejected one needs a consumer, and so does the delivery limit.
    fn policy(self) -> Json {
        match self {
            Self::Rejected => json!({}),
            Self::Expired => json!({"message-ttl": 0}),
            Self::MaxLen => json!({"max-length": 0}),
            Self::DeliveryLimit => json!({"delivery-limit": 0}),
        }
    }
}

/// How a consumer says no.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GiveUp {
    /// `basic.nack` without requeue.
    Nack,
    /// `basic.reject` without requeue, which 4.3 counts as a delivery too.
    Reject,
    /// `basic.reject` with requeue, which counts on every version.
    Return,
}

/// A message and where it is sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) exchange: String,
    pub(crate) key: String,
    pub(crate) properties: BasicProperties,
    pub(crate) body: Vec<u8>,
}

impl Sent {
    /// Straight to a queue.
    pub(crate) fn to_queue(queue: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            key: queue.to_owned(),
            body: body.into(),
            ..Self::default()
        }
    }

    pub(crate) fn with(mut self, properties: BasicProperties) -> Self {
        self.properties = properties;
        self
    }
}

/// Where dead letters go to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeadLetter<'a> {
    pub(crate) exchange: &'a str,
    pub(crate) key: Option<&'a str>,
}

impl<'a> DeadLetter<'a> {
    /// To this queue whatever its key was.
    pub(crate) const fn to_queue(queue: &'a str) -> Self {
        Self {
            exchange: "",
            key: Some(queue),
        }
    }

    /// As arguments of a queue.
    pub(crate) fn arguments(self) -> Json {
        arguments(&[self.policy()])
    }

    fn policy(self) -> Json {
        let mut keys = json!({"dead-letter-exchange": self.exchange});
        if let (Some(key), Some(keys)) = (self.key, keys.as_object_mut()) {
            keys.insert("dead-letter-routing-key".to_owned(), json!(key));
        }
        keys
    }
}

fn send_to(url: &str, messages: impl IntoIterator<Item = Sent>) {
    block_on(async {
        let properties = ConnectionProperties::default();
        let connection = lapin::Connection::connect(url, properties).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await
            .unwrap();
        let mut in_flight = VecDeque::new();
        for message in messages {
            if in_flight.len() >= IN_FLIGHT {
                confirmed(in_flight.pop_front()).await;
            }
            let confirm = channel
                .basic_publish(
                    message.exchange.as_str().into(),
                    message.key.as_str().into(),
                    BasicPublishOptions::default(),
                    &message.body,
                    message.properties,
                )
                .await
                .unwrap();
            in_flight.push_back(confirm);
        }
        while !in_flight.is_empty() {
            confirmed(in_flight.pop_front()).await;
        }
        connection.close(200, "bye".into()).await.unwrap();
    });
}

/// The arguments that say the same as these keys of policies.
fn arguments(policies: &[Json]) -> Json {
    let keys = policies.iter().filter_map(Json::as_object).flatten();
    keys.map(|(key, value)| (format!("x-{key}"), value.clone()))
        .collect()
}

impl Vhost {
    /// A durable queue with arguments as a client would send them.
    pub(crate) fn queue(&self, name: &str, kind: &str, arguments: &Json) {
        let mut all = json!({"x-queue-type": kind});
        if let (Some(all), Some(more)) = (all.as_object_mut(), arguments.as_object()) {
            all.extend(more.clone());
        }
        let body = json!({"durable": true, "arguments": all});
        self.api(Method::PUT, &["queues", &self.name, name], &body);
    }

    /// A queue in which dead letters may rest for ever and be looked at for ever.
    pub(crate) fn dead_letter_queue(&self, name: &str, kind: &str) {
        // Absent means unlimited up to 3.x, where -1 means "lost at once".
        let arguments = if kind == "quorum" && self.version() >= (4, 0) {
            json!({"x-delivery-limit": -1})
        } else {
            json!({})
        };
        self.queue(name, kind, &arguments);
    }

    /// A queue whose messages die of this and go there, as its arguments say.
    pub(crate) fn deadly_queue(&self, name: &str, kind: &str, reason: Reason, to: DeadLetter<'_>) {
        let keys = [to.policy(), reason.policy()];
        self.queue(name, kind, &arguments(&keys));
    }

    /// The same with a policy of this name instead of arguments.
    pub(crate) fn deadly_by_policy(
        &self,
        name: &str,
        kind: &str,
        reason: Reason,
        to: DeadLetter<'_>,
    ) {
        let mut definition = to.policy();
        if let (Some(all), Json::Object(more)) = (definition.as_object_mut(), reason.policy()) {
            all.extend(more);
        }
        self.policy(name, &format!("^{name}$"), &definition);
        self.queue(name, kind, &json!({}));
    }

    pub(crate) fn policy(&self, name: &str, pattern: &str, definition: &Json) {
        let body = json!({"pattern": pattern, "definition": definition, "apply-to": "queues"});
        self.api(Method::PUT, &["policies", &self.name, name], &body);
    }

    /// A durable exchange.
    pub(crate) fn exchange(&self, name: &str, kind: &str) {
        let body = json!({"durable": true, "type": kind});
        self.api(Method::PUT, &["exchanges", &self.name, name], &body);
    }

    pub(crate) fn bind(&self, exchange: &str, queue: &str, key: &str) {
        let path = ["bindings", &self.name, "e", exchange, "q", queue];
        self.api(Method::POST, &path, &json!({"routing_key": key}));
    }

    /// Publishes as fast as the broker takes it; all are confirmed at the end.
    pub(crate) fn send(&self, messages: impl IntoIterator<Item = Sent>) {
        send_to(&self.url(), messages);
    }

    /// The same as another user.
    pub(crate) fn send_as(
        &self,
        user: &str,
        password: &str,
        messages: impl IntoIterator<Item = Sent>,
    ) {
        send_to(&self.url_of(user, password), messages);
    }

    /// Lets so many messages of a deadly queue die; those that die by themselves
    /// only need to be waited for.
    pub(crate) fn let_die(&self, queue: &str, reason: Reason, count: usize) {
        match reason {
            Reason::Rejected => self.give_up(queue, GiveUp::Nack, count),
            // A nack does not count since 4.3.
            Reason::DeliveryLimit => self.give_up(queue, GiveUp::Return, count),
            Reason::Expired | Reason::MaxLen => {}
        }
        self.wait_for_ready(queue, 0);
    }

    /// Takes so many messages and gives each back in this way.
    pub(crate) fn give_up(&self, queue: &str, how: GiveUp, count: usize) {
        block_on(async {
            let properties = ConnectionProperties::default();
            let connection = lapin::Connection::connect(&self.url(), properties)
                .await
                .unwrap();
            let channel = connection.create_channel().await.unwrap();
            give_up(&channel, queue, how, count).await;
            connection.close(200, "bye".into()).await.unwrap();
        });
    }

    /// Takes the bodies of all that are ready out of a queue, for good.
    pub(crate) fn drain(&self, queue: &str) -> Vec<Vec<u8>> {
        let count = self.ready(queue) as usize;
        block_on(async {
            let properties = ConnectionProperties::default();
            let connection = lapin::Connection::connect(&self.url(), properties)
                .await
                .unwrap();
            let channel = connection.create_channel().await.unwrap();
            let options = BasicConsumeOptions {
                no_ack: true,
                ..BasicConsumeOptions::default()
            };
            let consumer = channel
                .basic_consume(queue.into(), "".into(), options, FieldTable::default())
                .await
                .unwrap();
            let bodies = consumer
                .take(count)
                .map(|delivery| delivery.unwrap().data)
                .collect()
                .await;
            connection.close(200, "bye".into()).await.unwrap();
            bodies
        })
    }

    /// A dead-letter queue with so many small messages, each with its number as
    /// body, which expired in `origin`; both are made here. The origin keeps what
    /// comes to it without an expiration.
    pub(crate) fn dead_letters(&self, origin: &str, dead: &str, kind: &str, count: usize) {
        self.dead_letter_queue(dead, kind);
        self.queue(origin, kind, &DeadLetter::to_queue(dead).arguments());
        self.more_dead_letters(origin, dead, 0..count);
    }

    /// More of them, with these numbers.
    pub(crate) fn more_dead_letters(
        &self,
        origin: &str,
        dead: &str,
        numbers: std::ops::Range<usize>,
    ) {
        let before = self.ready(dead);
        let count = u32::try_from(numbers.len()).unwrap();
        self.send(numbers.map(|number| {
            let properties = BasicProperties::default()
                .with_expiration("0".into())
                .with_delivery_mode(2)
                .with_message_id(number.to_string().into());
            Sent::to_queue(origin, number.to_string()).with(properties)
        }));
        self.wait_for_ready(dead, before + count);
    }
}

async fn confirmed(confirm: Option<impl Future<Output = lapin::Result<Confirmation>>>) {
    let told = confirm.unwrap().await.unwrap();
    assert!(matches!(told, Confirmation::Ack(None)), "{told:?}");
}

async fn give_up(channel: &Channel, queue: &str, how: GiveUp, count: usize) {
    channel
        .basic_qos(200, BasicQosOptions::default())
        .await
        .unwrap();
    let options = BasicConsumeOptions::default();
    let mut consumer = channel
        .basic_consume(queue.into(), "".into(), options, FieldTable::default())
        .await
        .unwrap();
    for _ in 0..count {
        let delivery = consumer.next().await.unwrap().unwrap();
        let drop = BasicNackOptions {
            requeue: false,
            ..BasicNackOptions::default()
        };
        let reject = |requeue| delivery.acker.reject(BasicRejectOptions { requeue });
        let told = match how {
            GiveUp::Nack => delivery.acker.nack(drop).await,
            GiveUp::Reject => reject(false).await,
            GiveUp::Return => reject(true).await,
        };
        assert!(told.unwrap());
    }
}

/// Headers of every type that AMQP 0-9-1 as RabbitMQ speaks it has, and nested ones.
pub(crate) fn every_header() -> FieldTable {
    let text = |text: &str| AMQPValue::LongString(text.into());
    let mut inner = FieldTable::default();
    inner.insert("deep".into(), text("é\u{1f407}"));
    inner.insert("when".into(), AMQPValue::Timestamp(1_700_000_000));
    inner.insert("none".into(), AMQPValue::Void);
    let mut odd = FieldTable::default();
    odd.insert("$int8".into(), AMQPValue::LongLongInt(1));
    let mut array = FieldArray::default();
    array.push(AMQPValue::ShortInt(-300));
    array.push(AMQPValue::FieldTable(inner.clone()));
    array.push(AMQPValue::FieldArray(FieldArray::default()));
    let mut headers = FieldTable::default();
    for (name, value) in [
        ("bool", AMQPValue::Boolean(true)),
        ("int8", AMQPValue::ShortShortInt(-8)),
        ("uint8", AMQPValue::ShortShortUInt(200)),
        ("int16", AMQPValue::ShortInt(-1600)),
        ("uint16", AMQPValue::ShortUInt(60_000)),
        ("int32", AMQPValue::LongInt(-70_000)),
        ("uint32", AMQPValue::LongUInt(4_000_000_000)),
        ("int64", AMQPValue::LongLongInt(i64::MIN)),
        ("float", AMQPValue::Float(0.1)),
        ("double", AMQPValue::Double(-0.1)),
        (
            "decimal",
            AMQPValue::DecimalValue(DecimalValue {
                scale: 2,
                value: 314,
            }),
        ),
        ("text", text("plain")),
        ("empty", text("")),
        (
            "not text",
            AMQPValue::LongString(vec![0xff, 0x00, 0xfe].into()),
        ),
        ("bytes", AMQPValue::ByteArray(vec![0x00, 0x01, 0xff].into())),
        ("time", AMQPValue::Timestamp(1_600_000_000)),
        ("void", AMQPValue::Void),
        ("table", AMQPValue::FieldTable(inner)),
        ("looks like a tag", AMQPValue::FieldTable(odd)),
        ("empty table", AMQPValue::FieldTable(FieldTable::default())),
        ("array", AMQPValue::FieldArray(array)),
    ] {
        headers.insert(name.into(), value);
    }
    headers
}

/// Every property but the expiration and the user.
pub(crate) fn every_property() -> BasicProperties {
    BasicProperties::default()
        .with_headers(every_header())
        .with_content_type("application/json".into())
        .with_content_encoding("identity".into())
        .with_delivery_mode(2)
        .with_priority(7)
        .with_correlation_id("correlation é".into())
        .with_reply_to("answers".into())
        .with_message_id("id-1".into())
        .with_timestamp(1_650_000_000)
        .with_type("order.created".into())
        .with_app_id("shop".into())
        .with_cluster_id("c".into())
}

/// A header of texts, such as `CC`.
pub(crate) fn texts(texts: &[&str]) -> AMQPValue {
    let mut array = FieldArray::default();
    for text in texts {
        array.push(AMQPValue::LongString((*text).into()));
    }
    AMQPValue::FieldArray(array)
}
