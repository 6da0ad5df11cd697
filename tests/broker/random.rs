//! Random topologies for the tests that hold the simulation against a broker:
//! the same ones on every run and version, so that a difference can be looked at.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "test support: helpers are outside #[test] functions and read the environment"
)]

use std::ops::Range;
use std::time::Duration;

use fastrand::Rng;
use futures_util::StreamExt as _;
use futures_util::stream::iter;
use lapin::types::{AMQPValue, DecimalValue, FieldArray, FieldTable as LapinTable};
use mq::amqp::{Connection, Declared, Frames};
use mq::field::{FieldTable, FieldValue};
use mq::topology::Topology;
use reqwest::Method;
use serde_json::json;

use crate::vhost::{Vhost, no_tls};

/// The numbers of the topologies to try, in batches that share a vhost. Without
/// `MQ_TEST_TOPOLOGIES` (a count, or `FROM..TO`) only the first `few`.
pub(crate) fn batches(few: usize, size: usize) -> Vec<Range<usize>> {
    let wanted = std::env::var("MQ_TEST_TOPOLOGIES").unwrap_or_else(|_| few.to_string());
    let (from, to) = wanted.split_once("..").unwrap_or(("0", &wanted));
    let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
    (from..to)
        .step_by(size)
        .map(|first| first..to.min(first + size))
        .collect()
}

/// The dice of one topology.
pub(crate) fn dice(number: usize) -> Rng {
    Rng::with_seed(0x5eed_0000 + number as u64)
}

/// Whether something happens that does so in so many of a hundred cases.
pub(crate) fn percent(rng: &mut Rng, chance: u32) -> bool {
    rng.u32(0..100) < chance
}

/// One of these.
pub(crate) fn one_of<T: Clone>(rng: &mut Rng, all: &[T]) -> T {
    rng.choice(all).unwrap().clone()
}

/// Declares all of it over AMQP, where header values keep their types (YAML and
/// JSON have one type of integer); policies through the management API.
pub(crate) async fn declare(vhost: &Vhost, topology: &Topology) {
    let connection = Connection::open(
        &[vhost.endpoint()],
        &no_tls(),
        "test",
        Duration::from_secs(30),
        Frames::Large,
    )
    .await
    .unwrap();
    for ((_, name), policy) in &topology.policies {
        let body = json!({
            "pattern": policy.pattern.as_str(),
            "apply-to": policy.apply_to.to_string(),
            "priority": policy.priority,
            "definition": mq::field::table_to_json(&policy.definition),
        });
        let path = ["policies", &vhost.name, name.as_str()];
        vhost.ask(Method::PUT, &path, &body).await;
    }
    let exchanges: Vec<_> = iter(&topology.exchanges)
        .map(|(name, exchange)| connection.declare_exchange(name, exchange))
        .buffer_unordered(16)
        .collect()
        .await;
    let queues: Vec<_> = iter(&topology.queues)
        .map(|(name, queue)| connection.declare_queue(name, queue))
        .buffer_unordered(16)
        .collect()
        .await;
    for answer in exchanges.into_iter().chain(queues) {
        assert_eq!(answer.unwrap(), Declared::AsAsked);
    }
    let bound: Vec<_> = iter(&topology.bindings)
        .map(|binding| connection.bind(binding))
        .buffer_unordered(16)
        .collect()
        .await;
    for answer in bound {
        answer.unwrap();
    }
    connection.close().await;
}

/// Headers for a client that checks nothing.
pub(crate) fn lapin_table(table: &FieldTable) -> LapinTable {
    let mut converted = LapinTable::default();
    for (name, value) in table {
        converted.insert(name.as_str().into(), lapin_value(value));
    }
    converted
}

fn lapin_value(value: &FieldValue) -> AMQPValue {
    match value {
        FieldValue::Void => AMQPValue::Void,
        FieldValue::Bool(v) => AMQPValue::Boolean(*v),
        FieldValue::I8(v) => AMQPValue::ShortShortInt(*v),
        FieldValue::U8(v) => AMQPValue::ShortShortUInt(*v),
        FieldValue::I16(v) => AMQPValue::ShortInt(*v),
        FieldValue::U16(v) => AMQPValue::ShortUInt(*v),
        FieldValue::I32(v) => AMQPValue::LongInt(*v),
        FieldValue::U32(v) => AMQPValue::LongUInt(*v),
        FieldValue::I64(v) => AMQPValue::LongLongInt(*v),
        FieldValue::F32(v) => AMQPValue::Float(*v),
        FieldValue::F64(v) => AMQPValue::Double(*v),
        FieldValue::Decimal { scale, value } => AMQPValue::DecimalValue(DecimalValue {
            scale: *scale,
            value: *value,
        }),
        FieldValue::LongStr(bytes) => AMQPValue::LongString(bytes.clone().into()),
        FieldValue::Bytes(bytes) => AMQPValue::ByteArray(bytes.clone().into()),
        FieldValue::Timestamp(seconds) => AMQPValue::Timestamp(*seconds),
        FieldValue::Array(items) => {
            let items: Vec<AMQPValue> = items.iter().map(lapin_value).collect();
            AMQPValue::FieldArray(FieldArray::from(items))
        }
        FieldValue::Table(table) => AMQPValue::FieldTable(lapin_table(table)),
    }
}
