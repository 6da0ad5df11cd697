//! A message held against its schema: `cargo bench --bench contract`.
#![expect(clippy::unwrap_used, reason = "a benchmark")]

use divan::Bencher;
use mq::contract::{Contracts, Schema};
use mq::message::{Delivery, Properties};
use mq::topology::QueueName;
use serde_json::{Value as Json, json};

/// What `topologies/schemas` has of rules, and a list of objects.
const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["order_id", "customer", "status", "items"],
  "properties": {
    "order_id": { "type": "string", "minLength": 3, "maxLength": 50 },
    "customer": { "type": "string", "pattern": "^[a-z]+$" },
    "status": { "enum": ["new", "paid", "sent"] },
    "items": {
      "type": "array",
      "minItems": 1,
      "items": {
        "type": "object",
        "required": ["sku", "count", "price"],
        "properties": {
          "sku": { "type": "string" },
          "count": { "type": "integer", "minimum": 1 },
          "price": { "type": "number", "minimum": 0 }
        }
      }
    }
  }
}"#;

fn main() {
    divan::main();
}

/// A body of about 1 KB.
fn order(count: i64) -> Json {
    let items: Vec<Json> = (0..18)
        .map(|n| json!({"sku": format!("sku-{n:04}"), "count": count, "price": 9.5, "name": "x"}))
        .collect();
    json!({"order_id": "order-1", "customer": "ada", "status": "paid", "items": items})
}

fn check(bencher: Bencher<'_, '_>, count: i64) {
    let contracts = Contracts::of_all(Schema::compile("order", SCHEMA.as_bytes()).unwrap());
    let queue = QueueName::new("orders").unwrap();
    let body = order(count).to_string().into_bytes();
    assert!((1000..1100).contains(&body.len()), "{}", body.len());
    let delivery = Delivery {
        exchange: String::new(),
        routing_key: "orders".to_owned(),
        redelivered: false,
        properties: Properties::default(),
        body,
    };
    bencher.bench(|| contracts.broken_by(&queue, &delivery));
}

#[divan::bench]
fn a_message_of_1_kb_that_fits(bencher: Bencher<'_, '_>) {
    check(bencher, 1);
}

#[divan::bench]
fn a_message_of_1_kb_with_18_violations(bencher: Bencher<'_, '_>) {
    check(bencher, 0);
}
